//! Approvals of this machine, in its own state: what `belljar mcp` asks, and a person answers.

use crate::configuration::Configuration;
use crate::error::CliError;
use crate::state;
use belljar_node::approvals::StoredApprover;
use belljar_store::approvals::Approvals;
use belljar_store::audit::{AuditLog, folder_in};
use belljar_store::database::{Database, Location};
use std::sync::Arc;
use tokio::runtime::Runtime;

/// The runtime that they are asked and answered in.
pub(crate) fn runtime() -> Result<Runtime, CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|source| CliError::Runtime { source })
}

/// Those of this machine, recorded in its audit.
pub(crate) async fn open(audit: &Arc<AuditLog>) -> Result<Approvals, CliError> {
    let database = Database::open(&Location::File(state::agents_database()?)).await?;
    Ok(Approvals::new(database, Arc::clone(audit)))
}

/// The audit of this machine.
pub(crate) fn audit() -> Result<Arc<AuditLog>, CliError> {
    Ok(Arc::new(AuditLog::open(&folder_in(state::open().path()))?))
}

/// Who is asked on this machine, by the configuration that there is.
pub(crate) async fn approver(
    audit: &Arc<AuditLog>,
    configuration: Option<&Configuration>,
) -> Result<StoredApprover, CliError> {
    let rules = configuration.map(|configuration| configuration.approvals.clone()).unwrap_or_default();
    let approvals = open(audit).await?;
    let now = jiff::Timestamp::now();
    let kept = jiff::SignedDuration::try_from(rules.retention).unwrap_or(jiff::SignedDuration::MAX);
    // Nothing else sweeps here.
    while approvals.purge(now.checked_sub(kept).unwrap_or(jiff::Timestamp::MIN)).await? > 0 {}
    Ok(StoredApprover::new(approvals, rules.timeout, Arc::new(jiff::Timestamp::now)))
}
