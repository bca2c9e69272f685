//! Tests in other kinds of sandboxes: without their own root, and in containers.

use super::Case;
use super::rig::{Setting, WorkbenchFactory, WorkbenchRig, direct, folder, run};
use belljar_contract::tool::DomainCode;
use belljar_sandbox::config::BackendName;
use belljar_sandbox::run::WorkspaceChoice;
use serde_json::json;

pub(crate) const CASES: &[Case] = &[
    ("tools_work_in_the_subprocess_backend", subprocess),
    ("tools_work_in_containers", docker),
    ("tools_change_only_the_copy_of_a_workspace", copy),
];

/// Uses the tools in the same way in each kind of sandbox.
async fn work(bench: &WorkbenchRig) {
    bench.done("write_file", json!({ "path": "d/f", "content": "one\n", "create_directories": true })).await;
    bench.done("edit_file", json!({ "path": "d/f", "old_text": "one", "new_text": "two" })).await;
    assert_eq!(bench.done("read_file", json!({ "path": "d/f" })).await["content"], "two\n");
    assert_eq!(
        bench.done("list_directory", json!({ "recursive": true })).await["content"],
        "[DIR]  d\n[FILE] d/f (4 bytes)"
    );
    let ran =
        bench.done("shell_command", json!({ "command": "cat f; exit 3", "working_directory": "d" })).await;
    assert_eq!((&ran["stdout"], &ran["exit_code"]), (&json!("two\n"), &json!(3)), "{ran}");
    bench.shell("ln -s d in; ln -s ../../../../../../etc/passwd out").await;
    assert_eq!(bench.done("read_file", json!({ "path": "in/f" })).await["content"], "two\n");
    assert_eq!(bench.refused("read_file", json!({ "path": "out" })).await.0, DomainCode::PermissionDenied);
    let slow = json!({ "command": "sleep 600", "timeout": 1 });
    assert_eq!(bench.done("shell_command", slow).await["timed_out"], true);
}

/// Starts a daemon, which must be dead after the call.
async fn leave(bench: &WorkbenchRig) {
    let daemon = "(setsid sh -c 'while :; do echo >>alive; sleep 0.05; done' >/dev/null 2>&1 &); sleep 0.3; wc -l <alive";
    let ran = bench.done("shell_command", json!({ "command": daemon })).await;
    assert_ne!(ran["stdout"].as_str().unwrap().trim(), "0", "{ran}");
    let sizes = bench.shell("stat -c %s alive; sleep 0.5; stat -c %s alive; rm alive").await;
    let sizes: Vec<&str> = sizes.lines().collect();
    assert_eq!(sizes[0], sizes[1]);
}

fn subprocess(benches: &WorkbenchFactory) -> Result<(), String> {
    let place = folder();
    let setting =
        Setting { backend: BackendName::Subprocess, workspace: direct(place.path()), ..Setting::default() };
    let bench = benches.bench(setting)?;
    run(async {
        work(&bench).await;
        assert_eq!(std::fs::read_to_string(place.path().join("d/f")).unwrap(), "two\n");
        leave(&bench).await;
        bench.shell("rm in out; git init -q -b main").await;
        let made = bench.done("git_commit", json!({ "message": "m", "paths": ["d"] })).await;
        assert_eq!(made["files_changed"], 1);
    });
    Ok(())
}

fn docker(benches: &WorkbenchFactory) -> Result<(), String> {
    let setting = Setting { backend: BackendName::Docker, ..Setting::default() };
    let bench = benches.bench(setting)?;
    run(async {
        work(&bench).await;
        leave(&bench).await;
        let (code, said) = bench.refused("git_status", json!({})).await;
        assert_eq!((code, said.as_str()), (DomainCode::NotSupported, "there is no git in this sandbox"));
    });
    Ok(())
}

fn copy(benches: &WorkbenchFactory) -> Result<(), String> {
    let place = folder();
    std::fs::write(place.path().join("kept"), "kept").unwrap();
    let WorkspaceChoice::Direct(path) = direct(place.path()) else { panic!("not what was made") };
    let bench = benches.bench(Setting { workspace: WorkspaceChoice::Copy(path), ..Setting::default() })?;
    run(async {
        assert_eq!(bench.done("read_file", json!({ "path": "kept" })).await["content"], "kept");
        bench.done("delete_file", json!({ "path": "kept" })).await;
        bench.done("write_file", json!({ "path": "new", "content": "x" })).await;
        assert_eq!(bench.shell("ls").await, "new\n");
    });
    let names: Vec<_> =
        std::fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["kept"]);
    Ok(())
}
