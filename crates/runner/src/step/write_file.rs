//! `write_file`: the whole content of one file, atomically.
//!
//! Without fsync, because the workspace need not survive a crash.

use super::StepContext;
use crate::directory::{PathError, Replacement};
use crate::failure_code::Fault;
use belljar_contract::failure::FailureCode;
use belljar_contract::job::step::write_file::{FileMode, WriteFile};
use belljar_contract::result::output::{StepOutput, WrittenFile};
use belljar_policy::admission::AdmissionDenial;
use std::path::Path;

/// Reason why nothing was written.
#[derive(Debug, thiserror::Error)]
pub(super) enum WriteFileError {
    #[error(transparent)]
    Denied(#[from] AdmissionDenial),
    #[error(transparent)]
    Path(#[from] PathError),
}

pub(super) fn carry_out(
    write: &WriteFile,
    surroundings: &StepContext<'_>,
) -> Result<StepOutput, WriteFileError> {
    let path = surroundings.resolve(Some(&write.path))?;
    let replacement = Replacement {
        content: &write.content,
        mode: write.mode.map(FileMode::bits),
        create_parents: write.create_parents,
        overwrite: write.overwrite && surroundings.admitted.may_overwrite(),
    };
    let written = match surroundings.workspace.replace_file(Path::new(path.as_str()), &replacement) {
        Err(PathError::Exists { .. }) if write.overwrite => {
            return Err(AdmissionDenial::OverwriteNotAllowed { path }.into());
        }
        written => written?,
    };
    Ok(StepOutput::WriteFile(WrittenFile {
        path: path.to_string(),
        size_bytes: u64::try_from(write.content.len()).unwrap_or(u64::MAX),
        created: written.created,
        mode: format!("{:04o}", written.mode),
    }))
}

// === impl WriteFileError ===

impl Fault for WriteFileError {
    fn code(&self) -> FailureCode {
        match self {
            Self::Denied(denied) => denied.code(),
            Self::Path(error) => error.code(),
        }
    }
}
