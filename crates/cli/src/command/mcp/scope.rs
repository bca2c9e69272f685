//! The scope of calls: the directory whose copy they work on, or the session if there is none. A person's yes to a call is good for that
//! alone.

use super::mcp_sessions::McpSessions;
use belljar_contract::approval::CallScope;
use belljar_contract::text::escaped;
use belljar_gateway::access::ScopeSource;
use belljar_sandbox::run::WorkspaceChoice;
use belljar_sandbox::session::Session;
use belljar_tools::answer::Failure;
use belljar_tools::definition::Definition;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

/// The members: the workspace, and the file with the policy by which a tool reaches the web.
pub(crate) const WORKSPACE: &str = "workspace";
const EGRESS: &str = "egress";

/// The scope of every call of a server.
pub(super) struct McpScopeSource(pub(super) Arc<McpSessions>);

/// The workspace that a call works on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CallWorkspace {
    /// Workspace of the session in which the built-in tools work.
    Own,
    /// Workspace of a new session, on a copy of the named directory or of the default one.
    New(Option<String>),
    /// Workspace of the session with this id.
    Session(String),
}

impl ScopeSource for McpScopeSource {
    fn scope<'a>(&'a self, definition: &'a Definition) -> BoxFuture<'a, Result<CallScope, Failure>> {
        let reaches_out = definition.reaches_out;
        async move { found(&self.0, CallWorkspace::Own, reaches_out).await }.boxed()
    }
}

impl fmt::Debug for McpScopeSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("McpScopeSource").finish_non_exhaustive()
    }
}

/// The scope of a call that works there.
pub(super) async fn found(
    desk: &Arc<McpSessions>,
    place: CallWorkspace,
    reaches_out: bool,
) -> Result<CallScope, Failure> {
    let desk = Arc::clone(desk);
    let found = tokio::task::spawn_blocking(move || desk.scope(&place, reaches_out));
    found.await.unwrap_or_else(|error| Err(Failure::internal("find out what the call acts on", &error)))
}

// === impl McpSessions ===

impl McpSessions {
    fn scope(&self, place: &CallWorkspace, reaches_out: bool) -> Result<CallScope, Failure> {
        let (directory, session) = match place {
            CallWorkspace::Own => (None, self.own_living().map(|client| client.session().clone())),
            CallWorkspace::New(directory) => (directory.as_deref(), None),
            CallWorkspace::Session(id) => (None, Some(self.find(id)?.session().clone())),
        };
        let egress = match &session {
            Some(session) => session.egress.as_deref(),
            None => self.offer.egress.as_deref(),
        };
        let workspace = match &session {
            Some(session) => of_session(session),
            // A session that is opened for the call begins empty: two of them are alike.
            None => match self.choice(directory)? {
                WorkspaceChoice::Copy(path) => shown(path.as_path()),
                _ => "empty".to_owned(),
            },
        };
        let mut scope = CallScope::from_iter([(WORKSPACE.to_owned(), workspace.into())]);
        if reaches_out {
            scope.insert(EGRESS.to_owned(), egress.map(shown).into());
        }
        Ok(scope)
    }
}

/// The directory on the host, or which session it is where there is none. Paths begin with a slash.
fn of_session(session: &Session) -> String {
    match &session.copy_of {
        Some(path) => shown(path),
        None => format!("session {}", session.id),
    }
}

fn shown(path: &Path) -> String {
    escaped(path.as_os_str().as_bytes())
}
