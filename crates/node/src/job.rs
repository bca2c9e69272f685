//! Jobs on a node: taken in turn, carried out in sandboxes, told of while they run, and ended once.

pub(crate) mod abilities;
mod attempt;
pub(crate) mod context;
pub(crate) mod dispatcher;
mod hearing;
pub(crate) mod hub;
mod outcome;
mod queue;
mod recorder;
pub(crate) mod reports;
mod run;

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
use context::Library;
use hub::Hub;
use jiff::Timestamp;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tokio_util::sync::CancellationToken;

/// Where jobs are carried out, and where they are kept.
pub(crate) struct Workplace {
    pub(crate) jobs: Jobs,
    pub(crate) artifacts: Artifacts,
    /// Nothing new is begun any more.
    pub(crate) stop: CancellationToken,
    pub(crate) hub: Hub,
    pub(crate) telemetry: Arc<Telemetry>,
    pub(crate) metrics: Metrics,
    pub(crate) traces: Traces,
    pub(crate) models: NodeModels,
    pub(crate) web: Arc<NodeWeb>,
    pub(crate) tools: NodeTools,
    pub(crate) trust: NodeTrust,
    /// What jobs are told of those for whom they are.
    pub(crate) library: Library,
    pub(crate) audit: Arc<AuditLog>,
    /// Of those who call them from elsewhere.
    pub(crate) tokens: Tokens,
    pub(crate) grants: Grants,
    pub(crate) images: Images,
    pub(crate) added_images: AddedImages,
    pub(crate) managed: ManagedServices,
    pub(crate) denials: Denials,
    pub(crate) launcher: Arc<Launcher>,
    /// Whether sandboxes can be made.
    pub(crate) canary: Arc<Canary>,
    /// Whether other nodes may have the same database.
    pub(crate) shares_database: bool,
    pub(crate) settings: Arc<Settings>,
    pub(crate) clock: WallClock,
    pub(crate) owner: Owner,
    /// Whether the last heartbeat was written to the database.
    pub(crate) is_recording: AtomicBool,
}

// === impl Workplace ===

impl Workplace {
    /// The time of day, to the millisecond: what is told now is what will be told later.
    pub(crate) fn now(&self) -> Timestamp {
        let now = (self.clock)();
        Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
    }

    /// Why what the node does can't be recorded on its own disk at the moment. Its database may be elsewhere.
    pub(crate) fn why_unrecorded(&self) -> Option<&'static str> {
        if machine::is_full(self.settings.state.path()) {
            return Some("the disk of the node's state directory is full");
        }
        self.audit.failing().map(|_| "the node can't write to its audit log")
    }
}
