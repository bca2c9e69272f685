//! The ways out of a program's sandbox: models and the web, each served if it has it.

use super::enclosure::hatches;
use super::{OnceError, OnceSpec, OnceWeb};
use crate::book::Book;
use crate::inspection::Inspection;
use crate::serving::{Served, ServedWeb};
use crate::web::policy_file::{Change, Following};
use belljar_contract::egress::WebUsage;
use belljar_contract::id::RunId;
use belljar_egress::identity::Identity;
use belljar_sandbox::hatch::{Hatch, by_hatch};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// What is served. Dropping it ends what is under way.
#[derive(Default)]
pub(super) struct WaysOut {
    models: Option<Served>,
    web: Option<(ServedWeb, Following)>,
}

/// Puts into the sandbox what it takes besides: whom to trust where connections are looked into.
pub(super) fn furnish(spec: &mut OnceSpec) -> Result<(), OnceError> {
    let Some(web) = &mut spec.web else { return Ok(()) };
    web.inspection = Inspection::of_live(web.policy.live())?;
    if let Some(inspection) = &web.inspection {
        inspection.furnish(&mut spec.env, &mut spec.home);
    }
    Ok(())
}

/// Serves what a program may reach by its sandbox's sockets.
pub(super) fn serve(
    spec: &mut OnceSpec,
    identity: Identity,
    book: &Arc<Book>,
    sockets: Vec<OwnedFd>,
) -> Result<WaysOut, OnceError> {
    let mut served = WaysOut::default();
    let run_id = identity.run_id.clone();
    let mut identity = Some(identity);
    for (hatch, sockets) in by_hatch(&hatches(spec), sockets) {
        match hatch {
            Hatch::Inference => {
                if let (Some(models), Some(identity)) = (spec.models.take(), identity.take()) {
                    served.models = Some(Served::begin(models, identity, book, sockets)?);
                }
            }
            Hatch::Web => {
                let web = spec.web.take();
                served.web = web.map(|web| reach(web, &run_id, book, sockets)).transpose()?;
            }
            // A program of its own has nobody to tell how it goes on.
            Hatch::Status => drop(sockets),
        }
    }
    Ok(served)
}

fn reach(
    web: OnceWeb,
    run_id: &RunId,
    book: &Arc<Book>,
    sockets: Vec<OwnedFd>,
) -> Result<(ServedWeb, Following), OnceError> {
    let OnceWeb { policy, tell, inspection } = web;
    policy.first().iter().for_each(|first| book.note(first.kind(), Some(run_id), first));
    let served = ServedWeb::begin((policy.live(), inspection.as_ref()), run_id, book, sockets)?;
    let (entered, id) = (Arc::clone(book), run_id.clone());
    let following = policy.follow(move |change: &Change| {
        entered.note(change.kind(), Some(&id), change);
        tell(change);
    });
    Ok((served, following.map_err(OnceError::Follow)?))
}

// === impl WaysOut ===

impl WaysOut {
    /// Ends what is under way. When this returns, the book has all of it; what there has been of the web.
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
