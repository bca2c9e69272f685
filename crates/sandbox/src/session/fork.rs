//! Forks: sessions whose workspace begins as another's is at that moment.
//!
//! ```text
//! keeper of the fork ── Fork ─────► keeper of the first
//!                    ◄── Document ──┤  what its sandbox was asked to be
//!                    ── Hold ──────►
//!                    ◄── Held ──────┤  stands still
//!   copies the layer ── Release ───►
//!                    ◄── Released ──┤  goes on
//! ```
//! The new folder belongs to the new keeper from the beginning. Whichever of the two dies on the way: there is no fork,
//! and what there was of it is cleared away like any leftover.

use super::client::{find, unexpected, unreachable};
use super::keeper::{
    CommitBaseline, HatchServer, KeeperError, PreparedSession, SessionWorkspace, look_after,
};
use super::protocol::{KeeperRequestMessage, KeeperResponse, read_document, receive, send};
use super::{Session, SessionError};
use crate::backend::{Backend, SandboxRequest};
use crate::native::NativeBackend;
use crate::run::WorkspaceChoice;
use crate::state::StateDirectory;
use crate::workspace::baseline::Baseline;
use crate::workspace::duplicate::duplicate;
use belljar_confine::launcher::Launcher;
use belljar_confine::plan::Identity;
use belljar_files::directory::Directory;
use jiff::Timestamp;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::sync::Arc;

/// Request for a fork.
#[derive(Debug)]
pub struct ForkRequest {
    /// State directory.
    pub state: StateDirectory,
    /// The id of the session to fork.
    pub origin: String,
    /// Name that the owner gives the new session.
    pub name: Option<String>,
}

/// Properties that a fork has in common with its origin.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ForkOrigin {
    pub(super) session: Session,
    pub(super) wanted: SandboxRequest,
}

/// Changes what a fork's sandbox is asked to be, which was what its origin's was asked to be.
pub type RequestAdapter<'a> =
    &'a dyn Fn(&Session, &mut SandboxRequest) -> Result<(), Box<dyn Error + Send + Sync>>;

/// Keeps the fork of a session until it is over, as [`super::keep`] does.
///
/// # Errors
/// [`KeeperError`] when there is no session.
pub fn keep_fork(
    forking: ForkRequest,
    (adapt, serve): (RequestAdapter<'_>, &HatchServer),
    ready: impl FnOnce(&Session),
) -> Result<(), KeeperError> {
    let ForkRequest { state, origin, name } = forking;
    let backend = NativeBackend::new(Arc::new(Launcher::start()?), state.clone());
    let socket = find(&state, &origin)?.call().map_err(unreachable)?;
    let ForkOrigin { session, mut wanted } = match ask(&socket, &KeeperRequestMessage::Fork)? {
        (KeeperResponse::Document, descriptors) => read_document(descriptors).map_err(unreachable)?,
        (other, _) => return Err(unexpected(Some(other)).into()),
    };
    adapt(&session, &mut wanted).map_err(KeeperError::Serve)?;
    let most_bytes = match wanted.workspace {
        WorkspaceChoice::Empty => wanted.provision.limits.scratch_bytes,
        _ => wanted.provision.limits.disk_bytes.unwrap_or(u64::MAX),
    };
    let mut baseline = None;
    let sandbox = backend.create_filled(wanted.clone(), &mut |to, owner| {
        baseline = Some(fill(&socket, to, owner, most_bytes)?);
        Ok(())
    })?;
    let baseline = baseline.ok_or_else(|| unreachable(Errno::PROTO))?;
    let forked_from = Some(session.id.clone());
    let session = Session { name, created_at: Timestamp::now(), forked_from, ..session };
    let (ground, measure) =
        (SessionWorkspace::of_sandbox(wanted.workspace.clone()), CommitBaseline::of_layer(baseline));
    look_after(PreparedSession { state, wanted, session, ground, measure }, sandbox, serve, ready)
}

/// Copies what the origin's workspace is now.
fn fill(
    socket: &OwnedFd,
    to: &Directory,
    owner: Identity,
    most_bytes: u64,
) -> Result<Baseline, Box<dyn Error + Send + Sync>> {
    let (from, baseline) = match ask(socket, &KeeperRequestMessage::Hold)? {
        (KeeperResponse::Held, mut descriptors) if descriptors.len() == 2 => {
            let baseline = read_document(descriptors.split_off(1)).map_err(unreachable)?;
            (descriptors.pop().map(Directory::from).ok_or(Errno::BADMSG)?, baseline)
        }
        (other, _) => return Err(unexpected(Some(other)).into()),
    };
    duplicate(&from, to, owner, most_bytes)?;
    match ask(socket, &KeeperRequestMessage::Release)? {
        (KeeperResponse::Released, _) => Ok(baseline),
        (other, _) => Err(unexpected(Some(other)).into()),
    }
}

fn ask(socket: &OwnedFd, ask: &KeeperRequestMessage) -> Result<(KeeperResponse, Vec<OwnedFd>), SessionError> {
    send(socket.as_fd(), ask, &[]).map_err(unreachable)?;
    receive(socket).map_err(unreachable)?.ok_or_else(|| unexpected(None))
}
