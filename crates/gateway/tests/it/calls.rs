//! Tests of the processing of calls: refused calls are never made, and every call is recorded.

use crate::rig::{Rig, TASK, in_sandbox, planner, seat};
use belljar_contract::tool::{DomainCode, Envelope};
use belljar_gateway::call::{CallOutcome, Refusal};
use belljar_gateway::caller_slot::CallerSlot;
use belljar_policy::tool::{ToolDenyReason, ToolGrants};
use belljar_tools::caller::Caller;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

async fn call(rig: &Rig, caller: Caller, name: &str, arguments: Value) -> CallOutcome {
    rig.gateway.call(&seat(caller), name, arguments.as_object().unwrap().clone()).await
}

fn code(called: CallOutcome) -> DomainCode {
    match called {
        CallOutcome::Answered(answered) => match answered.envelope {
            Envelope::Error { domain_code, .. } => domain_code,
            Envelope::Ok { data, .. } => panic!("it answered {data}"),
        },
        CallOutcome::Refused(refusal) => panic!("it was refused: {refusal}"),
    }
}

fn refusal(called: CallOutcome) -> Refusal {
    match called {
        CallOutcome::Refused(refusal) => refusal,
        CallOutcome::Answered(answered) => panic!("it answered {:?}", answered.envelope),
    }
}

#[tokio::test]
async fn mutating_call_is_recorded_before_and_after() {
    let rig = Rig::new();
    let arguments = json!({ "task_id": TASK, "text": "a", "key": "hunter2" });
    let called = call(&rig, in_sandbox(), "artifact.put", arguments.clone()).await;
    let CallOutcome::Answered(answered) = called else { panic!("{called:?}") };
    assert_eq!(answered.envelope, Envelope::Ok { data: arguments, pagination: None, redacted: None });
    let records = rig.records();
    let kinds: Vec<_> = records.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds, ["tool_begun", "tool_called"]);
    let (_, after) = &records[1];
    assert_eq!(after["tool_name"], "artifact.put");
    assert_eq!((&after["decision"], &after["status"]), (&json!("allow"), &json!("success")));
    assert_eq!((&after["subject_type"], &after["task_id"]), (&json!("sandbox"), &json!(TASK)));
    assert!(after["duration_ms"].as_f64().is_some_and(|duration| duration >= 0.0));
    assert_eq!(records[0].1["call_id"], after["call_id"]);
    assert!(!json!([records[0].1, after]).to_string().contains("hunter2"));
}

#[tokio::test]
async fn denied_call_is_not_made_and_is_recorded() {
    let rig = Rig::new();
    let denied = |reason| move |refusal: Refusal| matches!(refusal, Refusal::Denied { denied } if denied.reason == reason);
    for name in ["db.task.get", "sandbox.exec", "skills.create"] {
        let refusal = refusal(call(&rig, in_sandbox(), name, json!({ "task_id": TASK })).await);
        assert!(denied(ToolDenyReason::Never)(refusal), "{name}");
    }
    let fetched = refusal(call(&rig, in_sandbox(), "web.fetch", json!({ "task_id": TASK })).await);
    assert!(denied(ToolDenyReason::NoReach)(fetched));
    let spelled_otherwise = [
        "Artifact.get",
        "ARTIFACT.GET",
        "artifact.get ",
        " artifact.get",
        "artifact.get\n",
        "artifact.get\0",
        "artifact\u{2024}get",
        "artifact.get\u{200b}",
        "\u{430}rtifact.get",
        "artifact..get",
        "artifact.",
        "artifact",
        ".get",
        "artifact.*",
        "*",
        "../artifact.get",
        "artifact/get",
        "artifact_get",
        "artifact.get;sandbox.exec",
        "Sandbox.exec",
        "SANDBOX.EXEC",
        "sandbox.exec ",
        "sandbox\u{2024}exec",
        "sandbox_exec",
        "mcp_sandbox_exec",
        "Db.task.get",
        "db.task.get\t",
        "skills.create\0",
        "Skills.Create",
        "",
    ];
    for name in spelled_otherwise {
        let refusal = refusal(call(&rig, in_sandbox(), name, json!({ "task_id": TASK })).await);
        let Refusal::Unknown { name: told, known } = refusal else { panic!("{refusal:?}") };
        assert!(told == name && !known.is_empty(), "{told} {known:?}");
    }
    let other = json!({ "task_id": "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0f" });
    let outside = refusal(call(&rig, in_sandbox(), "artifact.get", other).await);
    assert_eq!(outside, Refusal::OutOfBounds { argument: "task_id" });
    assert_eq!(rig.called(), 0);
    let records = rig.records();
    assert_eq!(records.len(), 5 + spelled_otherwise.len());
    assert!(records.iter().all(|(kind, event)| kind == "tool_called" && event["decision"] == "deny"));
    // Control: the same call by a caller with permission.
    let may = Caller { grants: ToolGrants { may_reach_out: true, ..ToolGrants::default() }, ..in_sandbox() };
    assert!(matches!(
        call(&rig, may, "web.fetch", json!({ "task_id": TASK })).await,
        CallOutcome::Answered(_)
    ));
    assert!(matches!(call(&rig, planner(), "sandbox.exec", json!({})).await, CallOutcome::Answered(_)));
    assert_eq!(rig.called(), 2);
}

#[tokio::test]
async fn arguments_of_a_refused_call_are_recorded_as_a_short_preview() {
    let rig = Rig::new();
    let tags = "\u{e0041}".repeat(4_000);
    for name in ["no.such", "sandbox.exec", "artifact.get"] {
        let arguments = json!({ "task_id": "other", "text": tags, "more": "x".repeat(10_000) });
        refusal(call(&rig, in_sandbox(), name, arguments).await);
    }
    for (_, event) in rig.records() {
        let shown = event["arguments"].as_str().unwrap();
        assert_eq!((&event["decision"], &event["is_preview"]), (&json!("deny"), &json!(true)));
        assert!(belljar_policy::untrusted::escaped_length(shown) < 1_200, "{shown}");
        assert!(shown.contains(event["arguments_sha256"].as_str().unwrap()), "{shown}");
    }
    assert!(rig.lines().iter().all(|line| line.len() < 3_000));
    // Control: short arguments, and those of a permitted call.
    refusal(call(&rig, in_sandbox(), "no.such", json!({ "text": "a" })).await);
    let whole = json!({ "task_id": TASK, "text": "x".repeat(3_000) });
    assert!(matches!(
        call(&rig, in_sandbox(), "artifact.get", whole.clone()).await,
        CallOutcome::Answered(_)
    ));
    let records = rig.records();
    assert_eq!((&records[3].1["arguments"], &records[4].1["arguments"]), (&json!({ "text": "a" }), &whole));
}

#[tokio::test]
async fn listed_tools_are_exactly_the_callable_ones() {
    let rig = Rig::new();
    let names = |caller: &Caller| -> Vec<_> {
        rig.gateway.listed(caller).iter().map(|entry| entry.name().to_string()).collect()
    };
    for caller in [in_sandbox(), planner(), Caller::of(belljar_contract::tool::AgentKind::ProjectAnalyst)] {
        let listed = names(&caller);
        for entry in rig.gateway.registry().all() {
            let name = entry.name().as_str();
            let called = call(&rig, caller.clone(), name, json!({ "wrong": true })).await;
            let is_denied = matches!(called, CallOutcome::Refused(Refusal::Denied { .. }));
            assert_eq!(listed.iter().any(|listed| listed == name), !is_denied, "{name} by {}", caller.kind);
        }
    }
    rig.gateway.disable(["artifact.get".parse_name()]);
    assert!(!names(&in_sandbox()).contains(&"artifact.get".to_owned()));
    rig.gateway.disable([]);
    assert!(names(&in_sandbox()).contains(&"artifact.get".to_owned()));
}

trait ParseName {
    fn parse_name(&self) -> belljar_contract::tool::ToolName;
}

impl ParseName for str {
    fn parse_name(&self) -> belljar_contract::tool::ToolName {
        belljar_contract::tool::ToolName::parse(self).unwrap()
    }
}

#[tokio::test]
async fn invalid_arguments_never_reach_the_tool() {
    let rig = Rig::new();
    for arguments in [
        json!({}),
        json!({ "task_id": TASK, "other": 1 }),
        json!({ "task_id": TASK, "text": 7 }),
        json!({ "task_id": TASK, "text": "x".repeat(4001) }),
    ] {
        let called = call(&rig, in_sandbox(), "artifact.get", arguments.clone()).await;
        assert_eq!(code(called), DomainCode::InvalidArgument, "{arguments}");
    }
    let guard = |arguments| call(&rig, planner(), "artifact.list", arguments);
    let violated = code(guard(json!({ "confirm": true, "reason": "why" })).await);
    assert_eq!(violated, DomainCode::GuardrailViolated, "the caller has no actor");
    let known = Caller { actor: Some("pm".to_owned()), ..planner() };
    for arguments in [
        json!({ "reason": "why" }),
        json!({ "confirm": "true", "reason": "a" }),
        json!({ "confirm": true, "reason": " " }),
    ] {
        let called = call(&rig, known.clone(), "artifact.list", arguments).await;
        assert_eq!(code(called), DomainCode::GuardrailViolated);
    }
    assert_eq!(rig.called(), 0);
    let called = call(&rig, known, "artifact.list", json!({ "confirm": true, "reason": "why" })).await;
    assert!(matches!(called, CallOutcome::Answered(_)));
    assert_eq!(rig.called(), 1);
}

#[tokio::test]
async fn failed_slow_or_verbose_tool_is_an_error_without_secrets() {
    let rig = Rig::new();
    let failed = call(&rig, in_sandbox(), "help.fail", json!({ "task_id": TASK })).await;
    let CallOutcome::Answered(answered) = failed else { panic!("{failed:?}") };
    let Envelope::Error { domain_code, message, .. } = answered.envelope else { panic!() };
    assert_eq!(domain_code, DomainCode::ToolFailed);
    assert_eq!(message, "*** was wrong; there are code:write, code:read (`***` stands for a secret)");
    for name in ["help.slow", "help.much"] {
        let called = call(&rig, in_sandbox(), name, json!({ "task_id": TASK })).await;
        assert_eq!(code(called), DomainCode::LimitExceeded, "{name}");
    }
    assert!(rig.records().iter().all(|(_, event)| event["status"] == "error"));
}

#[tokio::test]
async fn end_of_the_caller_slot_ends_its_call_and_refuses_new_ones() {
    let rig = Rig::new();
    let ended = CancellationToken::new();
    let seat = CallerSlot::new(in_sandbox(), ended.clone());
    let arguments = json!({ "task_id": TASK }).as_object().unwrap().clone();
    let call = rig.gateway.call(&seat, "help.wait", arguments.clone());
    let end = async {
        while rig.called() == 0 {
            tokio::task::yield_now().await;
        }
        ended.cancel();
    };
    let (called, ()) = tokio::join!(call, end);
    assert_eq!(refusal(called), Refusal::Over);
    assert_eq!(refusal(rig.gateway.call(&seat, "artifact.get", arguments).await), Refusal::Over);
    assert_eq!(rig.called(), 1);
    let statuses: Vec<_> = rig.records().into_iter().map(|(_, event)| event["status"].clone()).collect();
    assert_eq!(statuses, [json!("cancelled"), json!("error")]);
}

#[tokio::test]
async fn dropped_call_is_recorded() {
    let rig = Rig::new();
    let arguments = json!({ "task_id": TASK }).as_object().unwrap().clone();
    let seat = seat(in_sandbox());
    let mut call = Box::pin(rig.gateway.call(&seat, "help.wait", arguments));
    while rig.called() == 0 {
        assert!(futures_util::poll!(call.as_mut()).is_pending());
        tokio::task::yield_now().await;
    }
    drop(call);
    // Later records come after it.
    let after = rig.gateway.call(&seat, "help.fail", json!({ "task_id": TASK }).as_object().unwrap().clone());
    assert!(matches!(after.await, CallOutcome::Answered(_)));
    let statuses: Vec<_> = rig.records().into_iter().map(|(_, event)| event["status"].clone()).collect();
    assert_eq!(statuses, [json!("cancelled"), json!("error")]);
}
