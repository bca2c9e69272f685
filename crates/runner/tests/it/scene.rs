//! A directory with a workspace in which jobs are run by the real binary.

use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A workspace, with files beside it that must not be touched from within.
pub(crate) struct Scene {
    directory: tempfile::TempDir,
}

/// Outcome of a run.
#[must_use]
#[derive(Debug)]
pub(crate) struct RunOutcome {
    pub(crate) exit_code: Option<i32>,
    pub(crate) result: Value,
    pub(crate) log: String,
}

pub(crate) const JOB_ID: &str = "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e";
pub(crate) const TASK_ID: &str = "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0f";

/// A generous bound for anything that must happen at all.
pub(crate) const SOON: Duration = Duration::from_secs(30);

// === impl Scene ===

impl Scene {
    pub(crate) fn new() -> Self {
        // In memory if possible, because results are synced, and some disks are slow.
        let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
        std::fs::create_dir(directory.path().join("workspace")).unwrap();
        Self { directory }
    }

    /// A path beside the workspace.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A path in the workspace.
    pub(crate) fn inside(&self, name: &str) -> PathBuf {
        self.beside("workspace").join(name)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.inside(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, content).unwrap();
        path
    }

    /// The command that runs the job in `job.json`.
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cynode-sba"));
        for (flag, name) in [
            ("--job", "job.json"),
            ("--result", "result.json"),
            ("--workspace", "workspace"),
            ("--artifacts", "artifacts"),
        ] {
            command.arg(flag).arg(self.beside(name));
        }
        command.arg("--allow-root").stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, job: &Value) -> RunOutcome {
        self.run_document(&serde_json::to_vec(job).unwrap())
    }

    pub(crate) fn run_document(&self, document: &[u8]) -> RunOutcome {
        std::fs::write(self.beside("job.json"), document).unwrap();
        let output = self.command().output().unwrap();
        self.ran(&output)
    }

    /// Runs the job with 64 MiB of address space for the runner, its program text and its stacks included.
    pub(crate) fn run_in_little_memory(&self, job: &Value) -> RunOutcome {
        std::fs::write(self.beside("job.json"), serde_json::to_vec(job).unwrap()).unwrap();
        let ordinary = self.command();
        let mut limited = Command::new("sh");
        limited.args(["-c", "ulimit -v 65536; exec \"$@\"", "sh"]).arg(ordinary.get_program());
        let output = limited.args(ordinary.get_args()).stdin(Stdio::null()).output().unwrap();
        self.ran(&output)
    }

    /// Runs one step and returns its entry, which must be the only one.
    pub(crate) fn run_step(&self, step: Value) -> Value {
        let ran = self.run(&job(vec![step]));
        let steps = ran.result["steps"].as_array().unwrap();
        assert_eq!(steps.len(), 1, "{ran:#?}");
        steps[0].clone()
    }

    pub(crate) fn start(&self, job: &Value) -> Child {
        std::fs::write(self.beside("job.json"), serde_json::to_vec(job).unwrap()).unwrap();
        self.command().stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    pub(crate) fn finish(&self, child: Child) -> RunOutcome {
        self.ran(&child.wait_with_output().unwrap())
    }

    pub(crate) fn ran(&self, output: &Output) -> RunOutcome {
        let result = std::fs::read(self.beside("result.json")).unwrap_or_default();
        RunOutcome {
            exit_code: output.status.code(),
            result: serde_json::from_slice(&result).unwrap_or(Value::Null),
            log: String::from_utf8(output.stdout.clone()).unwrap() + &String::from_utf8_lossy(&output.stderr),
        }
    }
}

// === impl RunOutcome ===

impl RunOutcome {
    /// The failure code, or `success`.
    pub(crate) fn outcome(&self) -> &str {
        self.result["failure_code"].as_str().unwrap_or_else(|| self.result["status"].as_str().unwrap())
    }

    pub(crate) fn step(&self, index: usize) -> &Value {
        &self.result["steps"][index]
    }

    pub(crate) fn events(&self) -> Vec<Value> {
        self.log.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}

pub(crate) fn job(steps: Vec<Value>) -> Value {
    job_within(json!({ "max_runtime_seconds": 60, "max_output_bytes": 1_000_000 }), steps)
}

pub(crate) fn job_within(constraints: Value, steps: Vec<Value>) -> Value {
    let mut job = json!({ "protocol_version": "1.0", "job_id": JOB_ID, "task_id": TASK_ID });
    job["constraints"] = constraints;
    job["steps"] = steps.into();
    job
}

pub(crate) fn step(step_type: &str, args: Value) -> Value {
    let mut step = json!({ "type": step_type });
    step["args"] = args;
    step
}

/// A step that runs a shell script.
pub(crate) fn sh(script: &str) -> Value {
    step("run_command", json!({ "argv": ["/bin/sh", "-c", script] }))
}

/// Runs the binary with a job on stdin.
pub(crate) fn run_on_stdin(scene: &Scene, document: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_cynode-sba"))
        .args(["--stdin", "--allow-root", "--workspace"])
        .arg(scene.beside("workspace"))
        .arg("--artifacts")
        .arg(scene.beside("artifacts"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A runner that has read enough stops reading.
    let _ = child.stdin.take().unwrap().write_all(document);
    child.wait_with_output().unwrap()
}

/// Waits until the condition holds.
pub(crate) fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let give_up_at = Instant::now() + SOON;
    while !is_so() {
        assert!(Instant::now() < give_up_at, "timed out waiting until {what}");
        std::thread::yield_now();
    }
}

/// Returns true if a process runs that has `mark` in its command line.
pub(crate) fn somebody_runs(mark: &str) -> bool {
    let listed = std::fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let runs = |pid: &Path| {
        let command_line = std::fs::read(pid.join("cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command_line).contains(mark)
    };
    listed.map(|entry| entry.path()).any(|pid| runs(&pid))
}
