//! Successful uses of `belljar run`.

use crate::BELLJAR;
use belljar_testkit::job::{job, shell};
use belljar_testkit::world::World;
use serde_json::json;
use std::io::Write;
use std::process::Stdio;

#[test]
fn job_works_in_place_on_its_given_workspace() {
    World::as_everyone(BELLJAR, |world| {
        world.write("workspace/in", "hello");
        world.write("job.json", job(&json!([shell("tr a-z A-Z < in > out; id -u")])).to_string());
        let workspace = world.path().join("workspace").display().to_string();
        let result = world.run(&["run", "--json", "--workspace", &workspace, "job.json"]).succeeded().json();
        assert_eq!(result["status"], "success");
        assert_eq!(result["steps"][0]["result"]["stdout"], "1000\n");
        assert_eq!(world.read("workspace/out"), "HELLO");
    });
}

#[test]
fn job_without_a_workspace_gets_an_empty_temporary_one() {
    World::as_everyone(BELLJAR, |world| {
        world.write("job.json", job(&json!([shell("pwd; ls -A; touch left")])).to_string());
        let result = world.run(&["run", "--json", "job.json"]).succeeded().json();
        assert_eq!(result["steps"][0]["result"]["stdout"], "/workspace\n");
        assert_eq!(std::fs::read_dir(world.path().join("state/runs")).unwrap().count(), 0);
    });
}

#[test]
fn artifacts_are_stored_by_their_content_digest() {
    World::as_everyone(BELLJAR, |world| {
        let mut document = job(&json!([shell("echo one > $CYNODE_ARTIFACTS_DIR/one; echo two > two")]));
        document["artifacts"] = json!(["two"]);
        world.write("job.json", document.to_string());
        let result = world.run(&["run", "--json", "job.json"]).succeeded().json();
        let artifacts = result["artifacts"].as_array().unwrap();
        assert_eq!(artifacts.len(), 2, "{result:#}");
        for (artifact, (path, content)) in
            artifacts.iter().zip([("/job/artifacts/one", "one\n"), ("/workspace/two", "two\n")])
        {
            assert_eq!((artifact["path"].as_str(), artifact["size_bytes"].as_u64()), (Some(path), Some(4)));
            let sha256 = artifact["sha256"].as_str().unwrap();
            assert_eq!(world.read(&format!("state/artifacts/{}/{sha256}", &sha256[..2])), content);
        }
    });
}

#[test]
fn step_that_makes_the_job_folders_unwritable_loses_no_result() {
    World::as_everyone(BELLJAR, |world| {
        let keep = "echo kept > $CYNODE_ARTIFACTS_DIR/one; mkdir closed; echo in > closed/file; chmod 0 closed/file closed";
        let run = |close: &str| {
            let close = format!("{keep}; chmod 0 {close}");
            world.write("workspace/file", "there before");
            world.write("job.json", job(&json!([shell(&close)])).to_string());
            let workspace = world.path().join("workspace").display().to_string();
            world.run(&["run", "--json", "--workspace-copy", &workspace, "job.json"]).json()
        };
        for close in ["$CYNODE_ARTIFACTS_DIR", "/job"] {
            let result = run(close);
            assert_eq!(result["status"], "success", "{close}: {result:#}");
            assert_eq!(result["steps"][0]["result"]["exit_code"], 0, "{close}: {result:#}");
            let artifacts = result["artifacts"].as_array().unwrap();
            assert_eq!(artifacts.len(), 1, "{close}: {result:#}");
            let changes = result["changes"].to_string();
            assert!(changes.contains("closed/file"), "{close}: {changes}");
        }
    });
}

#[test]
fn result_states_every_isolation_layer() {
    World::as_everyone(BELLJAR, |world| {
        world.write("job.json", job(&json!([])).to_string());
        let result = world.run(&["run", "--json", "job.json"]).succeeded().json();
        let layers = result["isolation"]["layers"].as_array().unwrap();
        for name in
            ["user_namespace", "mount_namespace", "network_namespace", "landlock", "seccomp", "capabilities"]
        {
            let layer = layers.iter().find(|layer| layer["name"] == name);
            assert_eq!(layer.map(|layer| &layer["in_force"]), Some(&json!(true)), "{name}");
        }
        // Missing layers are reported, too.
        assert!(layers.iter().any(|layer| layer["name"] == "cpu_limit" && layer["in_force"] == false));
    });
}

#[test]
fn first_readme_command_works_on_this_repository_and_changes_nothing() {
    // Run by the owner of this checkout: files of another user may be copied and read, but not changed.
    let world = World::new(BELLJAR);
    let repository = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let patched = format!("{repository}/crates/testkit/src/job.rs");
    let before = std::fs::read_to_string(&patched).unwrap();
    let job = format!("{repository}/examples/self/job.json");
    let ran = world.run(&["run", "--json", &job, "--workspace-copy", repository]).succeeded();
    let result = ran.json();
    assert_eq!(result["steps"].as_array().unwrap().len(), 6, "{result:#}");
    assert_eq!(result["artifacts"].as_array().unwrap().len(), 2);
    assert_eq!(result["changes"]["files"][0]["path"], "crates/testkit/src/job.rs");
    assert_eq!(result["changes"]["files"].as_array().unwrap().len(), 1);
    assert_eq!(std::fs::read_to_string(&patched).unwrap(), before);
}

#[test]
fn job_is_read_from_standard_input_too() {
    let world = World::new(BELLJAR);
    let mut command = world.command(&["run", "--json", "-"]);
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(job(&json!([])).to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["status"], "success");
}

#[test]
fn progress_goes_to_standard_error_and_the_summary_to_standard_output() {
    let world = World::new(BELLJAR);
    world.write("job.json", job(&json!([shell("true"), shell("echo why >&2; false")])).to_string());
    let ran = world.run(&["run", "job.json"]);
    assert_eq!(ran.code, 1);
    assert!(
        ran.stderr.contains("✓ 1/2  run_command") && ran.stderr.contains("✗ 2/2  run_command"),
        "{}",
        ran.stderr
    );
    assert!(ran.stdout.starts_with("failure in "), "{}", ran.stdout);
    assert!(ran.stdout.contains("step_failed") && ran.stdout.contains("| why"), "{}", ran.stdout);
}

#[test]
fn job_gets_its_ids_as_variables_that_it_cannot_override() {
    let world = World::new(BELLJAR);
    world.write("job.json", job(&json!([shell("echo $CYNODE_JOB_ID $CYNODE_WORKSPACE_DIR")])).to_string());
    let ran = world.run(&["run", "--json", "--env", "CYNODE_JOB_ID=forged", "job.json"]).succeeded();
    assert_eq!(
        ran.json()["steps"][0]["result"]["stdout"],
        "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e /workspace\n"
    );
}

#[test]
fn program_and_path_limits_of_a_job_are_enforced_by_the_kernel() {
    let world = World::new(BELLJAR);
    let run = |constraints: serde_json::Value, argv: serde_json::Value| {
        let mut document = job(&json!([{ "type": "run_command", "args": { "argv": argv } }]));
        for (name, value) in constraints.as_object().unwrap() {
            document["constraints"][name] = value.clone();
        }
        world.write("job.json", document.to_string());
        world.run(&["run", "--json", "job.json"]).json()
    };
    let script = json!(["sh", "-c", "touch /tmp/q && ls /tmp"]);
    let programs = run(json!({ "allowed_commands": ["sh"] }), script.clone());
    let said = &programs["steps"][0]["result"]["stderr"];
    assert_eq!(programs["failure_code"], "step_failed", "{programs:#}");
    assert!(said.as_str().unwrap().contains("touch: Permission denied"), "{said}");
    let paths = run(json!({ "allowed_paths": ["/workspace"] }), script.clone());
    let said = &paths["steps"][0]["result"]["stderr"];
    assert_eq!(paths["failure_code"], "step_failed", "{paths:#}");
    assert!(said.as_str().unwrap().contains("cannot touch '/tmp/q': Permission denied"), "{said}");
    let both =
        json!({ "allowed_commands": ["sh", "touch", "/bin/ls"], "allowed_paths": ["/workspace", "/tmp"] });
    assert_eq!(run(both, script.clone())["status"], "success");
    let by_path = run(json!({ "allowed_commands": ["./run.sh"] }), json!(["./run.sh"]));
    assert_eq!(by_path["failure_code"], "policy_violation", "{by_path:#}");
    assert!(by_path["failure_message"].as_str().unwrap().contains("./run.sh"), "{by_path:#}");
    // The control.
    let free = run(json!({}), script);
    assert_eq!((&free["status"], &free["steps"][0]["result"]["stdout"]), (&json!("success"), &json!("q\n")));
}

#[test]
fn job_whose_sandbox_is_oom_killed_keeps_its_finished_steps() {
    World::as_everyone(BELLJAR, |world| {
        let steps = json!([shell("echo first"), shell("tail /dev/zero"), shell("echo never")]);
        world.write("job.json", job(&steps).to_string());
        let result = world.run(&["run", "--json", "--memory", "128m", "job.json"]).json();
        assert_eq!(result["exceeded_limit"], "memory", "{result:#}");
        let steps = result["steps"].as_array().unwrap();
        assert_eq!(steps.len(), 2, "{result:#}");
        assert_eq!(
            (&steps[0]["status"], &steps[0]["result"]["stdout"]),
            (&json!("success"), &json!("first\n"))
        );
        assert_eq!((&steps[1]["status"], &steps[1]["id"]), (&json!("failure"), &json!("step-2")));
        assert_eq!(steps[1]["error"]["type"], "constraint_violation", "{result:#}");
        assert!(steps[1]["error"]["message"].as_str().unwrap().contains("memory"), "{result:#}");
    });
}

#[test]
fn non_utf8_names_are_kept_and_patched_and_a_step_starts_outside_of_the_workspace() {
    World::as_everyone(BELLJAR, |world| {
        let diff = concat!(
            "diff --git \"a/two\\nlines\" \"b/two\\nlines\"\nnew file mode 100644\n",
            "--- /dev/null\n+++ \"b/two\\nlines\"\n@@ -0,0 +1 @@\n+b\n",
        );
        let steps = json!([
            shell("echo one > \"$CYNODE_ARTIFACTS_DIR/$(printf 'a\\377')\"; echo two > $CYNODE_ARTIFACTS_DIR/text"),
            { "type": "apply_unified_diff", "args": { "diff": diff } },
            { "type": "run_command", "args": { "argv": ["sh", "-c", "pwd; cat /workspace/two*"], "cwd": "/tmp" } },
        ]);
        world.write("job.json", job(&steps).to_string());
        let result = world.run(&["run", "--json", "job.json"]).succeeded().json();
        assert_eq!(result["status"], "success", "{result:#}");
        assert_eq!(result["steps"][2]["result"]["stdout"], "/tmp\nb\n", "{result:#}");
        let artifacts = result["artifacts"].as_array().unwrap();
        let mut paths: Vec<_> = artifacts.iter().map(|artifact| artifact["path"].as_str().unwrap()).collect();
        paths.sort_unstable();
        assert_eq!(paths, [r"/job/artifacts/a\xff", "/job/artifacts/text"]);
        for (path, content) in [(r"/job/artifacts/a\xff", "one\n"), ("/job/artifacts/text", "two\n")] {
            let kept = artifacts.iter().find(|artifact| artifact["path"] == path).unwrap();
            let sha256 = kept["sha256"].as_str().unwrap();
            assert_eq!(world.read(&format!("state/artifacts/{}/{sha256}", &sha256[..2])), content);
        }
    });
}
