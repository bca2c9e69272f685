//! Tests of valid and invalid `git` sections.

use super::super::{Remote, Scheme};
use super::*;
use belljar_contract::yaml::{MistakeLog, parse};

fn read(yaml: &str) -> (GitRules, String) {
    let mut log = MistakeLog::default();
    let rules = parse(yaml.as_bytes(), &mut log).map(|node| GitRules::read(&node, &mut log));
    let mistakes = log.finish().err().map(|mistakes| mistakes.to_string()).unwrap_or_default();
    (rules.unwrap_or_default(), mistakes)
}

const ALL: &str = r#"
hosts: [git.house.example, "**.corp.example"]
networks: [10.0.0.0/8]
forges:
  - {host: git.house.example, kind: gitea, connection: forge}
  - {host: hub.example, kind: github, connection: hub}
remotes: ["https://git.house.example/team/", "https://hub.example/a/b.git"]
"#;

#[test]
fn git_configuration_is_read_and_defaults_to_nothing() {
    let (rules, mistakes) = read(ALL);
    assert_eq!(mistakes, "");
    let hosts: Vec<String> = rules.hosts.iter().map(ToString::to_string).collect();
    assert_eq!(hosts, ["git.house.example", "**.corp.example"]);
    assert_eq!(rules.networks, [Network::parse("10.0.0.0/8").unwrap()]);
    let forge = |host: &str, kind, connection: &str| Forge {
        host: Host::parse(host).unwrap(),
        kind,
        connection: connection.to_owned(),
    };
    assert_eq!(
        rules.forges,
        [
            forge("git.house.example", ForgeKind::Gitea, "forge"),
            forge("hub.example", ForgeKind::GitHub, "hub")
        ]
    );
    for (url, is_for_agents) in [
        ("https://git.house.example/team/app.git", true),
        ("https://hub.example/a/b.git", true),
        ("https://git.house.example/other/app.git", false),
        ("https://hub.example/a/c.git", false),
    ] {
        let remote = Remote::parse(url, false).unwrap();
        assert_eq!(remote.scheme(), Scheme::Https);
        assert_eq!(rules.is_for_agents(&remote), is_for_agents, "{url}");
        assert!(!GitRules::default().is_for_agents(&remote), "{url}");
    }
    assert_eq!(read("{}"), (GitRules::default(), String::new()));
}

#[test]
fn every_mistake_is_told_with_its_place() {
    let (_, mistakes) = read(
        r#"
hosts: ["*"]
networks: [10.1.2.3/8]
forges:
  - {host: hub.example, kind: github, connection: a}
  - {host: HUB.example, kind: gitlab, connection: b}
  - {kind: svn}
remotes: ["file:///srv/"]
more: 1
"#,
    );
    insta::assert_snapshot!(mistakes, @r#"
    2:9: hosts[0]: found "*"; expected a name, *.NAME, **.NAME or an address
    3:12: networks[0]: found "10.1.2.3/8"; expected a network, such as 10.0.0.0/8, that names its first address
    5:3: forges: found "hub.example" twice; expected each host once
    7:5: forges[2].host: found nothing; expected this required member
    7:5: forges[2].connection: found nothing; expected this required member
    7:12: forges[2].kind: found "svn"; expected one of: gitea, github, gitlab
    8:11: remotes[0]: found "file:///srv/"; expected the address of a repository, or one with a slash at its end for all below it
    9:1: more: found an unknown member; expected one of: forges, hosts, networks, remotes
    "#);
}
