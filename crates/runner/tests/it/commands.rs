//! Input of programs of `run_command`, and their captured output.

use crate::scene::{JOB_ID, Scene, TASK_ID, job, job_within, sh, step};
use rustix::io::{FdFlags, fcntl_setfd};
use serde_json::{Value, json};

fn stdout(entry: &Value) -> &str {
    entry["result"]["stdout"].as_str().unwrap()
}

#[test]
fn program_arguments_are_passed_without_shell_expansion() {
    let scene = Scene::new();
    let hostile = "$(touch owned); `touch owned` && * \n\t'\"";
    let entry = scene.run_step(step("run_command", json!({ "argv": ["printf", "%s|", hostile, ""] })));
    assert_eq!(stdout(&entry), format!("{hostile}||"));
    assert!(!scene.inside("owned").exists());
}

#[test]
fn script_without_a_shebang_is_not_run_by_a_shell() {
    let scene = Scene::new();
    for (name, text) in [("plain", "echo ran"), ("script", "#!/bin/sh\necho ran")] {
        let path = scene.write(name, text);
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    }
    let plain = scene.run_step(step("run_command", json!({ "argv": ["./plain"] })));
    assert_eq!(plain["error"]["type"], "step_failed");
    assert!(plain["error"]["message"].as_str().unwrap().contains("Exec format error"), "{plain}");
    let script = scene.run_step(step("run_command", json!({ "argv": ["./script"] })));
    assert_eq!(stdout(&script), "ran\n");
}

#[test]
fn missing_program_is_reported_with_the_searched_path() {
    let scene = Scene::new();
    let run = |env: Value| {
        let entry = scene.run_step(step("run_command", json!({ "argv": ["no-such-tool"], "env": env })));
        assert_eq!(entry["error"]["type"], "step_failed");
        entry["error"]["message"].as_str().unwrap().to_owned()
    };
    assert_eq!(run(json!({ "PATH": "/a:/b" })), "program not found: no-such-tool (PATH=/a:/b)");
    let inherited = std::env::var("PATH").unwrap();
    assert_eq!(run(json!({})), format!("program not found: no-such-tool (PATH={inherited})"));
}

#[test]
fn the_steps_own_path_decides_which_program_runs() {
    let scene = Scene::new();
    let tool = scene.write("bin/tool", "#!/bin/sh\necho ours");
    std::fs::set_permissions(tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:/usr/bin:/bin", scene.inside("bin").display());
    let args = json!({ "argv": ["tool"], "env": { "PATH": path } });
    assert_eq!(stdout(&scene.run_step(step("run_command", args))), "ours\n");
}

#[test]
fn program_environment_has_job_ids_and_directories() {
    let scene = Scene::new();
    std::fs::create_dir(scene.inside("sub")).unwrap();
    let script = r#"echo "$CYNODE_JOB_ID $CYNODE_TASK_ID"; echo "$CYNODE_WORKSPACE_DIR $CYNODE_ARTIFACTS_DIR";
                    echo "$PWD $OWN"; pwd -P; echo text | cat >"$CYNODE_ARTIFACTS_DIR/kept""#;
    let args = json!({ "argv": ["sh", "-c", script], "cwd": "sub", "env": { "OWN": "x=y" } });
    let entry = scene.run_step(step("run_command", args));
    let (workspace, artifacts) = (scene.beside("workspace"), scene.beside("artifacts"));
    let sub = workspace.join("sub");
    let expected = format!(
        "{JOB_ID} {TASK_ID}\n{} {}\n{sub} x=y\n{sub}\n",
        workspace.display(),
        artifacts.display(),
        sub = sub.display()
    );
    assert_eq!(stdout(&entry), expected);
}

#[test]
fn program_gets_empty_stdin_and_no_inherited_descriptors() {
    let scene = Scene::new();
    // A descriptor that the runner inherits without close-on-exec.
    let inherited = std::fs::File::open("/dev/null").unwrap();
    fcntl_setfd(&inherited, FdFlags::empty()).unwrap();
    let entry = scene.run_step(sh("cat; ls /proc/self/fd | tr '\\n' ' '"));
    drop(inherited);
    // The fourth is the directory that `ls` itself reads.
    assert_eq!(stdout(&entry), "0 1 2 3 ");
}

#[test]
fn broken_pipe_ends_a_program_with_sigpipe() {
    let scene = Scene::new();
    // With SIGPIPE ignored, `yes` would complain instead of being ended by signal 13.
    let script = "(yes; echo $? >&2) | head -n 1";
    let entry = scene.run_step(sh(&format!("exec 3>&1; {script}")));
    assert_eq!(entry["result"]["stderr"], "141\n");
}

#[test]
fn program_end_is_reported_as_exit_code_or_signal() {
    let scene = Scene::new();
    let exited = scene.run_step(sh("exit 255"));
    assert_eq!((&exited["result"]["exit_code"], &exited["result"]["signal"]), (&json!(255), &Value::Null));
    let killed = scene.run_step(sh("kill -TERM $$"));
    assert_eq!((&killed["result"]["exit_code"], &killed["result"]["signal"]), (&Value::Null, &json!(15)));
    assert_eq!(killed["error"]["type"], "step_failed");
}

#[test]
fn stdout_and_stderr_are_separate_and_non_utf8_output_is_base64() {
    let scene = Scene::new();
    let entry = scene.run_step(sh("printf 'out\\377'; printf err >&2"));
    assert_eq!(entry["result"]["stdout_encoding"], "base64");
    assert_eq!(entry["result"]["stdout"], "b3V0/w==");
    assert_eq!(
        (&entry["result"]["stderr_encoding"], &entry["result"]["stderr"]),
        (&json!("utf-8"), &json!("err"))
    );
}

#[test]
fn resource_usage_includes_orphaned_processes() {
    let scene = Scene::new();
    let spin = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    let cpu_time = |script: String| {
        let entry = scene.run_step(sh(&script));
        assert!(entry["result"]["resource_usage"]["max_rss_bytes"].as_u64().unwrap() > 100_000, "{entry}");
        entry["result"]["resource_usage"]["cpu_time_ms"].as_u64().unwrap()
    };
    let idle = cpu_time("true".to_owned());
    assert!(cpu_time(spin.to_owned()) > idle + 20);
    // Its parent is gone before it begins, and it still runs when the step ends.
    let orphan =
        format!("(setsid sh -c '{spin}; touch done; sleep 1000' &); until [ -e done ]; do sleep 0.01; done");
    assert!(cpu_time(orphan) > idle + 20);
}

#[test]
fn output_of_exactly_max_output_bytes_fits_and_one_more_byte_does_not() {
    let scene = Scene::new();
    let ran = |bytes: usize| {
        let constraints = json!({ "max_runtime_seconds": 60, "max_output_bytes": 1000 });
        scene.run(&job_within(constraints, vec![sh(&format!("head -c {bytes} /dev/zero | tr '\\0' x"))]))
    };
    for bytes in [999, 1000] {
        let ran = ran(bytes);
        assert_eq!(ran.outcome(), "success");
        assert_eq!(ran.step(0)["result"]["stdout"], "x".repeat(bytes));
    }
    let over = ran(1001);
    assert_eq!((over.exit_code, over.outcome()), (Some(1), "constraint_violation"));
    assert_eq!(over.step(0)["result"]["stdout"], "x".repeat(1000));
    assert_eq!(over.step(0)["result"]["truncated"], json!({ "stdout": true, "stderr": false }));
    assert!(over.step(0)["error"]["message"].as_str().unwrap().contains("max_output_bytes"));
    assert_eq!(over.step(0)["result"]["exit_code"], 0, "it had time to end by itself");
}

#[test]
fn truncated_output_ends_between_characters() {
    let scene = Scene::new();
    let constraints = json!({ "max_runtime_seconds": 60, "max_output_bytes": 10 });
    let ran = scene.run(&job_within(constraints, vec![sh("printf 'x€€€€€€'")]));
    assert_eq!(ran.step(0)["result"]["stdout"], "x€€€");
    assert_eq!(ran.step(0)["result"]["stdout_encoding"], "utf-8");
}

#[test]
fn working_directory_must_be_inside_the_workspace_or_absolute() {
    let scene = Scene::new();
    std::os::unix::fs::symlink("/", scene.inside("out")).unwrap();
    std::fs::create_dir(scene.inside("real")).unwrap();
    std::os::unix::fs::symlink("real", scene.inside("in")).unwrap();
    let run_in =
        |cwd: &str| scene.run_step(step("run_command", json!({ "argv": ["pwd", "-P"], "cwd": cwd })));
    for cwd in ["out", "out/tmp", "..", "real/../..", "/tmp/.."] {
        assert_eq!(run_in(cwd)["error"]["type"], "policy_violation", "{cwd}");
    }
    for cwd in ["missing", "/missing"] {
        assert_eq!(run_in(cwd)["error"]["type"], "step_failed");
    }
    for cwd in ["/", "/usr"] {
        assert_eq!(stdout(&run_in(cwd)), format!("{cwd}\n"));
    }
    assert_eq!(stdout(&run_in("in")), format!("{}\n", scene.inside("real").display()));
}

#[test]
fn step_progress_is_logged_only_with_the_progress_option() {
    let scene = Scene::new();
    let job = job(vec![sh("echo first; echo 'last line'")]);
    let is_progress = |event: &Value| event["event"] == "step_progress";
    assert!(!scene.run(&job).events().iter().any(is_progress));
    let output = scene.command().arg("--progress").output().unwrap();
    let log = String::from_utf8(output.stdout).unwrap();
    let told: Vec<Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap()).filter(is_progress).collect();
    assert!(!told.is_empty(), "{log}");
}
