//! A server's program on the host itself: only with `unsealed: true` in the configuration.

use super::error::BridgeError;
use belljar_sandbox::streams::PipedStreams;
use rustix::process::{Pid, Signal, kill_process_group};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Stdio};

/// A program without a sandbox. Dropping it kills its process group.
#[derive(Debug)]
pub(super) struct UnsandboxedServer {
    child: Child,
}

// === impl UnsandboxedServer ===

impl UnsandboxedServer {
    /// Starts the program.
    pub(super) fn start(
        argv: &[OsString],
        env: &BTreeMap<String, String>,
        search_path: &str,
    ) -> Result<(Self, PipedStreams), BridgeError> {
        let failed = |error: io::Error| BridgeError::Start(Box::new(error));
        let mut command = belljar_trusted::command::bare(argv, search_path.as_ref(), env).map_err(failed)?;
        command.process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().map_err(failed)?;
        let mut started = Self { child };
        let spoken = started.spoken().map_err(failed)?;
        Ok((started, spoken))
    }

    fn spoken(&mut self) -> io::Result<PipedStreams> {
        let Child { stdin, stdout, stderr, .. } = &mut self.child;
        let there = || io::Error::from(io::ErrorKind::BrokenPipe);
        Ok(PipedStreams {
            input: OwnedFd::from(stdin.take().ok_or_else(there)?),
            output: OwnedFd::from(stdout.take().ok_or_else(there)?),
            errors: OwnedFd::from(stderr.take().ok_or_else(there)?),
        })
    }
}

impl Drop for UnsandboxedServer {
    fn drop(&mut self) {
        // It isn't reaped yet, so its process id is still its own.
        if let Some(group) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.child.wait();
    }
}
