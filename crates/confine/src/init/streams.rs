//! A program's input and output.

use crate::plan::Stdio;
use crate::walls::{ErrorContext, WallError};
use rustix::fd::OwnedFd;
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};

/// Standard streams of a program.
pub(crate) struct Streams {
    /// Standard input, output and error.
    pub(crate) standard: [OwnedFd; 3],
    /// True if they are a terminal.
    pub(crate) has_terminal: bool,
    /// The host's end of the terminal.
    pub(crate) host_end: Option<OwnedFd>,
}

// === impl Streams ===

impl Streams {
    /// Copies the descriptors, or makes a terminal of the sandbox's own.
    pub(crate) fn connect(stdio: &Stdio) -> Result<Self, WallError> {
        match stdio {
            Stdio::Descriptors([input, output, errors]) => Ok(Self {
                standard: [copy(input)?, copy(output)?, copy(errors)?],
                has_terminal: false,
                host_end: None,
            }),
            Stdio::Terminal => {
                let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
                let host_end = openpt(flags).about("terminal")?;
                unlockpt(&host_end).about("terminal")?;
                let ours = ioctl_tiocgptpeer(&host_end, flags).about("terminal")?;
                let standard = [copy(&ours)?, copy(&ours)?, copy(&ours)?];
                Ok(Self { standard, has_terminal: true, host_end: Some(host_end) })
            }
        }
    }
}

/// Above the numbers that the program will have them at.
fn copy(from: &OwnedFd) -> Result<OwnedFd, WallError> {
    rustix::io::fcntl_dupfd_cloexec(from, 3).about("standard stream")
}
