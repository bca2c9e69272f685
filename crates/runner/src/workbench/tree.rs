//! Transfer of a whole tree into the workspace or out of it: what the host's git checks out, and what it commits.

mod put;
mod take;

use super::changeable;
use crate::deadline::{Deadline, JobTime};
use crate::directory::Directory;
use crate::log::Log;
use crate::own_process;
use belljar_contract::path::{StepPath, WorkspacePath};
use belljar_contract::workbench::{RefusalReason, RequestRefusal, TreeLine};
use std::io::{self, BufReader, BufWriter, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Direction of the transfer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TransferDirection {
    /// From stdin into the workspace.
    Put,
    /// From the workspace to stdout.
    Take,
}

/// Maximum time for a transfer. The host's timeout is shorter.
const WITHIN: Duration = Duration::from_secs(600);

const BUFFERED_BYTES: usize = 64 << 10;

/// Transfers the tree of that directory in the workspace, and ends with a line that reports success or a refusal.
pub(crate) fn carry(way: TransferDirection, directory: &str) -> ExitCode {
    let mut to = BufWriter::with_capacity(BUFFERED_BYTES, io::stdout());
    let carried = place(directory).and_then(|path| match way {
        TransferDirection::Put => put::put(&path, &workspace()?, &mut BufReader::new(io::stdin())),
        TransferDirection::Take => take(&path, &mut to),
    });
    let line = carried.map_or_else(TreeLine::Refused, |()| TreeLine::End {});
    // The caller may be gone; the line is lost then.
    let _ = tell(&mut to, &line).and_then(|()| to.flush());
    ExitCode::SUCCESS
}

fn place(directory: &str) -> Result<WorkspacePath, RequestRefusal> {
    let path = StepPath::parse(directory);
    changeable(&path.map_err(|error| RequestRefusal::new(RefusalReason::Invalid, error.to_string()))?)
}

fn workspace() -> Result<Directory, RequestRefusal> {
    Directory::open_no_link(Path::new(".")).map_err(|error| super::refused(&error))
}

fn take(path: &WorkspacePath, to: &mut impl Write) -> Result<(), RequestRefusal> {
    let stderr = io::stderr();
    let cancellation =
        own_process::prepare(&Log::to(stderr.as_fd())).map_err(|error| failed("handle signals", &error))?;
    let time = JobTime::start(WITHIN, None, &|| None);
    take::take(path, &workspace()?, to, &Deadline::of_job(&time, &cancellation))
}

fn tell(to: &mut impl Write, line: &TreeLine) -> io::Result<()> {
    serde_json::to_writer(&mut *to, line)?;
    to.write_all(b"\n")
}

fn failed(what: &str, error: &io::Error) -> RequestRefusal {
    RequestRefusal::new(RefusalReason::Failed, format!("can't {what}: {error}"))
}

#[cfg(test)]
mod tests;
