//! Where a result goes.

use crate::fault::explain;
use crate::invocation::Transport;
use crate::log::Log;
use crate::result_file::{ResultFile, ResultFileError};
use crate::status::StatusLine;
use belljar_contract::result::JobResult;
use rustix::fs::{FileType, OFlags};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

/// Where the result of this run goes.
pub(super) enum Outlet {
    /// Into a file.
    File(ResultFile),
    /// To stdout.
    Stdout,
}

// === impl Outlet ===

impl Outlet {
    /// Makes sure, as far as one can beforehand, that a result can be written.
    pub(super) fn open(transport: &Transport) -> Result<Self, ResultFileError> {
        match transport {
            Transport::Files { result, .. } => ResultFile::prepare(result).map(Self::File),
            Transport::Stdio => Ok(Self::Stdout),
        }
    }

    /// Writes the result, which may have to be shortened for that, reports it to the host, and returns the exit code that goes with
    /// it: one that says how the job ended only where the result is written or the host has it. If it must be, it is in the log.
    pub(super) fn deliver(self, result: &mut JobResult, status: &StatusLine, log: &Log<'_>) -> ExitCode {
        let written = match self {
            Self::File(file) => file.publish(result).map_err(|error| explain(&error)),
            Self::Stdout => print(result).map_err(|error| format!("cannot write to stdout: {error}")),
        };
        let is_told = status.finish(result, written.is_ok(), log);
        match written {
            Ok(()) => ExitCode::from(result.exit_code()),
            Err(trouble) if is_told => {
                log.warn(format!(
                    "the result could not be put in its place, and the host has it all the same: {trouble}"
                ));
                ExitCode::from(result.exit_code())
            }
            Err(trouble) => {
                log.warn(format!("the result could not be put in its place, so it follows here: {trouble}"));
                log.write_result(result);
                ExitCode::from(result.exit_code().max(1))
            }
        }
    }
}

/// Prints the result. Where stdout is a file and has no room for all of it, nothing of it stays there.
fn print(result: &JobResult) -> io::Result<()> {
    let start = start_in_file();
    let printed = write(result);
    if let (Err(_), Some(start)) = (&printed, start) {
        rustix::fs::ftruncate(rustix::stdio::stdout(), start)?;
    }
    printed
}

/// Where in a file stdout begins to write; nothing where it is no file.
fn start_in_file() -> Option<u64> {
    let stdout = rustix::stdio::stdout();
    let stat = rustix::fs::fstat(stdout).ok()?;
    let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    let size = u64::try_from(stat.st_size).ok().filter(|_| is_file)?;
    let is_appended = rustix::fs::fcntl_getfl(stdout).ok()?.contains(OFlags::APPEND);
    let position = rustix::fs::tell(stdout).ok()?;
    // What stands behind would be cut off, too: then it stays as it is.
    if is_appended { Some(size) } else { Some(position).filter(|position| *position == size) }
}

/// Past the standard library's own buffer: what it holds it would write again when the process ends.
fn write(result: &JobResult) -> io::Result<()> {
    let stdout = rustix::stdio::stdout().try_clone_to_owned()?;
    let mut writer = BufWriter::new(File::from(stdout));
    serde_json::to_writer(&mut writer, result)?;
    writer.write_all(b"\n")?;
    writer.flush()
}
