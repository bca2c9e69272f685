//! A launcher that is ready for plain sandboxes. It has the root that they share, of which each gets a copy with its clone,
//! and always one unused network namespace, which the next sandbox takes over.
//!
//! Whatever is the sandbox's own is still made by its PID 1: file systems in memory, `/proc`, terminals. What is shared is
//! read-only, and locked: it belongs to a user namespace above.

use super::{LauncherChannel, answer};
use crate::inspection;
use crate::kernel::{self, CloneResult};
use crate::launch::{LaunchError, LaunchState, launch_from};
use crate::message;
use crate::plan::{Plan, RootEntry, wire};
use crate::stage::Stage;
use crate::wall;
use crate::walls::worker::{enter_new_network, take_off_old_root};
use crate::walls::{ErrorContext, WallError, devices, root, sources};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::process::{Signal, getegid, geteuid, set_parent_process_death_signal};
use rustix::thread::UnshareFlags;
use serde::{Deserialize, Serialize};

/// The root parts that plain sandboxes share.
#[derive(Debug, Deserialize)]
pub(super) struct SharedRoot {
    base: Vec<RootEntry>,
    /// Directories in which each sandbox mounts something of its own.
    places: Vec<String>,
}

/// A borrowed [`SharedRoot`], for serialisation.
#[derive(Debug, Serialize)]
pub(super) struct SharedRootRef<'a> {
    base: &'a [RootEntry],
    places: Vec<&'a str>,
}

/// A ready launcher, as its owner keeps it.
#[derive(Debug)]
pub(super) struct ReadyLauncher {
    /// Encoded foundation: files of the host are named with their inodes, so that a different one has a different key.
    key: Vec<u8>,
    /// `None` if this host can't have a ready launcher.
    line: Option<LauncherChannel>,
}

/// Idle time before a launcher makes itself ready for the next sandbox: about the run time of a short program.
const AWHILE: Timespec = Timespec { tv_sec: 0, tv_nsec: 3_000_000 };

/// Size limit of the shared root: links, small files and mount points.
const BASE_BYTES: u64 = 1 << 20;

// === impl SharedRootRef ===

impl<'a> SharedRootRef<'a> {
    /// Returns the foundation of a sandbox that takes nothing else from the host.
    pub(super) fn of(plan: &'a Plan) -> Option<Self> {
        let places = plan.scratch_places().collect();
        plan.is_plain().then_some(Self { base: &plan.base, places })
    }

    pub(super) fn key(&self) -> Option<Vec<u8>> {
        postcard::to_stdvec(self).ok()
    }
}

// === impl ReadyLauncher ===

impl ReadyLauncher {
    pub(super) fn new(key: Vec<u8>, line: Option<LauncherChannel>) -> Self {
        Self { key, line }
    }

    pub(super) fn is_for(&self, key: &[u8]) -> bool {
        self.key == key
    }

    pub(super) fn line(&self) -> Option<&LauncherChannel> {
        self.line.as_ref()
    }
}

/// Starts one, as a child of the launcher.
pub(super) fn start(foundation: &SharedRoot) -> Result<OwnedFd, Errno> {
    let (ours, theirs) = message::pair()?;
    // SAFETY: a launcher has one thread.
    match unsafe { kernel::clone_into(0, None) }? {
        CloneResult::Child => {
            let _ = set_parent_process_death_signal(Some(Signal::KILL));
            let standard = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
            kernel::close_all_but(&mut standard.into_iter().chain([theirs.as_fd()]).collect::<Vec<_>>());
            std::mem::forget(ours);
            match settle(foundation) {
                Ok(()) => serve(&theirs),
                // Its owner does without.
                Err(_) => kernel::exit_now(1),
            }
        }
        CloneResult::Parent { .. } => Ok(ours),
    }
}

/// Builds the root and moves in.
fn settle(foundation: &SharedRoot) -> Result<(), WallError> {
    let _ = rustix::thread::set_name(c"belljar-ready");
    inspection::remember_the_host().about("the host")?;
    enter_new_mounts()?;
    root::cut_propagation()?;
    rustix::process::umask(Mode::empty());
    let taken = sources::take(&foundation.base)?;
    let root = root::build(&foundation.base, taken, BASE_BYTES)?;
    root::put_up_proc_of_launcher(root.as_fd())?;
    devices::put_up_fixed(root.as_fd())?;
    root::make_places(root.as_fd(), &foundation.places)?;
    wall!(FixedDevices: devices::make_places(root.as_fd())?, else ());
    root::enter(&root)?;
    take_off_old_root().about("old root")
}

/// A mount namespace of one's own, and for an ordinary user a user namespace that it belongs to.
fn enter_new_mounts() -> Result<(), WallError> {
    // SAFETY: leaves memory and descriptors as they are.
    let unshare = |flags| unsafe { rustix::thread::unshare_unsafe(flags) };
    match unshare(UnshareFlags::NEWNS) {
        Err(Errno::PERM) => {}
        done => return done.about("mount namespace"),
    }
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS).about("user namespace")?;
    write("/proc/self/setgroups", "deny")?;
    write("/proc/self/uid_map", &format!("{uid} {uid} 1"))?;
    write("/proc/self/gid_map", &format!("{gid} {gid} 1"))
}

fn write(path: &str, text: &str) -> Result<(), WallError> {
    let file = openat(CWD, path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()).about(path)?;
    rustix::io::write(&file, text.as_bytes()).about(path).map(drop)
}

/// Main loop of the launcher. It ends when its owner has closed the channel and what it has launched is gone.
fn serve(socket: &OwnedFd) -> ! {
    if message::send(socket.as_fd(), b"ready", &[]).is_err() {
        kernel::exit_now(1);
    }
    let mut has_network = enter_new_network().is_ok();
    loop {
        if !has_network && nobody_asks(socket.as_fd(), AWHILE) {
            has_network = enter_new_network().is_ok();
        }
        let Ok(Some((bytes, descriptors))) = message::receive_whole(socket.as_fd()) else { break };
        let launched = match wire::decode(&bytes, descriptors) {
            Ok(super::LauncherRequest::Launch(plan)) => launch(&plan, has_network),
            Ok(_) => Err(LaunchError::Control { source: Errno::BADMSG }),
            Err(source) => Err(LaunchError::Control { source }),
        };
        // Whatever the result: that network has been used.
        has_network = false;
        let answered = answer(socket.as_fd(), launched);
        // Acting as another user for a moment has cleared it.
        let _ = set_parent_process_death_signal(Some(Signal::KILL));
        if answered.is_err() {
            break;
        }
    }
    while kernel::wait_for_child().is_ok() {}
    kernel::exit_now(0)
}

/// Returns true if there is time to prepare the next sandbox. The processor is left to the caller that has just got one.
fn nobody_asks(socket: BorrowedFd<'_>, awhile: Timespec) -> bool {
    let mut asked = [PollFd::from_borrowed_fd(socket, PollFlags::IN)];
    poll(&mut asked, Some(&awhile)).is_ok_and(|ready| ready == 0)
}

fn launch(plan: &Plan, has_network: bool) -> Result<crate::launch::LaunchedSandbox, LaunchError> {
    if !has_network {
        enter_new_network().map_err(|WallError { subject, errno }| LaunchError::Stage {
            stage: Stage::Network,
            subject,
            source: errno,
        })?;
    }
    launch_from(LaunchState::Prepared, plan)
}
