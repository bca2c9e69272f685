//! Sandboxes that a lifecycle keeps for their owners, or doesn't.

use crate::Case;
use crate::house::{House, nothing, pipe, shell};
use belljar_confine::plan::Stdio;
use belljar_contract::isolation::Required;
use belljar_sandbox::backend::{BackendError, Wanted};
use belljar_sandbox::clock::ManualClock;
use belljar_sandbox::config::{LifecycleConfig, Strategy};
use belljar_sandbox::correlation::{Correlation, CorrelationId};
use belljar_sandbox::event::EventQueue;
use belljar_sandbox::lifecycle::{Claim, Lease, Lifecycle, configured};
use belljar_sandbox::limits::Limits;
use belljar_sandbox::run::WorkspaceChoice;
use std::io::Read;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(crate) const CASES: &[Case] = &[
    (
        "an_agents_sandbox_is_warm_within_its_grace_and_gone_after_it",
        an_agents_sandbox_is_warm_within_its_grace,
    ),
    ("a_calls_sandbox_knows_nothing_of_the_call_before", a_calls_sandbox_knows_nothing),
    ("what_runs_ends_with_its_sandbox_and_the_next_call_has_another", what_runs_ends_with_its_sandbox),
];

struct Keeping<'h> {
    house: &'h House,
    clock: Arc<ManualClock>,
    lifecycle: Arc<dyn Lifecycle>,
    correlation: Correlation,
}

// === impl Keeping ===

impl<'h> Keeping<'h> {
    fn new(house: &'h House, strategy: Strategy) -> Self {
        let clock = Arc::new(ManualClock::new());
        let config = LifecycleConfig { strategy, ..LifecycleConfig::default() };
        let lifecycle = configured(&config, clock.clone(), Arc::new(EventQueue::with_room_for(10)));
        let agent_id = CorrelationId::parse("agent-1").ok();
        Self { house, clock, lifecycle, correlation: Correlation { agent_id, ..Correlation::default() } }
    }

    fn claim(&self) -> Claim<'_> {
        Claim { owner: None, correlation: &self.correlation }
    }

    fn acquire(&self) -> Lease {
        let wanted = Wanted {
            workspace: WorkspaceChoice::Empty,
            lent: Vec::new(),
            env: self.correlation.env(),
            limits: Limits::default(),
            required: Required::default(),
            hatches: Vec::new(),
            home: std::collections::BTreeMap::new(),
            programs: None,
        };
        self.lifecycle.acquire(&self.claim(), Box::new(|| self.house.backend.create(wanted))).unwrap()
    }
}

/// What a script prints.
fn printed(lease: &Lease, script: &str) -> Result<String, BackendError> {
    let (mut stdout, output) = pipe();
    let mut execution = lease.exec(&shell(script), Stdio::Descriptors([nothing(), output, nothing()]))?;
    let mut text = String::new();
    stdout.read_to_string(&mut text).unwrap();
    assert!(execution.wait_until(Some(Instant::now() + Duration::from_secs(60))).unwrap().is_some());
    Ok(text)
}

fn an_agents_sandbox_is_warm_within_its_grace(house: &House) {
    let keeping = Keeping::new(house, Strategy::PerAgent);
    let first = keeping.acquire();
    assert_eq!(
        printed(&first, "echo $BELLJAR_AGENT_ID $SYNTHORG_AGENT_ID | tee mark").unwrap(),
        "agent-1 agent-1\n"
    );
    keeping.lifecycle.release(&keeping.claim());
    keeping.clock.advance(Duration::from_secs(29));
    let second = keeping.acquire();
    assert_eq!(
        (second.id(), printed(&second, "cat mark").unwrap().as_str()),
        (first.id(), "agent-1 agent-1\n")
    );
    keeping.lifecycle.release(&keeping.claim());
    keeping.clock.advance(Duration::from_secs(30));
    assert!(matches!(printed(&second, "cat mark"), Err(BackendError::Gone)));
    let third = keeping.acquire();
    assert_ne!(third.id(), first.id());
    assert_eq!(printed(&third, "cat mark").unwrap(), "");
}

fn a_calls_sandbox_knows_nothing(house: &House) {
    let keeping = Keeping::new(house, Strategy::PerCall);
    let first = keeping.acquire();
    assert_eq!(printed(&first, "echo here > mark; cat mark").unwrap(), "here\n");
    drop(first);
    assert_eq!(printed(&keeping.acquire(), "cat mark").unwrap(), "");
}

fn what_runs_ends_with_its_sandbox(house: &House) {
    let keeping = Keeping::new(house, Strategy::PerAgent);
    let lease = keeping.acquire();
    let mut running =
        lease.exec(&shell("sleep 600"), Stdio::Descriptors([nothing(), nothing(), nothing()])).unwrap();
    keeping.lifecycle.cleanup_all();
    let ended = running.wait_until(Some(Instant::now() + Duration::from_secs(60)));
    assert!(!matches!(ended, Ok(None)), "it runs on after its sandbox was destroyed");
    assert!(matches!(printed(&lease, "true"), Err(BackendError::Gone)));
    assert_eq!(printed(&keeping.acquire(), "echo again").unwrap(), "again\n");
}
