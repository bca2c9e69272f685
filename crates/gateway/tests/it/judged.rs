//! Tests of agents with access rules: listed tools, refusals with reasons, and the effect of approvals.

mod reviewed;

use crate::rig::{Rig, seat};
use belljar_contract::access::AccessLevel;
use belljar_contract::category::Category;
use belljar_contract::id::AgentId;
use belljar_contract::tool::{AgentKind, DomainCode, Envelope};
use belljar_contract::trust::{Quality, TrustEvent, TrustEventKind};
use belljar_contract::yaml::{self, Members, MistakeLog};
use belljar_gateway::access::{
    Approver, ApproverError, ExactCall, RuleBasedAccess, TrustFollower, TrustRecords,
};
use belljar_gateway::call::{CallOutcome, Refusal};
use belljar_gateway::caller_slot::CallerSlot;
use belljar_policy::access::{AccessRules, EarnedLevels};
use belljar_policy::constraint::ExecutionLocation;
use belljar_policy::trust::{TrustConfig, replay};
use belljar_store::database::{Database, Location};
use belljar_store::trust::TrustEvents;
use belljar_tools::Arguments;
use belljar_tools::caller::{Caller, Identity};
use futures_util::FutureExt;
use futures_util::future::{BoxFuture, join_all};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use uuid::Uuid;

/// Parses access rules.
fn rules(text: &str) -> AccessRules {
    let mut log = MistakeLog::default();
    let root = yaml::parse(text.as_bytes(), &mut log).unwrap();
    let mut members = Members::open(&root, &mut log).unwrap();
    let rules = AccessRules::read(&mut members);
    members.finish();
    log.finish().unwrap();
    rules
}

const RULES: &str = "
tool_access:
  agents:
    - {name: low, level: sandboxed, autonomy: full}
    - {name: asks, level: elevated, autonomy: full, human_approval: ['docs:write']}
    - {name: free, level: elevated, autonomy: full}
    - {name: careful, level: elevated, autonomy: semi}
    - {name: locked, level: elevated, autonomy: full, denied: [tell]}
";

/// Completed tasks lead from the lowest level to `standard`, and an operator's approval to the highest.
const MILESTONES: &str = "
strategy: milestone
initial_level: sandboxed
milestones:
  sandboxed_to_restricted: {tasks_completed: 1, quality_score_min: 7.0}
  restricted_to_standard: {tasks_completed: 2, quality_score_min: 7.0}
  standard_to_elevated: {tasks_completed: 2, quality_score_min: 7.0, requires_human_approval: true}
";

pub(crate) fn milestones() -> TrustConfig {
    let mut log = MistakeLog::default();
    let root = yaml::parse(MILESTONES.as_bytes(), &mut log).unwrap();
    let config = TrustConfig::read(&root, &mut log);
    log.finish().unwrap();
    config
}

struct AccessRig {
    rig: Rig,
    access: Arc<RuleBasedAccess>,
    approver: Arc<TestApprover>,
}

/// Requested approvals, and their decisions.
#[derive(Debug, Default)]
struct TestApprover {
    asked: Mutex<Vec<(Uuid, ExactCall, bool)>>,
}

impl Approver for TestApprover {
    fn ask<'a>(&'a self, call: &'a ExactCall) -> BoxFuture<'a, Result<Uuid, ApproverError>> {
        let mut asked = self.asked.lock().unwrap();
        let same = asked.iter().find(|(_, other, _)| is_same(other, call)).map(|(id, ..)| *id);
        let id = same.unwrap_or_else(|| {
            let id = Uuid::now_v7();
            asked.push((id, call.clone(), false));
            id
        });
        async move { Ok(id) }.boxed()
    }

    fn begin_use<'a>(&'a self, call: &'a ExactCall) -> BoxFuture<'a, Result<Option<Uuid>, ApproverError>> {
        let mut asked = self.asked.lock().unwrap();
        let place = asked.iter().position(|(_, other, is_good)| *is_good && is_same(other, call));
        let used = place.map(|place| asked.remove(place).0);
        async move { Ok(used) }.boxed()
    }
}

fn is_same(one: &ExactCall, other: &ExactCall) -> bool {
    (&one.tool, &one.subject, &one.arguments_sha256, &one.agent_id, &one.scope)
        == (&other.tool, &other.subject, &other.arguments_sha256, &other.agent_id, &other.scope)
}

impl AccessRig {
    fn new() -> Self {
        let works_in = BTreeMap::from([(Category::CodeExecution, ExecutionLocation::Container)]);
        let access = Arc::new(RuleBasedAccess::new(rules(RULES), works_in));
        let approver = Arc::new(TestApprover::default());
        let (judging, asking) = (Arc::clone(&access), Arc::clone(&approver));
        let rig = Rig::with(|gateway| gateway.judging_by(judging).asking(asking).unwrap());
        Self { rig, access, approver }
    }

    fn without_anybody_to_ask() -> Rig {
        let access = Arc::new(RuleBasedAccess::new(rules(RULES), BTreeMap::new()));
        Rig::with(|gateway| gateway.judging_by(access))
    }

    fn say_yes(&self) {
        self.approver.asked.lock().unwrap().iter_mut().for_each(|(.., is_good)| *is_good = true);
    }

    async fn call(&self, agent: &str, tool: &str, arguments: Value) -> Envelope {
        answer(&self.rig, agent, tool, arguments).await
    }

    fn shown(&self, agent: &str) -> Vec<String> {
        let listed = self.rig.gateway.listed(caller(agent).caller());
        listed.iter().map(|entry| entry.name().to_string()).collect()
    }

    fn last(&self) -> Value {
        self.rig.records().pop().unwrap().1
    }
}

async fn answer(rig: &Rig, agent: &str, tool: &str, arguments: Value) -> Envelope {
    let arguments: Arguments = arguments.as_object().unwrap().clone();
    match rig.gateway.call(&caller(agent), tool, arguments).await {
        CallOutcome::Answered(answered) => answered.envelope,
        CallOutcome::Refused(refusal) => panic!("{refusal}"),
    }
}

fn caller(agent: &str) -> CallerSlot {
    let identity = Some(Identity::Agent(AgentId::parse(agent).unwrap()));
    seat(Caller { identity, actor: Some(agent.to_owned()), ..Caller::of(AgentKind::Operator) })
}

fn code(envelope: &Envelope) -> Option<DomainCode> {
    match envelope {
        Envelope::Error { domain_code, .. } => Some(*domain_code),
        Envelope::Ok { .. } => None,
    }
}

fn data(envelope: Envelope) -> Value {
    match envelope {
        Envelope::Ok { data, .. } => data,
        Envelope::Error { message, .. } => panic!("{message}"),
    }
}

fn message(envelope: &Envelope) -> &str {
    match envelope {
        Envelope::Error { message, .. } => message,
        Envelope::Ok { .. } => "",
    }
}

#[tokio::test]
async fn agent_lists_callable_tools_and_learns_why_others_are_denied() {
    let house = AccessRig::new();
    // Control.
    assert!(
        house.shown("free").contains(&"run".to_owned()) && house.shown("free").contains(&"tell".to_owned())
    );
    assert_eq!(data(house.call("free", "tell", json!({})).await), json!({}));
    assert!(
        !house.shown("low").contains(&"tell".to_owned()) && house.shown("low").contains(&"run".to_owned())
    );
    let refused = house.call("low", "tell", json!({})).await;
    assert_eq!(code(&refused), Some(DomainCode::PermissionDenied));
    let told = message(&refused);
    assert!(told.contains("request_human_approval"), "{told}");
    for part in [
        "access level sandboxed allows no tools of category design",
        "rule level:sandboxed:design",
        "allowed: [tell]",
    ] {
        assert!(told.contains(part), "{told}");
    }
    let record = house.last();
    assert_eq!(record["decision"], "deny");
    assert_eq!(record["denied_by"], "level:sandboxed:design");
    assert_eq!(record["judged"]["agent_id"], "low");
    assert_eq!(record["judged"]["action_type"], "docs:write");
    assert_eq!(house.rig.called(), 1);
    // A tool that is denied by name is not listed, and no approval can be requested for it.
    assert!(!house.shown("locked").contains(&"tell".to_owned()));
    let refused = house.call("locked", "tell", json!({})).await;
    assert!(message(&refused).contains("No approval or configuration change is available"), "{refused:?}");
}

#[tokio::test]
async fn approval_permits_exactly_one_identical_call() {
    let house = AccessRig::new();
    let with = |text: &str| json!({ "text": text });
    let asked = house.call("asks", "tell", with("one")).await;
    assert_eq!(code(&asked), Some(DomainCode::ApprovalRequired));
    let record = house.last();
    assert_eq!(
        (record["decision"].as_str(), record["judged"]["rule"].as_str()),
        (Some("escalate"), Some("human_approval:agent"))
    );
    let approval = record["judged"]["approval_id"].as_str().unwrap().to_owned();
    assert!(message(&asked).contains(&approval));
    // Before the decision, an equal call refers to the same request.
    house.call("asks", "tell", with("one")).await;
    assert_eq!(house.last()["judged"]["approval_id"], approval.as_str());
    assert_eq!(house.rig.called(), 0);

    house.say_yes();
    for (agent, text) in [("asks", "two"), ("careful", "one")] {
        let other = house.call(agent, "tell", with(text)).await;
        assert!(agent == "careful" || code(&other) == Some(DomainCode::ApprovalRequired), "{other:?}");
        assert_ne!(house.last()["judged"]["approval_id"], approval.as_str(), "{agent} {text}");
    }
    let before = house.rig.called();
    assert_eq!(code(&house.call("asks", "tell", with("one")).await), None);
    let record = house.last();
    assert_eq!(
        (record["decision"].as_str(), record["judged"]["rule"].as_str()),
        (Some("allow"), Some("approved"))
    );
    assert_eq!(record["judged"]["approval_id"], approval.as_str());
    assert_eq!(code(&house.call("asks", "tell", with("one")).await), Some(DomainCode::ApprovalRequired));
    assert_eq!(house.rig.called(), before + 1);
}

#[tokio::test]
async fn only_the_caller_of_a_refused_call_can_request_its_approval() {
    let house = AccessRig::new();
    house.call("low", "tell", json!({})).await;
    let decision: Uuid = serde_json::from_value(house.last()["call_id"].clone()).unwrap();
    let gateway = &house.rig.gateway;
    let others = gateway.ask_about(caller("free").caller(), decision).await;
    assert_eq!(others.unwrap_err().code, DomainCode::NotFound);
    let unknown = gateway.ask_about(caller("low").caller(), Uuid::now_v7()).await;
    assert_eq!(unknown.unwrap_err().code, DomainCode::NotFound);
    let asked = gateway.ask_about(caller("low").caller(), decision).await.unwrap();
    assert_eq!(code(&house.call("low", "tell", json!({})).await), Some(DomainCode::PermissionDenied));
    house.say_yes();
    assert_eq!(code(&house.call("low", "tell", json!({})).await), None);
    assert_eq!(house.last()["judged"]["approval_id"], asked.to_string());
    assert_eq!(code(&house.call("low", "tell", json!({})).await), Some(DomainCode::PermissionDenied));
}

#[tokio::test]
async fn approval_tool_is_listed_only_with_an_approver_and_needs_no_approval() {
    const ASK: &str = "request_human_approval";
    let house = AccessRig::new();
    assert!(house.shown("low").contains(&ASK.to_owned()) && house.shown("locked").contains(&ASK.to_owned()));
    // Callers without access rules are not denied by one, so they don't get the approval tool; nor does anyone without an
    // approver.
    let without_rules = seat(Caller::of(AgentKind::Operator));
    assert!(
        !house.rig.gateway.listed(without_rules.caller()).iter().any(|entry| entry.name().as_str() == ASK)
    );
    assert!(matches!(
        house.rig.gateway.call(&without_rules, ASK, Arguments::new()).await,
        CallOutcome::Refused(Refusal::Unknown { .. })
    ));
    let alone = AccessRig::without_anybody_to_ask();
    assert!(!alone.gateway.listed(caller("low").caller()).iter().any(|entry| entry.name().as_str() == ASK));

    house.call("low", "tell", json!({})).await;
    let decision = house.last()["call_id"].clone();
    let others = house.call("free", ASK, json!({ "decision": decision })).await;
    assert_eq!(code(&others), Some(DomainCode::NotFound));
    let asked = data(house.call("low", ASK, json!({ "decision": decision })).await);
    assert_eq!((&asked["status"], &asked["requires_parking"]), (&json!("pending"), &json!(true)));
    assert_eq!(house.last()["decision"], "allow");
    house.say_yes();
    assert_eq!(code(&house.call("low", "tell", json!({})).await), None);
    assert_eq!(house.last()["judged"]["approval_id"], asked["approval_id"]);
}

#[tokio::test]
async fn approval_of_a_described_action_is_reported_to_the_agent_once() {
    const ASK: &str = "request_human_approval";
    let house = AccessRig::new();
    let about =
        |title: &str| json!({ "action_type": "deploy:production", "title": title, "description": "now" });
    let asked = data(house.call("low", ASK, about("release")).await);
    assert_eq!((&asked["status"], &asked["risk_level"]), (&json!("pending"), &json!("critical")));
    let unknown = json!({ "action_type": "deploy:prodcution", "title": "release", "description": "now" });
    let refused = house.call("free", ASK, unknown).await;
    assert_eq!(code(&refused), Some(DomainCode::InvalidArgument));
    for part in ["/action_type", "deploy:production", "there are: "] {
        assert!(message(&refused).contains(part), "{refused:?}");
    }
    let again = data(house.call("low", ASK, about("release")).await);
    assert_eq!(again["approval_id"], asked["approval_id"]);
    house.say_yes();
    assert_eq!(data(house.call("low", ASK, about("another")).await)["status"], "pending");
    let approved = data(house.call("low", ASK, about("release")).await);
    assert_eq!((&approved["status"], &approved["requires_parking"]), (&json!("approved"), &json!(false)));
    assert_eq!(data(house.call("low", ASK, about("release")).await)["status"], "pending");
    for wrong in [json!({}), json!({ "title": "x" }), json!({ "decision": Uuid::now_v7(), "title": "x" })] {
        let refused = house.call("low", ASK, wrong.clone()).await;
        assert_eq!(code(&refused), Some(DomainCode::InvalidArgument), "{wrong}");
    }
}

#[tokio::test]
async fn call_that_needs_approval_is_refused_without_an_approver() {
    let rig = AccessRig::without_anybody_to_ask();
    let refused = answer(&rig, "asks", "tell", json!({})).await;
    assert_eq!(code(&refused), Some(DomainCode::PermissionDenied));
    let (_, record) = rig.records().pop().unwrap();
    assert_eq!(
        (record["decision"].as_str(), record["judged"]["rule"].as_str()),
        (Some("deny"), Some("no_approver"))
    );
    // The refusal doesn't suggest to request an approval either.
    let refused = answer(&rig, "low", "tell", json!({})).await;
    let told = message(&refused);
    assert!(told.contains("allowed: [tell]") && !told.contains("request_human_approval"), "{told}");
    assert_eq!(rig.called(), 0);
}

#[tokio::test]
async fn approval_is_not_requested_for_a_call_with_invalid_arguments() {
    let house = AccessRig::new();
    let wrong = house.call("asks", "tell", json!({ "text": 7 })).await;
    assert_eq!(code(&wrong), Some(DomainCode::InvalidArgument));
    assert!(house.approver.asked.lock().unwrap().is_empty());
}

#[tokio::test]
async fn access_changes_apply_at_once_to_open_caller_slots() {
    let house = AccessRig::new();
    let sits = caller("free");
    let call = async || match house.rig.gateway.call(&sits, "tell", Arguments::new()).await {
        CallOutcome::Answered(answered) => code(&answered.envelope),
        CallOutcome::Refused(refusal) => panic!("{refusal}"),
    };
    assert_eq!(call().await, None);
    let before = house.last()["judged"]["generation"].clone();
    let demoted = EarnedLevels { level: AccessLevel::Sandboxed, by_category: BTreeMap::new(), setback: None };
    house.access.set_earned(&AgentId::parse("free").unwrap(), Some(demoted));
    assert_eq!(call().await, Some(DomainCode::PermissionDenied));
    assert_ne!(house.last()["judged"]["generation"], before);
    assert!(!house.shown("free").contains(&"tell".to_owned()));
    house.access.set_earned(&AgentId::parse("free").unwrap(), None);
    assert_eq!(call().await, None);
    assert_eq!(house.last()["judged"]["generation"], before);
    house.access.set_rules(rules("tool_access: {agents: [{name: free, level: restricted}]}"));
    assert_eq!(call().await, Some(DomainCode::PermissionDenied));
}

#[tokio::test]
async fn autonomy_decides_whether_a_token_in_an_answer_is_recorded_redacted_or_withheld() {
    let house = AccessRig::new();
    let said = json!({ "text": "password = getpass(); KEY = 'glpat-hunter2hunter2hunter2'" });
    let text = |envelope: &Envelope| serde_json::to_string(envelope).unwrap();
    let free = house.call("free", "artifact.get", told(&said)).await;
    assert!(text(&free).contains("hunter2"), "{free:?}");
    assert_eq!(house.last()["judged"]["secrets_found"], 1);
    house.access.set_rules(rules("tool_access: {agents: [{name: free, level: elevated, autonomy: semi}]}"));
    let redacted = house.call("free", "artifact.get", told(&said)).await;
    assert_eq!(serde_json::to_value(&redacted).unwrap()["redacted"]["at"], json!(["/text"]));
    assert_eq!(data(redacted)["text"], "password = getpass(); KEY = '***'");
    house.access.set_rules(rules(
        "tool_access: {agents: [{name: free, level: elevated, autonomy: locked, auto_approve: [all]}]}",
    ));
    let withheld = house.call("free", "artifact.get", told(&said)).await;
    assert_eq!(code(&withheld), Some(DomainCode::PermissionDenied));
    assert!(!text(&withheld).contains("hunter2"));
    // An answer without secrets is passed on completely.
    let plain = house.call("free", "artifact.get", told(&json!({ "text": "plain" }))).await;
    assert!(text(&plain).contains("plain"));
    assert_eq!(house.last()["judged"].get("secrets_found"), None);
}

fn told(arguments: &Value) -> Value {
    let mut arguments = arguments.clone();
    arguments["task_id"] = crate::rig::TASK.into();
    arguments
}

#[tokio::test]
async fn concurrent_calls_are_answered_independently() {
    let house = AccessRig::new();
    let seat = caller("free");
    let call = |name: &'static str, text: String| {
        let (gateway, seat) = (&house.rig.gateway, &seat);
        async move { gateway.call(seat, name, json!({ "text": text }).as_object().unwrap().clone()).await }
    };
    let all = join_all((0..32).map(|number| call("tell", number.to_string()))).await;
    let texts: Vec<_> = all.iter().map(text_of).collect();
    assert_eq!(texts, (0..32).map(|number| number.to_string()).collect::<Vec<_>>());
    // A missing tool and a panicking tool don't keep others from being called.
    let before = house.rig.called();
    let names = [("tell", "a"), ("nothing", ""), ("break", "x"), ("tell", "b")];
    let mixed = join_all(names.map(|(name, text)| call(name, text.to_owned()))).await;
    assert!(matches!(mixed[1], CallOutcome::Refused(Refusal::Unknown { .. })));
    let CallOutcome::Answered(broken) = &mixed[2] else { panic!("{:?}", mixed[2]) };
    assert_eq!(code(&broken.envelope), Some(DomainCode::Internal));
    assert_eq!([text_of(&mixed[0]), text_of(&mixed[3])], ["a", "b"]);
    assert_eq!(house.rig.called(), before + 3);
}

fn text_of(called: &CallOutcome) -> String {
    match called {
        CallOutcome::Answered(answered) => match &answered.envelope {
            Envelope::Ok { data, .. } => data["text"].as_str().unwrap().to_owned(),
            other @ Envelope::Error { .. } => panic!("{other:?}"),
        },
        CallOutcome::Refused(refusal) => panic!("{refusal}"),
    }
}

#[tokio::test]
async fn trust_events_apply_at_the_agents_next_call() {
    let house = AccessRig::new();
    let folder = tempfile::tempdir().unwrap();
    let database = Database::open(&Location::File(folder.path().join("agents.db"))).await.unwrap();
    let events = TrustEvents::new(database);
    let earning =
        TrustFollower::new(TrustRecords::new(events.clone(), milestones()), Arc::clone(&house.access));
    let (agent, begun) = (AgentId::parse("free").unwrap(), Timestamp::now());
    let mut now = begun;
    let mut later = || {
        now += SignedDuration::from_secs(1);
        now
    };
    earning.hire(&agent, later()).await.unwrap();
    earning.look(later()).await.unwrap();
    // The configured level is not earned.
    let run = |agent| house.call(agent, "tell", json!({}));
    assert_eq!(code(&run("free").await), Some(DomainCode::PermissionDenied));
    let record = async |kind, at| {
        let event = TrustEvent { at, event_id: Uuid::now_v7(), agent_id: agent.clone(), kind };
        events.record(&event).await.unwrap();
    };
    let task = || {
        let quality = Some(Quality::from_steps(9_000));
        TrustEventKind::TaskCompleted { category: None, difficulty: None, quality }
    };
    for _ in 0..2 {
        record(task(), later()).await;
        earning.look(later()).await.unwrap();
    }
    earning.look(later() + SignedDuration::from_secs(60)).await.unwrap();
    // Only the part that needs an operator's approval is proposed.
    assert_eq!(code(&run("free").await), Some(DomainCode::PermissionDenied));
    let all = events.of(&agent).await.unwrap();
    assert_eq!(all.len(), 3, "following what is earned records nothing: {all:?}");
    let at = later() + SignedDuration::from_secs(120);
    let proposed = replay(&milestones(), &agent, &all, at).trust.state(&milestones()).pending.remove(0);
    let approved = TrustEventKind::PromotionApproved {
        approval_id: Uuid::now_v7(),
        proposal_id: proposed.proposal_id,
        transition: proposed.transition,
        category: None,
    };
    record(approved, at).await;
    earning.look(at).await.unwrap();
    assert_eq!(code(&run("free").await), None);
    let at = at + SignedDuration::from_secs(1);
    record(TrustEventKind::SecurityIncident, at).await;
    earning.look(at).await.unwrap();
    assert_eq!(code(&run("free").await), Some(DomainCode::PermissionDenied));
}
