//! What agents have earned, known before anything is served, and followed from then on.

use super::DaemonError;
use crate::job::Workplace;
use belljar_gateway::access::Earning;
use std::sync::Arc;

/// Follows it until the node stops.
pub(super) async fn follow(workplace: &Workplace) -> Result<(), DaemonError> {
    let (Some(trust), Some(house)) = (&workplace.trust, workplace.tools.house()) else { return Ok(()) };
    let (events, config) = (trust.events().clone(), trust.config().clone());
    let mut earning = Earning::new(events, config, Arc::clone(house.access()));
    let failed = |source| DaemonError::Trust { source };
    earning.look((workplace.clock)()).await.map_err(failed)?;
    let clock = Arc::clone(&workplace.clock);
    tokio::spawn(earning.follow(move || clock(), workplace.stop.clone()));
    Ok(())
}
