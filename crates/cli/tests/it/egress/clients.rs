//! Real clients that install from real registries, with a policy that names only the registry.

use super::git_server::GitServer;
use super::policy;
use super::registries::{PackageRegistry, node, toolchain};
use crate::BELLJAR;
use belljar_testkit::skip::skip;
use belljar_testkit::world::{ProgramOutput, World};
use serde_json::Value;
use std::collections::BTreeSet;

/// A client's task: its mounts, and its commands.
struct ClientTask {
    registry: PackageRegistry,
    lent: Vec<String>,
    script: String,
    /// Its output when it is done.
    done: &'static str,
}

/// A host that no policy here names, to show the denial that a web client gets.
const ELSEWHERE: &str = "https://elsewhere.example/";

// === impl ClientTask ===

impl ClientTask {
    fn run(&self, world: &World, rules: &str) -> ProgramOutput {
        policy(world, rules);
        let variables = self.registry.variables.iter().flat_map(|variable| ["-e", variable.as_str()]);
        let lent = self.lent.iter().flat_map(|lent| ["--ro", lent.as_str()]);
        let before: Vec<&str> =
            ["exec", "--egress", "policy.yaml"].into_iter().chain(variables).chain(lent).collect();
        world.run(&[&before[..], &["--", "sh", "-ec", &self.script]].concat())
    }
}

fn passages(world: &World) -> Vec<Value> {
    let shown = world.run(&["audit", "show", "--json", "--kind", "egress"]).succeeded();
    let records = shown.stdout.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    records.map(|record| record["event"].clone()).collect()
}

/// Checks that the task works with the registry's rules, and that without them it fails and reaches no server.
#[track_caller]
fn works_by_its_registry_alone(test: &str, work: Result<ClientTask, String>) {
    let work = match work {
        Ok(work) => work,
        Err(why) => return skip(test, &why),
    };
    let world = World::new(BELLJAR);
    let ran = work.run(&world, &work.registry.rules());
    assert!(ran.code == 0 && ran.stdout.contains(work.done), "{ran:?}");
    let passages_by_rules = passages(&world);
    let named: BTreeSet<&str> = work.registry.hosts.iter().map(|(host, _)| host.as_str()).collect();
    let (through, denied): (Vec<&Value>, Vec<&Value>) =
        passages_by_rules.iter().partition(|passage| passage["address"].is_string());
    assert!(!through.is_empty());
    for passage in through {
        let host = passage["asked"]["host"].as_str().unwrap();
        assert!(named.contains(host), "{passage}");
    }
    for passage in &denied {
        let asked = (&passage["asked"]["host"], &passage["outcome"]["denied"]["reason"]);
        assert_eq!(asked, (&"elsewhere.example".into(), &"no_rule_for_host".into()), "{passage}");
    }
    // The control: a rule for another host doesn't allow the registry.
    let elsewhere = World::new(BELLJAR);
    let ran = work.run(&elsewhere, "[{host: other.example}]");
    assert!(ran.code != 0 && !ran.stdout.contains(work.done), "{ran:?}");
    let denied = passages(&elsewhere);
    assert!(!denied.is_empty(), "{ran:?}");
    for passage in denied {
        assert_eq!(passage["outcome"]["denied"]["reason"], "no_rule_for_host", "{passage}");
    }
}

#[test]
fn pip_requests_and_urllib_reach_the_registry_of_the_policy() {
    let script = format!(
        "python3 -m pip install --quiet --no-cache-dir --retries 0 --target /workspace/lib requests\n\
         export PYTHONPATH=/workspace/lib\n\
         python3 - \"$PIP_INDEX_URL/six/\" {ELSEWHERE} <<'END'\n\
         import sys, urllib.request, urllib.error, requests\n\
         there, elsewhere = sys.argv[1:]\n\
         assert requests.get(there).status_code == 200\n\
         assert urllib.request.urlopen(there).status == 200\n\
         for ask in (requests.get, urllib.request.urlopen):\n\
         \x20   try: ask(elsewhere)\n\
         \x20   except (requests.exceptions.ProxyError, urllib.error.URLError) as error: assert '403' in str(error), error\n\
         \x20   else: sys.exit('it got through')\n\
         print('pip is done')\n\
         END\n"
    );
    let work = PackageRegistry::of_python().map(|registry| ClientTask {
        registry,
        lent: vec![],
        script,
        done: "pip is done",
    });
    works_by_its_registry_alone("pip through the web proxy", work);
}

#[test]
fn npm_and_node_reach_the_registry_of_the_policy() {
    let script = format!(
        "export PATH=/opt/node/bin:$PATH\n\
         node /opt/node/lib/node_modules/npm/bin/npm-cli.js install --no-audit --no-fund --fetch-retries=0 left-pad\n\
         node - \"$npm_config_registry\" {ELSEWHERE} <<'END'\n\
         const [there, elsewhere] = process.argv.slice(2), https = require('https');\n\
         const get = url => new Promise((told, failed) => https.get(url, answer => {{ answer.resume(); told(answer.statusCode); }}).on('error', failed));\n\
         (async () => {{\n\
           if ((await fetch(there + 'left-pad')).status != 200) throw 'fetch';\n\
           if (await get(there + 'left-pad') != 200) throw 'https';\n\
           const refused = await Promise.allSettled([fetch(elsewhere), get(elsewhere)]);\n\
           if (refused.some(one => one.status != 'rejected')) throw 'it got through';\n\
           console.log(require('/workspace/node_modules/left-pad')('is done', 11, 'npm '));\n\
         }})();\n\
         END\n"
    );
    let lent = vec![format!("{}:/opt/node", node().display())];
    let work =
        PackageRegistry::of_node().map(|registry| ClientTask { registry, lent, script, done: "npm is done" });
    works_by_its_registry_alone("npm through the web proxy", work);
}

#[test]
fn cargo_fetches_from_the_registry_of_the_policy() {
    let script = "export PATH=/opt/toolchain/bin:$PATH CARGO_NET_RETRY=0\n\
         cargo init --quiet --vcs none --name a .\n\
         test -z \"$SOURCES\" || { mkdir .cargo && printf %s \"$SOURCES\" > .cargo/config.toml; }\n\
         echo 'itoa = \"1\"' >> Cargo.toml\n\
         cargo fetch && ls ~/.cargo/registry/cache/*/itoa-1*.crate && echo cargo is done\n";
    let lent = vec![format!("{}:/opt/toolchain", toolchain().display())];
    let work = PackageRegistry::of_rust().map(|registry| ClientTask {
        registry,
        lent,
        script: script.to_owned(),
        done: "cargo is done",
    });
    works_by_its_registry_alone("cargo through the web proxy", work);
}

#[test]
fn curl_reads_the_allowed_host_and_gets_denials_for_others() {
    let script = format!(
        "test $(curl -sS -o /dev/null -w '%{{http_code}}' \"$PIP_INDEX_URL/six/\") = 200\n\
         test $(curl -s -o /dev/null -w '%{{http_connect}}' {ELSEWHERE}) = 403\n\
         curl -s http://elsewhere.example/ | grep -o 'urn:belljar:egress:[a-z_]*'\n"
    );
    let done = "urn:belljar:egress:not_allowed";
    let work =
        PackageRegistry::of_python().map(|registry| ClientTask { registry, lent: vec![], script, done });
    works_by_its_registry_alone("curl through the web proxy", work);
}

#[test]
fn git_clones_over_https_from_the_server_of_the_policy() {
    let (world, server, other) = (World::new(BELLJAR), GitServer::start(), GitServer::start());
    // The client must not bypass the proxy for local addresses.
    let script = "unset NO_PROXY no_proxy; git clone --quiet \"$WHERE\" /workspace/cloned && cat /workspace/cloned/file";
    let clone = |server: &GitServer, rules: &str| {
        policy(&world, rules);
        let (lent, there) =
            (format!("{}:/authority.pem", server.authority()), format!("WHERE={}", server.url()));
        let trust = "GIT_SSL_CAINFO=/authority.pem";
        world.run(&[
            "exec",
            "--egress",
            "policy.yaml",
            "--ro",
            &lent,
            "-e",
            trust,
            "-e",
            &there,
            "--",
            "sh",
            "-c",
            script,
        ])
    };
    let rules =
        |port: u16| format!("[{{host: localhost, ports: [{port}], networks: [127.0.0.0/8, \"::1\"]}}]");
    let ran = clone(&server, &rules(server.port()));
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "cloned\n"), "{ran:?}");
    assert!(server.asked() > 0);
    let ran = clone(&other, &rules(server.port()));
    assert!(ran.code != 0 && ran.stderr.contains("403"), "{ran:?}");
    assert_eq!(other.asked(), 0);
    // The control.
    assert_eq!(clone(&other, &rules(other.port())).stdout, "cloned\n");
}
