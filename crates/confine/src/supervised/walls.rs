//! Walls around the starter, and so around every program that it starts.

use super::{Files, OpenedPath, SupervisedPlan, User};
use crate::kernel;
use crate::plan::Limits;
use crate::process_group;
use crate::seccomp::policy::Audience;
use crate::seccomp::{self, spare};
use crate::walls::landlock::{self, AccessKind};
use crate::walls::{ErrorContext, WallError, privileges};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;

/// Walls that were put up.
pub(super) struct ActiveWalls {
    /// The ABI of Landlock in force; 0 for none.
    pub(super) landlock_abi: u32,
    /// Listener for changes of metadata.
    pub(super) listener: Option<OwnedFd>,
}

/// Puts everything up around this process, which is out of reach of what is inside, like the supervisor.
pub(super) fn put_up(plan: &SupervisedPlan, supervisor: i32) -> Result<ActiveWalls, WallError> {
    let is_root = rustix::process::getuid().is_root();
    if is_root {
        rustix::thread::set_thread_groups(&[]).about("groups")?;
    }
    privileges::limit(with_what_runs(plan.limits, plan.user))?;
    let (rules, landlock_abi) = if plan.walls.landlock { rules(&plan.files)? } else { (None, 0) };
    match privileges::close_bounding_set() {
        Ok(()) => {}
        // An ordinary user may not, and has none to lose: no program gains one any more all the same (no_new_privs).
        Err(Errno::PERM) if !is_root => {}
        Err(errno) => return Err(errno).about("bounding set"),
    }
    if let Some(user) = plan.user {
        privileges::become_user(user)?;
        end_with(supervisor)?;
    }
    privileges::drop_held()?;
    rules.map_or(Ok(()), |rules| kernel::enter_landlock(rules.as_fd(), landlock_abi)).about("landlock")?;
    let mut listener = None;
    if plan.walls.seccomp {
        if matches!(plan.files, Files::Listed { .. }) {
            listener = Some(kernel::ask::install_guard(seccomp::METADATA).about("filter")?);
        }
        let own = rustix::process::getpid().as_raw_pid();
        kernel::install_filter(&spare::spare(&[supervisor, own, spare::EVERYBODY])).about("filter")?;
        kernel::install_filter(seccomp::policy(Audience::Supervised)).about("filter")?;
    }
    Ok(ActiveWalls { landlock_abi, listener })
}

/// Ends this process with its parent. A process that becomes another user must set this again, and its parent may have
/// ended before.
fn end_with(supervisor: i32) -> Result<(), WallError> {
    let kill = Some(rustix::process::Signal::KILL);
    rustix::process::set_parent_process_death_signal(kill).about("death signal")?;
    let parent = rustix::process::getppid().map(rustix::process::Pid::as_raw_pid);
    if parent == Some(supervisor) { Ok(()) } else { Err(Errno::CHILD).about("supervisor") }
}

/// The kernel counts all that the user runs, wherever it runs.
fn with_what_runs(limits: Limits, user: Option<User>) -> Limits {
    let uid = user.map_or_else(|| rustix::process::getuid().as_raw(), |user| user.uid);
    Limits { processes: limits.processes.saturating_add(process_group::threads_of(uid)), ..limits }
}

fn rules(files: &Files) -> Result<(Option<OwnedFd>, u32), WallError> {
    let Files::Listed { writable, readable, system, devices } = files else {
        return landlock::rules_among_the_hosts(None);
    };
    let (system, devices) = (open_all(system)?, open_all(devices)?);
    let groups = [
        (writable, AccessKind::Everything),
        (readable, AccessKind::Read),
        (&system, AccessKind::Read),
        (&devices, AccessKind::Device),
    ];
    let mut places = Vec::new();
    for (group, allowed) in groups {
        for place in group {
            let stat = fstat(place).about("a place")?;
            let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
            places.push(landlock::PathRule { descriptor: place.as_fd(), is_directory, allowed });
        }
    }
    landlock::rules_among_the_hosts(Some(&places))
}

/// Opens those of the paths that are there.
fn open_all(paths: &[String]) -> Result<Vec<OpenedPath>, WallError> {
    let open = |path: &String| match openat(CWD, path.as_str(), OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
    {
        Ok(place) => Some(Ok(OpenedPath::from(place))),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::ACCESS) => None,
        Err(errno) => Some(Err(errno).about(path)),
    };
    paths.iter().filter_map(open).collect()
}
