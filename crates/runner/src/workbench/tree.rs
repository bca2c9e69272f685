//! A whole tree, put into the workspace or taken out of it: what the host's git lays out here, and what it makes a commit of.

mod put;
mod take;

use super::changeable;
use crate::deadline::{Deadline, JobTime};
use crate::directory::Directory;
use crate::log::Log;
use crate::own_process;
use belljar_contract::path::{StepPath, WorkspacePath};
use belljar_contract::workbench::{Refusal, Refused, TreeLine};
use std::io::{self, BufReader, BufWriter, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Which way it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// From stdin into the workspace.
    Put,
    /// From the workspace to stdout.
    Take,
}

/// So long it may take. The host has less patience.
const WITHIN: Duration = Duration::from_secs(600);

const BUFFERED_BYTES: usize = 64 << 10;

/// Carries the tree in that directory of the workspace, and ends with a line that says whether all of it was.
pub(crate) fn carry(way: Way, directory: &str) -> ExitCode {
    let mut to = BufWriter::with_capacity(BUFFERED_BYTES, io::stdout());
    let carried = place(directory).and_then(|path| match way {
        Way::Put => put::put(&path, &workspace()?, &mut BufReader::new(io::stdin())),
        Way::Take => take(&path, &mut to),
    });
    let line = carried.map_or_else(TreeLine::Refused, |()| TreeLine::End {});
    // Whoever asked may be gone, and is told nothing then.
    let _ = tell(&mut to, &line).and_then(|()| to.flush());
    ExitCode::SUCCESS
}

fn place(directory: &str) -> Result<WorkspacePath, Refused> {
    let path = StepPath::parse(directory);
    changeable(&path.map_err(|error| Refused::new(Refusal::Invalid, error.to_string()))?)
}

fn workspace() -> Result<Directory, Refused> {
    Directory::open_no_link(Path::new(".")).map_err(|error| super::refused(&error))
}

fn take(path: &WorkspacePath, to: &mut impl Write) -> Result<(), Refused> {
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

fn failed(what: &str, error: &io::Error) -> Refused {
    Refused::new(Refusal::Failed, format!("can't {what}: {error}"))
}

#[cfg(test)]
mod tests;
