//! Restrictions of a job apply to its programs.

use crate::scene::{Scene, job_within, sh, step};
use serde_json::{Value, json};

fn restricted(paths: &Value, steps: Vec<Value>) -> Value {
    let constraints =
        json!({ "max_runtime_seconds": 60, "max_output_bytes": 100_000, "allowed_paths": paths });
    job_within(constraints, steps)
}

fn in_source(script: &str) -> Value {
    step("run_command", json!({ "argv": ["/bin/sh", "-c", script], "cwd": "src" }))
}

#[test]
fn programs_write_in_the_allowed_paths_and_nowhere_else() {
    let scene = Scene::new();
    scene.write("src/a", "a");
    scene.write("secret", "hidden");
    let outside = scene.beside("outside");
    std::fs::create_dir(&outside).unwrap();
    let elsewhere = outside.display();
    let shared = format!("/tmp/belljar-{}", std::process::id());
    let attempts = format!(
        "touch b && mkdir -p deep/er && echo x >deep/er/x && mv deep/er/x c && echo kept >$CYNODE_ARTIFACTS_DIR/kept || exit 9; \
         echo x >/dev/null || exit 8; for tried in 'touch {shared}' 'touch {elsewhere}/q' 'touch ../q' 'cat ../secret' 'ls ..' \
         'cat ../../job.json' 'echo >>../../steps.jsonl'; do if sh -c \"$tried\" 2>/dev/null; then echo \"$tried\"; fi; done"
    );
    let ran = scene.run(&restricted(&json!(["/workspace/src"]), vec![in_source(&attempts)]));
    assert_eq!(ran.outcome(), "success", "{}", ran.result);
    assert_eq!(ran.step(0)["result"]["stdout"], "", "what was not refused");
    assert!(scene.inside("src/c").exists() && scene.beside("artifacts/kept").exists());
    assert!(!outside.join("q").exists() && !scene.inside("q").exists());
    // The control: without the restriction each of them succeeds.
    let free = json!({ "max_runtime_seconds": 60, "max_output_bytes": 100_000 });
    let ran = scene.run(&job_within(free, vec![in_source(&attempts)]));
    let succeeded = ran.step(0)["result"]["stdout"].as_str().unwrap();
    let touched = succeeded.lines().filter(|line| line.starts_with("touch ")).count();
    assert_eq!(touched, 3, "{}", ran.result);
    assert!(outside.join("q").exists());
    let _ = std::fs::remove_file(shared);
}

#[test]
fn commands_run_outside_the_workspace_only_in_allowed_paths() {
    let scene = Scene::new();
    let outside = scene.beside("outside");
    std::fs::create_dir(&outside).unwrap();
    let there =
        |script: &str| step("run_command", json!({ "argv": ["/bin/sh", "-c", script], "cwd": outside }));
    let ran = scene.run(&restricted(&json!(["/workspace"]), vec![there("touch x")]));
    assert_eq!(ran.outcome(), "policy_violation", "{}", ran.result);
    let ran = scene.run(&restricted(&json!(["/workspace", outside]), vec![there("touch x; echo $PWD")]));
    assert_eq!(ran.outcome(), "success", "{}", ran.result);
    assert!(outside.join("x").exists());
    assert_eq!(ran.step(0)["result"]["stdout"], format!("{}\n", outside.display()));
}

#[test]
fn job_with_allowed_paths_overwrites_files_only_if_overwrite_allowed() {
    let scene = Scene::new();
    let write = |content: &str| step("write_file", json!({ "path": "a", "content": content }));
    let ran = scene.run(&restricted(&json!(["/workspace"]), vec![write("first"), write("second")]));
    assert_eq!(ran.outcome(), "policy_violation", "{}", ran.result);
    assert!(ran.result["failure_message"].as_str().unwrap().contains("overwrite_allowed"), "{}", ran.result);
    assert_eq!(std::fs::read_to_string(scene.inside("a")).unwrap(), "first");
    let mut enabled = restricted(&json!(["/workspace"]), vec![write("second")]);
    enabled["constraints"]["overwrite_allowed"] = json!(true);
    assert_eq!(scene.run(&enabled).outcome(), "success");
    assert_eq!(std::fs::read_to_string(scene.inside("a")).unwrap(), "second");
    let constraints = json!({
        "max_runtime_seconds": 60, "max_output_bytes": 100_000, "overwrite_allowed": false,
    });
    assert_eq!(scene.run(&job_within(constraints, vec![write("third")])).outcome(), "policy_violation");
    // The control: a job without the restriction.
    let plain = json!({ "max_runtime_seconds": 60, "max_output_bytes": 100_000 });
    assert_eq!(scene.run(&job_within(plain, vec![write("third"), sh("true")])).outcome(), "success");
}
