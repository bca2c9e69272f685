//! Workspace of an agent's run, and the outcome of its changes.

use crate::command::git::outcome::PushReport;
use crate::command::git::push::{PushCommitArguments, PushContext, base_of};
use crate::command::git::remote_of;
use crate::error::CliError;
use crate::git::{GitHostAccess, RemoteArguments};
use crate::kept::{RunChangesArguments, RunChangesOutcome, RunEnd};
use crate::{sandbox_args, state};
use belljar_contract::result::ChangesState;
use belljar_egress::upstream::names::NameSource;
use belljar_execution::run_once::RunReservation;
use belljar_files::host_path::HostPath;
use belljar_git::clone::{CloneParams, Origin, clone};
use belljar_git::{HostClone, HostEnv};
use belljar_policy::git::Remote;
use belljar_sandbox::kept::KeptChangeSet;
use belljar_sandbox::state::RunFolder;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
pub(super) struct WorkspaceArguments {
    /// Work on a copy of this directory; the directory itself is never changed
    #[arg(long, value_name = "DIR", conflicts_with = "clone")]
    workspace_copy: Option<PathBuf>,
    /// Work on a clone of this repository, made by this host with its credentials
    #[arg(long, value_name = "URL[#REF]")]
    clone: Option<String>,
    /// Let --clone take file:// addresses
    #[arg(long, requires = "clone")]
    allow_file_clone: bool,
    /// Push the changes to a new branch where the clone is from, if the agent succeeds
    #[arg(long, requires = "clone", help_heading = "Git")]
    push: bool,
    /// Push them to a new branch of this repository instead
    #[arg(long, value_name = "URL", requires = "clone", help_heading = "Git")]
    push_to: Option<String>,
    #[command(flatten)]
    words: PushCommitArguments,
    #[command(flatten)]
    fate: RunChangesArguments,
    #[command(flatten)]
    remote: RemoteArguments,
}

/// Outcome of an agent's changes.
pub(super) struct AgentChangesOutcome {
    pub(super) fate: RunChangesOutcome,
    /// Report of their push, if one was attempted.
    pub(super) push: Option<PushReport>,
    /// The directory in which they are kept, if they are.
    pub(super) kept_in: Option<PathBuf>,
}

/// Destination of the push at the end of the run.
pub(super) struct PushDestination {
    remote: Remote,
    reach: GitHostAccess,
}

/// Clone that an agent works on, if it works on one.
pub(super) struct CloneFor<'c> {
    /// Repository; `None` for no clone.
    pub(super) origin: Option<&'c Origin>,
    /// Configuration file with the remotes.
    pub(super) config: Option<&'c Path>,
    /// Agent, for the commit that is pushed.
    pub(super) agent: &'c str,
    /// Model, for the commit that is pushed.
    pub(super) model: &'c str,
}

// === impl WorkspaceArguments ===

impl WorkspaceArguments {
    /// Returns the repository to clone, if any. Checks its push destination before anything runs.
    pub(super) fn origin(&self, config: Option<&Path>) -> Result<Option<Origin>, CliError> {
        let origin = self.clone.as_deref().map(|text| Origin::parse(text, self.allow_file_clone));
        let origin = origin.transpose().map_err(|error| CliError::usage(error.to_string()))?;
        let pushed = origin.as_ref().map(|origin| self.pushed(origin)).transpose()?.flatten();
        match &pushed {
            Some(remote) => self.words.check(Some((remote, &self.remote.reach(config)?)))?,
            None => self.words.check(None)?,
        }
        Ok(origin)
    }

    /// Where it is to be pushed, if it is.
    fn pushed(&self, origin: &Origin) -> Result<Option<Remote>, CliError> {
        match (&self.push_to, self.push) {
            (Some(url), _) => remote_of(url, self.allow_file_clone).map(Some),
            (None, true) => Ok(Some(origin.remote().clone())),
            (None, false) => Ok(None),
        }
    }

    /// The directory that is copied: one of the host's, a clone, or an empty one.
    pub(super) fn source(
        &self,
        place: &RunReservation,
        clone_for: &CloneFor<'_>,
        is_canceled: &dyn Fn() -> bool,
    ) -> Result<(HostPath, Option<PushDestination>), CliError> {
        let CloneFor { origin, config, agent, model } = *clone_for;
        if let Some(path) = &self.workspace_copy {
            return Ok((sandbox_args::directory(path)?, None));
        }
        let (source, mut way) = (place.make_source()?, None);
        if let Some(origin) = origin {
            let (state, reach) = (state::open(), self.remote.reach(config)?);
            let mut base = clone(&CloneParams {
                origin,
                rules: &reach.rules,
                names: NameSource::of_system(),
                folder: &HostClone::folder_in_run(&state.run_folder(place.run_id())),
                directory: &source,
                depth: None,
                tells_origin: false,
                branch: &format!("sandbox/{}", place.run_id()),
                run_id: Some(place.run_id()),
                env: &HostEnv::of_process(),
                state: state.path(),
                is_canceled,
            })?;
            base.worked_on_by(agent, model)?;
            way = self.pushed(origin)?.map(|remote| PushDestination { remote, reach });
        }
        Ok((HostPath::resolve(source)?, way))
    }

    /// Applies, pushes, keeps or discards what the agent did. A person may be asked if one reads along.
    pub(super) fn settle(
        &self,
        folder: RunFolder,
        (succeeded, asks): (bool, bool),
        way: Option<PushDestination>,
    ) -> Result<AgentChangesOutcome, CliError> {
        let fate = self.fate.settle(folder, RunEnd { succeeded, asks, shows: false, keeps_run: false })?;
        let settled = AgentChangesOutcome { kept_in: None, push: None, fate };
        match (&settled.fate.kept, way.filter(|_| succeeded)) {
            (Some(kept), Some(way)) if kept.own_source().is_some() => self.push(settled, way, asks),
            // A directory of the run's own is kept as a whole tree, with the changes in it.
            (Some(kept), None) if self.fate.keeps() && kept.own_source().is_some() => settled.lay_out(),
            _ => Ok(settled.kept()),
        }
    }

    /// Pushes kept changes. Should this process be killed on the way, `belljar git push` finds all that it takes.
    fn push(
        &self,
        settled: AgentChangesOutcome,
        way: PushDestination,
        asks: bool,
    ) -> Result<AgentChangesOutcome, CliError> {
        let PushDestination { remote, reach } = way;
        let mut settled = settled.lay_out()?;
        let Some(kept) = settled.fate.kept.take() else { return Ok(settled) };
        let base = base_of(&kept)?;
        let push = PushContext { base: &base, remote, reach: &reach, trust: self.fate.trust.trust(), asks };
        let outcome = self.words.push(push)?;
        if outcome.is_done() && outcome.has_left_out() {
            let fate = RunChangesOutcome::of(ChangesState::Pushed, Some(kept));
            return Ok(AgentChangesOutcome { fate, push: Some(outcome), ..settled });
        }
        if outcome.is_done() {
            kept.remove()?;
            let fate = RunChangesOutcome::of(ChangesState::Pushed, None);
            return Ok(AgentChangesOutcome { fate, push: Some(outcome), kept_in: None });
        }
        settled.fate.kept = Some(kept);
        settled.push = Some(outcome);
        Ok(settled)
    }
}

// === impl AgentChangesOutcome ===

impl AgentChangesOutcome {
    /// Of a run that was refused.
    pub(super) fn nothing() -> Self {
        Self { fate: RunChangesOutcome::of(ChangesState::None, None), push: None, kept_in: None }
    }

    /// Names the folder in which the changes are kept.
    fn kept(self) -> Self {
        let kept_in = self.fate.kept.as_ref().map(|kept| kept.path().to_owned());
        Self { kept_in, ..self }
    }

    /// Writes the changes into the run's own directory, and names that.
    fn lay_out(mut self) -> Result<Self, CliError> {
        self.kept_in = self.fate.kept.as_mut().map(KeptChangeSet::lay_out).transpose()?;
        Ok(self)
    }
}
