//! What an agent works on, and what becomes of what it did.

use crate::command::git::outcome::Outcome;
use crate::command::git::push::{Push, WordArguments};
use crate::command::git::remote_of;
use crate::error::CliError;
use crate::git::{Reach, RemoteArguments};
use crate::handoff::TrustArguments;
use crate::{lending, state};
use belljar_confine::plan::HostPath;
use belljar_egress::upstream::names::NameSource;
use belljar_node::clone::{Cloning, Origin, clone};
use belljar_node::git::{Base, HostEnv};
use belljar_node::once::{OnceResult, Place};
use belljar_policy::git::Remote;
use belljar_policy::handoff::Trust;
use belljar_sandbox::run::Changes;
use belljar_sandbox::state::RunFolder;
use belljar_sandbox::workspace::apply::{ApplyError, apply};
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
    words: WordArguments,
    #[command(flatten)]
    trust: TrustArguments,
    #[command(flatten)]
    remote: RemoteArguments,
    /// Keep the changes
    #[arg(long)]
    keep: bool,
    /// Apply the changes to the workspace that was copied, if the agent succeeds
    #[arg(long, requires = "workspace_copy")]
    apply: bool,
}

/// What became of an agent's changes.
#[derive(Debug)]
pub(super) enum Fate {
    /// There were none.
    Nothing,
    Applied,
    /// They are in this folder.
    Kept(PathBuf),
    ThrownAway,
    /// They are a branch.
    Pushed(Outcome),
    /// They are none, and in this folder.
    NotPushed(Outcome, PathBuf),
}

/// What is to be pushed in the end.
pub(super) struct Way {
    base: Base,
    remote: Remote,
    reach: Reach,
}

// === impl WorkspaceArguments ===

impl WorkspaceArguments {
    /// What is to be cloned, if anything is. Where it is to be pushed is checked before anything runs.
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
        origin: Option<&Origin>,
        (place, config, worker): (&Place, Option<&Path>, (&str, &str)),
        is_canceled: &dyn Fn() -> bool,
    ) -> Result<(HostPath, Option<Way>), CliError> {
        if let Some(path) = &self.workspace_copy {
            return Ok((lending::directory(path)?, None));
        }
        let (source, mut way) = (place.make_source()?, None);
        if let Some(origin) = origin {
            let (state, reach) = (state::open(), self.remote.reach(config)?);
            let mut base = clone(&Cloning {
                origin,
                rules: &reach.rules,
                names: NameSource::of_system(),
                folder: &Base::folder_in_run(&state.run_folder(place.run_id())),
                directory: &source,
                depth: None,
                tells_origin: false,
                branch: &format!("sandbox/{}", place.run_id()),
                run_id: Some(place.run_id()),
                env: &HostEnv::of_process(),
                state: state.path(),
                is_canceled,
            })?;
            base.worked_on_by(worker.0, worker.1)?;
            way = self.pushed(origin)?.map(|remote| Way { base, remote, reach });
        }
        Ok((HostPath::resolve(source)?, way))
    }

    /// Applies, pushes, keeps or throws away what the agent did. A person may be asked where somebody reads along.
    pub(super) fn settle(
        &self,
        result: OnceResult,
        (succeeded, asks): (bool, bool),
        way: Option<Way>,
    ) -> Result<Fate, CliError> {
        let OnceResult { changes, mut folder, .. } = result;
        let Some(changes) = changes.filter(|changes| !changes.set.is_empty()) else {
            folder.remove()?;
            return Ok(Fate::Nothing);
        };
        if self.apply && succeeded {
            let Changes { set, source, upper, since } = &changes;
            let applied = self.trust.with_yes(|trust| Ok(apply(set, upper, source, *since, trust)?));
            if matches!(applied, Err(CliError::Apply(ApplyError::Handoff { .. }))) {
                // It takes a yes, and so is not lost.
                folder.keep()?;
                crate::output::errln!("The changes are kept in {}", crate::output::path(folder.path()));
            }
            applied?;
            folder.remove()?;
            return Ok(Fate::Applied);
        }
        if let Some(way) = way.filter(|_| succeeded) {
            // Should this process be killed on the way, `belljar git push` finds all that it takes.
            folder.keep()?;
            apply(&changes.set, &changes.upper, &changes.source, changes.since, &Trust::in_all())?;
            return self.push(way, folder, asks);
        }
        if !self.keep {
            folder.remove()?;
            return Ok(Fate::ThrownAway);
        }
        folder.keep()?;
        if self.workspace_copy.is_some() {
            return Ok(Fate::Kept(folder.path().to_owned()));
        }
        // Nobody else has the directory: what is kept is the whole of it, with the changes in it.
        apply(&changes.set, &changes.upper, &changes.source, changes.since, &Trust::in_all())?;
        Ok(Fate::Kept(folder.path().join("source")))
    }

    fn push(&self, way: Way, folder: RunFolder, asks: bool) -> Result<Fate, CliError> {
        let Way { base, remote, reach } = way;
        let push = Push { base: &base, remote, reach: &reach, trust: self.trust.trust(), asks };
        let outcome = self.words.push(push)?;
        match outcome.is_done() {
            true => {
                folder.remove()?;
                Ok(Fate::Pushed(outcome))
            }
            false => Ok(Fate::NotPushed(outcome, folder.path().join("source"))),
        }
    }
}
