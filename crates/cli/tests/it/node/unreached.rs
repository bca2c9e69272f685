//! Jobs that fail for lack of network access without a denial in a failed step: an agent gives up, or an upstream proxy
//! refuses the request or is unreachable.

use super::web::{fetching, job};
use crate::egress::HelloServer;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use belljar_testkit::models::{Answer, ModelServer, Script, ToolCall};
use belljar_testkit::node::Node;
use belljar_testkit::world::World;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};

/// Starts a node whose jobs have a model, and may connect to one port of this machine.
fn node<'w>(world: &'w World, models: &ModelServer, port: u16) -> Node<'w> {
    crate::models::configure(world, models);
    let mut config: Value = serde_json::from_str(&world.read("config.yaml")).unwrap();
    let rule = json!({ "host": "localhost", "ports": [port], "networks": ["127.0.0.0/8", "::1"] });
    config["egress"] = json!({ "rules": [rule] });
    let path = world.write("config.yaml", config.to_string()).display().to_string();
    Node::start(world, &["--config", &path])
}

fn call(tool: &str, arguments: Value) -> Answer {
    Answer::tool(ToolCall::new(tool, arguments))
}

/// Returns an agent's calls that run a script, and give up whatever its result is.
fn gives_up_after(script: &str) -> [Answer; 2] {
    let run = call("run_command", json!({ "argv": ["sh", "-c", script] }));
    [run, call("finish", json!({ "summary": "it can't be done", "gave_up": true }))]
}

/// Returns a job with an agent after these steps.
fn with_agent(scripts: &[&str]) -> Value {
    let mut job = job(scripts, true);
    let spec = &mut job["sandbox"]["job_spec"];
    spec["inference"] = json!({ "allowed_models": ["small"] });
    spec["context"] = json!({ "requirements": ["the page is read"] });
    job
}

#[test]
fn agent_that_gives_up_after_a_denial_is_ext_net_required_and_others_are_not() {
    let (world, server) = (World::new(crate::BELLJAR), HelloServer::start());
    let [denied, prints] =
        [fetching(1), "echo 'curl: (6) Could not resolve host: pkgs.example' >&2; exit 6".to_owned()];
    let scripts = [denied.as_str(), "true", "true", prints.as_str()];
    let answers = scripts.into_iter().flat_map(gives_up_after);
    let models = ModelServer::start(Script::queue(answers.collect::<Vec<_>>()));
    let node = node(&world, &models, server.address.port());

    let told = node.run(&with_agent(&[])).json();
    assert_eq!(told["failure_code"], "ext_net_required", "{told}");
    let message = told["failure_message"].as_str().unwrap();
    assert!(message.starts_with("needs localhost:1, which this node does not let it reach"), "{message}");
    assert!(message.contains("it can't be done"), "{message}");
    assert_eq!(told["sba_result"]["failure_code"], "ext_net_required");
    assert_eq!(told["web"]["denied"][0]["port"], 1);
    // The controls: it had no denial, a step before it had one, and its command only prints the message.
    let before = format!("{denied} || true");
    for steps in [&[][..], &[before.as_str()], &[]] {
        let told = node.run(&with_agent(steps)).json();
        assert_eq!(told["failure_code"], "agent_gave_up", "{steps:?}: {told}");
    }
}

/// Starts a proxy that refuses everything. Returns its URL, and the heads of its requests.
fn refusing() -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (heard, heads) = channel();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let (mut head, mut byte) = (Vec::new(), [0]);
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|count| count == 1) {
                head.push(byte[0]);
            }
            let _ = heard.send(String::from_utf8_lossy(&head).to_lowercase());
            let _ =
                stream.write_all(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        }
    });
    (url, heads)
}

#[test]
fn upstream_proxy_gets_the_whole_url_with_task_and_job() {
    let (world, (url, heads)) = (World::new(crate::BELLJAR), refusing());
    let with = |identity: bool| {
        let proxy = format!("{{url: '{url}', names: there, identity: {identity}}}");
        let rules = "[{host: pkgs.example, ports: [80, 443]}]";
        let config = format!("egress: {{rules: {rules}, proxy: {proxy}}}\n");
        let config = world.write("config.yaml", config).display().to_string();
        let node = Node::start(&world, &["--config", &config]);
        let lines = [
            ("http", "get http://pkgs.example/ http/1.1\r\n"),
            ("https", "connect pkgs.example:443 http/1.1\r\n"),
        ];
        lines.map(|(scheme, line)| {
            let wanted = job(&[&format!("curl -sSf {scheme}://pkgs.example/")], true);
            node.run(&wanted);
            let head = heads.recv().unwrap();
            assert!(head.starts_with(line), "{head}");
            let [task, job] = ["task_id", "job_id"].map(|name| wanted[name].as_str().unwrap());
            [format!("\r\nx-cynode-task-id: {task}\r\n"), format!("\r\nx-cynode-job-id: {job}\r\n")]
                .map(|field| head.contains(&field))
        })
    };
    assert_eq!(with(true), [[true; 2]; 2]);
    // The control: an upstream proxy without `identity` doesn't get the ids.
    assert_eq!(with(false), [[false; 2]; 2]);
}

#[test]
fn upstream_proxy_gets_its_credential_and_is_bypassed_for_exceptions() {
    let (world, (url, heads)) = (World::new(crate::BELLJAR), refusing());
    let file = world.write("credential", "house:a-word-for-the-proxy").display().to_string();
    let shown =
        format!("\r\nproxy-authorization: basic {}\r\n", STANDARD.encode("house:a-word-for-the-proxy"));
    for from in
        [format!("{{file: {file}}}"), "{env: PROXY_WORD}".to_owned(), format!("{{command: [cat, {file}]}}")]
    {
        let proxy = format!("{{url: '{url}', names: there, credential: {from}, except: [excepted.example]}}");
        let rules = "[{host: pkgs.example, ports: [80]}, {host: excepted.example, ports: [80]}]";
        let config = format!("egress: {{rules: {rules}, proxy: {proxy}}}\n");
        let config = world.write("config.yaml", config).display().to_string();
        let word = [("PROXY_WORD".to_owned(), "house:a-word-for-the-proxy".to_owned())];
        let node = Node::try_start(&world, &["--config", &config], &word).unwrap();
        // A host that bypasses the upstream proxy is resolved here, where the name doesn't exist.
        for host in ["excepted.example", "pkgs.example"] {
            node.run(&job(&[&format!("curl -sSf http://{host}/")], true));
        }
        let heads: Vec<String> = heads.try_iter().collect();
        let [head] = &heads[..] else { panic!("{from}: {heads:?}") };
        assert!(head.starts_with("get http://pkgs.example/"), "{from}: {head}");
        assert!(head.contains(&shown.to_lowercase()), "{from}: {head}");
    }
}

#[test]
fn job_behind_a_refusing_or_unreachable_proxy_is_ext_net_required_with_the_host() {
    let refused = "refused_by_upstream_proxy";
    for (url, reason) in
        [(refusing().0, refused), ("http://127.0.0.1:1".to_owned(), "upstream_proxy_unavailable")]
    {
        let world = World::new(crate::BELLJAR);
        let config = format!(
            "egress: {{rules: [{{host: pkgs.example, ports: [80, 443]}}], proxy: {{url: '{url}', names: there}}}}\n"
        );
        let config = world.write("config.yaml", config).display().to_string();
        let node = Node::start(&world, &["--config", &config]);
        for (scheme, port) in [("http", 80), ("https", 443)] {
            let told = node.run(&job(&[&format!("curl -sSf {scheme}://pkgs.example/")], true)).json();
            assert_eq!(told["failure_code"], "ext_net_required", "{told}");
            let expected = json!([{ "host": "pkgs.example", "port": port, "reason": reason }]);
            assert_eq!(told["web"]["denied"], expected, "{told}");
            let message = told["failure_message"].as_str().unwrap();
            let needs = format!("needs pkgs.example:{port}, which can't be reached from this node");
            assert!(message.starts_with(&needs), "{message}");
        }
    }
}
