//! A small process that launches for a large one.
//!
//! Copying a process costs time in proportion to its memory: milliseconds for a daemon of a gigabyte, and a copy of a
//! process with threads may not even allocate. So a program that will grow starts a launcher first thing; every
//! sandbox is then copied from that, which stays as small as it was.
//!
//! The launcher ends when its owner does, and the kernel ends its sandboxes with it.

mod ready;

use crate::kernel::{self, CloneResult};
use crate::launch::{LaunchError, LaunchedSandbox, launch};
use crate::message;
use crate::mount_preparation::{IdentityMaps, user_namespace};
use crate::plan::{Plan, wire};
use crate::sealed::SealedSandbox;
use crate::stage::Timings;
use ready::{ReadyLauncher, SharedRoot, SharedRootRef};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// A launcher process.
#[derive(Debug)]
pub struct Launcher {
    line: LauncherChannel,
    process: OwnedFd,
    /// Launchers that it has started, each for sandboxes with another base; the last used comes last.
    ready: Mutex<Vec<Arc<ReadyLauncher>>>,
}

/// Request channel of a launcher. One request and its answer at a time.
#[derive(Debug)]
struct LauncherChannel(Mutex<OwnedFd>);

/// A request to a launcher.
#[derive(Debug, Deserialize)]
enum LauncherRequest {
    Launch(Box<Plan>),
    Map(IdentityMaps),
    GetReady(SharedRoot),
}

/// A borrowed [`LauncherRequest`], for serialisation.
#[derive(Debug, Serialize)]
enum LauncherRequestRef<'a> {
    Launch(&'a Plan),
    Map(IdentityMaps),
    GetReady(&'a SharedRootRef<'a>),
}

/// Answer of a launcher. The descriptors are sent with it: pidfd, control, and those that the plan asked for.
#[derive(Debug, Serialize, Deserialize)]
struct LauncherResponse {
    pid: i32,
    landlock_abi: u32,
    has_terminal: bool,
    has_mounts: bool,
    timings: Timings,
}

// === impl Launcher ===

impl Launcher {
    /// Starts the launcher. Call it before the process has a second thread or much memory.
    ///
    /// # Errors
    /// [`LaunchError::Threads`] when it is too late, or the kernel's error.
    pub fn start() -> Result<Self, LaunchError> {
        let control = |source| LaunchError::Control { source };
        let count = kernel::thread_count().map_err(control)?;
        if count > 1 {
            return Err(LaunchError::Threads { count });
        }
        let (ours, theirs) = message::pair().map_err(control)?;
        // SAFETY: this is the only thread, as counted above.
        match unsafe { kernel::clone_into(0, None) }.map_err(|source| LaunchError::Clone { source })? {
            CloneResult::Child => {
                drop(ours);
                serve(&theirs)
            }
            CloneResult::Parent { pidfd, .. } => {
                Ok(Self { line: LauncherChannel(Mutex::new(ours)), process: pidfd, ready: Mutex::default() })
            }
        }
    }

    /// Calls `tell` when the launcher's process has ended: then nothing can be launched any more, and the kernel has ended
    /// its sandboxes. A thread waits for that.
    ///
    /// # Errors
    /// When there is no room for one.
    pub fn when_gone(&self, tell: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let process = rustix::io::fcntl_dupfd_cloexec(&self.process, 0)?;
        let waiting = std::thread::Builder::new().name("belljar-launcher".to_owned());
        let wait = move || {
            let mut ended = [PollFd::new(&process, PollFlags::IN)];
            while poll(&mut ended, None).is_err() {}
            tell();
        };
        waiting.spawn(wait).map(drop)
    }

    /// A user namespace with those maps. Any thread may ask.
    pub(crate) fn user_namespace(&self, maps: IdentityMaps) -> Result<OwnedFd, Errno> {
        let bytes = postcard::to_stdvec(&LauncherRequestRef::Map(maps)).map_err(|_| Errno::BADMSG)?;
        let (bytes, descriptors) = self.line.ask(&bytes, &[])?;
        let answer: Result<(), i32> = postcard::from_bytes(&bytes).map_err(|_| Errno::BADMSG)?;
        answer.map_err(Errno::from_raw_os_error)?;
        descriptors.into_iter().next().ok_or(Errno::BADMSG)
    }

    /// Launches a sandbox. Any thread may.
    ///
    /// # Errors
    /// [`LaunchError`], as from [`launch`].
    pub fn launch(&self, plan: &Plan) -> Result<LaunchedSandbox, LaunchError> {
        self.line.launch(plan)
    }

    /// Launches a sandbox for a program that makes many: a plain sandbox is launched from a process that has its base and a
    /// fresh network ready.
    ///
    /// # Errors
    /// [`LaunchError`], as from [`launch`].
    pub fn launch_one_of_many(&self, plan: &Plan) -> Result<LaunchedSandbox, LaunchError> {
        let Some(ready) = self.ready_for(plan) else { return self.line.launch(plan) };
        match ready.line().map(|line| line.launch(plan)) {
            // That launcher is gone, and with it everything that it had begun.
            Some(Err(LaunchError::Control { source: Errno::PIPE | Errno::CONNRESET })) => {
                let mut all = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
                all.retain(|known| !Arc::ptr_eq(known, &ready));
            }
            Some(launched) => return launched,
            None => {}
        }
        self.line.launch(plan)
    }

    /// A launcher for such sandboxes, if there can be one.
    fn ready_for(&self, plan: &Plan) -> Option<Arc<ReadyLauncher>> {
        /// Maximum number of ready launchers. Plans of one program are alike; others come after an update of the host.
        const MOST: usize = 4;
        let foundation = SharedRootRef::of(plan)?;
        let key = foundation.key()?;
        // Nothing in there is ever half done.
        let mut all = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        let ready = match all.iter().position(|ready| ready.is_for(&key)) {
            Some(at) => all.remove(at),
            None => Arc::new(ReadyLauncher::new(key, self.get_ready(&foundation).ok())),
        };
        all.push(Arc::clone(&ready));
        if all.len() > MOST {
            all.remove(0);
        }
        Some(ready)
    }

    fn get_ready(&self, foundation: &SharedRootRef<'_>) -> Result<LauncherChannel, Errno> {
        let bytes =
            postcard::to_stdvec(&LauncherRequestRef::GetReady(foundation)).map_err(|_| Errno::BADMSG)?;
        let (bytes, descriptors) = self.line.ask(&bytes, &[])?;
        let answer: Result<(), i32> = postcard::from_bytes(&bytes).map_err(|_| Errno::BADMSG)?;
        answer.map_err(Errno::from_raw_os_error)?;
        let socket = descriptors.into_iter().next().ok_or(Errno::BADMSG)?;
        // The launcher reports when it is ready.
        message::receive(socket.as_fd())?.ok_or(Errno::PIPE)?;
        Ok(LauncherChannel(Mutex::new(socket)))
    }
}

// === impl LauncherChannel ===

impl LauncherChannel {
    fn ask(&self, bytes: &[u8], descriptors: &[OwnedFd]) -> Result<(Vec<u8>, Vec<OwnedFd>), Errno> {
        // A thread that panicked here has left at worst an answer behind that was never read; then no answer fits its
        // request any more.
        let socket = self.0.lock().map_err(|_| Errno::PROTO)?;
        message::send_whole(socket.as_fd(), bytes, &message::borrowed(descriptors))?;
        message::receive(socket.as_fd())?.ok_or(Errno::PIPE)
    }

    fn launch(&self, plan: &Plan) -> Result<LaunchedSandbox, LaunchError> {
        let control = |source| LaunchError::Control { source };
        let (bytes, descriptors) = wire::encode(&LauncherRequestRef::Launch(plan)).map_err(control)?;
        let (bytes, descriptors) = self.ask(&bytes, &descriptors).map_err(control)?;
        let answer: Result<LauncherResponse, LaunchError> =
            postcard::from_bytes(&bytes).map_err(|_| control(Errno::BADMSG))?;
        let answer = answer?;
        let mut descriptors = descriptors.into_iter();
        let (Some(pidfd), Some(channel)) = (descriptors.next(), descriptors.next()) else {
            return Err(control(Errno::BADMSG));
        };
        let mut next_if = |is_there: bool| if is_there { descriptors.next() } else { None };
        Ok(LaunchedSandbox {
            sealed: SealedSandbox::of_launcher(answer.pid, pidfd, channel),
            exported: next_if(plan.exported.is_some()),
            hatches: plan.hatches.iter().map_while(|_| next_if(true)).collect(),
            terminal: next_if(answer.has_terminal),
            mounts: next_if(answer.has_mounts),
            landlock_abi: answer.landlock_abi,
            timings: answer.timings,
        })
    }
}

/// Main loop of the launcher.
fn serve(socket: &OwnedFd) -> ! {
    let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
    // Sandboxes that end are not reaped by this process: the holder of their descriptor sees their end.
    kernel::ignore_ended_children();
    let _ = rustix::thread::set_name(c"belljar-launch");
    // A process that waits for the end of its owner's output must not wait for the launcher.
    if let Ok(nowhere) = openat(CWD, c"/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
        let _ = rustix::stdio::dup2_stdin(&nowhere);
        let _ = rustix::stdio::dup2_stdout(&nowhere);
        let _ = rustix::stdio::dup2_stderr(&nowhere);
    }
    loop {
        // Without an owner there is nothing left to do.
        let Ok(Some((bytes, descriptors))) = message::receive_whole(socket.as_fd()) else {
            kernel::exit_now(0)
        };
        let answered = match wire::decode(&bytes, descriptors) {
            Ok(LauncherRequest::Launch(plan)) => answer(socket.as_fd(), launch(&plan)),
            Ok(LauncherRequest::Map(maps)) => answer_one(socket.as_fd(), &user_namespace(maps)),
            Ok(LauncherRequest::GetReady(foundation)) => {
                answer_one(socket.as_fd(), &ready::start(&foundation))
            }
            Err(source) => answer(socket.as_fd(), Err(LaunchError::Control { source })),
        };
        // Acting as another user for a moment has cleared it.
        let _ = rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL));
        if answered.is_err() {
            kernel::exit_now(1);
        }
    }
}

fn answer_one(socket: BorrowedFd<'_>, descriptor: &Result<OwnedFd, Errno>) -> Result<(), Errno> {
    let answer = descriptor.as_ref().map(drop).map_err(|errno| errno.raw_os_error());
    let bytes = postcard::to_stdvec(&answer).map_err(|_| Errno::BADMSG)?;
    message::send(socket, &bytes, &descriptor.iter().map(AsFd::as_fd).collect::<Vec<_>>())
}

fn answer(socket: BorrowedFd<'_>, launched: Result<LaunchedSandbox, LaunchError>) -> Result<(), Errno> {
    let mut descriptors = Vec::new();
    let answer = match launched {
        Err(error) => Err(error),
        Ok(launched) => {
            let (pid, pidfd, control) = launched.sealed.into_parts()?;
            let LaunchedSandbox { sealed: _, terminal, exported, hatches, mounts, landlock_abi, timings } =
                launched;
            let (has_terminal, has_mounts) = (terminal.is_some(), mounts.is_some());
            descriptors.extend([pidfd, control]);
            descriptors.extend(exported.into_iter().chain(hatches).chain(terminal).chain(mounts));
            Ok(LauncherResponse { pid, landlock_abi, has_terminal, has_mounts, timings })
        }
    };
    let bytes = postcard::to_stdvec(&answer).map_err(|_| Errno::BADMSG)?;
    message::send(socket, &bytes, &message::borrowed(&descriptors))
}
