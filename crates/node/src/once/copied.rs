//! The copy that a program works on, and what it has changed there.

use super::messages::{self, MESSAGES};
use super::{OnceError, PlaceError};
use belljar_confine::plan::{HostPath, Identity};
use belljar_sandbox::directory::{Directory, DirectoryError};
use belljar_sandbox::run::Changes;
use belljar_sandbox::workspace::changes::ChangeSet;
use belljar_sandbox::workspace::imprint::Imprint;
use std::path::Path;
use std::time::SystemTime;

/// A copy of a directory, and the directory, held: whatever comes to their names, these are what was meant.
pub(super) struct Copied {
    source: Directory,
    /// Where changes are: a layer over the source, or the whole of the copy.
    changed: Directory,
    /// What the whole of a copy was before anything ran.
    imprint: Option<Imprint>,
}

// === impl Copied ===

impl Copied {
    /// One of which only the changes are kept.
    pub(super) fn as_layer(source: &HostPath, upper: &HostPath) -> Result<Self, DirectoryError> {
        let (source, changed) = (Directory::open_meant(source)?, Directory::open_meant(upper)?);
        Ok(Self { source, changed, imprint: None })
    }

    /// One that shares nothing with its source, when it was made.
    pub(super) fn as_whole(source: &HostPath, copy: &Directory) -> Result<Self, DirectoryError> {
        Ok(Self { source: Directory::open_meant(source)?, changed: copy.try_clone()?, imprint: None })
    }

    /// Notes what it was then.
    pub(super) fn was(self, imprint: Option<&Imprint>) -> Self {
        Self { imprint: imprint.cloned(), ..self }
    }

    /// Puts there what the program is told.
    pub(super) fn tell(&self, messages: &[u8], owner: Identity) -> Result<(), PlaceError> {
        let mode = self.changed.stat_itself()?.st_mode & 0o777;
        // All of a copy may be closed even to its owner, as its source is.
        self.changed.open_up()?;
        messages::place(messages, (&self.source, &self.changed), owner)?;
        Ok(self.changed.set_mode(mode)?)
    }

    /// What was changed, without what the host has put there.
    pub(super) fn changes(self, messages: Option<&[u8]>, since: SystemTime) -> Result<Changes, OnceError> {
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
        Ok(Changes { set, source, upper: changed, since })
    }
}
