//! Sandboxes of jobs: the level is enforced by the sandbox itself, and a level that can't be enforced is refused before the
//! job is accepted.

use super::{as_agent, configure};
use crate::egress::HelloServer;
use crate::egress::git_server::GitServer;
use crate::node::web;
use belljar_testkit::http::HttpResponse;
use belljar_testkit::node::{Node, command, steps};
use belljar_testkit::world::World;
use serde_json::{Value, json};

const AGENTS: &str = "
    - {name: looker, level: sandboxed}
    - {name: reader, level: restricted}
    - {name: local, level: elevated, sub_constraints: {git: local_only}}
    - {name: lister, level: restricted, sub_constraints: {network_allowlist: ['localhost:443']}}
    - {name: open, level: elevated}
";

fn house(rules: &str) -> String {
    format!("egress: {{{rules}}}\ntool_access:\n  default_level: sandboxed\n  agents:{AGENTS}")
}

/// Returns a job with that script as its only program.
fn python(script: &str) -> Value {
    let step = json!({ "type": "run_command", "args": { "argv": ["python3", "-c", script] } });
    let mut job = steps(&json!([step]));
    job["sandbox"]["job_spec"]["constraints"]["ext_net_allowed"] = json!(true);
    job
}

/// Returns the output of the job's program, also after a failure.
fn printed(told: &Value) -> String {
    let result = &told["sba_result"]["steps"][0]["result"];
    assert!(result["stdout"].is_string(), "{told:#}");
    result["stdout"].as_str().unwrap().to_owned()
}

/// Returns the message of a refusal, and checks that no record of the job is kept.
fn refusal(node: &Node<'_>, job: &Value) -> String {
    let answered: HttpResponse = node.run(job);
    assert_eq!(answered.status, 403, "{:#}", answered.json());
    let id = job["job_id"].as_str().unwrap();
    assert_eq!(node.get(&format!("/v1/worker/jobs/{id}")).status, 404);
    answered.json()["detail"].as_str().unwrap().to_owned()
}

#[test]
fn agent_without_web_access_is_refused_a_web_job_and_has_no_web_in_others() {
    let (world, server) = (World::new(crate::BELLJAR), HelloServer::start());
    let rules = format!("rules: [{}]", web::rule(server.address.port()));
    let node = Node::start(&world, &["--config", &configure(&world, &house(&rules))]);
    let fetch = format!(
        "import os, urllib.request
for name in ('NO_PROXY', 'no_proxy'): os.environ.pop(name, None)
try: print(urllib.request.urlopen('http://localhost:{}/').read().decode(), end='')
except OSError as error: print(getattr(error, 'code', 'nothing'))",
        server.address.port()
    );
    let job = python(&fetch);
    let told = refusal(&node, &as_agent("looker", job.clone()));
    assert_eq!(
        told,
        "$.sandbox.job_spec.constraints.ext_net_allowed: the agent looker reaches nothing of the web (`network: none`): \
         expected false"
    );
    // Also at the default level, and for a command.
    assert!(refusal(&node, &job).contains("without `agent_id`, at the level sandboxed"));
    let mut program = command(&["python3", "-c", &fetch]);
    program["sandbox"]["network_policy"] = json!("restricted");
    assert!(refusal(&node, &as_agent("looker", program)).starts_with("$.sandbox.network_policy: "));
    let mut sealed = python(&fetch);
    sealed["sandbox"]["job_spec"]["constraints"]["ext_net_allowed"] = json!(false);
    assert_eq!(printed(&node.run(&as_agent("looker", sealed)).json()), "nothing\n");
    assert_eq!(server.asked(), 0);
    // The control: the same job with an agent that has network access.
    assert_eq!(printed(&node.run(&as_agent("open", job)).json()), "hello\n");
    assert_eq!(server.asked(), 1);
}

#[test]
fn agent_level_adds_only_its_listed_hosts_to_the_nodes_policy() {
    let (world, server) = (World::new(crate::BELLJAR), HelloServer::start());
    let port = server.address.port();
    let config =
        house("rules: [{host: elsewhere.example}]").replace("localhost:443", &format!("localhost:{port}"));
    let node = Node::start(&world, &["--config", &configure(&world, &config)]);
    let connect = format!(
        "import os, socket
host, port = os.environ['HTTP_PROXY'].split('//')[1].split(':')
proxy = socket.create_connection((host, int(port)))
proxy.sendall(b'CONNECT localhost:{port} HTTP/1.1\\r\\nHost: localhost:{port}\\r\\n\\r\\n')
print(proxy.recv(9999).decode())"
    );
    let said = |agent: &str| printed(&node.run(&as_agent(agent, python(&connect))).json());
    // Its TLS is intercepted, so the tunnel is accepted before the connection is made.
    let listed = said("lister");
    assert!(listed.starts_with("HTTP/1.1 200"), "{listed}");
    for agent in ["reader", "open"] {
        let refused = said(agent);
        assert!(
            refused.starts_with("HTTP/1.1 403") && refused.contains("is not allowed"),
            "{agent}: {refused}"
        );
    }
}

#[test]
fn git_access_in_a_job_is_limited_by_the_agents_level() {
    let world = World::new(crate::BELLJAR);
    let server = GitServer::start();
    server.open_to_pushes();
    let (port, authority) = (server.port(), server.authority());
    let rules = format!("rules: [{}], authorities: {authority}", web::rule(port));
    let node = Node::start(&world, &["--config", &configure(&world, &house(&rules))]);
    let went =
        |agent: &str| printed(&node.run(&as_agent(agent, python(&server.cloning_and_pushing(agent)))).json());
    assert_eq!(went("local"), "");
    assert_eq!(went("reader"), "cloned\n");
    // The control.
    assert_eq!(went("open"), "cloned\npushed\n");
    assert_eq!(["local", "reader", "open"].map(|branch| server.has_branch(branch)), [false, false, true]);
}

#[test]
fn job_starts_no_program_that_its_agents_level_does_not_list() {
    let world = World::new(crate::BELLJAR);
    let config = format!("{}node: {{sandbox: {{allowed_images: ['debian:12']}}}}\n", house("rules: []"));
    let node = Node::start(&world, &["--config", &configure(&world, &config)]);
    let told = refusal(&node, &as_agent("looker", command(&["/bin/sh", "-c", "true"])));
    assert_eq!(
        told,
        "$.sandbox.command[0]: \"/bin/sh\" is none of the programs that the agent looker may start (`terminal`, \
         `commands`): git, node, python3"
    );
    let step = json!({ "type": "run_command", "args": { "argv": ["sh", "-c", "true"] } });
    assert!(
        refusal(&node, &as_agent("looker", steps(&json!([step]))))
            .starts_with("$.sandbox.job_spec.steps[0]: ")
    );
    let around = "import shutil, subprocess, sys
shutil.copy(sys.executable, '/workspace/git')
for program in ('/bin/ls', '/bin/sh', '/workspace/git'):
    try: print(subprocess.run([program, '-c', 'true'], capture_output=True).returncode >= 0)
    except PermissionError: print('refused')";
    let command = |agent: &str| node.run(&as_agent(agent, command(&["python3", "-c", around]))).json();
    assert_eq!(command("looker")["stdout"], "refused\nrefused\nrefused\n");
    let mut job = python(around);
    job["sandbox"]["job_spec"]["constraints"]["ext_net_allowed"] = json!(false);
    assert_eq!(printed(&node.run(&as_agent("looker", job)).json()), "refused\nrefused\nrefused\n");
    // The control.
    assert_eq!(command("open")["stdout"], "True\nTrue\nTrue\n");

    // An image can't enforce it, and so it is refused; an agent without an allowlist of programs may use one.
    let mut of_image = belljar_testkit::node::command(&["python3", "-c", "pass"]);
    of_image["sandbox"]["image"] = json!("debian:12");
    let told = refusal(&node, &as_agent("looker", of_image.clone()));
    assert!(
        told.starts_with(
            "$.sandbox.image: docker.io/library/debian:12, and the agent looker may start listed"
        ),
        "{told}"
    );
    of_image["wait"] = json!(false);
    assert_eq!(node.run(&as_agent("open", of_image)).status, 202);
}
