//! `read_file`: the content of one file, or some lines of it, up to a limit.
//!
//! The step's own `max_bytes` truncates, and the result is flagged. If the job's `max_output_bytes` truncates, the job
//! has violated a constraint; what was read is returned nevertheless.

use super::{StepContext, StepOutcome, too_much_output};
use crate::content::Content;
use crate::deadline::{Deadline, Interruption};
use crate::directory::{PathError, RegularFile};
use crate::failure_code::{Fault, code_of_io};
use belljar_contract::failure::FailureCode;
use belljar_contract::job::step::read_file::ReadFile;
use belljar_contract::path::WorkspacePath;
use belljar_contract::result::output::{FileContent, StepOutput};
use belljar_policy::admission::AdmissionDenial;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// Reason why nothing was read.
#[derive(Debug, thiserror::Error)]
enum ReadFileError {
    #[error(transparent)]
    Denied(#[from] AdmissionDenial),
    #[error(transparent)]
    Path(#[from] PathError),
    #[error("cannot read {path}")]
    Read {
        path: WorkspacePath,
        #[source]
        source: io::Error,
    },
    #[error(transparent)]
    Interrupted(#[from] Interruption),
}

/// Requested lines, counted from 1, and their maximum number of bytes.
struct LineSelection {
    first_line: u64,
    last_line: u64,
    cap: usize,
}

/// Selected part of the file, as far as it fits.
struct SelectedBytes {
    bytes: Vec<u8>,
    truncated: bool,
}

const BUFFER_BYTES: usize = 256 << 10;

pub(super) fn carry_out(
    read: &ReadFile,
    surroundings: &StepContext<'_>,
    deadline: &Deadline<'_>,
) -> StepOutcome {
    let job_cap = surroundings.max_output();
    let own_cap = read.max_bytes.map(|cap| usize::try_from(cap).unwrap_or(usize::MAX));
    let cap = own_cap.map_or(job_cap, |own| own.min(job_cap));
    match read_up_to(cap, read, surroundings, deadline) {
        Ok(content) => {
            let violated = content.truncated && own_cap.is_none_or(|own| own > job_cap);
            let failure = violated.then(|| too_much_output(&content.path, job_cap));
            StepOutcome { failure, ..StepOutcome::well(StepOutput::ReadFile(content)) }
        }
        Err(error) => StepOutcome::failed(error.failure()),
    }
}

fn read_up_to(
    cap: usize,
    read: &ReadFile,
    surroundings: &StepContext<'_>,
    deadline: &Deadline<'_>,
) -> Result<FileContent, ReadFileError> {
    let path = surroundings.resolve(Some(&read.path))?;
    let RegularFile { mut file, size_bytes } = surroundings.workspace.open_file(Path::new(path.as_str()))?;
    let wanted = LineSelection {
        first_line: read.start_line.map_or(1, u64::from),
        last_line: read.end_line.map_or(u64::MAX, u64::from),
        cap,
    };
    let selection =
        wanted.select(&mut file, deadline, |source| ReadFileError::Read { path: path.clone(), source })?;
    let content = match selection.truncated {
        true => Content::cut(selection.bytes),
        false => Content::whole(selection.bytes),
    };
    Ok(FileContent {
        path: path.to_string(),
        content: content.text,
        encoding: content.encoding,
        size_bytes,
        truncated: selection.truncated,
    })
}

// === impl LineSelection ===

impl LineSelection {
    fn select(
        &self,
        file: &mut File,
        deadline: &Deadline<'_>,
        describe: impl Fn(io::Error) -> ReadFileError,
    ) -> Result<SelectedBytes, ReadFileError> {
        let mut selection = SelectedBytes { bytes: Vec::new(), truncated: false };
        let mut line = 1;
        let mut buffer = vec![0; BUFFER_BYTES];
        while line <= self.last_line && !selection.truncated {
            deadline.check()?;
            let read = match file.read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(describe(error)),
            };
            let mut rest = &buffer[..read];
            while !rest.is_empty() && line <= self.last_line && !selection.truncated {
                let (piece, behind) = self.next_piece(rest, &mut line);
                selection.take(piece, self.cap);
                rest = behind;
            }
        }
        Ok(selection)
    }

    /// Splits off the next piece: skipped lines, or requested bytes. Advances `line`.
    fn next_piece<'b>(&self, rest: &'b [u8], line: &mut u64) -> (&'b [u8], &'b [u8]) {
        let is_wanted = *line >= self.first_line;
        // Without a last line there is no need to count once the first is reached.
        if is_wanted && self.last_line == u64::MAX {
            return (rest, &[]);
        }
        let end_of_line = rest.iter().position(|&byte| byte == b'\n');
        *line += u64::from(end_of_line.is_some());
        let (piece, behind) = rest.split_at(end_of_line.map_or(rest.len(), |at| at + 1));
        (if is_wanted { piece } else { &[] }, behind)
    }
}

// === impl SelectedBytes ===

impl SelectedBytes {
    fn take(&mut self, piece: &[u8], cap: usize) {
        let room = cap - self.bytes.len();
        self.bytes.extend_from_slice(&piece[..piece.len().min(room)]);
        self.truncated |= piece.len() > room;
    }
}

// === impl ReadFileError ===

impl Fault for ReadFileError {
    fn code(&self) -> FailureCode {
        match self {
            Self::Denied(denied) => denied.code(),
            Self::Path(error) => error.code(),
            Self::Read { source, .. } => code_of_io(source),
            Self::Interrupted(interrupted) => interrupted.code(),
        }
    }
}
