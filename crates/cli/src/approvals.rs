//! Approvals of this machine, stored in its state: `belljar mcp` requests them, and a user answers.

use crate::configuration::Configuration;
use crate::error::CliError;
use crate::state;
use belljar_node::approvals::StoredApprover;
use belljar_store::approvals::Approvals;
use belljar_store::audit::{AuditLog, folder_in};
use belljar_store::database::{Database, Location};
use std::sync::Arc;
use tokio::runtime::Runtime;

/// Creates the runtime for requesting and answering approvals.
pub(crate) fn runtime() -> Result<Runtime, CliError> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.map_err(|source| CliError::Runtime { source })
}

/// Opens the approvals of this machine, recorded in its audit log.
pub(crate) async fn open(audit: &Arc<AuditLog>) -> Result<Approvals, CliError> {
    let database = Database::open(&Location::File(state::agents_database()?)).await?;
    Ok(Approvals::new(database, Arc::clone(audit)))
}

/// Opens the audit log of this machine.
pub(crate) fn audit() -> Result<Arc<AuditLog>, CliError> {
    Ok(Arc::new(AuditLog::open(&folder_in(state::open().path()))?))
}

/// Returns the approver of this machine, by the configuration in use.
pub(crate) async fn approver(
    audit: &Arc<AuditLog>,
    configuration: Option<&Configuration>,
) -> Result<StoredApprover, CliError> {
    let rules = configuration.map(|configuration| configuration.approvals.clone()).unwrap_or_default();
    let approvals = open(audit).await?;
    let now = jiff::Timestamp::now();
    let kept = jiff::SignedDuration::try_from(rules.retention).unwrap_or(jiff::SignedDuration::MAX);
    // No other task purges expired approvals here.
    while approvals.purge(now.checked_sub(kept).unwrap_or(jiff::Timestamp::MIN)).await? > 0 {}
    Ok(StoredApprover::new(approvals, rules.timeout, Arc::new(jiff::Timestamp::now)))
}
