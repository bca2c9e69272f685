//! The image of the node: it is built, run with exactly the documented options, and given a job.

use super::{file, text};
use crate::BELLJAR;
use belljar_testkit::foreign_root::{Docker, IMAGE};
use belljar_testkit::skip::skip;
use belljar_testkit::wait::until;
use belljar_testkit::world::World;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const BUILT: &str = "belljar/node-of-tests";
const NODE: &str = "belljar-node-of-tests";
const NAME: &str = "deploy::container::job_runs_in_a_container_with_only_the_documented_privileges";
const TASK: &str = "5a1d9a0e-8f5c-4f5e-9d51-0c4c2b1f7e11";
const JOB: &str = "9f2c7d34-1f0a-4f3b-8a77-3f1f7f1f0b01";
const TOKEN: &str = "the-token-of-tests-0123456789";

/// The option beyond the defaults of containers, in addition to the seccomp profile, and the restrictions.
const SYSTEM_PATHS: &str = "--security-opt=systempaths=unconfined";
const LESS: [&str; 5] =
    ["--cap-drop=ALL", "--security-opt=no-new-privileges", "--read-only", "--tmpfs=/tmp", "--network=none"];

/// Sends a request to the node from inside: the image has no HTTP client, and its network is isolated.
const ASK: &str = r#"exec 3<>/dev/tcp/127.0.0.1/12090
    printf 'POST /v1/worker/jobs:run HTTP/1.1\r\nHost: node\r\nConnection: close\r\nAuthorization: Bearer %s\r\n' "$1" >&3
    printf 'Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s' "${#2}" "$2" >&3
    cat <&3"#;

/// The image, which is removed when this is dropped.
struct BuiltImage<'e> {
    engine: &'e Docker,
    secrets: &'e Path,
}

impl<'e> BuiltImage<'e> {
    fn build(engine: &'e Docker, folder: &'e Path) -> Self {
        std::fs::copy(BELLJAR, folder.join("belljar")).unwrap();
        std::fs::write(folder.join("token"), TOKEN).unwrap();
        // Only the container's user may read it.
        std::fs::set_permissions(folder.join("token"), PermissionsExt::from_mode(0o400)).unwrap();
        std::os::unix::fs::chown(folder.join("token"), Some(1000), Some(1000)).unwrap();
        let base = format!("BASE={IMAGE}");
        let (containerfile, context) =
            (file("Containerfile").display().to_string(), folder.display().to_string());
        let arguments = ["build", "--quiet", "--file", &containerfile, "--build-arg", &base];
        engine.command(&[&arguments[..], &["--tag", BUILT, &context]].concat()).unwrap();
        Self { engine, secrets: folder }
    }

    /// Starts a node with these options, gives it a job, and returns the result.
    fn run(&self, options: &[&str], sandbox: &Value) -> Value {
        let token = format!("--volume={}:/run/secrets/token:ro", self.secrets.join("token").display());
        let start = ["run", "--detach", "--name", NODE, "--health-interval=1s", &token];
        self.engine.command(&[&start[..], &LESS, options, &[BUILT]].concat()).unwrap();
        let told = self.ask(sandbox);
        self.engine.command(&["rm", "--force", "--volumes", NODE]).unwrap();
        told
    }

    fn ask(&self, sandbox: &Value) -> Value {
        let state = |what: &str| self.engine.command(&["inspect", "--format", what, NODE]).unwrap();
        until(|| {
            let is_healthy = state("{{.State.Health.Status}}").trim() == "healthy";
            is_healthy || state("{{.State.Running}}").trim() == "false"
        });
        let job = json!({ "version": 1, "task_id": TASK, "job_id": JOB, "sandbox": sandbox });
        let ask = ["exec", NODE, "bash", "-c", ASK, "bash", TOKEN, &job.to_string()];
        // A container that couldn't start can't be asked.
        let Ok(answer) = self.engine.command(&ask) else { return Value::Null };
        answer
            .split_once("\r\n\r\n")
            .and_then(|(_, body)| serde_json::from_str(body).ok())
            .unwrap_or(Value::Null)
    }
}

impl Drop for BuiltImage<'_> {
    fn drop(&mut self) {
        let _ = self.engine.command(&["rm", "--force", "--volumes", NODE]);
        let _ = self.engine.command(&["rmi", "--force", BUILT]);
    }
}

#[test]
fn job_runs_in_a_container_with_only_the_documented_privileges() {
    let engine = match Docker::start() {
        Ok(engine) => engine,
        Err(reason) => return skip(NAME, &reason),
    };
    let world = World::new(BELLJAR);
    let image = BuiltImage::build(&engine, world.path());
    let calls = format!("--security-opt=seccomp={}", file("seccomp.json").display());
    let command = json!({ "command": ["sh", "-c", "echo hello; id -u"] });

    let told = image.run(&[&calls, SYSTEM_PATHS], &command);
    assert_eq!(
        (&told["status"], &told["stdout"]),
        (&json!("completed"), &json!("hello\n1000\n")),
        "{told:#}"
    );
    let steps = json!([{ "id": "hello", "type": "run_command", "args": { "argv": ["echo", "hello"] } }]);
    let constraints = json!({ "max_runtime_seconds": 60, "max_output_bytes": 4096 });
    let spec = json!({ "job_spec": { "protocol_version": "1.0", "job_id": JOB, "task_id": TASK,
        "constraints": constraints, "steps": steps } });
    let told = image.run(&[&calls, SYSTEM_PATHS], &spec);
    assert_eq!(told["status"], "completed", "{told:#}");
    // The controls: each of the options is necessary.
    for option in [calls.as_str(), SYSTEM_PATHS] {
        assert_ne!(image.run(&[option], &command)["status"], "completed", "with {option} alone");
    }
}

#[test]
fn compose_runs_a_job_with_the_same_privileges() {
    let compose = text("compose.yaml");
    for setting in [
        "cap_drop: [ALL]",
        "- seccomp:./seccomp.json",
        "- systempaths=unconfined",
        "- no-new-privileges:true",
        "read_only: true",
    ] {
        assert!(compose.contains(setting), "{setting}");
    }
    assert!(!compose.contains("cap_add") && !compose.contains("privileged: true"));
}
