//! Why a skill is not kept, or not changed.

use super::LONGEST_CONTENT;
use crate::database::DatabaseError;
use crate::edit::VersionConflict;
use belljar_contract::id::SkillId;
use belljar_contract::label::Label;
use belljar_policy::skill::Rejection;

/// A skill is not kept, or not changed.
#[derive(Debug, thiserror::Error)]
pub enum SkillError {
    /// There is none of that id, or none that they see.
    #[error("there is no skill {id}")]
    Missing {
        /// The id.
        id: SkillId,
    },
    /// There is one of that id already, or one of that name in the same scope.
    #[error("there is a skill {name} already")]
    Exists {
        /// The name.
        name: Label,
    },
    /// It was changed meanwhile.
    #[error(transparent)]
    Version(#[from] VersionConflict),
    /// It has something in it that it must not.
    #[error(transparent)]
    Rejected(#[from] Rejection),
    /// It is too large.
    #[error("{size_bytes} bytes are too many: a skill has at most {LONGEST_CONTENT}")]
    TooLarge {
        /// How large it is.
        size_bytes: u64,
    },
    /// The scope has enough.
    #[error("that scope has {most} skills, and no more may be there")]
    TooMany {
        /// How many there may be.
        most: u64,
    },
    /// The database does not do what it should.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}
