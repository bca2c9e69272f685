//! What programs ask the supervisor, because their filter has them ask ([`crate::seccomp::policy::forks`],
//! [`crate::seccomp::policy::metadata`]).

use super::Place;
use super::metadata::Metadata;
use crate::kernel::ask;
use crate::seccomp::policy::forks::is_fork;
use crate::walls::Fault;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};

/// The questions of one sandbox. As long as none is answered, nobody there gets a descendant.
pub(super) struct Questions {
    listener: OwnedFd,
    metadata: Metadata,
}

// === impl Questions ===

impl Questions {
    /// Those that come in at `listener`; `own` are the sandbox's directories.
    pub(super) fn new(listener: OwnedFd, own: &[Place]) -> Result<Self, Fault> {
        Ok(Self { listener, metadata: Metadata::new(own)? })
    }

    /// Where they come in.
    pub(super) fn listener(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }

    /// Answers one.
    pub(super) fn answer_one(&self) {
        // Whoever asked may be gone already.
        let Ok(question) = ask::take_question(self.listener()) else { return };
        match is_fork(question.number) {
            true => ask::let_happen(self.listener(), question.id),
            false => self.metadata.answer(self.listener(), &question),
        }
    }
}
