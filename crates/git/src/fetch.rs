//! Fetches into the host's own clone: the addresses are vetted, and the fetch is recorded on the disk before it begins.

use super::base::Base;
use super::journal::Journal;
use crate::clone::{CloneError, Cloning};
use belljar_contract::git::FetchBegun;
use belljar_contract::inference::Excerpt;
use belljar_egress::git::Pinned;

/// Fetches the origin's reference.
pub(crate) fn fetch(cloning: &Cloning<'_>) -> Result<Base, CloneError> {
    let Cloning { origin, rules, names, folder, depth, run_id, env, is_canceled, .. } = cloning;
    let pinned = Pinned::pin(origin.remote().clone(), rules, names.clone())?;
    cloning.journal().fetch_begun(&FetchBegun {
        run_id: run_id.cloned(),
        remote: Excerpt::of(&origin.remote().to_string()),
        reference: Excerpt::of(origin.reference()),
        addresses: pinned.addresses().to_vec(),
    })?;
    Ok(Base::fetch(folder, (&pinned, (origin.reference(), *depth), *run_id), env, *is_canceled)?)
}

// === impl Cloning ===

impl<'c> Cloning<'c> {
    pub(crate) fn journal(&self) -> Journal<'c> {
        Journal::of(self.state)
    }
}
