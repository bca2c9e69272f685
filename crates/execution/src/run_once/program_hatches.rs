//! The hatches of a program's sandbox: models and the web, each served if the run has it.

use super::enclosure::hatches;
use super::{OnceError, OnceSpec, OnceWeb};
use crate::policy_file::{PolicyChange, PolicyFollower};
use crate::serving::{ServedModels, ServedWeb};
use crate::tls_interception::TlsInterception;
use belljar_contract::egress::WebUsage;
use belljar_contract::id::RunId;
use belljar_egress::identity::Identity;
use belljar_journal::RunJournal;
use belljar_sandbox::hatch::{Hatch, by_hatch};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Hatches that are being served. Dropping it ends their calls.
#[derive(Default)]
pub(super) struct ServedHatches {
    models: Option<ServedModels>,
    web: Option<(ServedWeb, PolicyFollower)>,
}

/// Adds the interception authority to the sandbox's trusted CAs, if TLS is intercepted.
pub(super) fn furnish(spec: &mut OnceSpec) -> Result<(), OnceError> {
    let Some(web) = &mut spec.web else { return Ok(()) };
    web.inspection = TlsInterception::of_live(web.policy.live())?;
    if let Some(inspection) = &web.inspection {
        inspection.furnish(&mut spec.provision.env, &mut spec.provision.home);
    }
    Ok(())
}

/// Serves a program's hatches on its sandbox's sockets.
pub(super) fn serve(
    spec: &mut OnceSpec,
    identity: Identity,
    book: &Arc<RunJournal>,
    sockets: Vec<OwnedFd>,
) -> Result<ServedHatches, OnceError> {
    let mut served = ServedHatches::default();
    let run_id = identity.run_id.clone();
    let mut identity = Some(identity);
    for (hatch, sockets) in by_hatch(&hatches(spec), sockets) {
        match hatch {
            Hatch::Inference => {
                if let (Some(models), Some(identity)) = (spec.models.take(), identity.take()) {
                    served.models = Some(ServedModels::begin(models, identity, book, sockets)?);
                }
            }
            Hatch::Web => {
                let web = spec.web.take();
                served.web = web.map(|web| reach(web, &run_id, book, sockets)).transpose()?;
            }
            // A run without a job has no receiver of status reports.
            Hatch::Status => drop(sockets),
        }
    }
    Ok(served)
}

fn reach(
    web: OnceWeb,
    run_id: &RunId,
    book: &Arc<RunJournal>,
    sockets: Vec<OwnedFd>,
) -> Result<(ServedWeb, PolicyFollower), OnceError> {
    let OnceWeb { policy, tell, inspection } = web;
    policy.first().iter().for_each(|first| book.note(first.kind(), Some(run_id), first));
    let served = ServedWeb::begin((policy.live(), inspection.as_ref()), run_id, book, sockets)?;
    let (entered, id) = (Arc::clone(book), run_id.clone());
    let following = policy.follow(move |change: &PolicyChange| {
        entered.note(change.kind(), Some(&id), change);
        tell(change);
    });
    Ok((served, following.map_err(OnceError::Follow)?))
}

// === impl ServedHatches ===

impl ServedHatches {
    /// Ends calls that are under way. When this returns, the journal has all of them. Returns the web usage.
    pub(super) fn end(self) -> Option<WebUsage> {
        if let Some(models) = self.models {
            models.end();
        }
        self.web.map(|(web, following)| {
            let seen = web.end();
            drop(following);
            seen.usage
        })
    }
}
