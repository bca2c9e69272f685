//! Jobs on a node: queued, run in sandboxes, reported while they run, and ended exactly once.

mod attempt;
pub(crate) mod context;
pub(crate) mod dispatcher;
pub(crate) mod hub;
mod outcome;
mod queue;
mod recorder;
pub(crate) mod reports;
mod run;
mod run_watcher;
pub(crate) mod runnable_jobs;

use crate::canary::Canary;
use crate::daemon::{Settings, WallClock};
use crate::denials::Denials;
use crate::images::Images;
use crate::machine;
use crate::managed::ManagedServices;
use crate::metrics::Metrics;
use crate::models::NodeModels;
use crate::tools::NodeTools;
use crate::traces::Traces;
use crate::trust::NodeTrust;
use crate::web::NodeWeb;
use belljar_confine::launcher::Launcher;
use belljar_store::artifacts::Artifacts;
use belljar_store::audit::AuditLog;
use belljar_store::grants::Grants;
use belljar_store::images::Images as AddedImages;
use belljar_store::jobs::{Jobs, Owner};
use belljar_store::telemetry::Telemetry;
use belljar_store::tokens::Tokens;
use context::ContextStores;
use hub::Hub;
use jiff::Timestamp;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tokio_util::sync::CancellationToken;

/// Shared state of a node: where jobs run, and where they are stored.
pub(crate) struct NodeState {
    pub(crate) jobs: Jobs,
    pub(crate) artifacts: Artifacts,
    /// Canceled when the node stops; no work begins any more.
    pub(crate) stop: CancellationToken,
    pub(crate) hub: Hub,
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) metrics: Metrics,
    pub(crate) traces: Traces,
    pub(crate) models: NodeModels,
    pub(crate) web: Arc<NodeWeb>,
    pub(crate) tools: NodeTools,
    pub(crate) trust: NodeTrust,
    /// Skills and preferences that jobs get of their users.
    pub(crate) library: ContextStores,
    pub(crate) audit: Arc<AuditLog>,
    /// Of callers from outside the node.
    pub(crate) tokens: Tokens,
    pub(crate) grants: Grants,
    pub(crate) images: Images,
    pub(crate) added_images: AddedImages,
    pub(crate) managed: ManagedServices,
    pub(crate) denials: Denials,
    pub(crate) launcher: Arc<Launcher>,
    /// Returns whether sandboxes can be made.
    pub(crate) canary: Arc<Canary>,
    /// True if other nodes may use the same database.
    pub(crate) shares_database: bool,
    pub(crate) settings: Arc<Settings>,
    pub(crate) clock: WallClock,
    pub(crate) owner: Owner,
    /// True if the last heartbeat was written to the database.
    pub(crate) is_recording: AtomicBool,
}

// === impl NodeState ===

impl NodeState {
    /// Returns the time of day, to the millisecond: the precision that the database stores, so that reports are the same
    /// later.
    pub(crate) fn now(&self) -> Timestamp {
        let now = (self.clock)();
        Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
    }

    /// Returns why the node can't record at the moment on its own disk; `None` if it can. The database may be elsewhere.
    pub(crate) fn why_unrecorded(&self) -> Option<&'static str> {
        if machine::is_full(self.settings.state.path()) {
            return Some("the disk of the node's state directory is full");
        }
        self.audit.failing().map(|_| "the node can't write to its audit log")
    }
}
