//! The workbench in earnest: sandboxes of the backends that a configuration names, kept as it says.

use super::call::Call;
use super::owner::{correlation, owner};
use super::{Workbench, failure, time_for};
use crate::answer::Failure;
use crate::caller::Caller;
use belljar_contract::category::Category;
use belljar_contract::path::WORKSPACE;
use belljar_contract::tool::DomainCode;
use belljar_contract::workbench::{Answer, LONGEST_REQUEST_BYTES, Request, SUBCOMMAND};
use belljar_sandbox::backend::{Backend, BackendError, Sandbox, Wanted, with_causes};
use belljar_sandbox::backends::{Backends, Made};
use belljar_sandbox::correlation::CorrelationId;
use belljar_sandbox::lifecycle::Claim;
use belljar_sandbox::run::RUNNER_INSIDE;
use belljar_sandbox::spec::{HostPath, LendError, Lent, Program};
use belljar_sandbox::streams::Spoken;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Says what the sandbox of a caller has.
///
/// Tools of different categories work in one sandbox where this says the same for both and their backend is one.
pub trait Furnish: Send + Sync {
    /// What it shall be.
    ///
    /// # Errors
    /// [`Failure`] when the caller shall have none.
    fn wanted(&self, caller: &Caller, category: Category) -> Result<Wanted, Failure>;

    /// It has been made, and nothing runs in it yet: for whoever serves its hatches.
    fn made(&self, _caller: &Caller, _category: Category, _sandbox: &mut dyn Sandbox) {}
}

/// Has things done in sandboxes.
pub struct SandboxWorkbench {
    backends: Arc<Backends>,
    furnish: Arc<dyn Furnish>,
    helper: Helper,
    /// By whoever calls, the owners for whom sandboxes may be kept.
    owners: Mutex<BTreeMap<String, BTreeSet<Kept>>>,
}

/// A sandbox may be kept for that owner, for tools of that category.
type Kept = (CorrelationId, Category);

/// The program that does things inside.
#[derive(Debug, Clone)]
struct Helper {
    file: HostPath,
    called: PathBuf,
}

/// What is done in a sandbox.
struct Job {
    request: Vec<u8>,
    within: Duration,
    runs_programs: bool,
}

// === impl SandboxWorkbench ===

impl SandboxWorkbench {
    /// One in sandboxes of these backends. `helper` is the program that does things inside, the file or a link to it by the name
    /// `cynode-sba`, where everybody may get at it.
    ///
    /// # Errors
    /// [`LendError`] when it can't be looked at.
    pub fn new(backends: Arc<Backends>, furnish: Arc<dyn Furnish>, helper: &Path) -> Result<Self, LendError> {
        let helper = Helper { file: HostPath::resolve(helper)?, called: helper.to_owned() };
        Ok(Self { backends, furnish, helper, owners: Mutex::default() })
    }

    /// Says that a caller has stopped: what is kept for it is kept no longer than its strategy says.
    pub fn release(&self, caller: &Caller) {
        let owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner).remove(&key(caller));
        for (owner, category) in owners.unwrap_or_default() {
            if let Ok(made) = self.backends.for_category(category) {
                let correlation = correlation(caller);
                made.lifecycle.release(&Claim { owner: Some(&owner), correlation: &correlation });
            }
        }
    }

    async fn carry_out(&self, caller: &Caller, category: Category, job: Job) -> Result<Answer, Failure> {
        if job.request.len() > LONGEST_REQUEST_BYTES {
            return Err(Failure::new(DomainCode::LimitExceeded, "that is too much for one call"));
        }
        let start = self.start(caller, category, job.runs_programs)?;
        let call = tokio::task::spawn_blocking(start).await;
        let call = call.map_err(|error| Failure::internal("start what was asked for", &error))??;
        match call.carry_out(&job.request, job.within).await? {
            Answer::Refused(refused) => Err(failure(refused)),
            answer => Ok(answer),
        }
    }

    /// What has a sandbox, and begins a call in it. It takes time.
    fn start(
        &self,
        caller: &Caller,
        category: Category,
        runs_programs: bool,
    ) -> Result<impl FnOnce() -> Result<Call, Failure> + Send + use<>, Failure> {
        let made = self.backends.for_category(category).map_err(|missing| {
            tracing::warn!(%missing, "a tool has no sandbox");
            Failure::new(DomainCode::Unavailable, format!("there are no sandboxes for {category} here"))
        })?;
        let Made { backend, lifecycle } = made.clone();
        let mut wanted = self.furnish.wanted(caller, category)?;
        let (program, lent) = self.helper.program(&*backend)?;
        wanted.lent.push(lent);
        let owner = owner(lifecycle.strategy(), caller, &wanted);
        if let Some(owner) = &owner {
            let mut owners = self.owners.lock().unwrap_or_else(PoisonError::into_inner);
            owners.entry(key(caller)).or_default().insert((owner.clone(), category));
        }
        let (furnish, caller) = (Arc::clone(&self.furnish), caller.clone());
        Ok(move || {
            let correlation = correlation(&caller);
            // Without an owner of ours there shall be none: the ids alone are not all that tells one from others.
            let nobody = belljar_sandbox::correlation::Correlation::default();
            let claim = match &owner {
                Some(owner) => Claim { owner: Some(owner), correlation: &correlation },
                None => Claim { owner: None, correlation: &nobody },
            };
            let begin = || {
                let create = || {
                    let mut sandbox = backend.create(wanted.clone())?;
                    furnish.made(&caller, category, &mut *sandbox);
                    Ok(sandbox)
                };
                let lease = lifecycle.acquire(&claim, Box::new(create))?;
                let (theirs, ours) = Spoken::make().map_err(|errno| BackendError::Reach(errno.into()))?;
                let execution = lease.exec(&program, theirs)?;
                Ok(Call::new((execution, lease), ours, runs_programs))
            };
            let begun = match begin() {
                // One that was kept has ended since: the owner gets another.
                Err(BackendError::Gone) => begin(),
                begun => begun,
            };
            begun.map_err(|error| not_begun(&error))
        })
    }
}

impl Workbench for SandboxWorkbench {
    fn ask<'a>(
        &'a self,
        caller: &'a Caller,
        category: Category,
        request: Request,
    ) -> BoxFuture<'a, Result<Answer, Failure>> {
        async move {
            let runs_programs = matches!(request, Request::Run(_));
            let job = Job { request: document(&request)?, within: time_for(&request), runs_programs };
            self.carry_out(caller, category, job).await
        }
        .boxed()
    }
}

impl fmt::Debug for SandboxWorkbench {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SandboxWorkbench").field("helper", &self.helper).finish_non_exhaustive()
    }
}

impl<F: Fn(&Caller, Category) -> Result<Wanted, Failure> + Send + Sync> Furnish for F {
    fn wanted(&self, caller: &Caller, category: Category) -> Result<Wanted, Failure> {
        self(caller, category)
    }
}

// === impl Helper ===

impl Helper {
    /// How it is started in sandboxes of that backend, and what it takes that it is there.
    fn program(&self, backend: &dyn Backend) -> Result<(Program, Lent), Failure> {
        let (called, lent): (OsString, _) = match backend.has_own_root() {
            true => {
                let lent = Lent { path: self.file.clone(), inside: RUNNER_INSIDE.to_owned() };
                (format!("/{RUNNER_INSIDE}").into(), lent)
            }
            false => {
                let lent = Lent::at_its_place(self.file.as_path());
                let lent = lent.map_err(|error| Failure::internal("lend its own program", &error))?;
                (self.called.clone().into(), lent)
            }
        };
        let program = Program { argv: vec![called, SUBCOMMAND.into()], directory: WORKSPACE.to_owned() };
        Ok((program, lent))
    }
}

/// By what whoever calls is known between calls.
fn key(caller: &Caller) -> String {
    let Caller { task_id, run_id, actor, user_id, project_id, .. } = caller;
    serde_json::json!([task_id, run_id, actor, user_id, project_id]).to_string()
}

fn document(request: &Request) -> Result<Vec<u8>, Failure> {
    serde_json::to_vec(request).map_err(|error| Failure::internal("write down what was asked", &error))
}

fn not_begun(error: &BackendError) -> Failure {
    tracing::warn!(error = with_causes(error), "a tool can't work in its sandbox");
    Failure::new(DomainCode::Unavailable, "there is no sandbox to be had for this at the moment")
}
