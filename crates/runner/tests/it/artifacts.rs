//! Files that are kept, and their entries in the result.

use crate::scene::{RunOutcome, Scene, job, sh};
use serde_json::{Value, json};
use std::os::unix::fs::symlink;

fn kept(ran: &RunOutcome) -> Vec<(&str, u64)> {
    let artifacts = ran.result["artifacts"].as_array().unwrap();
    artifacts
        .iter()
        .map(|kept| (kept["path"].as_str().unwrap(), kept["size_bytes"].as_u64().unwrap()))
        .collect()
}

fn job_naming(artifacts: Value, steps: Vec<Value>) -> Value {
    let mut job = job(steps);
    job["artifacts"] = artifacts;
    job
}

#[test]
fn folder_and_named_artifacts_are_kept_with_size_and_hash() {
    let scene = Scene::new();
    let script = "mkdir -p $CYNODE_ARTIFACTS_DIR/sub dist; printf abc >$CYNODE_ARTIFACTS_DIR/sub/b; \
                  : >$CYNODE_ARTIFACTS_DIR/a; printf x >dist/out; printf y >ignored";
    let ran = scene.run(&job_naming(json!(["dist/out", "/workspace/dist/out"]), vec![sh(script)]));
    assert_eq!(ran.outcome(), "success", "{ran:#?}");
    assert_eq!(
        kept(&ran),
        [("/job/artifacts/a", 0), ("/job/artifacts/sub/b", 3), ("/workspace/dist/out", 1)]
    );
    let hash = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(ran.result["artifacts"][1]["sha256"], hash);
}

#[test]
fn missing_named_artifact_fails_an_otherwise_successful_job() {
    let scene = Scene::new();
    let ran = scene.run(&job_naming(json!(["there", "missing"]), vec![sh("touch there")]));
    assert_eq!((ran.exit_code, ran.outcome()), (Some(1), "step_failed"));
    assert!(ran.result["failure_message"].as_str().unwrap().contains("missing"));
    assert_eq!(kept(&ran), [("/workspace/there", 0)]);
    let failed = scene.run(&job_naming(json!(["missing"]), vec![sh("exit 3")]));
    assert!(
        failed.result["failure_message"].as_str().unwrap().contains("code 3"),
        "its own failure is what counts"
    );
}

#[test]
fn links_and_special_files_are_not_kept_as_artifacts_and_do_not_block() {
    let scene = Scene::new();
    std::fs::write(scene.beside("secret"), "secret").unwrap();
    std::fs::create_dir(scene.beside("artifacts")).unwrap();
    symlink("../secret", scene.beside("artifacts").join("link")).unwrap();
    symlink("..", scene.beside("artifacts").join("folder")).unwrap();
    symlink("../secret", scene.inside("link")).unwrap();
    let script = "mkfifo $CYNODE_ARTIFACTS_DIR/fifo; ln -s / $CYNODE_ARTIFACTS_DIR/root; touch $CYNODE_ARTIFACTS_DIR/real";
    let ran = scene.run(&job(vec![sh(script)]));
    assert_eq!(ran.outcome(), "success");
    assert_eq!(kept(&ran), [("/job/artifacts/real", 0)]);
    assert!(ran.log.contains("4 links or special files"), "{}", ran.log);
    for named in ["link", ".", "fifo"] {
        rustix::fs::mkfifoat(rustix::fs::CWD, scene.inside("fifo"), rustix::fs::Mode::RWXU)
            .unwrap_or_default();
        let ran = scene.run(&job_naming(json!([named]), vec![]));
        assert_eq!(ran.result["status"], "failure", "{named}");
        assert_eq!(kept(&ran), [("/job/artifacts/real", 0)], "{named}");
    }
}

#[test]
fn artifacts_folder_replaced_by_a_symlink_is_not_followed() {
    let scene = Scene::new();
    std::fs::create_dir(scene.beside("elsewhere")).unwrap();
    std::fs::write(scene.beside("elsewhere").join("secret"), "secret").unwrap();
    let ran = scene.run(&job(vec![sh("rmdir ../artifacts && ln -s elsewhere ../artifacts")]));
    assert_eq!(ran.result["artifacts"], json!([]));
    assert_eq!(ran.result["status"], "failure");
    // The control: the same files in a real folder are kept.
    let control = scene.run(&job(vec![sh("rm ../artifacts && cp -r ../elsewhere ../artifacts")]));
    assert_eq!(kept(&control), [("/job/artifacts/secret", 6)]);
}

#[test]
fn too_many_artifacts_fail_the_job() {
    let scene = Scene::new();
    let script = "cd $CYNODE_ARTIFACTS_DIR && seq -w 10001 | xargs touch";
    let ran = scene.run(&job(vec![sh(script)]));
    assert_eq!(ran.outcome(), "constraint_violation");
    assert_eq!(kept(&ran).len(), 10_000);
    let fewer = scene.run(&job(vec![sh("rm $CYNODE_ARTIFACTS_DIR/00001")]));
    assert_eq!((fewer.outcome(), kept(&fewer).len()), ("success", 10_000));
}

#[test]
fn oversized_sparse_artifact_does_not_lose_step_results() {
    let scene = Scene::new();
    let ran = scene.run(&job(vec![sh("truncate -s 8T $CYNODE_ARTIFACTS_DIR/holes"), sh("echo second")]));
    assert_eq!(ran.outcome(), "constraint_violation");
    assert_eq!(ran.result["steps"].as_array().unwrap().len(), 2, "{ran:#?}");
    // The control: the same with a size that is kept.
    let control = scene.run(&job(vec![sh("truncate -s 1M $CYNODE_ARTIFACTS_DIR/holes"), sh("echo second")]));
    assert_eq!((control.outcome(), kept(&control)), ("success", vec![("/job/artifacts/holes", 1 << 20)]));
}

#[test]
fn a_failed_jobs_artifacts_are_kept_too() {
    let scene = Scene::new();
    let ran = scene.run(&job(vec![sh("touch $CYNODE_ARTIFACTS_DIR/evidence; exit 3")]));
    assert_eq!((ran.outcome(), kept(&ran)), ("step_failed", vec![("/job/artifacts/evidence", 0)]));
}

#[test]
fn artifact_with_a_non_utf8_name_is_kept_under_its_escaped_name() {
    let scene = Scene::new();
    let script = "mkdir -p \"$CYNODE_ARTIFACTS_DIR/$(printf 'd\\377')\"; \
                  echo one >\"$CYNODE_ARTIFACTS_DIR/$(printf 'd\\377/a\\\\b')\"; \
                  echo two >$CYNODE_ARTIFACTS_DIR/text";
    let ran = scene.run(&job(vec![sh(script)]));
    assert_eq!(ran.outcome(), "success", "{}", ran.result);
    let mut found = kept(&ran);
    found.sort_unstable();
    assert_eq!(found, [(r"/job/artifacts/d\xff/a\\b", 4), ("/job/artifacts/text", 4)]);
}
