//! The host's git for the agent of a session: what it clones comes into the session's workspace, and what becomes of that goes out as
//! `belljar git push` has it go.
//!
//! ```text
//! git_clone ─► among `git.remotes`? ─► fetched, kept in the session's folder ─► laid out ─► carried in
//! git_push  ─► which clone is that? ─► carried out, as files ─► one commit on the clone ─► pushed, by its journal
//! ```

mod clone;
mod failure;
mod push;
mod queue;
mod watch;

pub(super) use queue::GitCallQueue;

use super::desk::McpSessions;
use super::execution::CallerGoneSignal;
use belljar_contract::id::RunId;
use belljar_contract::tool::DomainCode;
use belljar_files::directory::Directory;
use belljar_policy::git::{GitRules, Remote};
use belljar_sandbox::session::SessionClient;
use belljar_tools::answer::Failure;
use belljar_tools::builtin::git::hatch::{
    CloneRequest, CloneResult, GitHatch, PushPlan, PushRequest, PushResult,
};
use belljar_tools::caller::{Caller, Identity};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Git hatch: runs the host's git for the session in which the built-in tools work.
pub(super) struct SessionGitHatch {
    pub(super) desk: Arc<McpSessions>,
    pub(super) rules: Arc<GitRules>,
}

/// Temporary folder for files on their way into or out of a session. It is removed when this is dropped.
struct TransferFolder(PathBuf);

/// Name of the folder, in a session's folder, that holds the temporary folders.
const PASSAGES: &str = "carried";

impl GitHatch for SessionGitHatch {
    fn clone_in<'a>(
        &'a self,
        _: &'a Caller,
        wanted: CloneRequest,
    ) -> BoxFuture<'a, Result<CloneResult, Failure>> {
        let rules = Arc::clone(&self.rules);
        self.done(move |desk, given_up| clone::clone(desk, &rules, &wanted, given_up)).boxed()
    }

    fn push_out<'a>(
        &'a self,
        caller: &'a Caller,
        wanted: PushRequest,
    ) -> BoxFuture<'a, Result<PushResult, Failure>> {
        let (rules, agent) = (Arc::clone(&self.rules), agent_of(caller));
        self.done(move |desk, given_up| push::push(desk, &rules, (wanted, agent), given_up)).boxed()
    }

    fn planned_push<'a>(
        &'a self,
        caller: &'a Caller,
        wanted: PushRequest,
    ) -> BoxFuture<'a, Result<PushPlan, Failure>> {
        let (rules, agent) = (Arc::clone(&self.rules), agent_of(caller));
        self.done(move |desk, given_up| push::plan(desk, &rules, (wanted, agent), given_up)).boxed()
    }
}

// === impl SessionGitHatch ===

impl SessionGitHatch {
    /// Runs `does` once no other call uses the host's git. Signals `CallerGoneSignal` if the caller stops waiting.
    async fn done<T: Send + 'static>(
        &self,
        does: impl FnOnce(&McpSessions, &CallerGoneSignal) -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        let _turn = self.desk.turn()?;
        let desk = Arc::clone(&self.desk);
        self.desk.git.done(move |given_up| does(&desk, given_up)).await
    }
}

/// The name of the agent that calls, if it has one.
fn agent_of(caller: &Caller) -> Option<String> {
    match caller.identity.as_ref()? {
        Identity::Agent(agent) => Some(agent.to_string()),
        Identity::Level(_) => None,
    }
}

/// Checks that the git rules allow agents to use this remote.
fn must_be_named(rules: &GitRules, remote: &Remote) -> Result<(), Failure> {
    if rules.is_for_agents(remote) {
        return Ok(());
    }
    let named: Vec<_> = rules.remotes.iter().map(ToString::to_string).collect();
    let message = format!(
        "{remote} is not among the repositories that this host's configuration names for agents (`git.remotes`): {}",
        named.join(", ")
    );
    Err(Failure::new(DomainCode::PermissionDenied, message))
}

/// The run that a session is.
pub(super) fn run_of(client: &SessionClient) -> Result<RunId, Failure> {
    RunId::parse(&client.session().id).map_err(|error| Failure::internal("read the session's id", &error))
}

// === impl TransferFolder ===

impl TransferFolder {
    fn make(run: &Path) -> Result<Self, Failure> {
        let path = run.join(PASSAGES).join(uuid::Uuid::now_v7().to_string());
        std::fs::create_dir_all(&path).map_err(|error| Failure::internal("make a folder", &error))?;
        Ok(Self(path))
    }
}

impl Drop for TransferFolder {
    fn drop(&mut self) {
        // Leftovers are removed with the session's folder. The tree is untrusted and may be as deep as paths go.
        let _ = Directory::open_host(&self.0).and_then(|top| top.clear());
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    #[test]
    fn tree_deeper_than_the_descriptor_limit_is_removed_with_its_folder() {
        let run = tempfile::tempdir().unwrap();
        let most = Rlimit { current: Some(512), ..getrlimit(Resource::Nofile) };
        setrlimit(Resource::Nofile, most).unwrap();
        for depth in [2, 1_500] {
            let passage = TransferFolder::make(run.path()).unwrap();
            std::fs::create_dir_all(passage.0.join("d/".repeat(depth))).unwrap();
            std::fs::write(passage.0.join("d/file"), "x").unwrap();
            drop(passage);
            assert_eq!(std::fs::read_dir(run.path().join(PASSAGES)).unwrap().count(), 0, "{depth}");
        }
    }
}
