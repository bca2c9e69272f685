//! The copy of a workspace that a program works on, and its changes.

use super::messages::{self, MESSAGES};
use super::{OnceError, WriteMessagesError};
use belljar_confine::plan::Identity;
use belljar_files::directory::{Directory, DirectoryError};
use belljar_files::host_path::HostPath;
use belljar_sandbox::run::PendingChanges;
use belljar_sandbox::workspace::changes::ChangeSet;
use belljar_sandbox::workspace::imprint::Imprint;
use std::path::Path;
use std::time::SystemTime;

/// A source directory and its copy, both held by descriptor: replacing their names has no effect.
pub(super) struct CopiedDirectory {
    source: Directory,
    /// Directory with the changes: the upper layer of an overlay on the source, or a full copy.
    changed: Directory,
    /// Imprint of a full copy before anything ran.
    imprint: Option<Imprint>,
}

// === impl CopiedDirectory ===

impl CopiedDirectory {
    /// Opens a copy that is an overlay; only changes are stored.
    pub(super) fn as_layer(source: &HostPath, upper: &HostPath) -> Result<Self, DirectoryError> {
        let (source, changed) = (Directory::open_meant(source)?, Directory::open_meant(upper)?);
        Ok(Self { source, changed, imprint: None })
    }

    /// Opens a full copy.
    pub(super) fn as_whole(source: &HostPath, copy: &Directory) -> Result<Self, DirectoryError> {
        Ok(Self { source: Directory::open_meant(source)?, changed: copy.try_clone()?, imprint: None })
    }

    /// Sets the imprint of a full copy.
    pub(super) fn was(self, imprint: Option<&Imprint>) -> Self {
        Self { imprint: imprint.cloned(), ..self }
    }

    /// Writes the agent's messages into the copy.
    pub(super) fn tell(&self, messages: &[u8], owner: Identity) -> Result<(), WriteMessagesError> {
        let mode = self.changed.stat_itself()?.st_mode & 0o777;
        // The copy may have the mode of its source, which may exclude even its owner.
        self.changed.open_up()?;
        messages::place(messages, (&self.source, &self.changed), owner)?;
        Ok(self.changed.set_mode(mode)?)
    }

    /// Returns the changes, without files that the host has written.
    pub(super) fn changes(
        self,
        messages: Option<&[u8]>,
        since: SystemTime,
    ) -> Result<PendingChanges, OnceError> {
        let Self { source, changed, imprint } = self;
        let mut set = match imprint {
            None => ChangeSet::read(&source, &changed)?,
            Some(imprint) => ChangeSet::read_copy(&source, &changed, &imprint)?,
        };
        if let Some(messages) = messages
            && messages::is_untouched(messages, &changed)?
        {
            set.leave_out(Path::new(MESSAGES));
        }
        Ok(PendingChanges { set, source, upper: changed, since })
    }
}
