//! A program, started with everything that must not be the starter's own: its terminal, its standard streams, its
//! guard.

use super::starting_program::{StartReport, StartingProgram};
use super::streams::Streams;
use crate::kernel;
use crate::message;
use crate::plan::Command;
use crate::report::GO;
use crate::seccomp;
use crate::wall;
use crate::walls::{ErrorContext, WallError};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::net::RecvFlags;
use rustix::process::{Signal, set_parent_process_death_signal};
use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;

/// Environment in which a program starts.
enum PayloadEnvironment<'a> {
    /// A sandbox of which the starter is PID 1: a guard is put on top of its filter.
    Namespaces {
        /// Channel on which the program's progress is reported to PID 1.
        reports: BorrowedFd<'a>,
        /// Channel on which the host releases the program, if it still has to.
        word: Option<BorrowedFd<'a>>,
    },
    /// A sandbox without namespaces: the program is the supervisor's child, as the starter is, and begins in a
    /// directory that is open already.
    Supervisor { directory: BorrowedFd<'a> },
}

/// Why a process can't become its program.
pub(super) struct PayloadError {
    /// The step that failed; `exec` for the program itself.
    pub(super) subject: &'static str,
    pub(super) errno: Errno,
}

/// A program ready to start: whatever needs memory has been made.
struct Payload<'a> {
    command: &'a Command,
    surroundings: PayloadEnvironment<'a>,
    candidates: Vec<CString>,
    argv: Vec<*const libc::c_char>,
    env: Vec<*const libc::c_char>,
    streams: Streams,
    /// Written by a child that shares this memory (below a supervisor), when it can't become the program.
    failure: Option<PayloadError>,
}

/// Looked up in when the environment names no `PATH`.
const DEFAULT_PATH: &[u8] = b"/usr/local/bin:/usr/bin:/bin";

/// Begins to start a program, with the guard on top of the filter that PID 1 has; it begins when the host has given its word
/// there, if it is still to be given. The process that becomes the program has memory and descriptors of its own: PID 1
/// doesn't wait for it.
pub(super) fn begin(
    command: &Command,
    streams: Streams,
    word: Option<BorrowedFd<'_>>,
) -> Result<StartingProgram, WallError> {
    let (ours, theirs) = message::pair().about("start")?;
    // Above the numbers of the standard streams.
    let theirs = rustix::io::fcntl_dupfd_cloexec(&theirs, 3).about("start")?;
    let reports = theirs.as_fd();
    let mut payload = Payload::new(command, streams, PayloadEnvironment::Namespaces { reports, word });
    // SAFETY: PID 1 has a single thread.
    match unsafe { kernel::fork() }.about("fork")? {
        Some(pid) => Ok(StartingProgram::new(pid, ours, payload.program())),
        None => {
            let failure = payload.become_program();
            let _ = StartReport::failed(failure, &payload.program()).send(reports, None);
            kernel::exit_now(127)
        }
    }
}

/// Starts a program in a sandbox without namespaces, as a child of the caller's parent. The working directory that the
/// command names is of no account.
pub(crate) fn start_supervised(
    command: &Command,
    streams: Streams,
    directory: BorrowedFd<'_>,
) -> Result<i32, WallError> {
    Payload::new(command, streams, PayloadEnvironment::Supervisor { directory }).start_in_shared_memory()
}

// === impl Payload ===

impl<'a> Payload<'a> {
    fn new(command: &'a Command, streams: Streams, surroundings: PayloadEnvironment<'a>) -> Self {
        Self {
            command,
            surroundings,
            candidates: candidates(command),
            argv: null_terminated(&command.argv),
            env: null_terminated(&command.env),
            streams,
            failure: None,
        }
    }

    /// Starts the program as a child of this process's parent, and waits until it has begun; returns its process id.
    fn start_in_shared_memory(&mut self) -> Result<i32, WallError> {
        // SAFETY: `become_program_here` neither allocates nor unwinds, and leaves nothing behind but `failure`.
        let pid = unsafe { kernel::run_until_exec(become_program_here, self) }.about("clone")?;
        match self.failure {
            None => Ok(pid),
            Some(PayloadError { subject: "exec", errno }) => Err(errno).about(&self.program()),
            Some(PayloadError { subject, errno }) => Err(errno).about(subject),
        }
    }

    fn program(&self) -> String {
        self.command.argv.first().map(|program| program.to_string_lossy().into_owned()).unwrap_or_default()
    }

    /// Makes this process the program. Returns only to say why not.
    fn become_program(&mut self) -> PayloadError {
        match self.prepare() {
            Ok(()) => PayloadError { subject: "exec", errno: self.exec() },
            Err(failure) => failure,
        }
    }

    fn prepare(&mut self) -> Result<(), PayloadError> {
        let step = |subject: &'static str| move |errno: Errno| PayloadError { subject, errno };
        match self.surroundings {
            PayloadEnvironment::Namespaces { reports, word } => {
                wall!(Guard: guard(reports).map_err(step("guard"))?, else ());
                word.map_or(Ok(()), wait_for_word).map_err(step("host"))?;
            }
            PayloadEnvironment::Supervisor { .. } => {
                set_parent_process_death_signal(Some(Signal::KILL)).map_err(step("death signal"))?;
                kernel::unshare_descriptors().map_err(step("descriptors"))?;
            }
        }
        wall!(OwnSession: rustix::process::setsid().map_err(step("session")).map(drop)?, else ());
        if self.streams.has_terminal {
            kernel::take_terminal(self.streams.standard[0].as_fd()).map_err(step("terminal"))?;
        }
        let [input, output, errors] = &self.streams.standard;
        rustix::stdio::dup2_stdin(input).map_err(step("stdin"))?;
        rustix::stdio::dup2_stdout(output).map_err(step("stdout"))?;
        rustix::stdio::dup2_stderr(errors).map_err(step("stderr"))?;
        match self.surroundings {
            PayloadEnvironment::Namespaces { .. } => {
                rustix::process::chdir(self.command.directory.as_c_str())
            }
            PayloadEnvironment::Supervisor { directory } => rustix::process::fchdir(directory),
        }
        .map_err(step("working directory"))?;
        rustix::process::umask(Mode::from_raw_mode(wall!(Umask: 0o022, else 0)));
        match self.surroundings {
            // PID 1 has given up all that it had inherited, and handles none.
            PayloadEnvironment::Namespaces { .. } => kernel::unblock_signals(),
            PayloadEnvironment::Supervisor { .. } => kernel::reset_signals(),
        }
        wall!(ClosedDescriptors: self.close_descriptors(), else ());
        Ok(())
    }

    /// Closes the descriptors that are not the program's. The report channel to PID 1 is closed only by the program's
    /// start.
    fn close_descriptors(&self) {
        use rustix::stdio::{stderr, stdin, stdout};
        match self.surroundings {
            PayloadEnvironment::Namespaces { reports, .. } => {
                kernel::close_all_but(&mut [stdin(), stdout(), stderr(), reports]);
            }
            PayloadEnvironment::Supervisor { .. } => kernel::close_from(3),
        }
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

/// Puts the guard up, and gives PID 1 the descriptor on which the guard asks.
fn guard(reports: BorrowedFd<'_>) -> Result<(), Errno> {
    let listener = kernel::ask::install_guard(seccomp::GUARD)?;
    StartReport::Guarded.send(reports, Some(&listener))
}

extern "C" fn become_program_here(payload: &mut Payload<'_>) -> ! {
    payload.failure = Some(payload.become_program());
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
