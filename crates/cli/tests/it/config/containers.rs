//! The effects of members of `sandboxing.docker`, seen from inside of containers.

use crate::BELLJAR;
use crate::session::{SessionCleanup, list};
use belljar_testkit::foreign_root::{Docker, IMAGE};
use belljar_testkit::skip::skip;
use belljar_testkit::world::{ProgramOutput, World};
use serde_json::{Value, json};

/// A world whose commands and tools run in containers of an engine.
struct ContainerWorld<'w> {
    world: &'w World,
    socket: String,
}

// === impl ContainerWorld ===

impl ContainerWorld<'_> {
    /// Writes these members to `sandboxing.docker`, in addition to the image.
    fn configure(&self, members: &str) {
        let docker = format!("{{image: '{IMAGE}', {members}}}");
        let config = format!("sandboxing: {{default_backend: docker, docker: {docker}}}\n");
        self.world.write(".config/belljar/config.yaml", config);
    }

    fn exec(&self, options: &[&str], script: &str) -> ProgramOutput {
        let socket = ["exec", "--docker-socket", &self.socket, "--isolation"];
        self.world.run(&[&socket[..], options, &["--", "sh", "-c", script]].concat())
    }

    fn tool(&self, name: &str, arguments: &Value) -> ProgramOutput {
        let arguments = arguments.to_string();
        let socket = ["--docker-socket", self.socket.as_str(), "--egress", "policy.yaml", "--json"];
        self.world.run(&[&["tools", "call", name, &arguments], &socket[..]].concat())
    }

    fn shell(&self, script: &str) -> Value {
        self.tool("shell_command", &json!({ "command": script })).succeeded().json()["data"].clone()
    }
}

/// Runs a test if there is an engine.
fn with_engine(test: &str, run: impl FnOnce(&ContainerWorld<'_>)) {
    let engine = match Docker::start() {
        Ok(engine) => engine,
        Err(reason) => return skip(test, &reason),
    };
    let world = World::new(BELLJAR);
    world.write("source/file", "x");
    world.write("policy.yaml", "rules: [{host: pkgs.example}]\n");
    let _sessions = SessionCleanup(&world);
    run(&ContainerWorld { world: &world, socket: engine.socket().display().to_string() });
}

#[test]
fn disk_of_containers_is_limited_as_configured() {
    with_engine("disk_of_containers_is_limited_as_configured", |containers| {
        let fills = |limit: &str, then: &str| {
            containers.configure(&format!("disk_limit: {limit}"));
            let fill = format!("dd if=/dev/zero of=more bs=1M count=256 && sync && {then}");
            containers.exec(&["--workspace-copy", "source"], &fill)
        };
        // Disk usage is checked at intervals, which are longer on a busy machine.
        let ran = fills("64m", "sleep 60");
        assert!(ran.code != 0 && ran.stderr.contains("disk"), "{ran:?}");
        // The control.
        fills("1g", "sleep 2").succeeded();
    });
}

#[test]
fn calls_in_containers_have_the_configured_timeout_network_and_runtime() {
    with_engine("calls_in_containers_have_the_configured_timeout_network_and_runtime", |containers| {
        containers.configure("timeout_seconds: 1");
        assert_eq!(containers.shell("sleep 600")["timed_out"], true);
        // A container has no network unless it is a bridge, and then only its session's proxy.
        let has_proxy = || containers.shell("echo ${HTTP_PROXY:+yes}")["stdout"] == "yes\n";
        containers.configure("network: none");
        assert!(!has_proxy());
        containers.configure("network: bridge");
        assert!(has_proxy());
        containers.configure("network_overrides: {terminal: bridge}");
        assert!(has_proxy());
        containers.configure("network: bridge, network_overrides: {terminal: none}");
        assert!(!has_proxy());
        // No engine has a runtime of this name.
        containers.configure("runtime_overrides: {code_execution: no-such-runtime}");
        let code = json!({ "language": "python", "code": "print(1)" });
        let refused = containers.tool("code_runner", &code);
        assert!(refused.code != 0 && refused.stdout.contains("no-such-runtime"), "{refused:?}");
        assert_eq!(containers.shell("echo here")["stdout"], "here\n");
    });
}

#[test]
fn reports_on_containers_have_the_engines_container_ids() {
    with_engine("reports_on_containers_have_the_engines_container_ids", |containers| {
        let id = |ran: ProgramOutput| {
            let ran = ran.succeeded();
            let report = &ran.stderr[ran.stderr.find('{').unwrap()..];
            let report: Value =
                serde_json::Deserializer::from_str(report).into_iter().next().unwrap().unwrap();
            report["container_id"].as_str().map(str::to_owned)
        };
        containers.configure("pids_limit: 64");
        let [first, second] = [(); 2].map(|()| id(containers.exec(&[], "true")).unwrap());
        assert!(first.len() == 64 && first.bytes().all(|byte| byte.is_ascii_hexdigit()), "{first}");
        assert_ne!(first, second);
        // The control: a native sandbox has no container id.
        let native = ["exec", "--backend", "native", "--isolation", "--", "true"];
        assert_eq!(id(containers.world.run(&native)), None);
    });
}

#[test]
fn programs_in_containers_get_the_ids_of_their_agent_and_session() {
    with_engine("programs_in_containers_get_the_ids_of_their_agent_and_session", |containers| {
        containers.configure("pids_limit: 64");
        let sandboxing = containers.world.read(".config/belljar/config.yaml");
        let agents = "tool_access: {agents: [{name: coder, level: elevated, autonomy: full}]}\n";
        containers.world.write(".config/belljar/config.yaml", format!("{sandboxing}{agents}"));
        let ids = "echo $SYNTHORG_AGENT_ID,$SYNTHORG_SESSION_ID,${SYNTHORG_TASK_ID-unset},${SYNTHORG_REQUEST_ID-unset}; \
                   echo $BELLJAR_AGENT_ID,$BELLJAR_SESSION_ID";
        let arguments = json!({ "command": ids }).to_string();
        let mut known = Vec::new();
        // The second belongs to no agent: its id is empty, and no other value can replace it.
        for (agent, options) in [("coder", &["--agent", "coder"][..]), ("", &[][..])] {
            let call = ["tools", "call", "shell_command", &arguments, "--json", "--keep"];
            let socket = ["--docker-socket", containers.socket.as_str()];
            let mut command = containers.world.command(&[&call[..], &socket, options].concat());
            command.env("SYNTHORG_AGENT_ID", "of-the-host").env("SYNTHORG_TASK_ID", "of-the-host");
            let told = ProgramOutput::from(command.output().unwrap()).succeeded().json();
            let sessions = list(containers.world);
            let session = sessions.into_iter().find(|session| !known.contains(&session["id"])).unwrap();
            assert_eq!(session["backend"], "docker", "{session}");
            let id = session["id"].as_str().unwrap();
            assert_eq!(told["data"]["stdout"], format!("{agent},{id},,\n{agent},{id}\n"), "{told}");
            known.push(session["id"].clone());
        }
    });
}
