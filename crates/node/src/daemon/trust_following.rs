//! Loads trust records before anything is served, and follows them from then on.

use super::DaemonError;
use crate::job::NodeState;
use std::sync::Arc;

/// Loads the records, and follows them until the node stops.
pub(super) async fn follow(workplace: &NodeState) -> Result<(), DaemonError> {
    let Some(earning) = workplace.trust.earning() else { return Ok(()) };
    earning.look((workplace.clock)()).await.map_err(|source| DaemonError::Trust { source })?;
    let clock = Arc::clone(&workplace.clock);
    tokio::spawn(Arc::clone(earning).follow(move || clock(), workplace.stop.clone()));
    Ok(())
}
