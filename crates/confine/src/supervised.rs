//! Sandboxes without namespaces: programs behind Landlock and a system call filter, looked after by a supervisor.
//!
//! ```text
//! host ── exec ──► supervisor ── fork ──► starter: enters the walls
//!   │                  │                      │ clone (parent: the supervisor)
//!   │ ◄── Started ─────┤                      ▼
//!   │ ── Start ───────►│ ── Start ──────► programs, behind the same walls
//!   │                  │ ◄── their ends ──────┘
//! ```
//! The supervisor stands outside of the walls: it sees every process that descends from it, orphans too, because they
//! come to it (a "child subreaper"). When the host hangs up it ends them all, and itself last. The programs and the
//! starter are in one Landlock domain, so the programs may signal each other and no other process.
//!
//! Programs run as the user that starts them, or, if that is root, as another user. The supervisor then acts as that user,
//! but none of the user's processes may signal it: one that stopped it could keep the sandbox running for good.
//!
//! The supervisor is this very executable under another name, so it begins with the memory of a fresh program and none
//! of the host's secrets, and any thread may start one.

mod metadata;
mod starter;
mod supervisor;
mod walls;

pub use supervisor::main_inside;

use crate::inspection::inspect_starter;
use crate::launch::LaunchError;
use crate::message;
use crate::plan::{Limits, wire};
use crate::report::Report;
use crate::sealed::SealedSandbox;
use crate::stage::Stage;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use serde::{Deserialize, Serialize};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// A sandbox without namespaces.
#[derive(Debug, Serialize, Deserialize)]
pub struct SupervisedPlan {
    /// Directory in which programs start: every working directory is looked up below it, and no link leads out of it.
    pub base: OpenedPath,
    /// Which of the host's files may be used.
    pub files: Files,
    /// Which walls are put up.
    pub walls: SupervisedWalls,
    /// Resource limits of every process. The limit on processes counts all processes of the user.
    pub limits: Limits,
    /// Files that are kept open as long as anything of the sandbox may run.
    pub held: Vec<OpenedPath>,
    /// User of the programs, if not the user that starts them. Only root may set it.
    pub user: Option<User>,
}

/// Another user, who must not be root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// The user.
    pub uid: u32,
    /// The only group.
    pub gid: u32,
}

/// Which files of the host may be used.
#[derive(Debug, Serialize, Deserialize)]
pub enum Files {
    /// All files that the user may use; working directories may be anywhere.
    AllOfTheUsers,
    /// Only these files.
    Listed {
        /// Used in every way.
        writable: Vec<OpenedPath>,
        /// Read and run.
        readable: Vec<OpenedPath>,
        /// Read and run as far as they are there: programs, libraries, settings.
        system: Vec<String>,
        /// Read and written, as far as they are there.
        devices: Vec<String>,
    },
}

/// A file or directory that the host has opened.
#[derive(Debug, Serialize, Deserialize)]
pub struct OpenedPath(#[serde(with = "wire::descriptor")] OwnedFd);

/// The walls that can be left out, so that it can be tried what is without them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SupervisedWalls {
    /// Landlock, where the kernel has it.
    pub landlock: bool,
    /// The system call filter.
    pub seccomp: bool,
}

/// A sandbox that runs, and what stands around it.
#[derive(Debug)]
pub struct SupervisedSandbox {
    /// The sandbox. When it is dropped, the supervisor ends everything in it.
    pub sealed: SealedSandbox,
    /// The Landlock ABI in force; 0 for none.
    pub landlock_abi: u32,
}

/// Starts a supervisor, which is `executable` under the name `name`, with a sandbox in which nothing runs yet. That
/// executable must call [`main_inside`] first thing when it is started under this name. Any thread may start one.
///
/// # Errors
/// [`LaunchError`]; nothing of the sandbox is left then.
pub fn start(executable: &Path, name: &str, plan: &SupervisedPlan) -> Result<SupervisedSandbox, LaunchError> {
    let control = |source| LaunchError::Control { source };
    let (ours, theirs) = message::pair().map_err(control)?;
    let (bytes, descriptors) = wire::encode(plan).map_err(control)?;
    let mut command = Command::new(executable);
    command.arg0(name).env_clear().current_dir("/");
    command.stdin(Stdio::from(theirs)).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().map_err(|error| LaunchError::Clone {
        source: Errno::from_io_error(&error).unwrap_or(Errno::INVAL),
    })?;
    // This closes our copy of its end of the socket; otherwise its end would go unnoticed.
    drop(command);
    let pid = child.id().cast_signed();
    // It has not been reaped, so the id is still its own.
    let pidfd = Pid::from_raw(pid).ok_or(Errno::CHILD).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()));
    let sealed = SealedSandbox::supervised(pid, pidfd.map_err(control)?, ours);
    message::send(sealed.ending(), &bytes, &message::borrowed(&descriptors)).map_err(control)?;
    match crate::launch::receive(&sealed).map_err(control)?.0 {
        Some(Report::Supervised { starter, landlock_abi }) => {
            inspect_starter(starter, plan)?;
            Ok(SupervisedSandbox { sealed, landlock_abi })
        }
        Some(Report::Failed { stage, errno, subject }) => {
            Err(LaunchError::Stage { stage, subject, source: errno })
        }
        _ => Err(LaunchError::Vanished),
    }
}

/// The stage in which a wall of such a sandbox failed.
const STAGE: Stage = Stage::Privileges;

// === impl OpenedPath ===

impl From<OwnedFd> for OpenedPath {
    fn from(descriptor: OwnedFd) -> Self {
        Self(descriptor)
    }
}

impl AsFd for OpenedPath {
    fn as_fd(&self) -> rustix::fd::BorrowedFd<'_> {
        self.0.as_fd()
    }
}

// === impl SupervisedWalls ===

impl Default for SupervisedWalls {
    fn default() -> Self {
        Self { landlock: true, seccomp: true }
    }
}
