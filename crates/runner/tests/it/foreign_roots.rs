//! The runner alone, in foreign root file systems: it needs no file but itself.

use belljar_testkit::foreign_root::{Docker, IMAGE, debian};
use belljar_testkit::job::{job, shell};
use belljar_testkit::skip::skip;
use serde_json::{Value, json};
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const RUNNER: &str = env!("CARGO_BIN_EXE_cynode-sba");
const ORDINARY: u32 = 1000;

/// A job with a step of every type.
fn document() -> Value {
    job(&json!([
        { "type": "write_file", "args": { "path": "a.txt", "content": "one\ntwo\n" } },
        { "type": "apply_unified_diff",
          "args": { "diff": "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+TWO\n" } },
        shell("cat a.txt; id -u; echo kept > $CYNODE_ARTIFACTS_DIR/kept"),
        { "type": "list_tree" },
        { "type": "search_files", "args": { "pattern": "TWO" } },
        { "type": "read_file", "args": { "path": "a.txt" } },
    ]))
}

/// A folder with the job in it, a workspace, and the runner; all of it the ordinary user's.
fn lay_out() -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for name in ["job", "workspace"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
        chown(folder.path().join(name), Some(ORDINARY), Some(ORDINARY)).unwrap();
    }
    std::fs::write(folder.path().join("job/job.json"), document().to_string()).unwrap();
    std::fs::copy(RUNNER, folder.path().join("cynode-sba")).unwrap();
    folder
}

#[track_caller]
fn succeeded(result: &Path) {
    let result: Value = serde_json::from_slice(&std::fs::read(result).unwrap()).unwrap();
    assert_eq!(result["status"], "success", "{result:#}");
    assert_eq!(result["steps"].as_array().unwrap().len(), 6);
    assert_eq!(result["steps"][2]["result"]["stdout"], format!("one\nTWO\n{ORDINARY}\n"));
    assert_eq!(result["artifacts"][0]["path"], "/job/artifacts/kept");
}

#[test]
fn runner_runs_a_job_in_a_plain_chroot() {
    let root = match debian() {
        Ok(root) => root,
        Err(reason) => return skip("runner_runs_a_job_in_a_plain_chroot", &reason),
    };
    let folder = lay_out();
    // The root is shared; what this job needs is mounted into a mount namespace of its own.
    let script = "set -e\n\
                  mount -t tmpfs none \"$1/mnt\"\n\
                  mkdir \"$1/mnt/job\" \"$1/mnt/workspace\"\n\
                  mount --bind \"$2/job\" \"$1/mnt/job\"\n\
                  mount --bind \"$2/workspace\" \"$1/mnt/workspace\"\n\
                  cp \"$2/cynode-sba\" \"$1/mnt\"\n\
                  exec chroot --userspec=1000:1000 \"$1\" /mnt/cynode-sba --job /mnt/job/job.json \
                  --result /mnt/job/result.json --workspace /mnt/workspace --artifacts /mnt/job/artifacts\n";
    let status = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, "sh"])
        .args([root.as_path(), folder.path()])
        .status()
        .unwrap();
    assert!(status.success());
    succeeded(&folder.path().join("job/result.json"));
}

#[test]
fn runner_runs_in_a_container_without_network_root_user_or_writable_root() {
    let docker = match Docker::start() {
        Ok(docker) => docker,
        Err(reason) => {
            return skip("runner_runs_in_a_container_without_network_root_user_or_writable_root", &reason);
        }
    };
    let folder = lay_out();
    let mount = |name: &str, inside: &str| {
        let host: PathBuf = folder.path().join(name);
        format!("--volume={}:{inside}", host.display())
    };
    let arguments = [
        "run",
        "--rm",
        "--network=none",
        "--read-only",
        "--user=1000",
        &mount("job", "/job"),
        &mount("workspace", "/workspace"),
        &mount("cynode-sba", "/cynode-sba:ro"),
        IMAGE,
        "/cynode-sba",
    ];
    docker.command(&arguments).unwrap();
    succeeded(&folder.path().join("job/result.json"));
}
