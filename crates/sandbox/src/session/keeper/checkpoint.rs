//! Undo of a session's changes in its copy, and the pause for a fork. [`super::review`] shows and commits them.
//!
//! During this time everything in the sandbox is paused and no program is started in it. That makes what is read and
//! written one consistent state. It is no wall: a hostile program may have found a way to go on.

use super::super::fork;
use super::super::protocol::{
    KeeperRequestMessage, KeeperResponse, PathApproval, Refusal, document, receive, send,
};
use super::command::RunningCommand;
use super::keeper_workspace::CommitBaseline;
use super::sandboxes::LiveSandboxes;
use super::{Keeper, lock};
use crate::backend::{BackendError, Sandbox, with_causes};
use crate::run::WorkspaceChoice;
use crate::state::StateError;
use crate::workspace::apply::ApplyError;
use crate::workspace::changes::{ChangeSet, ChangesError};
use crate::workspace::diff;
use crate::workspace::frozen::FreezeError;
use crate::workspace::live_workspace::CopyLayers;
use crate::workspace::relaxed_permissions::RelaxedPermissions;
use crate::workspace::undo;
use belljar_contract::result::WorkspaceChanges;
use belljar_files::directory::DirectoryError;
use belljar_policy::handoff::Finding;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use serde::Serialize;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Why something was not done with a session's workspace.
#[derive(Debug, thiserror::Error)]
pub(super) enum CheckpointError {
    #[error(transparent)]
    Refused(#[from] Refusal),
    #[error(transparent)]
    Backend(#[from] BackendError),
    #[error(transparent)]
    Changes(#[from] ChangesError),
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    #[error(transparent)]
    Freeze(#[from] FreezeError),
    #[error(transparent)]
    Apply(ApplyError),
    #[error("cannot record the commit in progress")]
    Note(#[source] std::io::Error),
    #[error(transparent)]
    State(#[from] StateError),
    /// A program went on, or it is nothing that can be made.
    #[error("some paths were not restored: {}", shown(.paths))]
    Left { paths: Vec<PathBuf> },
}

/// Maximum time for a fork to copy its initial state.
const LONGEST_HOLD: Timespec = Timespec { tv_sec: 120, tv_nsec: 0 };

/// Maximum number of paths named in a message.
const MOST_NAMED: usize = 20;

/// Pause of everything in all sandboxes, for as long as it lives.
pub(super) struct PausedSandboxes<'a>(Vec<&'a dyn Sandbox>);

// === impl Keeper ===

impl Keeper {
    /// Sends the result to a caller.
    pub(super) fn tell<T: Serialize>(
        &self,
        caller: &OwnedFd,
        work: impl FnOnce() -> Result<T, CheckpointError>,
    ) {
        let _running = RunningCommand::begin(&self.activity);
        let told = work().and_then(|told| document(&told).map_err(CheckpointError::Note));
        // A client that has hung up needs no answer.
        let _ = match told {
            Ok(document) => send(caller.as_fd(), &KeeperResponse::Document, &[document]),
            Err(error) => send(caller.as_fd(), &answer_of(error), &[]),
        };
    }

    pub(super) fn discard(
        &self,
        paths: &[Vec<u8>],
        forced: bool,
    ) -> Result<WorkspaceChanges, CheckpointError> {
        let paths = paths.iter().map(|path| in_workspace(path)).collect::<Result<Vec<_>, _>>()?;
        let mut measure = lock(&self.measure);
        let (standing, ground) = (self.standing()?, self.ground());
        let (workspace, layers) = ground.copy(&standing)?;
        let processes = standing.stats()?.processes;
        if processes > 0 && !forced {
            let commands = lock(&self.activity).commands.clone();
            return Err(Refusal::Busy { processes, commands }.into());
        }
        let _still = PausedSandboxes::bring_about(&standing)?;
        let set = read(&measure, layers)?;
        let chosen = undo::chosen(&set, &paths);
        let is_changed = |path: &&PathBuf| chosen.iter().any(|(changed, _)| changed.starts_with(path));
        if let Some(path) = paths.iter().find(|path| !is_changed(path)) {
            return Err(Refusal::Unchanged { path: path.display().to_string() }.into());
        }
        undo::undo(&chosen, workspace, layers)?;
        let left = read(&measure, layers)?;
        let left: BTreeSet<PathBuf> =
            undo::chosen(&left, &paths).into_iter().map(|(path, _)| path.to_owned()).collect();
        // Before anything counts as copied anew: a file that another program has put back meanwhile is still its work.
        measure.renew(layers, chosen.iter().map(|(path, _)| *path).filter(|path| !left.contains(*path)))?;
        self.renew_record(&measure);
        match left.is_empty() {
            true => Ok(diff::listed(chosen.into_iter())),
            false => Err(CheckpointError::Left { paths: left.into_iter().collect() }),
        }
    }

    /// Serves another session's keeper that makes a fork of this one.
    pub(super) fn fork(&self, caller: &OwnedFd) {
        self.tell(caller, || {
            let (standing, ground) = (self.standing()?, self.ground());
            if let WorkspaceChoice::Direct(path) = &ground.choice {
                let directory = path.as_path().display().to_string();
                return Err(Refusal::Shared { directory }.into());
            }
            ground.to_fork(&standing)?;
            Ok(fork::ForkOrigin { session: self.session.clone(), wanted: self.wanted.clone() })
        });
        let Ok(Some((KeeperRequestMessage::Hold, _))) = receive::<KeeperRequestMessage>(caller) else {
            return;
        };
        let _running = RunningCommand::begin(&self.activity);
        if let Err(error) = self.hold(caller) {
            let _ = send(caller.as_fd(), &answer_of(error), &[]);
        }
    }

    fn hold(&self, caller: &OwnedFd) -> Result<(), CheckpointError> {
        let measure = lock(&self.measure);
        let (standing, ground) = (self.standing()?, self.ground());
        let workspace = ground.to_fork(&standing)?;
        let begins_with = workspace.layers.as_ref().map_or(&workspace.shown, |layers| &layers.upper);
        let _still = PausedSandboxes::bring_about(&standing)?;
        let baseline = document(&measure.baseline).map_err(CheckpointError::Note)?;
        let descriptors = [begins_with.try_clone()?.into(), baseline];
        let reach = |errno: rustix::io::Errno| BackendError::Reach(errno.into());
        send(caller.as_fd(), &KeeperResponse::Held, &descriptors).map_err(reach)?;
        let mut called = [PollFd::new(caller, PollFlags::IN)];
        // A client that takes too long is told that the pause is over, and so has no fork.
        if matches!(poll(&mut called, Some(&LONGEST_HOLD)), Ok(1..))
            && let Ok(Some((KeeperRequestMessage::Release, _))) = receive::<KeeperRequestMessage>(caller)
        {
            let _ = send(caller.as_fd(), &KeeperResponse::Released, &[]);
        }
        Ok(())
    }

    /// Returns all live sandboxes, with none about to be destroyed; a session that is over has none.
    pub(super) fn standing(&self) -> Result<LiveSandboxes<'_>, BackendError> {
        match self.sandboxes.are_over() {
            true => Err(BackendError::Gone),
            false => Ok(self.sandboxes.settled()),
        }
    }
}

// === impl PausedSandboxes ===

impl<'a> PausedSandboxes<'a> {
    pub(super) fn bring_about(standing: &'a LiveSandboxes<'_>) -> Result<Self, BackendError> {
        let mut still = Self(Vec::new());
        for (sandbox, stats) in standing.each_with_stats() {
            // Where nothing runs, nothing has to be stopped: no program is started meanwhile.
            if stats?.processes > 0 {
                still.0.push(sandbox);
                sandbox.pause()?;
            }
        }
        Ok(still)
    }
}

impl Drop for PausedSandboxes<'_> {
    fn drop(&mut self) {
        for sandbox in &self.0 {
            // One that can't be reached is over.
            let _ = sandbox.resume();
        }
    }
}

// === impl CheckpointError ===

impl From<ApplyError> for CheckpointError {
    fn from(error: ApplyError) -> Self {
        match error {
            ApplyError::Conflict { paths } => {
                let (paths, further) = named_paths(paths.iter().map(PathBuf::as_path));
                Self::Refused(Refusal::Conflict { paths, further })
            }
            ApplyError::Overtaken { paths } => {
                let (paths, further) = named_paths(paths.iter().map(PathBuf::as_path));
                Self::Refused(Refusal::Partly { paths, further })
            }
            ApplyError::Handoff { findings } => {
                let asking = named(&findings);
                Self::Refused(Refusal::Handoff { further: findings.len() - asking.len(), asking })
            }
            other => Self::Apply(other),
        }
    }
}

/// Returns as many findings as a message has room for, however their paths are escaped.
pub(super) fn named(findings: &[Finding]) -> Vec<PathApproval> {
    const ROOM: usize = 96 << 10;
    let mut left = ROOM;
    let fits = |finding: &&Finding| {
        let fits = left.checked_sub(finding.path.len() * 6 + 256);
        left = fits.unwrap_or_default();
        fits.is_some()
    };
    findings.iter().take_while(fits).map(PathApproval::of).collect()
}

/// The changes, with every permission as it was again.
pub(super) fn read(measure: &CommitBaseline, layers: &CopyLayers) -> Result<ChangeSet, ChangesError> {
    let mut opened = RelaxedPermissions::in_tree(&layers.upper);
    measure.read(layers, &mut opened)
}

pub(super) fn answer_of(error: CheckpointError) -> KeeperResponse {
    match error {
        CheckpointError::Refused(refusal) => KeeperResponse::Refused(refusal),
        error => KeeperResponse::Failed { message: with_causes(&error) },
    }
}

/// Returns some of the paths as text, and the number of the further ones.
pub(super) fn named_paths<'p>(paths: impl ExactSizeIterator<Item = &'p Path>) -> (Vec<String>, usize) {
    let further = paths.len().saturating_sub(MOST_NAMED);
    (paths.take(MOST_NAMED).map(|path| path.display().to_string()).collect(), further)
}

/// A path of the workspace, relative to it.
fn in_workspace(path: &[u8]) -> Result<PathBuf, Refusal> {
    let path = Path::new(OsStr::from_bytes(path));
    let outside = || Refusal::Outside { path: path.display().to_string() };
    let relative =
        if path.is_absolute() { path.strip_prefix("/workspace").map_err(|_| outside())? } else { path };
    relative
        .components()
        .filter(|component| *component != Component::CurDir)
        .map(|component| match component {
            Component::Normal(name) => Ok(name),
            _ => Err(outside()),
        })
        .collect()
}

fn shown(paths: &[PathBuf]) -> String {
    let named: Vec<_> = paths.iter().take(MOST_NAMED).map(|path| path.display().to_string()).collect();
    named.join(", ")
}
