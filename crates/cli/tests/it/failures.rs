//! A job of each failure kind ends in the documented code, in complete JSON, with the documented exit code.

use crate::BELLJAR;
use belljar_testkit::job::{job, shell};
use belljar_testkit::skip::skip;
use belljar_testkit::world::{ProgramOutput, World};
use serde_json::{Value, json};

fn run(world: &World, document: &Value) -> ProgramOutput {
    world.write("job.json", document.to_string());
    world.run(&["run", "--json", "job.json"])
}

#[track_caller]
fn ends_as(ran: &ProgramOutput, status: &str, code: &str, exit_code: i32) {
    let result = ran.json();
    assert_eq!((&result["status"], &result["failure_code"]), (&json!(status), &json!(code)), "{result:#}");
    assert!(result["failure_message"].as_str().is_some_and(|message| !message.is_empty()), "{result:#}");
    assert_eq!(ran.code, exit_code);
    for member in ["protocol_version", "job_id", "steps", "artifacts"] {
        assert!(result.get(member).is_some(), "{member} in {result:#}");
    }
}

#[test]
fn malformed_job_is_a_schema_validation_failure() {
    let world = World::new(BELLJAR);
    let mut document = job(&json!([shell("true")]));
    document["surprise"] = json!(1);
    let ran = run(&world, &document);
    ends_as(&ran, "failure", "schema_validation", 2);
    assert_eq!(ran.json()["problems"][0]["path"], "$.surprise");
    assert_eq!(ran.json()["job_id"], document["job_id"]);
}

#[test]
fn failing_command_is_a_step_failed_with_its_exit_code() {
    World::as_everyone(BELLJAR, |world| {
        let ran = run(world, &job(&json!([shell("echo so far; exit 3"), shell("echo never")])));
        ends_as(&ran, "failure", "step_failed", 1);
        let steps = ran.json()["steps"].clone();
        assert_eq!(steps.as_array().unwrap().len(), 1);
        assert_eq!(
            (&steps[0]["result"]["exit_code"], &steps[0]["result"]["stdout"]),
            (&json!(3), &json!("so far\n"))
        );
    });
}

#[test]
fn job_that_times_out_is_a_timeout_with_partial_results() {
    World::as_everyone(BELLJAR, |world| {
        let mut document = job(&json!([shell("echo begun; sleep 60")]));
        document["constraints"]["max_runtime_seconds"] = json!(1);
        let ran = run(world, &document);
        ends_as(&ran, "timeout", "timeout", 124);
        assert_eq!(ran.json()["steps"][0]["result"]["stdout"], "begun\n");
    });
}

#[test]
fn command_line_limit_kills_a_job_from_outside() {
    let world = World::new(BELLJAR);
    world.write("job.json", job(&json!([shell("sleep 60")])).to_string());
    let ran = world.run(&["run", "--json", "--timeout", "1s", "job.json"]);
    ends_as(&ran, "timeout", "timeout", 124);
}

#[test]
fn output_over_the_limit_is_a_constraint_violation() {
    let world = World::new(BELLJAR);
    let mut document = job(&json!([shell("printf 0123456789")]));
    document["constraints"]["max_output_bytes"] = json!(5);
    let ran = run(&world, &document);
    ends_as(&ran, "failure", "constraint_violation", 1);
    let output = &ran.json()["steps"][0]["result"];
    assert_eq!((&output["stdout"], &output["truncated"]["stdout"]), (&json!("01234"), &json!(true)));
}

#[test]
fn path_outside_the_workspace_is_a_policy_violation_and_nothing_runs() {
    let world = World::new(BELLJAR);
    let escape = json!({ "type": "write_file", "args": { "path": "/etc/passwd", "content": "" } });
    world.write("workspace/x", "");
    world.write("job.json", job(&json!([shell("touch ran"), escape])).to_string());
    let workspace = world.path().join("workspace").display().to_string();
    let ran = world.run(&["run", "--json", "--workspace", &workspace, "job.json"]);
    ends_as(&ran, "failure", "policy_violation", 1);
    assert!(!world.path().join("workspace/ran").exists());
}

#[test]
fn command_that_needs_the_network_is_ext_net_required_and_names_the_host() {
    let world = World::new(BELLJAR);
    let ran = run(&world, &job(&json!([shell("curl -sS https://pypi.org/simple/")])));
    ends_as(&ran, "failure", "ext_net_required", 1);
    assert!(ran.json()["failure_message"].as_str().unwrap().contains("pypi.org"), "{}", ran.stdout);
}

#[test]
fn killed_runner_or_forged_result_is_a_node_failure() {
    World::as_everyone(BELLJAR, |world| {
        // The result is the host's own record, whatever the step does to its runner.
        let script = "cp /job/job.json /job/result.json; \
                      printf '{\"status\":\"success\"}' > /job/result.json; \
                      for pid in $(ls /proc | grep '^[0-9]*$'); do kill -9 $pid; done; sleep 1";
        let ran = run(world, &job(&json!([shell(script)])));
        let code = ran.json()["failure_code"].clone();
        // If the runner can't be killed, only the step dies.
        assert!(code == "node_failure" || code == "step_failed", "{}", ran.stdout);
        assert_eq!((ran.json()["status"].as_str(), ran.code), (Some("failure"), 1));
    });
}

#[test]
fn interrupt_cancels_the_job_and_leaves_nothing_behind() {
    let world = World::new(BELLJAR);
    world.write("job.json", job(&json!([shell("sleep 60")])).to_string());
    let mut command = world.command(&["run", "job.json"]);
    let mut child =
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn().unwrap();
    let runs = world.path().join("state/runs");
    belljar_testkit::wait::until(|| std::fs::read_dir(&runs).is_ok_and(|mut runs| runs.next().is_some()));
    let pid = rustix::process::Pid::from_child(&child);
    // Belljar handles SIGINT shortly after it has made the folder; until then the signal kills it.
    belljar_testkit::wait::until(|| {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::INT);
        child.try_wait().unwrap().is_some()
    });
    belljar_testkit::wait::until(|| std::fs::read_dir(&runs).is_ok_and(|mut runs| runs.next().is_none()));
}

#[test]
fn missing_random_device_is_reported_without_a_panic() {
    if !rustix::process::geteuid().is_root() {
        return skip("missing_random_device_is_reported_without_a_panic", "mounting over /dev needs root");
    }
    let world = World::new(BELLJAR);
    let exec = |first: &str| {
        let script = format!("{first}exec {BELLJAR} exec -- true");
        let unshare = ["--mount", "--propagation", "private", "sh", "-c", &script];
        ProgramOutput::from(world.command_of("unshare".as_ref(), &unshare).output().unwrap())
    };
    exec("").succeeded();
    let ran = exec("mount -t tmpfs none /dev && ");
    assert!(ran.code == 125 && ran.stderr.contains("/dev/random is missing"), "{ran:?}");
    assert!(!ran.stderr.contains("panicked"), "{ran:?}");
}

#[test]
fn impossible_limits_and_workspaces_are_refused_with_a_valid_alternative() {
    World::as_everyone(BELLJAR, |world| {
        let exec = |options: &[&str]| world.run(&[&["exec"], options, &["--", "true"]].concat());
        for (options, why) in [
            (["--memory", "5"], "the least that works is 6m"),
            (["--scratch", "5"], "the least that works is 1m"),
            (["--workspace", "/"], "the root directory can't be a workspace"),
            (["--workspace-copy", "/"], "the root directory can't be a workspace"),
        ] {
            let ran = exec(&options);
            assert!(ran.code == 125 && ran.stderr.contains(why), "{options:?}: {ran:?}");
            assert!(!ran.stderr.contains("identity-mapped"), "{options:?}: {ran:?}");
        }
        // The controls: the minimum works.
        exec(&["--memory", "6m"]).succeeded();
        exec(&["--scratch", "1m"]).succeeded();
    });
}
