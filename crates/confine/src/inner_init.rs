//! PID 1 of a sandbox that another program has made, and the channel to it from inside.
//!
//! ```text
//! PID 1: attend ◄── control ──► Attended: another process, begun before the walls were put up
//! ```
//! The other process is in the same namespaces, but outside of the Landlock domain: where the kernel keeps signals
//! within domains (ABI 6), nothing that PID 1 starts reaches it.

use crate::execution::{ExecutionError, SandboxedProgram, start};
use crate::init::attended_init::attend as attend_as_pid_1;
use crate::message;
use crate::plan::{Command, Hatch, Stdio};
use crate::report::Report;
use crate::seccomp::policy::Audience;
use crate::walls::hatches;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;

/// The walls that PID 1 puts up itself.
#[derive(Debug)]
pub struct InitWalls {
    /// The only directories in which anything may be written, relative to the root.
    pub writable: Vec<String>,
    /// Directories in whose file systems only the sandbox listens, relative to the root.
    pub own: Vec<String>,
    /// Processes that no program inside may signal or limit.
    pub spared: Vec<i32>,
    /// Open files of one process.
    pub open_files: u64,
    /// Seccomp filters that programs may have installed at a time.
    pub filters: u64,
    /// Programs that the system call policy is for.
    pub audience: Audience,
}

/// A PID 1 that has put up its walls. It ends the sandbox when this is dropped.
#[derive(Debug)]
pub struct WalledInit {
    control: OwnedFd,
    landlock_abi: u32,
}

/// Why PID 1 could not be started.
#[derive(Debug, thiserror::Error)]
pub enum InitStartError {
    /// A wall could not be put up.
    #[error("{stage}: {subject}")]
    Wall {
        /// The stage at which it failed.
        stage: &'static str,
        /// Subject of the failed operation.
        subject: String,
        /// The error.
        #[source]
        source: Errno,
    },
    /// PID 1 has ended without an answer.
    #[error("process 1 has ended")]
    Gone,
}

/// Opens sockets that listen in this process's namespaces, for a process elsewhere to serve.
///
/// # Errors
/// The kernel's, for the first that can't be made.
pub fn listen(hatches: &[Hatch]) -> Result<Vec<OwnedFd>, Errno> {
    hatches::open(hatches).map_err(|fault| fault.errno)
}

/// Exit code of a PID 1 that has ended because memory had run out.
pub const OUT_OF_MEMORY: i32 = 12;

/// Runs PID 1 until the other end of `control` is closed. Returns its exit code.
pub fn attend(control: &OwnedFd, walls: &InitWalls) -> i32 {
    attend_as_pid_1(control, walls)
}

// === impl WalledInit ===

impl WalledInit {
    /// Waits until PID 1 has put up its walls.
    ///
    /// # Errors
    /// [`InitStartError`] with the wall that it could not put up.
    pub fn expect(control: OwnedFd) -> Result<Self, InitStartError> {
        let said = message::receive(control.as_fd()).ok().flatten();
        match said.and_then(|(bytes, _)| Report::decode(&bytes)) {
            Some(Report::Started { landlock_abi, .. }) => Ok(Self { control, landlock_abi }),
            Some(Report::Failed { stage, errno, subject }) => {
                Err(InitStartError::Wall { stage: stage.as_str(), subject, source: errno })
            }
            _ => Err(InitStartError::Gone),
        }
    }

    /// The version of Landlock that is in force; zero if the kernel has none.
    pub fn landlock_abi(&self) -> u32 {
        self.landlock_abi
    }

    /// Starts a program.
    ///
    /// # Errors
    /// [`ExecutionError`]; nothing of the program is left then.
    pub fn start(&self, command: Command, stdio: Stdio) -> Result<SandboxedProgram, ExecutionError> {
        start(self.control.as_fd(), command, stdio)
    }
}

impl AsFd for WalledInit {
    /// Becomes readable when PID 1 is gone.
    fn as_fd(&self) -> rustix::fd::BorrowedFd<'_> {
        self.control.as_fd()
    }
}
