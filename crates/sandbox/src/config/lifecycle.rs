//! `lifecycle`: how long a sandbox is kept for its owner (`docs/contracts/tools.md#t8.1`).

use belljar_contract::yaml::{Members, MistakeLog, Node, Value, one_of, only, place, seconds};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// Lifecycle of sandboxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LifecycleConfig {
    /// Owner of a sandbox.
    pub strategy: Strategy,
    /// Time that the sandbox of a stopped agent is kept for its next task.
    pub grace_period: Duration,
    /// Interval of the checks that a kept sandbox is still there.
    pub health_check_interval: Duration,
    /// Idle time after which a kept sandbox is destroyed, released or not; `None` for never.
    pub max_idle: Option<Duration>,
}

/// Owner of a sandbox.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Strategy {
    /// A call: fresh each time.
    PerCall,
    /// A task: destroyed when the task is done.
    PerTask,
    /// An agent: kept for a while after its task, for the next one.
    #[default]
    PerAgent,
}

const STRATEGIES: [(&str, Strategy); 2] =
    [("per-agent", Strategy::PerAgent), ("per-call", Strategy::PerCall)];

/// Reason why a given value of the contract (`docs/contracts/tools.md#t8.2`) can't apply where an agent's sandboxes are
/// those of its session.
const GRACE: &str = "`30`: an agent's sandboxes end with its session, which `--idle` and `--keep` govern";
const HEALTH: &str =
    "`10`: a sandbox that has ended is replaced at the next call, and not looked at meanwhile";

const DAY: Duration = Duration::from_secs(86_400);

// === impl LifecycleConfig ===

impl LifecycleConfig {
    pub(super) fn read(node: &Node, log: &mut MistakeLog) -> Self {
        let default = Self::default();
        let Some(mut members) = Members::open(node, log) else { return default };
        let of_a_day = |node: &Node, log: &mut MistakeLog| seconds(node, log, Duration::ZERO..=DAY);
        let read = Self {
            strategy: members.or("strategy", default.strategy, strategy),
            max_idle: members.or("max_idle_seconds", default.max_idle, |node, log| {
                let idle = of_a_day(node, log)?;
                Some((!idle.is_zero()).then_some(idle))
            }),
            ..default
        };
        members.section("grace_period_seconds", |node, log| {
            only(node, log, (&default.grace_period, GRACE), of_a_day);
        });
        members.section("health_check_interval_seconds", |node, log| {
            only(node, log, (&default.health_check_interval, HEALTH), of_a_day);
        });
        members.finish();
        read
    }
}

impl Default for LifecycleConfig {
    fn default() -> Self {
        Self {
            strategy: Strategy::PerAgent,
            grace_period: Duration::from_secs(30),
            health_check_interval: Duration::from_secs(10),
            max_idle: Some(Duration::from_secs(300)),
        }
    }
}

/// A strategy that there is for sessions: one has the sandboxes of one agent at one task.
fn strategy(node: &Node, log: &mut MistakeLog) -> Option<Strategy> {
    if matches!(&node.value, Value::Plain(text) | Value::Text(text) if text == Strategy::PerTask.as_str()) {
        let found = "`per-task`, and a session is one task of one agent, so that `per-agent` means the same";
        log.note(node.position, place(node), found, "one of: per-agent, per-call");
        return None;
    }
    one_of(node, log, &STRATEGIES)
}

// === impl Strategy ===

impl Strategy {
    /// The name in configurations.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PerCall => "per-call",
            Self::PerTask => "per-task",
            Self::PerAgent => "per-agent",
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
