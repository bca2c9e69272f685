//! A program, started with everything that must not be the starter's own: its terminal, its standard streams, its
//! guard.

use super::streams::Streams;
use crate::kernel::{self, Parent};
use crate::plan::Command;
use crate::report::GO;
use crate::seccomp;
use crate::wall;
use crate::walls::{About, Fault};
use rustix::fd::{AsFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustix::process::{Signal, set_parent_process_death_signal};
use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;

/// A program that runs.
pub(crate) struct Started {
    pub(crate) pid: i32,
    /// Where its guard asks.
    pub(crate) listener: Option<OwnedFd>,
}

/// What surrounds a program.
enum Surroundings<'a> {
    /// A sandbox of which the starter is PID 1: a guard is put on top of its filter.
    Namespaces {
        /// Where the host says that the program may begin, if it still has to.
        word: Option<BorrowedFd<'a>>,
    },
    /// A sandbox without namespaces: the program is the supervisor's child, as the starter is, and begins in a
    /// directory that is open already.
    Supervisor { directory: BorrowedFd<'a> },
}

/// A program ready to start: whatever needs memory has been made.
struct Payload<'a> {
    command: &'a Command,
    surroundings: Surroundings<'a>,
    candidates: Vec<CString>,
    argv: Vec<*const libc::c_char>,
    env: Vec<*const libc::c_char>,
    streams: Streams,
    /// Where its guard asks. Written by the child, in memory and in a table of descriptors that it shares with PID 1.
    listener: Option<RawFd>,
    /// Written by the child, in memory shared with it, when it can't become the program.
    failure: Option<(&'static str, Errno)>,
}

/// Looked up in when the environment names no `PATH`.
const DEFAULT_PATH: &[u8] = b"/usr/local/bin:/usr/bin:/bin";

/// Starts a program, with the guard on top of the filter that PID 1 has; it begins when the host has given its word there,
/// if it is still to be given.
pub(crate) fn start(
    command: &Command,
    streams: Streams,
    word: Option<BorrowedFd<'_>>,
) -> Result<Started, Fault> {
    let mut payload = Payload::new(command, streams, Surroundings::Namespaces { word });
    let started = payload.start();
    // The child has put it into the table that was shared then; PID 1 alone has that now.
    let listener = payload.listener.map(kernel::take_raw);
    let pid = started?;
    wall!(Guard: listener.as_ref().ok_or(Errno::BADF).about("guard").map(drop)?, else ());
    Ok(Started { pid, listener })
}

/// Starts a program in a sandbox without namespaces, as a child of the caller's parent. The working directory that the
/// command names is of no account.
pub(crate) fn start_supervised(
    command: &Command,
    streams: Streams,
    directory: BorrowedFd<'_>,
) -> Result<i32, Fault> {
    Payload::new(command, streams, Surroundings::Supervisor { directory }).start()
}

// === impl Surroundings ===

impl Surroundings<'_> {
    fn parent(&self) -> Parent {
        match self {
            Self::Namespaces { .. } => Parent::Caller,
            Self::Supervisor { .. } => Parent::CallersParent,
        }
    }
}

// === impl Payload ===

impl<'a> Payload<'a> {
    fn new(command: &'a Command, streams: Streams, surroundings: Surroundings<'a>) -> Self {
        Self {
            command,
            surroundings,
            candidates: candidates(command),
            argv: null_terminated(&command.argv),
            env: null_terminated(&command.env),
            streams,
            listener: None,
            failure: None,
        }
    }

    /// Starts the program; returns its process id.
    fn start(&mut self) -> Result<i32, Fault> {
        let parent = self.surroundings.parent();
        // SAFETY: `become_program` neither allocates nor unwinds, and leaves nothing behind but `failure`.
        let pid = unsafe { kernel::run_until_exec(become_program, self, parent) }.about("clone")?;
        match self.failure {
            None => Ok(pid),
            Some(("exec", errno)) => Err(errno).about(&self.program()),
            Some(("guard", errno)) => Err(errno).about(match super::filter_subject(errno) {
                "filter" => "guard",
                subject => subject,
            }),
            Some((subject, errno)) => Err(errno).about(subject),
        }
    }

    fn program(&self) -> String {
        self.command.argv.first().map(|program| program.to_string_lossy().into_owned()).unwrap_or_default()
    }

    fn guard(&mut self) -> Result<(), Errno> {
        let listener = kernel::ask::install_guard(seccomp::GUARD)?;
        self.listener = Some(listener.into_raw_fd());
        Ok(())
    }

    fn prepare(&mut self) -> Result<(), (&'static str, Errno)> {
        let step = |what: &'static str| move |errno: Errno| (what, errno);
        match self.surroundings {
            // First, while the table of descriptors is shared: PID 1 finds the listener there.
            Surroundings::Namespaces { word } => {
                wall!(Guard: self.guard().map_err(step("guard"))?, else ());
                word.map_or(Ok(()), wait_for_word).map_err(step("host"))?;
            }
            Surroundings::Supervisor { .. } => {
                set_parent_process_death_signal(Some(Signal::KILL)).map_err(step("death signal"))?;
            }
        }
        kernel::unshare_descriptors().map_err(step("descriptors"))?;
        wall!(OwnSession: rustix::process::setsid().map_err(step("session")).map(drop)?, else ());
        if self.streams.has_terminal {
            kernel::take_terminal(self.streams.standard[0].as_fd()).map_err(step("terminal"))?;
        }
        let [input, output, errors] = &self.streams.standard;
        rustix::stdio::dup2_stdin(input).map_err(step("stdin"))?;
        rustix::stdio::dup2_stdout(output).map_err(step("stdout"))?;
        rustix::stdio::dup2_stderr(errors).map_err(step("stderr"))?;
        match self.surroundings {
            Surroundings::Namespaces { .. } => rustix::process::chdir(self.command.directory.as_c_str()),
            Surroundings::Supervisor { directory } => rustix::process::fchdir(directory),
        }
        .map_err(step("working directory"))?;
        rustix::process::umask(Mode::from_raw_mode(wall!(Umask: 0o022, else 0)));
        match self.surroundings {
            // PID 1 has given up all that it had inherited, and handles none.
            Surroundings::Namespaces { .. } => kernel::unblock_signals(),
            Surroundings::Supervisor { .. } => kernel::reset_signals(),
        }
        wall!(ClosedDescriptors: kernel::close_from(3), else ());
        Ok(())
    }

    /// Tries every candidate as a shell would: a file that may not be run is remembered, one that isn't there is not.
    fn exec(&self) -> Errno {
        let mut answer = Errno::NOENT;
        for candidate in &self.candidates {
            match kernel::execve(candidate, &self.argv, &self.env) {
                Errno::NOENT | Errno::NOTDIR => {}
                Errno::ACCESS => answer = Errno::ACCESS,
                errno => return errno,
            }
        }
        answer
    }
}

/// Waits as late as it can: the host looks at PID 1 meanwhile.
fn wait_for_word(control: BorrowedFd<'_>) -> Result<(), Errno> {
    let mut word = [0_u8];
    let heard = rustix::io::retry_on_intr(|| rustix::net::recv(control, &mut word[..], RecvFlags::empty()));
    match (heard?.1, word) {
        (1, [GO]) => Ok(()),
        _ => Err(Errno::CONNRESET),
    }
}

extern "C" fn become_program(payload: &mut Payload<'_>) -> ! {
    payload.failure = match payload.prepare() {
        Ok(()) => Some(("exec", payload.exec())),
        Err(failure) => Some(failure),
    };
    kernel::exit_now(127)
}

fn candidates(command: &Command) -> Vec<CString> {
    let Some(program) = command.argv.first() else { return Vec::new() };
    if program.as_bytes().contains(&b'/') {
        return vec![program.clone()];
    }
    let path = command.env.iter().find_map(|variable| variable.as_bytes().strip_prefix(b"PATH="));
    path.unwrap_or(DEFAULT_PATH)
        .split(|byte| *byte == b':')
        .filter(|directory| !directory.is_empty())
        .map(|directory| {
            let directory = std::path::Path::new(std::ffi::OsStr::from_bytes(directory));
            directory.join(std::ffi::OsStr::from_bytes(program.as_bytes()))
        })
        .filter_map(|candidate| CString::new(candidate.into_os_string().as_encoded_bytes()).ok())
        .collect()
}

fn null_terminated(strings: &[CString]) -> Vec<*const libc::c_char> {
    strings.iter().map(CString::as_c_str).map(CStr::as_ptr).chain([std::ptr::null()]).collect()
}
