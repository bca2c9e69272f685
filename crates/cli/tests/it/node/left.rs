//! Artifacts of jobs.

use belljar_testkit::node::{Node, script, steps};
use belljar_testkit::s3::S3;
use belljar_testkit::skip::skip;
use belljar_testkit::world::World;
use serde_json::json;
use sha2::{Digest, Sha256};

/// Checks that a job's artifact is returned unchanged, and not under another job's name.
fn comes_back(node: &Node<'_>) {
    let job = script(
        "head -c 3000000 /dev/zero | tr '\\0' x > /job/artifacts/large; ln -s /etc/passwd /job/artifacts/link",
    );
    let told = node.run(&job).json();
    let artifacts = told["artifacts"].as_array().unwrap();
    assert_eq!(artifacts.len(), 1, "{artifacts:?}");
    let sha256 = artifacts[0]["sha256"].as_str().unwrap();
    let id = job["job_id"].as_str().unwrap();
    let answered = node.get(&format!("/v1/worker/jobs/{id}/artifacts/{sha256}"));
    assert_eq!((answered.status, answered.body.len()), (200, 3_000_000));
    let digest: String = Sha256::digest(&answered.body).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(digest, sha256);
    assert_eq!(answered.header("content-type"), Some("application/octet-stream"));
    let other = node.run(&script("true")).json();
    let other = other["job_id"].as_str().unwrap();
    for path in [
        format!("{other}/artifacts/{sha256}"),
        format!("{id}/artifacts/{}", "0".repeat(64)),
        format!("{id}/artifacts/.."),
    ] {
        assert_eq!(node.get(&format!("/v1/worker/jobs/{path}")).status, 404, "{path}");
    }
}

#[test]
fn artifacts_are_served_from_the_nodes_own_folder() {
    let world = World::new(crate::BELLJAR);
    comes_back(&Node::start(&world, &[]));
}

#[test]
fn artifacts_are_served_from_a_bucket() {
    let s3 = match S3::start() {
        Ok(s3) => s3,
        Err(why) => return skip("node::left::artifacts_are_served_from_a_bucket", &why),
    };
    let world = World::new(crate::BELLJAR);
    let bucket = s3.bucket("node");
    let node = Node::start_with(&world, &["--artifacts", &bucket], &s3.environment());
    comes_back(&node);
}

#[test]
fn artifact_metadata_reported_by_a_job_is_not_trusted() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    // A step writes a result, prevents the runner from replacing it by permissions, and replaces files in the artifact
    // folder.
    let forge = r#"printf '{"protocol_version":"1.0","job_id":"%s","task_id":"%s","status":"failure","steps":[],
        "artifacts":[{"path":"/job/artifacts/a","sha256":"/etc/shadow","size_bytes":1}],
        "failure_code":"step_failed","failure_message":"forged","started_at":"2026-01-01T00:00:00Z",
        "finished_at":"2026-01-01T00:00:00Z","resource_usage":{"cpu_time_ms":0,"max_rss_bytes":0}}' \
        $CYNODE_JOB_ID $CYNODE_TASK_ID > /job/result.json; rm -r /job/artifacts; ln -s / /job/artifacts; chmod 555 /job"#;
    let job = steps(&json!([{ "type": "run_command", "args": { "argv": ["sh", "-c", forge] } }]));
    let told = node.run(&job).json();
    assert_eq!(told["failure_code"], "step_failed", "{told}");
    assert_ne!(
        told["failure_message"], "forged",
        "the runner restores its permissions and replaces the forgery: {told}"
    );
    assert_eq!(told["artifacts"], json!([]), "{told}");
    assert_eq!(told["sba_result"]["artifacts"], json!([]), "{told}");
}
