//! Web access from a sandbox with real programs, and the reports about it outside.

mod clients;
mod flooded;
pub(crate) mod git_server;
mod handed_over;
mod learned;
mod looked_into;
mod redirects;
mod registries;
mod spellings;

use crate::BELLJAR;
use belljar_testkit::skip::skip;
use belljar_testkit::world::World;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A server that responds `hello` to every request, and counts.
pub(crate) struct HelloServer {
    pub(crate) address: SocketAddr,
    asked: Arc<AtomicUsize>,
    heard: Arc<AtomicUsize>,
}

// === impl HelloServer ===

impl HelloServer {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let asked = Arc::<AtomicUsize>::default();
        let heard = Arc::<AtomicUsize>::default();
        let theirs = (Arc::clone(&asked), Arc::clone(&heard));
        // The thread ends with the test's process.
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                theirs.0.fetch_add(1, Ordering::SeqCst);
                let has_said = stream.read(&mut [0; 4096]).is_ok_and(|count| count > 0);
                theirs.1.fetch_add(usize::from(has_said), Ordering::SeqCst);
                let _ = stream
                    .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\nhello\n");
            }
        });
        Self { address, asked, heard }
    }

    /// Returns the number of accepted connections.
    pub(crate) fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// Returns the number of connections that sent data.
    fn heard(&self) -> usize {
        self.heard.load(Ordering::SeqCst)
    }
}

fn policy(world: &World, rules: &str) {
    policy_text(world, &format!("rules: {rules}\n"));
}

fn policy_text(world: &World, text: &str) {
    world.write("policy.yaml", text);
}

#[test]
fn real_clients_reach_only_what_the_policy_allows_through_the_proxy() {
    let (world, server, other) = (World::new(BELLJAR), HelloServer::start(), HelloServer::start());
    policy(
        &world,
        &format!(
            "[{{host: localhost, ports: [{}], networks: [127.0.0.0/8, \"::1\"]}}]",
            server.address.port()
        ),
    );
    let there = format!("http://localhost:{}/", server.address.port());
    // By absolute URLs and by tunnels. Clients would otherwise bypass the proxy for `localhost`.
    let curl = format!("unset NO_PROXY no_proxy; curl -sS {there} && curl -sS --proxytunnel {there}");
    let python = "import os, urllib.request as u\nfor name in ('NO_PROXY', 'no_proxy'): os.environ.pop(name)\nprint(u.urlopen(os.environ['THERE']).read().decode(), end='')";
    let ran = world.run(&["exec", "--egress", "policy.yaml", "--", "sh", "-c", &curl]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "hello\nhello\n"), "{ran:?}");
    let env = format!("THERE={there}");
    let ran = world.run(&["exec", "--egress", "policy.yaml", "--", "env", &env, "python3", "-c", python]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "hello\n"), "{ran:?}");
    assert_eq!(server.asked(), 3);
    // Another port of the same host, its address, and a connection that bypasses the proxy.
    let port = other.address.port();
    for beside in [
        format!("unset NO_PROXY no_proxy; curl -sSf http://localhost:{port}/"),
        format!("unset NO_PROXY no_proxy; curl -sSf http://127.0.0.1:{port}/"),
        format!(
            "unset NO_PROXY no_proxy; curl -sSf --proxytunnel http://127.0.0.1:{}/",
            server.address.port()
        ),
        format!("curl -sSf --noproxy '*' {there}"),
        format!("curl -sSf --noproxy '*' http://127.0.0.1:{port}/"),
    ] {
        let ran = world.run(&["exec", "--egress", "policy.yaml", "--", "sh", "-c", &beside]);
        assert!(ran.code != 0 && ran.stdout.is_empty(), "{beside}: {ran:?}");
    }
    assert_eq!((server.asked(), other.asked()), (3, 0));
}

#[test]
fn sandbox_without_a_policy_has_no_proxy() {
    let world = World::new(BELLJAR);
    let look = "env | grep -ci proxy; curl -s --noproxy '' --proxy http://127.0.0.1:3128 http://nowhere.test/ | grep -c urn:belljar; \
                ls -d /web-sock 2>/dev/null | grep -c web";
    let ran = world.run(&["exec", "--", "sh", "-c", look]);
    assert_eq!(ran.stdout, "0\n0\n0\n", "{ran:?}");
    // The control.
    policy(&world, "[]");
    let ran = world.run(&["exec", "--egress", "policy.yaml", "--", "sh", "-c", look]);
    assert!(ran.stdout.ends_with("\n1\n1\n") && !ran.stdout.starts_with("0\n"), "{ran:?}");
}

#[test]
fn sandbox_with_web_access_gets_the_hosts_ca_certificates() {
    const AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";
    let Ok(trusted) = std::fs::read_to_string(AUTHORITIES) else {
        return skip("the host's CA certificates, inside", "the host has no CA bundle file");
    };
    let world = World::new(BELLJAR);
    policy(&world, "[]");
    let told = "SSL_CERT_FILE CURL_CA_BUNDLE GIT_SSL_CAINFO CARGO_HTTP_CAINFO PIP_CERT REQUESTS_CA_BUNDLE NODE_EXTRA_CA_CERTS";
    let show = format!("for name in {told}; do printenv $name || echo none; done; cat {AUTHORITIES}");
    let ran = world.run(&["exec", "--egress", "policy.yaml", "--", "sh", "-c", &show]);
    let names = told.split(' ').count();
    assert!(ran.stdout == format!("{AUTHORITIES}\n").repeat(names) + &trusted, "{:.600}", ran.stdout);
    // An explicit variable takes precedence, and a sandbox without web access needs none of it.
    let own = "SSL_CERT_FILE=/own.pem";
    let ran = world.run(&["exec", "--egress", "policy.yaml", "-e", own, "--", "printenv", "SSL_CERT_FILE"]);
    assert_eq!(ran.stdout, "/own.pem\n");
    let ran = world.run(&["exec", "--", "sh", "-c", &show]);
    assert!(ran.stdout.starts_with(&"none\n".repeat(names)), "{:.600}", ran.stdout);
}

#[test]
fn denied_request_is_reported_to_client_terminal_and_audit_log() {
    let world = World::new(BELLJAR);
    policy(&world, "[{host: partner.example}]");
    let ask = "curl -sS https://other.example/; curl -sS http://other.example:8080/";
    let ran = world.run(&["exec", "--egress", "policy.yaml", "--", "sh", "-c", ask]);
    assert!(ran.stdout.contains("urn:belljar:egress:not_allowed"), "{ran:?}");
    assert!(ran.stdout.contains(r#"rule_needed":"{host: \"other.example\", ports: [8080]"#), "{ran:?}");
    assert!(!ran.stdout.contains("partner"), "{ran:?}");
    for destination in ["other.example:443", "other.example:8080"] {
        let told = format!(
            "belljar: {destination} was denied (no_rule_for_host); it takes the rule {{host: \"other.example\""
        );
        assert!(ran.stderr.contains(&told), "{ran:?}");
    }
    let verified = world.run(&["audit", "verify"]);
    assert_eq!(verified.code, 0, "{verified:?}");
}

#[test]
fn policy_with_mistakes_starts_nothing() {
    let world = World::new(BELLJAR);
    policy(&world, "[{host: \"*.com\"}, {host: a.example, portz: [1]}]");
    let ran = world.run(&["exec", "--egress", "policy.yaml", "--", "touch", "/workspace/ran"]);
    // The exit code of a configuration check; a missing file has another.
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("rules[0].host") && ran.stderr.contains("portz"), "{ran:?}");
    let missing = world.run(&["exec", "--egress", "no-such.yaml", "--", "true"]);
    assert!(missing.code == 125 && missing.stderr.contains("no-such.yaml"), "{missing:?}");
}

#[test]
fn egress_why_names_the_matching_rule_or_the_rule_that_is_missing() {
    let world = World::new(BELLJAR);
    policy(
        &world,
        "[{host: 127.0.0.1, ports: [80], networks: [127.0.0.1]}, {host: 93.184.216.34, methods: [GET]}]",
    );
    let why = |arguments: &[&str]| {
        let ran = world.run(&[&["egress", "why", "--policy", "policy.yaml"], arguments].concat());
        (ran.code, ran.stdout)
    };
    assert_eq!(
        why(&["http://127.0.0.1/x"]),
        (0, "http://127.0.0.1/x is allowed by rule 0\n  it leads to 127.0.0.1\n".to_owned())
    );
    let (code, told) = why(&["https://93.184.216.34/x", "--method", "POST"]);
    insta::assert_snapshot!(told, @r#"
    https://93.184.216.34/x is denied: no rule for that host and port allows that method (no_rule_for_method)
      it takes the rule {host: "93.184.216.34", ports: [443], methods: [POST]}
    "#);
    assert_eq!(code, 3);
    let (code, told) = why(&["http://169.254.169.254/", "--json"]);
    insta::assert_snapshot!(told, @r#"
    {
      "verdict": "denied",
      "reason": "no_rule_for_host",
      "detail": "no rule matches that host",
      "rule": null,
      "rule_needed": null,
      "addresses": [],
      "inspected": false
    }
    "#);
    assert_eq!(code, 3);
    // A proposed rule works: for an address, and for a name that resolves to this machine.
    for url in ["http://10.9.8.7/", "http://localhost:8080/"] {
        let explained = |text: &str| serde_json::from_str::<serde_json::Value>(text).unwrap();
        let (code, told) = why(&[url, "--json"]);
        let rule = explained(&told)["rule_needed"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned();
        assert!(code == 3 && rule.contains("networks: ["), "{told}");
        policy(&world, &format!("[{rule}]"));
        assert_eq!(why(&[url]).0, 0, "{rule}");
        policy(&world, "[{host: 127.0.0.1, ports: [80], networks: [127.0.0.1]}]");
    }
    assert_eq!(why(&["http://127.1/"]).0, 125);
}

#[test]
fn policy_is_tested_against_its_expected_verdicts() {
    let world = World::new(BELLJAR);
    policy(&world, "[{host: a.example}, {host: b.example, paths: [/v1/]}]");
    world.write(
        "expect.yaml",
        "expect:\n- {url: \"https://a.example/\", verdict: allowed}\n- {url: \"https://b.example/v2\", verdict: denied, reason: no_rule_for_path}\n\
         - {url: \"c.example:22\", verdict: denied}\n",
    );
    let test = || world.run(&["egress", "test", "expect.yaml", "--policy", "policy.yaml"]);
    assert_eq!((test().code, test().stdout.as_str()), (0, "3 of 3 as expected\n"));
    policy(&world, "[{host: c.example, ports: [22]}, {host: b.example, paths: [/v1/]}]");
    let ran = test();
    assert_eq!(ran.code, 3);
    insta::assert_snapshot!(ran.stdout, @r#"
    not as expected: https://a.example/ is denied: no rule matches that host (no_rule_for_host)
      it takes the rule {host: "a.example", ports: [443]}
    not as expected: c.example:22 is allowed by rule 0
    1 of 3 as expected
    "#);
}

/// Returns a rule for one port of this machine.
fn rule(port: u16) -> String {
    format!("{{host: localhost, ports: [{port}], networks: [127.0.0.0/8, \"::1\"]}}")
}

/// Returns a shell command that requests a page through the proxy, also where a client would bypass it for the name.
fn fetching(port: u16) -> String {
    format!("unset NO_PROXY no_proxy; curl -sSf http://localhost:{port}/")
}

/// Replaces the policy file atomically.
fn replace(world: &World, rules: &str) {
    let next = world.write("next.yaml", format!("rules: {rules}\n"));
    std::fs::rename(next, world.path().join("policy.yaml")).unwrap();
}

#[test]
fn policy_change_takes_effect_while_a_command_runs() {
    let (world, server) = (World::new(BELLJAR), HelloServer::start());
    let port = server.address.port();
    policy(&world, "[]");
    // It goes on once it is allowed, and then once it is denied.
    let script = format!(
        "get() {{ {} 2>/dev/null; }}; until get; do sleep 0.1; done; while get >/dev/null; do sleep 0.1; done; echo over",
        fetching(port)
    );
    let mut command = world.command(&["exec", "--egress", "policy.yaml", "--", "sh", "-c", &script]);
    let pipe = std::process::Stdio::piped;
    let child = command.stdout(pipe()).stderr(pipe()).spawn().unwrap();
    let asked = |kind: &str| {
        let audit = world.path().join("state/audit");
        if audit.exists() { crate::models::recorded(&audit, kind).len() } else { 0 }
    };
    belljar_testkit::wait::until(|| asked("egress") > 0);
    replace(&world, &format!("[{}]", rule(port)));
    belljar_testkit::wait::until(|| server.asked() > 0);
    // A policy with mistakes changes nothing.
    replace(&world, "[{hots: localhost}]");
    belljar_testkit::wait::until(|| asked("egress_policy_refused") == 1);
    let before = server.asked();
    belljar_testkit::wait::until(|| server.asked() > before);
    replace(&world, "[]");
    let ran = belljar_testkit::world::ProgramOutput::from(child.wait_with_output().unwrap());
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "hello\nover\n"), "{ran:?}");
    assert!(
        ran.stderr.contains("policy.yaml has changed, and applies from now on (generation 3)"),
        "{ran:?}"
    );
    assert!(
        ran.stderr
            .contains("policy.yaml has changed, but can't be used; the previous policy still applies: "),
        "{ran:?}"
    );
    assert_eq!(asked("egress_policy_changed"), 3);
}

#[test]
fn policy_that_the_sandbox_could_write_is_refused() {
    let world = World::new(BELLJAR);
    world.write("project/policy.yaml", "rules: []");
    world.write("policy.yaml", "rules: []");
    world.write("job.json", belljar_testkit::job::job(&serde_json::json!([])).to_string());
    let of = |options: &[&str]| {
        let ran = world.run(options);
        let is_refused = ran.code == 125 && ran.stderr.contains("lies in the workspace");
        assert!(is_refused || ran.code == 0, "{ran:?}");
        is_refused
    };
    let exec =
        |workspace: &str, file: &str| of(&["exec", workspace, "project", "--egress", file, "--", "true"]);
    assert!(exec("--workspace", "project/policy.yaml"));
    assert!(!exec("--workspace", "policy.yaml"));
    assert!(!exec("--workspace-copy", "project/policy.yaml"));
    let _sessions = crate::session::SessionCleanup(&world);
    let create =
        |workspace: &str, file: &str| of(&["session", "create", workspace, "project", "--egress", file]);
    assert!(create("--workspace", "project/policy.yaml"));
    // Committed changes to the policy would take effect at once.
    assert!(create("--workspace-copy", "project/policy.yaml"));
    assert!(!create("--workspace-copy", "policy.yaml"));
}

#[test]
fn session_and_its_forks_reach_what_the_policy_allows() {
    let (world, server) = (World::new(BELLJAR), HelloServer::start());
    let port = server.address.port();
    policy(&world, &format!("[{}]", rule(port)));
    let _sessions = crate::session::SessionCleanup(&world);
    let exec = |session: &str, script: &str| crate::session::exec(&world, session, script);
    let id = crate::session::create(&world, &["--name", "first", "--egress", "policy.yaml"]);
    assert_eq!(exec("first", &fetching(port)).succeeded().stdout, "hello\n");
    world.run(&["session", "fork", "first", "--name", "second"]).succeeded();
    assert_eq!(exec("second", &fetching(port)).succeeded().stdout, "hello\n");
    let other = crate::session::create(&world, &[]);
    let look = "env | grep -ci proxy; curl -s --noproxy '' --proxy http://127.0.0.1:3128 http://nowhere.test/; echo $?";
    assert_eq!(exec(&other, look).stdout, "0\n7\n");
    // Both sessions reload the policy.
    replace(&world, "[]");
    for session in ["first", "second"] {
        belljar_testkit::wait::until(|| exec(session, &fetching(port)).code == 22);
    }
    world.run(&["session", "end", "--discard", "first"]).succeeded();
    let ended = || {
        let all = crate::models::recorded(&world.path().join("state/audit"), "egress");
        all.iter().filter(|passage| passage["run_id"] == id.as_str() && passage["rule"] == 0).count()
    };
    belljar_testkit::wait::until(|| ended() >= 1);
    assert_eq!(world.run(&["audit", "verify"]).code, 0);
}

#[test]
fn run_gives_web_access_only_to_jobs_that_allow_it() {
    let (world, server) = (World::new(BELLJAR), HelloServer::start());
    let port = server.address.port();
    policy(&world, &format!("[{}]", rule(port)));
    let run = |script: &str, ext_net_allowed: bool, options: &[&str]| {
        let mut job = belljar_testkit::job::job(&serde_json::json!([belljar_testkit::job::shell(script)]));
        job["constraints"]["ext_net_allowed"] = serde_json::json!(ext_net_allowed);
        world.write("job.json", job.to_string());
        world.run(&[&["run", "--json"], options, &["job.json"]].concat())
    };
    let with = ["--egress", "policy.yaml"];
    let ran = run(&fetching(port), true, &with).succeeded().json();
    assert_eq!(
        (&ran["steps"][0]["result"]["stdout"], &ran["web"]["passages"]),
        (&"hello\n".into(), &1.into())
    );
    let denied = run(&fetching(1), true, &with).json();
    assert_eq!(
        (&denied["failure_code"], &denied["web"]["denied"][0]["port"]),
        (&"ext_net_required".into(), &1.into())
    );
    assert!(denied["failure_message"].as_str().unwrap().contains("localhost:1,"), "{denied}");
    // With the configuration, or with none.
    let nothing = run(&fetching(port), true, &[]).json();
    assert_eq!(nothing["web"]["denied"][0]["reason"], "no_rules", "{nothing}");
    world.write(".config/belljar/config.yaml", format!("egress: {{rules: [{}]}}", rule(port)));
    assert_eq!(run(&fetching(port), true, &[]).succeeded().json()["web"]["passages"], 1);
    let look = "env | grep -ci proxy; ls -d /web-sock 2>/dev/null; \
                curl -s --noproxy '' --proxy http://127.0.0.1:3128 http://nowhere.test/; echo $?";
    let without = run(look, false, &with).json();
    assert_eq!((&without["steps"][0]["result"]["stdout"], &without["web"]), (&"0\n7\n".into(), &().into()));
    // The output for people.
    let told = world.run(&["run", "--egress", "policy.yaml", "job.json"]);
    assert_eq!(told.code, 0, "{told:?}");
}
