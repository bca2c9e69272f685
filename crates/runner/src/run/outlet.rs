//! Destination of a result.

use crate::invocation::Transport;
use crate::log::Log;
use crate::result_file::{ResultFile, ResultFileError};
use crate::status::StatusLine;
use belljar_contract::result::JobResult;
use belljar_contract::text::with_causes;
use rustix::fs::{FileType, OFlags};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

/// Destination of this run's result.
pub(super) enum Outlet {
    /// Into a file.
    File(ResultFile),
    /// To stdout.
    Stdout,
}

// === impl Outlet ===

impl Outlet {
    /// Checks, as far as possible beforehand, that a result can be written.
    pub(super) fn open(transport: &Transport) -> Result<Self, ResultFileError> {
        match transport {
            Transport::Files { result, .. } => ResultFile::prepare(result).map(Self::File),
            Transport::Stdio => Ok(Self::Stdout),
        }
    }

    /// Writes the result, shortened if necessary, reports it to the host, and returns the exit code. The code tells how
    /// the job ended only if the result was written or the host has it. As a last resort, the result goes to the log.
    pub(super) fn deliver(self, result: &mut JobResult, status: &StatusLine, log: &Log<'_>) -> ExitCode {
        let written = match self {
            Self::File(file) => file.publish(result).map_err(|error| with_causes(&error)),
            Self::Stdout => print(result).map_err(|error| format!("cannot write to stdout: {error}")),
        };
        let is_told = status.finish(result, written.is_ok(), log);
        match written {
            Ok(()) => ExitCode::from(result.exit_code()),
            Err(trouble) if is_told => {
                log.warn(format!(
                    "cannot write the result file, but the host has received the result: {trouble}"
                ));
                ExitCode::from(result.exit_code())
            }
            Err(trouble) => {
                log.warn(format!(
                    "cannot write the result file, so the result follows in this log: {trouble}"
                ));
                log.write_result(result);
                ExitCode::from(result.exit_code().max(1))
            }
        }
    }
}

/// Prints the result. If stdout is a file without space for all of it, the partial output is removed.
fn print(result: &JobResult) -> io::Result<()> {
    let start = start_in_file();
    let printed = write(result);
    if let (Err(_), Some(start)) = (&printed, start) {
        rustix::fs::ftruncate(rustix::stdio::stdout(), start)?;
    }
    printed
}

/// Returns the offset at which stdout begins to write; `None` if it is no file.
fn start_in_file() -> Option<u64> {
    let stdout = rustix::stdio::stdout();
    let stat = rustix::fs::fstat(stdout).ok()?;
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    let size = u64::try_from(stat.st_size).ok().filter(|_| is_file)?;
    let is_appended = rustix::fs::fcntl_getfl(stdout).ok()?.contains(OFlags::APPEND);
    let position = rustix::fs::tell(stdout).ok()?;
    // Content after this position would be cut off, too: then the partial output stays.
    if is_appended { Some(size) } else { Some(position).filter(|position| *position == size) }
}

/// Bypasses the standard library's buffer, which would write its content again when the process ends.
fn write(result: &JobResult) -> io::Result<()> {
    let stdout = rustix::stdio::stdout().try_clone_to_owned()?;
    let mut writer = BufWriter::new(File::from(stdout));
    serde_json::to_writer(&mut writer, result)?;
    writer.write_all(b"\n")?;
    writer.flush()
}
