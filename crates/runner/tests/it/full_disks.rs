//! Results on a full disk: complete or absent, with a matching exit code.

use crate::scene::{Scene, job, sh};
use belljar_testkit::skip::skip;
use serde_json::{Value, json};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A file system in memory with so much room.
struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    fn mount(scene: &Scene, size: &str) -> Option<Self> {
        let path = scene.beside("small");
        std::fs::create_dir(&path).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &format!("size={size}"), "tmpfs"]).arg(&path);
        mount.status().is_ok_and(|status| status.success()).then_some(Self { path })
    }

    /// Fills the disk except for that many bytes.
    fn fill_up_to(&self, left: usize) {
        let fill = self.path.join("fill");
        let mut command = Command::new("sh");
        let script = "cat /dev/zero >\"$0\" 2>/dev/null; truncate -s -\"$1\" \"$0\"";
        assert!(command.args(["-c", script]).arg(&fill).arg(left.to_string()).status().unwrap().success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.path).status();
    }
}

fn run(scene: &Scene, job: &Value, result: &Path) -> Output {
    std::fs::write(scene.beside("job.json"), job.to_string()).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_cynode-sba"));
    command.args(["--allow-root", "--job"]).arg(scene.beside("job.json"));
    command.arg("--workspace").arg(scene.beside("workspace"));
    command.arg("--artifacts").arg(scene.beside("artifacts")).arg("--result").arg(result);
    command.output().unwrap()
}

fn read(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[test]
fn result_is_written_without_outputs_when_the_disk_is_full() {
    let scene = Scene::new();
    let Some(small) = SmallDisk::mount(&scene, "512k") else {
        return skip("result_is_written_without_outputs_when_the_disk_is_full", "needs the right to mount");
    };
    let fill = format!(
        "head -c 200000 /dev/zero | tr '\\0' x; cat /dev/zero >{}/fill; exit 3",
        small.path.display()
    );
    let output = run(&scene, &job(vec![sh(&fill)]), &small.path.join("result.json"));
    let result = read(&small.path.join("result.json"));
    assert_eq!((output.status.code(), &result["failure_code"]), (Some(1), &json!("step_failed")));
    assert_eq!(result["steps"][0]["result"], Value::Null);
    assert_eq!(result["steps"][0]["error"]["type"], "step_failed");
    assert!(result["failure_message"].as_str().unwrap().contains("disk is full"), "{result}");
}

#[test]
fn success_whose_outputs_do_not_fit_on_the_disk_exits_as_failure() {
    let scene = Scene::new();
    let Some(small) = SmallDisk::mount(&scene, "512k") else {
        let test = "success_whose_outputs_do_not_fit_on_the_disk_exits_as_failure";
        return skip(test, "needs the right to mount");
    };
    small.fill_up_to(4096);
    let result = small.path.join("result.json");
    let output = run(&scene, &job(vec![sh("head -c 20000 /dev/zero | tr '\\0' x")]), &result);
    let written = read(&result);
    assert_eq!((output.status.code(), &written["failure_code"]), (Some(1), &json!("constraint_violation")));
    assert_eq!((&written["status"], &written["steps"][0]["result"]), (&json!("failure"), &Value::Null));
    let log = String::from_utf8(output.stdout).unwrap();
    let mut finished = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let finished = finished.rfind(|event| event["event"] == "job_finished").unwrap();
    assert_eq!(finished["status"], "failure", "{log}");
    // The control: what fits is a success.
    let output = run(&scene, &job(vec![sh("echo short")]), &result);
    assert_eq!((output.status.code(), &read(&result)["status"]), (Some(0), &json!("success")));
}

#[test]
fn result_that_does_not_fit_on_the_disk_leaves_no_partial_file() {
    let scene = Scene::new();
    let Some(small) = SmallDisk::mount(&scene, "64k") else {
        return skip(
            "result_that_does_not_fit_on_the_disk_leaves_no_partial_file",
            "needs the right to mount",
        );
    };
    small.fill_up_to(0);
    let output = run(&scene, &job(vec![sh("true")]), &small.path.join("result.json"));
    assert_eq!(output.status.code(), Some(1));
    let left = std::fs::read_dir(&small.path).unwrap().map(|entry| entry.unwrap().file_name());
    assert_eq!(left.collect::<Vec<_>>(), ["fill"]);
    let log = String::from_utf8(output.stdout).unwrap();
    assert!(log.contains(r#""status":"success""#), "the log has the result: {log}");
}

#[test]
fn full_disk_leaves_no_partial_result_in_a_stdout_file() {
    let scene = Scene::new();
    let Some(small) = SmallDisk::mount(&scene, "512k") else {
        let test = "full_disk_leaves_no_partial_result_in_a_stdout_file";
        return skip(test, "needs the right to mount");
    };
    small.fill_up_to(4096);
    let target = small.path.join("out.json");
    let run = |script: &str| {
        std::fs::write(scene.beside("job.json"), job(vec![sh(script)]).to_string()).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_cynode-sba"));
        command.args(["--allow-root", "--stdin", "--workspace"]).arg(scene.beside("workspace"));
        command.arg("--artifacts").arg(scene.beside("artifacts"));
        command.stdin(File::open(scene.beside("job.json")).unwrap());
        command.stdout(File::create(&target).unwrap()).stderr(Stdio::null()).status().unwrap().code()
    };
    assert_eq!(run("head -c 20000 /dev/zero | tr '\\0' x"), Some(1));
    assert_eq!(std::fs::read(&target).unwrap(), b"");
    // The control.
    assert_eq!((run("echo short"), &read(&target)["status"]), (Some(0), &json!("success")));
}
