//! `belljar validate`

use crate::BELLJAR;
use belljar_testkit::job::{job, shell};
use belljar_testkit::world::World;
use serde_json::json;

#[test]
fn valid_job_is_accepted_and_not_run() {
    let world = World::new(BELLJAR);
    world.write("job.json", job(&json!([shell("touch /tmp/ran")])).to_string());
    let ran = world.run(&["validate", "job.json"]).succeeded();
    assert_eq!(ran.stdout, "job.json: valid, 1 step\n");
}

#[test]
fn every_mistake_is_shown_with_the_valid_form() {
    let world = World::new(BELLJAR);
    world.write("job.json", r#"{"protocol_version": "2.0", "job_id": 7, "stepz": []}"#);
    let ran = world.run(&["validate", "job.json"]);
    assert_eq!(ran.code, 2);
    insta::assert_snapshot!(ran.stdout, @r#"
    schema_validation: job.json was not run
      $.protocol_version
        found     "2.0" (unknown major version 2)
        expected  a version of major 1, such as "1.0"
      $.job_id
        found     the number 7
        expected  a UUID such as 0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e
      $.task_id
        found     nothing
        expected  this required member
      $.constraints
        found     nothing
        expected  this required member
      $.steps
        found     nothing
        expected  this required member
      $.stepz
        found     an unknown member
        expected  `steps`, perhaps; known here: artifacts, constraints, context, inference, job_id, persona, persona_id, protocol_version, skill_id, steps, task_id
    "#);
}

#[test]
fn job_that_would_not_be_admitted_is_invalid() {
    let world = World::new(BELLJAR);
    let step = json!({ "type": "read_file", "args": { "path": "../../etc/passwd" } });
    world.write("job.json", job(&json!([step])).to_string());
    let ran = world.run(&["validate", "--json", "job.json"]);
    assert_eq!(ran.code, 1);
    let result = ran.json();
    assert_eq!(result["failure_code"], "policy_violation");
    assert_eq!(result["steps"][0]["error"]["message"], "path escapes workspace: ../../etc/passwd");
}
