//! What an agent works on, and what becomes of what it did.

use crate::error::CliError;
use crate::git::RemoteArguments;
use crate::{lending, state};
use belljar_confine::plan::HostPath;
use belljar_egress::upstream::names::NameSource;
use belljar_node::clone::{Cloning, Origin, clone};
use belljar_node::git::{Base, HostEnv};
use belljar_node::once::{OnceResult, Place};
use belljar_sandbox::workspace::apply::apply;
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
}

// === impl WorkspaceArguments ===

impl WorkspaceArguments {
    /// What is to be cloned, if anything is.
    pub(super) fn origin(&self) -> Result<Option<Origin>, CliError> {
        let origin = self.clone.as_deref().map(|text| Origin::parse(text, self.allow_file_clone));
        origin.transpose().map_err(|error| CliError::usage(error.to_string()))
    }

    /// The directory that is copied: one of the host's, a clone, or an empty one.
    pub(super) fn source(
        &self,
        (origin, config): (Option<&Origin>, Option<&Path>),
        place: &Place,
        is_canceled: &dyn Fn() -> bool,
    ) -> Result<HostPath, CliError> {
        if let Some(path) = &self.workspace_copy {
            return lending::directory(path);
        }
        let source = place.make_source()?;
        if let Some(origin) = origin {
            let (state, rules) = (state::open(), self.remote.rules(config)?);
            clone(&Cloning {
                origin,
                rules: &rules,
                names: NameSource::of_system(),
                folder: &Base::folder_in_run(&state.run_folder(place.run_id())),
                directory: &source,
                branch: &format!("sandbox/{}", place.run_id()),
                run_id: Some(place.run_id()),
                env: &HostEnv::of_process(),
                state: state.path(),
                is_canceled,
            })?;
        }
        Ok(HostPath::resolve(source)?)
    }

    /// Applies, keeps or throws away what the agent did.
    pub(super) fn settle(&self, result: OnceResult, succeeded: bool) -> Result<Fate, CliError> {
        let OnceResult { changes, mut folder, .. } = result;
        let Some(changes) = changes.filter(|changes| !changes.set.is_empty()) else {
            folder.remove()?;
            return Ok(Fate::Nothing);
        };
        if self.apply && succeeded {
            apply(&changes.set, &changes.upper, &changes.source, changes.since)?;
            folder.remove()?;
            return Ok(Fate::Applied);
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
        apply(&changes.set, &changes.upper, &changes.source, changes.since)?;
        Ok(Fate::Kept(folder.path().join("source")))
    }
}
