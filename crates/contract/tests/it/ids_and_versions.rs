//! Ids and protocol versions, as a job writes them.

use crate::documents::{accepted, assert_refused_at, full_job, with};
use belljar_contract::job::Job;
use serde_json::json;

#[test]
fn job_id_is_a_hyphenated_uuid_and_preserves_case() {
    for id in [
        "00000000-0000-0000-0000-000000000000",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
        "0192F0C1-7D3E-7C4A-9B1E-5F6A7B8C9D0E",
        "0192f0C1-7d3E-7c4A-9b1E-5f6A7b8C9d0E",
    ] {
        assert_eq!(accepted(with(&full_job(), "/job_id", json!(id))).job_id.as_str(), id);
        assert_eq!(accepted(with(&full_job(), "/task_id", json!(id))).task_id.as_str(), id);
    }
}

#[test]
fn job_id_rejects_other_uuid_notations() {
    for id in [
        "",
        "uuid",
        "..",
        "../../etc/passwd",
        "0192f0c17d3e7c4a9b1e5f6a7b8c9d0e",
        "{0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e}",
        "urn:uuid:0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e",
        "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0",
        "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e0",
        "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0g",
        "0192f0c17-d3e-7c4a-9b1e-5f6a7b8c9d0e",
        "0192f0c1_7d3e_7c4a_9b1e_5f6a7b8c9d0e",
        " 0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e",
        "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e\n",
        "０192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0",
    ] {
        assert_refused_at(with(&full_job(), "/job_id", json!(id)), "$.job_id");
        assert_refused_at(with(&full_job(), "/task_id", json!(id)), "$.task_id");
    }
}

#[test]
fn rejected_job_still_reports_its_ids() {
    let refused = |job: serde_json::Value| Job::parse(job.to_string().as_bytes()).unwrap_err();
    let invalid = refused(with(&full_job(), "/steps", json!(7)));
    assert_eq!(invalid.job_id.as_deref(), Some("0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e"));
    assert_eq!(invalid.task_id.as_deref(), Some("0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0f"));

    let invalid = refused(with(&with(&full_job(), "/job_id", json!("my job")), "/task_id", json!(7)));
    assert_eq!((invalid.job_id.as_deref(), invalid.task_id), (Some("my job"), None));

    let absurd = "x".repeat(201);
    assert_eq!(refused(with(&full_job(), "/job_id", json!(absurd))).job_id, None);
    assert_eq!(Job::parse(b"{").unwrap_err().job_id, None);
}

#[test]
fn any_minor_of_supported_major_version_is_accepted() {
    for version in ["1.0", "1.1", "1.42", "1.999999999"] {
        assert_eq!(
            accepted(with(&full_job(), "/protocol_version", json!(version))).protocol_version.to_string(),
            version
        );
    }
}

#[test]
fn other_major_or_malformed_version_is_rejected() {
    for version in [
        "0.9",
        "2.0",
        "10.0",
        "99.0",
        "999999999999.0",
        "1",
        "1.",
        ".0",
        "1.0.0",
        "01.0",
        "1.00",
        "1.01",
        "v1.0",
        "1.0 ",
        " 1.0",
        "1.0\n",
        "1,0",
        "+1.0",
        "1.-0",
        "1.0e0",
        "1.1000000000",
        "１.0",
        "",
    ] {
        assert_refused_at(with(&full_job(), "/protocol_version", json!(version)), "$.protocol_version");
    }
}
