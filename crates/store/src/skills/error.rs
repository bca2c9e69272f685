//! Errors of storing and changing skills.

use super::LONGEST_CONTENT;
use crate::database::DatabaseError;
use crate::edit::VersionConflict;
use belljar_contract::id::SkillId;
use belljar_contract::label::Label;
use belljar_policy::skill::SkillRejection;

/// A skill is not stored, or not changed.
#[derive(Debug, thiserror::Error)]
pub enum SkillError {
    /// There is no skill with that id, or none that is visible to the caller.
    #[error("there is no skill {id}")]
    Missing {
        /// The id.
        id: SkillId,
    },
    /// The id is taken, or the scope has a skill of that name.
    #[error("there is a skill {name} already")]
    Exists {
        /// The name.
        name: Label,
    },
    /// The skill was changed meanwhile.
    #[error(transparent)]
    Version(#[from] VersionConflict),
    /// The content scan has found something forbidden.
    #[error(transparent)]
    Rejected(#[from] SkillRejection),
    /// The content is too large.
    #[error("{size_bytes} bytes are too many: a skill has at most {LONGEST_CONTENT}")]
    TooLarge {
        /// Size of the content.
        size_bytes: u64,
    },
    /// The scope has the maximum number of skills.
    #[error("that scope has {most} skills, and no more may be there")]
    TooMany {
        /// Maximum number.
        most: u64,
    },
    /// The database has failed.
    #[error(transparent)]
    Database(#[from] DatabaseError),
}
