//! Output of `belljar agent --json`, and its published schema.

use crate::records::call;
use belljar_contract::agent::{
    AgentChanges, AgentFailure, AgentPullRequest, AgentPush, AgentResult, AuditSpan, FinishReason,
    GraphErrorCode, PathNeedingApproval,
};
use belljar_contract::id::RunId;
use belljar_contract::inference::CallOutcome;
use belljar_contract::result::{Change, ChangedFile, ChangesState};
use belljar_contract::schema;
use belljar_contract::usage::{UsageReport, UsageTotals};
use serde_json::{Value, json};

const ID: &str = "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e";

fn failed() -> AgentResult {
    AgentResult {
        run_id: RunId::parse(ID).unwrap(),
        agent: "codex".to_owned(),
        graph_id: "sandbox:codex".to_owned(),
        ok: false,
        finish_reason: FinishReason::Error,
        failure: Some(AgentFailure::new(GraphErrorCode::Timeout, "timeout", "its time was over")),
        content: String::new(),
        exit_code: -1,
        stdout: "a".to_owned(),
        stderr: String::new(),
        output_truncated: false,
        usage: vec![UsageReport::of(&call(CallOutcome::Completed)).unwrap()],
        totals: UsageTotals { calls: 1, cost_usd: None, degraded_calls: 1, ..UsageTotals::default() },
        unlisted_calls: 0,
        files: vec![ChangedFile { path: "a".to_owned(), change: Change::Created, unshown: None }],
        diff: "diff --git a/a b/a\n".to_owned(),
        diff_truncated: false,
        changes: AgentChanges {
            id: Some(RunId::parse(ID).unwrap()),
            state: ChangesState::Conflict,
            conflicts: vec!["a".to_owned()],
            changed_in_source: vec!["a".to_owned(), "folder/".to_owned()],
        },
        kept_in: Some("/var/lib/belljar/kept/x".to_owned()),
        web: None,
        push: Some(AgentPush {
            outcome: "refused".to_owned(),
            reason: Some("handoff_not_trusted".to_owned()),
            remote: "https://git.example/a".to_owned(),
            branch: "belljar/x".to_owned(),
            commit: None,
            left_out: vec!["vendor/.git".to_owned()],
            ignored: vec!["target/".to_owned()],
            handoff: vec![PathNeedingApproval {
                path: ".envrc".to_owned(),
                kind: "shell".to_owned(),
                reason: "it runs".to_owned(),
            }],
            pull_request: Some(AgentPullRequest {
                outcome: "failed".to_owned(),
                reason: Some("forge_forbidden".to_owned()),
                url: None,
                base: "main".to_owned(),
            }),
        }),
        audit: Some(AuditSpan { first: 3, last: 7, head: "00".repeat(32) }),
        duration_ms: 5,
    }
}

fn succeeded() -> AgentResult {
    AgentResult {
        ok: true,
        finish_reason: FinishReason::Stop,
        failure: None,
        usage: Vec::new(),
        changes: AgentChanges {
            id: None,
            state: ChangesState::None,
            conflicts: Vec::new(),
            changed_in_source: Vec::new(),
        },
        kept_in: None,
        web: None,
        push: None,
        audit: None,
        ..failed()
    }
}

#[test]
fn agent_result_schema_accepts_only_printed_results() {
    let schema = jsonschema::draft202012::new(schema::agent_result().as_value()).unwrap();
    let result = serde_json::to_value(failed()).unwrap();
    for valid in [&result, &serde_json::to_value(succeeded()).unwrap()] {
        assert!(schema.is_valid(valid), "{valid:#}");
    }
    let members: Vec<&String> = result.as_object().unwrap().keys().collect();
    for member in members {
        let mut without = result.clone();
        without.as_object_mut().unwrap().remove(member);
        assert!(!schema.is_valid(&without), "without {member}");
    }
    let with = |member: &str, value: Value| {
        let mut other = result.clone();
        other[member] = value;
        other
    };
    for other in [
        with("more", json!(1)),
        with("ok", json!("yes")),
        with("failure", json!({ "error": "timeout", "code": "timeout" })),
        with("failure", json!({ "error": "unknown", "code": "timeout", "message": "" })),
        with("changes", json!("kept")),
        with("changes", json!({ "id": null, "state": "lost", "conflicts": [], "changed_in_source": [] })),
        with("usage", json!([1])),
    ] {
        assert!(!schema.is_valid(&other), "{other:#}");
    }
}
