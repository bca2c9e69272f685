//! The time to check a call against a thousand rules, and the overhead of many concurrent calls.

use crate::Programs;
use crate::rounds::{Goal, hold, judge, median};
use belljar_contract::access::AccessLevel;
use belljar_contract::category::Category;
use belljar_contract::id::AgentId;
use belljar_contract::tool::{AgentKind, ToolName};
use belljar_contract::yaml::{self, Members, MistakeLog};
use belljar_gateway::Gateway;
use belljar_gateway::access::RuleBasedAccess;
use belljar_gateway::call::CallOutcome;
use belljar_gateway::caller_slot::CallerSlot;
use belljar_policy::access::{AccessRules, AgentAuthority};
use belljar_policy::action::default_of;
use belljar_policy::constraint::ExecutionLocation;
use belljar_policy::permission::ToolFacts;
use belljar_store::audit::{AuditLog, folder_in};
use belljar_tools::answer::{Answer, Success};
use belljar_tools::caller::{Caller, Identity};
use belljar_tools::definition::Definition;
use belljar_tools::registry::Registry;
use belljar_tools::typed::{TypedTool, schema_of, tool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Instant;
use tokio_util::sync::CancellationToken;

const ROUNDS: usize = 7;
const JUDGED: usize = 20_000;
const RULES: usize = 1_000;
/// Number of concurrent calls.
const CALLS: usize = 256;

#[derive(Debug, Deserialize, JsonSchema)]
struct EchoArguments {
    message: String,
}

struct Echo;

impl TypedTool for Echo {
    type Arguments = EchoArguments;

    async fn call(&self, _: &Caller, said: EchoArguments) -> Answer {
        Ok(Success::of(json!(said.message)))
    }
}

/// Measures the time of a decision in microseconds (99th percentile), and then the overhead. Returns true if all goals are
/// met.
pub(crate) fn run(_: &Programs) -> bool {
    let rules = rules();
    let agent = rules.of_agent(&worker(), None);
    let names: Vec<ToolName> = (0..97).map(|number| name(&format!("tool_{}", number * 31))).collect();
    let figures = hold(ROUNDS, 1, |_| {
        let mut times: Vec<f64> =
            (0..JUDGED).map(|number| judged(&rules, &agent, &names[number % names.len()])).collect();
        times.sort_unstable_by(f64::total_cmp);
        [times[JUDGED / 2], times[JUDGED * 99 / 100]]
    });
    let of = |which: usize| median(figures[0].iter().map(|round| round[which]));
    println!("\n## permissions: a call judged by {RULES} rules: p50 {:.2} µs, p99 {:.2} µs", of(0), of(1));
    let is_met = judge("p99 of a judgement by 1,000 rules, µs", of(1), Goal::AtMost(20.0));
    batch() && is_met
}

fn judged(rules: &AccessRules, agent: &AgentAuthority, name: &ToolName) -> f64 {
    let action = default_of(Category::FileSystem);
    let facts = ToolFacts { name, category: Category::FileSystem, action: &action, reaches_out: false };
    let begun = Instant::now();
    std::hint::black_box(
        rules.judging(agent).judge(std::hint::black_box(&facts), ExecutionLocation::Container),
    );
    begun.elapsed().as_secs_f64() * 1e6
}

/// Returns the rules: half of them names, half prefixes; half of them allow, half deny.
fn rules() -> AccessRules {
    let mut text =
        "tool_access:\n  agents:\n  - name: worker\n    level: elevated\n    autonomy: full\n".to_owned();
    for (list, first) in [("allowed", 0), ("denied", RULES / 2)] {
        let _ = writeln!(text, "    {list}:");
        for number in first..first + RULES / 2 {
            let _ = match number % 2 {
                0 => writeln!(text, "    - rule_{number}"),
                _ => writeln!(text, "    - rule_{number}_*"),
            };
        }
    }
    let mut log = MistakeLog::default();
    let root = yaml::parse(text.as_bytes(), &mut log).expect("a document");
    let mut members = Members::open(&root, &mut log).expect("a mapping");
    let rules = AccessRules::read(&mut members);
    members.finish();
    log.finish().expect("no mistakes");
    rules
}

fn worker() -> AgentId {
    AgentId::parse("worker").expect("a name")
}

fn name(text: &str) -> ToolName {
    ToolName::parse(text).expect("a name")
}

/// Measures many concurrent calls, each recorded on disk, compared with the same calls without a gateway.
fn batch() -> bool {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let audit = Arc::new(AuditLog::open(&folder_in(folder.path())).expect("an audit"));
    let definition = Definition::new(
        name("echo"),
        Category::FileSystem,
        "Echoes the message.",
        schema_of::<EchoArguments>(),
    );
    let echo = tool(definition, Echo);
    let registry = Arc::new(Registry::new([Arc::clone(&echo)]).expect("one tool"));
    let works_in = BTreeMap::from([(Category::FileSystem, ExecutionLocation::Container)]);
    let access = Arc::new(RuleBasedAccess::new(rules(), works_in));
    let gateway = Gateway::new(registry, audit).judging_by(access);
    let caller = Caller { identity: Some(Identity::Agent(worker())), ..Caller::of(AgentKind::Operator) };
    assert_eq!(rules().level_of(&worker()), AccessLevel::Elevated);
    let seat = CallerSlot::new(caller.clone(), CancellationToken::new());
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.expect("a runtime");
    let arguments = || json!({ "message": "hello" }).as_object().cloned().unwrap_or_default();
    let figures = hold(ROUNDS, 2, |who| {
        let begun = Instant::now();
        match who {
            0 => {
                let calls = (0..CALLS).map(|_| gateway.call(&seat, "echo", arguments()));
                let all = runtime.block_on(futures_util::future::join_all(calls));
                assert!(
                    all.iter().all(|called| matches!(called, CallOutcome::Answered(_))) && all.len() == CALLS
                );
            }
            _ => {
                let calls = (0..CALLS).map(|_| echo.call(&caller, arguments()));
                let all = runtime.block_on(futures_util::future::join_all(calls));
                assert!(all.iter().all(Result::is_ok));
            }
        }
        begun.elapsed().as_secs_f64() * 1e6 / CALLS as f64
    });
    let [ours, bare] = [0, 1].map(|who| median(figures[who].iter().copied()));
    println!(
        "\n## batch: {CALLS} calls at once: {ours:.1} µs each through the gateway, each on the disk first; {bare:.1} µs without"
    );
    judge("added time per call by the gateway, µs", ours - bare, Goal::AtMost(50.0))
}
