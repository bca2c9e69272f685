//! Performs one action for a tool of the host, in the sandbox of the tool's caller: runs a program; reads, writes,
//! edits or removes a file; lists a directory.
//!
//! ```text
//! stdin: one request ─► read to its end, bounded ─► done, in the directory that this was started in ─► stdout: one answer
//! ```
//! Programs in the sandbox may have changed any file, and may be running meanwhile. Files are written, edited and
//! removed without following any link. Git's own directories are left to git, because their content makes git run
//! programs.

mod edit_file;
mod list_directory;
mod read_file;
mod run;
pub(crate) mod tree;
mod write_file;

use crate::cancellation::Cancellation;
use crate::deadline::{Deadline, JobTime};
use crate::directory::{Directory, PathError, Symlinks};
use crate::log::Log;
use crate::own_process;
use belljar_contract::path::{StepPath, WORKSPACE, WorkspacePath};
use belljar_contract::text::with_causes;
use belljar_contract::workbench::{
    Answer, FileDeleteResult, LONGEST_REQUEST_BYTES, RefusalReason, Request, RequestRefusal,
};
use belljar_policy::git::is_dot_git;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Maximum time for an action with files.
const FILES_WITHIN: Duration = Duration::from_secs(30);

/// Time that this process waits to be killed if a program may have left processes running.
const PATIENCE: Duration = Duration::from_secs(30);

/// Performs the action that stdin requests.
///
/// If it is unknown whether a program left processes running, this doesn't end by itself: as long as it lives, the
/// program's processes are its descendants, and can be killed with it.
pub(crate) fn serve() -> ExitCode {
    let stderr = io::stderr();
    let log = Log::to(stderr.as_fd());
    let answer = match own_process::prepare(&log) {
        Ok(cancellation) => read_request().and_then(|request| act(&request, &cancellation)),
        Err(error) => {
            Err(RequestRefusal::new(RefusalReason::Failed, format!("cannot handle signals: {error}")))
        }
    };
    let answer = answer.unwrap_or_else(Answer::Refused);
    // The caller may be gone; the answer is lost then.
    let _ = tell(&answer);
    if matches!(&answer, Answer::Ran(ran) if ran.left_behind) {
        std::thread::sleep(PATIENCE);
        return ExitCode::FAILURE;
    }
    // The exit code only confirms that no process is left.
    ExitCode::SUCCESS
}

fn read_request() -> Result<Request, RequestRefusal> {
    let mut bytes = Vec::new();
    let most = LONGEST_REQUEST_BYTES as u64 + 1;
    let read = io::stdin().take(most).read_to_end(&mut bytes);
    read.map_err(|error| {
        RequestRefusal::new(RefusalReason::Failed, format!("can't read the request: {error}"))
    })?;
    if bytes.len() > LONGEST_REQUEST_BYTES {
        return Err(RequestRefusal::new(RefusalReason::TooLarge, "the request is too long"));
    }
    serde_json::from_slice(&bytes)
        .map_err(|error| RequestRefusal::new(RefusalReason::Invalid, format!("not a request: {error}")))
}

fn tell(answer: &Answer) -> io::Result<()> {
    let bytes = serde_json::to_vec(answer)?;
    let mut stdout = io::stdout().lock();
    stdout.write_all(&bytes)?;
    stdout.flush()?;
    // Closes stdout, so that the answer ends even if this process lives on.
    let nothing = rustix::fs::open("/dev/null", rustix::fs::OFlags::WRONLY, rustix::fs::Mode::empty())?;
    rustix::stdio::dup2_stdout(&nothing)?;
    Ok(())
}

fn act(request: &Request, cancellation: &Cancellation) -> Result<Answer, RequestRefusal> {
    let workspace = Directory::open(Path::new(".")).map_err(|error| refused(&error))?;
    let within = match request {
        Request::Run(run) => Duration::from_millis(run.within_ms),
        _ => FILES_WITHIN,
    };
    let time = JobTime::start(within, None, &|| None);
    let deadline = Deadline::of_job(&time, cancellation);
    match request {
        Request::Run(run) => run::run(run, &workspace, &deadline),
        Request::ReadFile(read) => read_file::read(read, &workspace, &deadline),
        Request::ListDirectory(list) => list_directory::list(list, &workspace, &deadline),
        Request::WriteFile(write) => write_file::write(write, &workspace.with_symlinks(Symlinks::Refused)),
        Request::EditFile(edit) => {
            edit_file::edit(edit, &workspace.with_symlinks(Symlinks::Refused), &deadline)
        }
        Request::DeleteFile(delete) => {
            let path = changeable(&delete.path)?;
            let workspace = workspace.with_symlinks(Symlinks::Refused);
            let size_bytes =
                workspace.remove_file(Path::new(path.as_str())).map_err(|error| refused(&error))?;
            Ok(Answer::Deleted(FileDeleteResult { size_bytes }))
        }
    }
}

/// A path beneath the workspace.
fn beneath(path: &StepPath) -> Result<WorkspacePath, RequestRefusal> {
    path.beneath(WORKSPACE).map_err(|error| RequestRefusal::new(RefusalReason::Forbidden, error.to_string()))
}

/// The path of a file that may be changed.
fn changeable(path: &StepPath) -> Result<WorkspacePath, RequestRefusal> {
    let path = beneath(path)?;
    if path.as_str().split('/').any(is_dot_git) {
        let said = format!("{path} is in a git directory, where changes could make git run programs");
        return Err(RequestRefusal::new(RefusalReason::Forbidden, said));
    }
    Ok(path)
}

fn refused(error: &PathError) -> RequestRefusal {
    let why = match error {
        PathError::Escapes { .. } | PathError::Symlink { .. } => RefusalReason::Forbidden,
        PathError::WrongType { .. } | PathError::IsDirectory { .. } => RefusalReason::WrongKind,
        error if error.is_absent() => RefusalReason::NotFound,
        error if error.is_no_directory() => RefusalReason::WrongKind,
        PathError::Exists { .. } | PathError::Io { .. } => RefusalReason::Failed,
    };
    RequestRefusal::new(why, with_causes(error))
}

#[cfg(test)]
mod tests;
