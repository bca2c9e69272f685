//! Files that jobs leave.

use belljar_testkit::node::{Node, script};
use belljar_testkit::s3::S3;
use belljar_testkit::skip::skip;
use belljar_testkit::world::World;
use sha2::{Digest, Sha256};

/// A job leaves a file; it comes back as it was, and by no other job's name.
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
fn what_a_job_leaves_comes_back_from_the_nodes_own_folder() {
    let world = World::new(crate::BELLJAR);
    comes_back(&Node::start(&world, &[]));
}

#[test]
fn what_a_job_leaves_comes_back_from_a_bucket() {
    let s3 = match S3::start() {
        Ok(s3) => s3,
        Err(why) => return skip("node::left::what_a_job_leaves_comes_back_from_a_bucket", &why),
    };
    let world = World::new(crate::BELLJAR);
    let bucket = s3.bucket("node");
    let node = Node::start_with(&world, &["--artifacts", &bucket], &s3.environment());
    comes_back(&node);
}
