//! The process that keeps a session: what it is told, what it serves, and its one word.

use super::own_runner;
use crate::backend::SandboxSettings;
use crate::error::CliError;
use crate::web;
use belljar_contract::id::RunId;
use belljar_execution::tls_interception::TlsInterception;
use belljar_sandbox::backend::{BackendError, SandboxRequest, with_causes};
use belljar_sandbox::backends::chosen::BackendSite;
use belljar_sandbox::hatch::Hatch;
use belljar_sandbox::provision::Provision;
use belljar_sandbox::run::WorkspaceChoice;
use belljar_sandbox::session::{
    self, ForkRequest, HatchServer, KeeperError, KeeperRequest, SandboxGroupRequest, Session,
};
use belljar_sandbox::spec::Lent;
use belljar_sandbox::state::StateDirectory;
use belljar_store::audit::anchor::{self, AnchorSettings};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::error::Error;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

/// Order to a keeper to create a session.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CreateSessionRequest {
    pub(super) site: BackendSite,
    pub(super) workspace: WorkspaceChoice,
    pub(super) lent: Vec<Lent>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) quarters: Vec<SandboxSettings>,
    pub(super) session: Session,
}

/// Standard input of a keeper. A keeper has no environment variables and reads no configuration, so the settings that it needs are
/// in here.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct KeeperInput<E> {
    /// The anchors of the audit log.
    pub(super) anchors: Vec<AnchorSettings>,
    pub(super) errand: E,
}

/// Task of a keeper.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum KeeperTask {
    Create(Box<CreateSessionRequest>),
    Fork { state: PathBuf, origin: String, name: Option<String> },
}

/// Message of a keeper once the session has started or failed to start.
pub(super) type KeeperReply = Result<Session, KeeperFailure>;

/// Reason why a session failed to start.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct KeeperFailure {
    pub(super) why: String,
    /// True if the backend isn't available on this machine.
    pub(super) lacks_backend: bool,
}

/// Runs as a keeper: reads its order from standard input, and reports on standard output when the session has started.
pub(crate) fn keep() -> ExitCode {
    // The user who started the session may log out.
    let _ = rustix::process::setsid();
    let begun = |session: &Session| say(&Ok(session.clone()));
    let word = match take_errand() {
        Ok(KeeperTask::Create(order)) => {
            let state = StateDirectory::at(&order.site.state);
            // Before anything is read: a keeper has no variables that name another state.
            state.begin_use();
            keeping(*order).and_then(|(keeping, inspection)| {
                let served =
                    move |session: &Session, sockets| serve(session, inspection.as_ref(), &state, sockets);
                session::keep(keeping, Arc::new(served), begun)
            })
        }
        Ok(KeeperTask::Fork { state, origin, name }) => {
            let state = StateDirectory::at(state);
            state.begin_use();
            // Its origin's authority is its origin's alone.
            let own = Arc::new(OnceLock::new());
            let adapt = |session: &Session, wanted: &mut SandboxRequest| {
                if let Some(inspection) = inspection_of(session)? {
                    inspection.furnish_anew(&mut wanted.provision.env, &mut wanted.provision.home);
                    let _ = own.set(inspection);
                }
                Ok(())
            };
            let (its, at) = (Arc::clone(&own), state.clone());
            let served: HatchServer =
                Arc::new(move |session: &Session, sockets| serve(session, its.get(), &at, sockets));
            session::keep_fork(ForkRequest { state, origin, name }, (&adapt, &served), begun)
        }
        Err(error) => {
            say(&Err(KeeperFailure { why: error.to_string(), lacks_backend: false }));
            return ExitCode::FAILURE;
        }
    };
    match word {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let lacks_backend = matches!(error, KeeperError::Backend(BackendError::Unavailable { .. }));
            say(&Err(KeeperFailure { why: with_causes(&error), lacks_backend }));
            ExitCode::FAILURE
        }
    }
}

fn take_errand() -> std::io::Result<KeeperTask> {
    let mut errand = Vec::new();
    std::io::stdin().read_to_end(&mut errand)?;
    let KeeperInput { anchors, errand } = serde_json::from_slice(&errand)?;
    anchor::install(anchors);
    Ok(errand)
}

/// Serves the web to a session, by the policy that it was given.
fn serve(
    session: &Session,
    inspection: Option<&TlsInterception>,
    state: &StateDirectory,
    sockets: Vec<OwnedFd>,
) -> Result<Box<dyn Send + Sync>, Box<dyn Error + Send + Sync>> {
    let policy = web::reached(session)?.ok_or("it has hatches, and nothing that is served by them")?;
    let run_id = RunId::parse(&session.id)?;
    Ok(Box::new(SessionNetwork(Some(web::SandboxWebProxy::begin(
        (policy, inspection),
        &run_id,
        state,
        sockets,
    )?))))
}

/// Network access that is served to a session. Its use is recorded when this is dropped.
struct SessionNetwork(Option<web::SandboxWebProxy>);

impl Drop for SessionNetwork {
    fn drop(&mut self) {
        // An error can't be reported to any caller at this point.
        let _ = self.0.take().map(web::SandboxWebProxy::finish);
    }
}

/// Returns the settings of TLS interception for a session, if its policy inspects any connections.
fn inspection_of(session: &Session) -> Result<Option<TlsInterception>, CliError> {
    let policy = web::reached(session)?;
    Ok(policy.map(|policy| TlsInterception::of_live(policy.live())).transpose()?.flatten())
}

/// Returns the session to keep, and the settings of TLS interception for it.
fn keeping(order: CreateSessionRequest) -> Result<(KeeperRequest, Option<TlsInterception>), KeeperError> {
    let cant = |error: CliError| KeeperError::Serve(error.into());
    let CreateSessionRequest { site, workspace, lent, mut env, quarters, session } = order;
    let mut home = BTreeMap::new();
    let inspection = inspection_of(&session).map_err(cant)?;
    inspection.iter().for_each(|inspection| inspection.furnish(&mut env, &mut home));
    let provision = Provision { lent, env, home, programs: session.programs.clone(), ..Provision::default() };
    let reaches_the_web = session.reaches_the_web();
    let compartment = |quarter: SandboxSettings| {
        let SandboxSettings { backend, limits, required, has_web, is_seen, lifecycle, longest_call: _ } =
            quarter;
        let own = own_runner::lent(&site, &backend).map_err(|error| KeeperError::Serve(error.into()))?;
        let mut provision = Provision { limits, required, ..provision.clone() };
        provision.lent.push(own);
        provision.hatches.extend((reaches_the_web && has_web).then_some(Hatch::Web));
        let wanted = SandboxRequest { workspace: workspace.clone(), provision };
        Ok::<_, KeeperError>(SandboxGroupRequest { backend, wanted, is_seen, lifecycle })
    };
    let compartments = quarters.into_iter().map(compartment).collect::<Result<_, _>>()?;
    Ok((KeeperRequest { site, workspace, compartments, session }, inspection))
}

/// Prints the keeper's message, then closes standard output so that the waiting parent continues.
fn say(word: &KeeperReply) {
    let word = serde_json::to_string(word).unwrap_or_default();
    let _ = writeln!(std::io::stdout(), "{word}");
    if let Ok(nowhere) = std::fs::File::options().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(&nowhere);
    }
}
