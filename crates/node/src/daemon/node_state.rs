//! Assembles the shared state of a node.

use super::daemon_hatches::{self, NodeHatches};
use super::{Bucket, DaemonError, Settings, WallClock, former_instances, telemetry_record};
use crate::access_rules::NodeAccessRules;
use crate::canary::Canary;
use crate::denials::Denials;
use crate::images::Images;
use crate::job::NodeState;
use crate::job::context::ContextStores;
use crate::job::hub::Hub;
use crate::managed::ManagedServices;
use crate::metrics::Metrics;
use crate::tools::{NodeTools, ToolDependencies};
use crate::traces::{self, Traces};
use crate::trust::NodeTrust;
use belljar_confine::launcher::Launcher;
use belljar_execution::policy_file::PolicyFollower;
use belljar_store::artifacts::{Artifacts, ArtifactsError};
use belljar_store::audit::{AuditLog, folder_in};
use belljar_store::database::Database;
use belljar_store::grants::Grants;
use belljar_store::images::Images as AddedImages;
use belljar_store::jobs::{Jobs, Owner};
use belljar_store::tokens::Tokens;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tokio_util::sync::CancellationToken;

/// Assembles the shared state of an instance, which may not have begun yet, and starts following its web policy.
pub(super) async fn furnish(
    mut settings: Settings,
    (launcher, clock): (Launcher, WallClock),
    (database, owner): (&Database, &Owner),
) -> Result<(Arc<NodeState>, PolicyFollower), DaemonError> {
    let artifacts = artifacts(&settings)?;
    let audit = Arc::new(AuditLog::open(&folder_in(settings.state.path())).map_err(DaemonError::Audit)?);
    warn_of_missing(&audit);
    let metrics = Metrics::default();
    let threads = |source| DaemonError::Threads { source };
    let traces =
        Traces::start(settings.traces.take(), settings.node_slug.clone(), &metrics).map_err(threads)?;
    let listed_calls = if traces.are_wanted() { traces::MOST_CALLS } else { 0 };
    let NodeHatches { models, web, following } =
        daemon_hatches::begin(&mut settings, &audit, (&metrics, listed_calls))?;
    let web = Arc::new(web);
    let house = settings.access.take().map(|rules| NodeAccessRules::new(rules, &settings.trust));
    let jobs = Jobs::new(database.clone());
    let parts = ToolDependencies {
        database,
        jobs: &jobs,
        artifacts: &artifacts,
        clock: &clock,
        audit: &audit,
        web: &web,
        timeout: &settings.approvals.timeout,
        config: &settings.tools,
        git: &settings.git,
        state: &settings.state,
        house,
    };
    let tools = NodeTools::new(&parts).map_err(|source| DaemonError::Tools { source })?;
    let trust = NodeTrust::new(database, &settings.trust, tools.house());
    tools.disable(&settings.mcp.disabled_tools);
    tools.rescope(&settings.mcp.tool_scopes);
    let denials = Denials::new(Arc::clone(&audit));
    let managed =
        ManagedServices::start(std::mem::take(&mut settings.managed), Arc::clone(&audit)).map_err(threads)?;
    let launcher = Arc::new(launcher);
    let workplace = NodeState {
        jobs,
        telemetry: Arc::new(telemetry_record::open(settings.state.path()).await?),
        images: Images::of(&settings)?,
        added_images: AddedImages::new(database.clone()),
        metrics,
        traces,
        artifacts,
        stop: CancellationToken::new(),
        hub: Hub::default(),
        models,
        web,
        tools,
        trust,
        library: ContextStores::new(database),
        audit,
        tokens: Tokens::new(database.clone()),
        grants: Grants::new(database.clone()),
        managed,
        denials,
        canary: Canary::new(&settings, &launcher),
        launcher,
        shares_database: !former_instances::is_own(&settings.database, settings.state.path()),
        settings: Arc::new(settings),
        clock,
        owner: owner.clone(),
        is_recording: AtomicBool::new(true),
    };
    Ok((Arc::new(workplace), following))
}

/// Warns of an audit log that has fewer records than its anchors have accepted, as after restoring an older copy.
fn warn_of_missing(audit: &AuditLog) {
    for status in audit.missing_from_log() {
        let sequence = status.delivered.as_ref().map(|delivered| delivered.sequence);
        tracing::warn!(
            anchor = status.target,
            sequence,
            "the audit log does not hold a record that this anchor has accepted; `belljar audit verify --anchor` compares them"
        );
    }
}

fn artifacts(settings: &Settings) -> Result<Artifacts, ArtifactsError> {
    let folder = settings.state.path().join("artifacts");
    match &settings.bucket {
        Some(Bucket { url, variables }) => Artifacts::in_bucket(url, variables.clone(), &folder),
        None => Artifacts::in_folder(&folder),
    }
}
