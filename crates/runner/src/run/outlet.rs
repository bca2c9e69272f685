//! Where a result goes.

use crate::fault::explain;
use crate::invocation::Transport;
use crate::log::Log;
use crate::result_file::{ResultFile, ResultFileError};
use crate::status::StatusLine;
use belljar_contract::result::JobResult;
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

    /// Writes the result, tells the host of it, and returns the exit code that goes with it: one that says how the job ended
    /// only where somebody has the result. If it must be, it is in the log.
    pub(super) fn deliver(self, result: &JobResult, status: &StatusLine, log: &Log<'_>) -> ExitCode {
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

fn print(result: &JobResult) -> io::Result<()> {
    let mut writer = BufWriter::new(io::stdout());
    serde_json::to_writer(&mut writer, result)?;
    writer.write_all(b"\n")?;
    writer.flush()
}
