//! A pull request for a push: at a forge that counts requests, over TLS, with a token that only the host has.

use super::rig::{GitFixture, holding};
use crate::BELLJAR;
use crate::agents::small::SmallAgentWorld;
use belljar_testkit::forge::Reply;
use belljar_testkit::git::updates;
use belljar_testkit::world::{ProgramOutput, World};
use serde_json::Value;

const TOKEN: &str = "tk-4hQm8Zr1VbX6sL";

/// Writes the configuration of a forge of that kind at the rig's server.
fn configure(rig: &GitFixture, kind: &str, more: &str) {
    let (prefix, placement) = match kind {
        "gitlab" => ("/api/v4", "header private-token"),
        "gitea" => ("/api/v1", "bearer"),
        _ => ("/api", "bearer"),
    };
    rig.world.write("token", TOKEN);
    let connection = format!(
        "{{name: forge, url: 'https://127.0.0.1:{}{prefix}', credential: {{file: {}}}, as: {placement}, \
         networks: [127.0.0.0/8], authorities: {}{more}}}",
        rig.server.port(),
        rig.world.path().join("token").display(),
        rig.server.authority().display(),
    );
    let sections = format!(
        "egress: {{rules: [], connections: [{connection}]}}, \
         git: {{forges: [{{host: 127.0.0.1, kind: {kind}, connection: forge}}]}}"
    );
    rig.world.write("forge.yaml", format!("{{{sections}}}"));
}

/// Returns a rig with a team's project, and a clone of it with some changes.
fn begin(test: &str, kind: &str) -> Option<GitFixture> {
    let rig = GitFixture::beside_a_forge(test, World::new(BELLJAR), TOKEN)?;
    configure(&rig, kind, ", methods: [GET, POST]");
    rig.clone().succeeded();
    rig.leaves("b.txt", "b\n");
    Some(rig)
}

fn push(rig: &GitFixture, options: &[&str]) -> ProgramOutput {
    let all = ["--config", "forge.yaml", "--branch", "belljar/one", "--json", "--pr"];
    rig.push(&[&all, options].concat())
}

#[test]
fn repeated_push_opens_one_pull_request_on_each_forge() {
    for kind in ["github", "gitea", "gitlab"] {
        let test = "repeated_push_opens_one_pull_request_on_each_forge";
        let Some(rig) = begin(test, kind) else { return };
        for other in 0..5 {
            rig.forge().has("team/origin", &format!("other-{other}"), "main");
        }
        let message = ["--message", "Fix it\n\nBecause.\nAnd so."];
        let told = push(&rig, &message).succeeded().json();
        let url = Value::from("https://forge.test/team/origin/pulls/6");
        let requested = &told["pull_request"];
        assert_eq!((&requested["outcome"], &requested["url"]), (&"opened".into(), &url), "{kind}: {told:#}");
        let opened = rig.forge().opened().pop().unwrap();
        assert_eq!((opened.title.as_str(), opened.body.as_str()), ("Fix it", "Because.\nAnd so."), "{kind}");
        assert_eq!((opened.head.as_str(), opened.base.as_str()), ("belljar/one", "main"), "{kind}");
        assert!(!opened.is_draft, "{kind}");
        // The local record has the same effect as the forge's response.
        for forgets in [false, true] {
            if forgets {
                forget(&rig);
            }
            let told = push(&rig, &message).succeeded().json();
            let requested = &told["pull_request"];
            let outcome = &Value::from("already_open");
            assert_eq!((&requested["outcome"], &requested["url"]), (outcome, &url), "{kind}: {told:#}");
        }
        assert_eq!((rig.forge().opened().len(), updates(&rig.bare, "belljar/one")), (6, 1), "{kind}");
        let audit = rig.world.run(&["audit", "show", "--json"]).succeeded().stdout;
        assert!(
            audit.contains("git_pull_request_begun") && audit.contains("/team/origin/pulls/6"),
            "{audit}"
        );
        assert!(!audit.contains(TOKEN));
        for folder in ["state", "work"] {
            assert!(holding(&rig.world.path().join(folder), TOKEN).is_empty());
        }
    }
}

/// Removes the records of pull requests.
fn forget(rig: &GitFixture) {
    for folder in std::fs::read_dir(rig.world.path().join("state/git")).unwrap() {
        for file in std::fs::read_dir(folder.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            if path.file_name().unwrap().to_string_lossy().starts_with("push-") {
                let mut note: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
                assert!(note["pull_request"]["url"].is_string(), "{note:#}");
                note["pull_request"] = Value::Null;
                std::fs::write(&path, note.to_string()).unwrap();
            }
        }
    }
}

#[test]
fn pull_request_has_the_given_title_body_base_and_draft_state() {
    for kind in ["github", "gitea", "gitlab"] {
        let test = "pull_request_has_the_given_title_body_base_and_draft_state";
        let Some(rig) = begin(test, kind) else { return };
        belljar_testkit::git::git(&rig.bare, &["branch", "next"]);
        let words = ["--pr-title", "A title", "--pr-body", "A\nbody", "--pr-base", "next", "--pr-draft"];
        push(&rig, &words).succeeded();
        let opened = rig.forge().opened().pop().unwrap();
        assert!(opened.title.ends_with("A title") && opened.is_draft, "{kind}: {opened:?}");
        assert_eq!((opened.body.as_str(), opened.base.as_str()), ("A\nbody", "next"), "{kind}");
        // A pull request into another branch is a separate one.
        push(&rig, &["--pr-base", "main"]).succeeded();
        assert_eq!(rig.forge().opened().len(), 2, "{kind}");
    }
}

#[test]
fn nothing_is_pushed_if_no_pull_request_can_be_opened() {
    let Some(rig) = begin("nothing_is_pushed_if_no_pull_request_can_be_opened", "github") else { return };
    let before = rig.server.requests().len();
    // No forge configured, a connection that permits other calls only, and an invalid base branch.
    rig.world.write("none.yaml", "git:\n  networks: [127.0.0.0/8]\n");
    let ran = rig.push(&["--config", "none.yaml", "--branch", "belljar/one", "--pr"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("no forge is known") && ran.stderr.contains("git.forges"), "{ran:?}");
    configure(&rig, "github", "");
    let ran = push(&rig, &[]);
    assert!(ran.code == 2 && ran.stderr.contains("is not for POST"), "{ran:?}");
    configure(&rig, "github", ", methods: [GET, POST]");
    let ran = push(&rig, &["--pr-base", "refs/heads/main"]);
    assert!(ran.code == 2 && rig.server.requests().len() == before, "{ran:?}");
    let ran = push(&rig, &["--pr-base", "nowhere"]);
    assert_eq!((ran.code, ran.json()["reason"].as_str()), (3, Some("base_unknown")), "{ran:?}");
    assert!(rig.forge().calls().is_empty() && updates(&rig.bare, "belljar/one") == 0);
    push(&rig, &[]).succeeded();
}

#[test]
fn refused_pull_request_keeps_the_branch_and_a_retry_opens_it() {
    let test = "refused_pull_request_keeps_the_branch_and_a_retry_opens_it";
    let Some(rig) = begin(test, "gitea") else { return };
    rig.world.write("token", "another-token");
    let ran = push(&rig, &[]);
    let told = ran.json();
    let reason = told["pull_request"]["reason"].as_str();
    assert_eq!((ran.code, told["outcome"].as_str(), reason), (5, Some("pushed"), Some("forge_forbidden")));
    rig.world.write("token", TOKEN);
    rig.forge().reply([Reply::Refuses(422, "No \u{1b}[31mcommits"), Reply::Refuses(500, "down")]);
    let ran = rig.push(&["--config", "forge.yaml", "--branch", "belljar/one", "--pr"]);
    assert_eq!(ran.code, 5, "{ran:?}");
    assert!(ran.stderr.contains("with status 422: No  [31mcommits\n"), "{ran:?}");
    assert_eq!(push(&rig, &[]).json()["pull_request"]["reason"], "forge_refused");
    assert!(rig.forge().opened().is_empty());
    let told = push(&rig, &[]).succeeded().json();
    assert_eq!(
        (told["outcome"].as_str(), told["pull_request"]["outcome"].as_str()),
        (Some("already_there"), Some("opened"))
    );
    // A pull request that was closed isn't opened again.
    rig.forge().close();
    push(&rig, &[]).succeeded();
    assert_eq!((rig.forge().opened().len(), updates(&rig.bare, "belljar/one")), (1, 1));
}

#[test]
fn lost_response_opens_no_second_pull_request() {
    let Some(rig) = begin("lost_response_opens_no_second_pull_request", "github") else { return };
    rig.forge().reply([Reply::OpensAndHangsUp]);
    let told = push(&rig, &[]).succeeded().json();
    assert_eq!(told["pull_request"]["url"], "https://forge.test/team/origin/pulls/1");
    assert_eq!(rig.forge().opened().len(), 1);
}

#[test]
fn agent_run_opens_a_pull_request_without_its_token_inside() {
    let test = "agent_run_opens_a_pull_request_without_its_token_inside";
    let Some(rig) = GitFixture::beside_a_forge(test, World::new(BELLJAR), TOKEN) else { return };
    let looks = "grep -rIs 'tk-[4]hQm8' / --exclude-dir=proc --exclude-dir=sys --exclude-dir=usr; \
        env | grep 'tk-[4]h'; echo work >work.txt; echo end";
    let small = SmallAgentWorld::shell(&rig.world, looks);
    configure(&rig, "gitea", ", methods: [GET, POST]");
    let (config, forge) = (rig.world.read("config.yaml"), rig.world.read("forge.yaml"));
    let (config, forge) = (config.trim().strip_suffix('}').unwrap(), forge.strip_prefix('{').unwrap());
    rig.world.write("config.yaml", format!("{config}, {forge}"));
    let run = |options: &[&str]| {
        let all = ["agent", "small", "--model", "small", "--config", "config.yaml", "--clone", &rig.url];
        rig.world.run(&[&all[..], &["--allow-network", "127.0.0.0/8"], options, &["--", "hi"]].concat())
    };
    // A run without a push can't have a pull request, which is refused before anything runs.
    let ran = run(&["--pr"]);
    assert!(ran.code == 125 && small.server.request_count() == 0, "{ran:?}");
    let result = run(&["--push", "--pr", "--json"]).succeeded().json();
    assert_eq!(result["stdout"], "end\n", "{result:#}");
    let opened = rig.forge().opened();
    let run_id = result["run_id"].as_str().unwrap();
    assert_eq!((opened.len(), opened[0].head.as_str()), (1, format!("belljar/{run_id}").as_str()));
    assert!(opened[0].body.contains(&format!("Belljar-Run: {run_id}")), "{opened:?}");
    assert_eq!(result["push"]["pull_request"]["url"], "https://forge.test/team/origin/pulls/1", "{result:#}");
    // The control: a process outside of the sandbox finds it.
    assert_eq!(holding(&rig.world.path().join("token"), TOKEN).len(), 1);
}
