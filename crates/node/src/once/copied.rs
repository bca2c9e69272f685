//! The copy that a program works on, and what it has changed there.

use super::messages::{self, MESSAGES};
use super::{OnceError, PlaceError};
use belljar_confine::plan::{HostPath, Identity};
use belljar_sandbox::directory::{Directory, DirectoryError};
use belljar_sandbox::run::Changes;
use belljar_sandbox::workspace::changes::ChangeSet;
use std::path::Path;
use std::time::SystemTime;

/// A copy of a directory, and the directory, held: whatever comes to their names, these are what was meant.
pub(super) struct Copied {
    source: Directory,
    /// Where changes are: a layer over the source, or the whole of the copy.
    changed: Directory,
    is_layer: bool,
}

// === impl Copied ===

impl Copied {
    /// One of which only the changes are kept.
    pub(super) fn as_layer(source: &HostPath, upper: &HostPath) -> Result<Self, DirectoryError> {
        let (source, changed) = (Directory::open_meant(source)?, Directory::open_meant(upper)?);
        Ok(Self { source, changed, is_layer: true })
    }

    /// One that shares nothing with its source.
    pub(super) fn as_whole(source: &HostPath, copy: &Directory) -> Result<Self, DirectoryError> {
        Ok(Self { source: Directory::open_meant(source)?, changed: copy.try_clone()?, is_layer: false })
    }

    /// Puts there what the program is told.
    pub(super) fn tell(&self, messages: &[u8], owner: Identity) -> Result<(), PlaceError> {
        messages::place(messages, (&self.source, &self.changed), owner)
    }

    /// What was changed, without what the host has put there.
    pub(super) fn changes(self, messages: Option<&[u8]>, since: SystemTime) -> Result<Changes, OnceError> {
        let Self { source, changed, is_layer } = self;
        let mut set = match is_layer {
            true => ChangeSet::read(&source, &changed)?,
            false => ChangeSet::read_copy(&source, &changed)?,
        };
        if let Some(messages) = messages
            && messages::is_untouched(messages, &changed)?
        {
            set.leave_out(Path::new(MESSAGES));
        }
        Ok(Changes { set, source, upper: changed, since })
    }
}
