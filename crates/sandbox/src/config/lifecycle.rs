//! `lifecycle`: how long a sandbox is kept for its owner (`spec/3 §Sandbox Lifecycle Strategies`).

use belljar_contract::yaml::{Log, Members, Node, one_of, seconds};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

/// How long sandboxes live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LifecycleConfig {
    /// Whose a sandbox is.
    pub strategy: Strategy,
    /// How long the sandbox of an agent that has stopped is kept for its next task.
    pub grace_period: Duration,
    /// How often it is seen whether a kept sandbox is still there.
    pub health_check_interval: Duration,
    /// After how long without use a kept sandbox is destroyed, released or not; never, if this is nothing.
    pub max_idle: Option<Duration>,
}

/// Whose a sandbox is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Strategy {
    /// One call's: fresh each time.
    PerCall,
    /// A task's: destroyed when that is done.
    PerTask,
    /// An agent's: kept for a while after its task, for the next one.
    #[default]
    PerAgent,
}

const STRATEGIES: [(&str, Strategy); 3] =
    [("per-agent", Strategy::PerAgent), ("per-task", Strategy::PerTask), ("per-call", Strategy::PerCall)];

const DAY: Duration = Duration::from_secs(86_400);

// === impl LifecycleConfig ===

impl LifecycleConfig {
    pub(super) fn read(node: &Node, log: &mut Log) -> Self {
        let default = Self::default();
        let Some(mut members) = Members::open(node, log) else { return default };
        let no_time = Duration::ZERO;
        let read = Self {
            strategy: members.or("strategy", default.strategy, |node, log| one_of(node, log, &STRATEGIES)),
            grace_period: members.or("grace_period_seconds", default.grace_period, |node, log| {
                seconds(node, log, no_time..=DAY)
            }),
            health_check_interval: members.or(
                "health_check_interval_seconds",
                default.health_check_interval,
                |node, log| seconds(node, log, Duration::from_secs(1)..=DAY),
            ),
            max_idle: members.or("max_idle_seconds", default.max_idle, |node, log| {
                let idle = seconds(node, log, no_time..=DAY)?;
                Some((!idle.is_zero()).then_some(idle))
            }),
        };
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
