//! Fetches into the host's own clone: the addresses are vetted, and the fetch is recorded on the disk before it begins.

use super::base::HostClone;
use super::journal::Journal;
use crate::clone::{CloneError, CloneParams};
use belljar_contract::git::FetchStartRecord;
use belljar_contract::inference::Excerpt;
use belljar_egress::git::PinnedRemote;

/// Fetches the origin's reference.
pub(crate) fn fetch(cloning: &CloneParams<'_>) -> Result<HostClone, CloneError> {
    let CloneParams { origin, rules, names, run_id, .. } = cloning;
    let pinned = PinnedRemote::pin(origin.remote().clone(), rules, names.clone())?;
    cloning.journal().fetch_begun(&FetchStartRecord {
        run_id: run_id.cloned(),
        remote: Excerpt::of(&origin.remote().to_string()),
        reference: Excerpt::of(origin.reference()),
        addresses: pinned.addresses().to_vec(),
    })?;
    Ok(HostClone::fetch(&pinned, cloning)?)
}

// === impl CloneParams ===

impl<'c> CloneParams<'c> {
    pub(crate) fn journal(&self) -> Journal<'c> {
        Journal::of(self.state)
    }
}
