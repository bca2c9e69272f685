//! The web for the tools of an agent's session: what that session may reach, for as long as it is the one.

use super::failures;
use super::git_workspace::run_of;
use super::mcp_sessions::McpSessions;
use crate::error::CliError;
use crate::{state, web};
use belljar_contract::category::Category;
use belljar_contract::tool::DomainCode;
use belljar_policy::access::compiled::SandboxAccess;
use belljar_sandbox::backend::with_causes;
use belljar_sandbox::session::SessionClient;
use belljar_tools::answer::Failure;
use belljar_tools::builtin::web::reach::{RunWebAccess, WebHatch};
use belljar_tools::caller::Caller;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Network access for the server's own web tools, through the session in which the built-in tools work.
pub(super) struct SessionWebHatch {
    pub(super) desk: Arc<McpSessions>,
}

/// Network access that is set up for one session on the first request.
#[derive(Default)]
pub(super) struct SessionWebCache {
    served: Mutex<Option<SessionWebProxy>>,
}

/// Network access of one session.
struct SessionWebProxy {
    session: String,
    /// Terms of web tools; `None` if the session's own terms apply.
    terms: Option<SandboxAccess>,
    web: web::SandboxWebProxy,
}

impl WebHatch for SessionWebHatch {
    fn reach<'a>(&'a self, _: &'a Caller) -> BoxFuture<'a, Result<RunWebAccess, Failure>> {
        async move {
            let _turn = self.desk.turn()?;
            let desk = Arc::clone(&self.desk);
            let done = tokio::task::spawn_blocking(move || {
                let client = desk.own_session(Category::Web)?;
                desk.web.reach(&client, desk.web_terms())
            });
            done.await.unwrap_or_else(|error| Err(Failure::internal("do it", &error)))
        }
        .boxed()
    }
}

// === impl SessionWebCache ===

impl SessionWebCache {
    /// Returns the network access of this session. Access set up for another session or other terms is ended: it may allow more.
    fn reach(&self, client: &SessionClient, terms: Option<SandboxAccess>) -> Result<RunWebAccess, Failure> {
        let id = &client.session().id;
        let mut served = self.locked();
        if let Some(own) = served.as_ref().filter(|own| own.session == *id && own.terms == terms) {
            return Ok(own.web.reach());
        }
        finish(served.take());
        let web = serve(client, terms.clone())?.ok_or_else(|| {
            let message = "this server allows no network access (`belljar mcp --egress FILE`)";
            Failure::new(DomainCode::NotSupported, message)
        })?;
        let reach = web.reach();
        *served = Some(SessionWebProxy { session: id.clone(), terms, web });
        Ok(reach)
    }

    /// Ends what is served, unless it is to a session which may still have it, by the same terms.
    pub(super) fn end_unless(&self, is_still_its_own: impl FnOnce(&str, Option<&SandboxAccess>) -> bool) {
        let mut served = self.locked();
        let is_over = served.as_ref().is_some_and(|own| !is_still_its_own(&own.session, own.terms.as_ref()));
        finish(is_over.then(|| served.take()).flatten());
    }

    fn locked(&self) -> MutexGuard<'_, Option<SessionWebProxy>> {
        // Nothing in there is ever half done.
        self.served.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Serves what the tools of a session may reach, if they may reach anything.
fn serve(
    client: &SessionClient,
    terms: Option<SandboxAccess>,
) -> Result<Option<web::SandboxWebProxy>, Failure> {
    let failed = |error: CliError| failures::of_opening(&error);
    let session = client.session();
    let reached = match terms.filter(|_| session.access.is_some()) {
        Some(terms) => web::reached_by(session.egress.as_deref(), terms),
        None => web::reached(session),
    };
    let Some(policy) = reached.map_err(failed)? else { return Ok(None) };
    // Web tools report their requests themselves, so no TLS interception is needed.
    let begun = web::SandboxWebProxy::begin((policy, None), &run_of(client)?, &state::open(), Vec::new());
    begun.map(Some).map_err(failed)
}

fn finish(served: Option<SessionWebProxy>) {
    let ended = served.map(|own| own.web.finish());
    if let Some(Err(error)) = ended {
        tracing::warn!(error = with_causes(&error), "what was reached is not all recorded");
    }
}
