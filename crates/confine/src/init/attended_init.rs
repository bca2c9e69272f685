//! PID 1 of a sandbox whose root and namespaces another program has made, such as a container engine.
//!
//! It puts up every wall that takes no rights, on top of those that it finds, and then is PID 1 as in any other
//! sandbox: the same programs are started in the same way.

use super::memory::MemoryWatch;
use super::sandbox_state::OwnResources;
use super::watch::InitState;
use super::{install_filter, send};
use crate::inner_init::InitWalls;
use crate::kernel;
use crate::plan::Limits;
use crate::report::Report;
use crate::seccomp;
use crate::stage::Stage;
use crate::walls::{ErrorContext, WallError, landlock, privileges};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;

/// Runs PID 1 until the host ends the sandbox. Returns its exit code.
pub(crate) fn attend(control: &OwnedFd, walls: &InitWalls) -> i32 {
    kernel::reset_signals();
    let mut stage = Stage::Clone;
    match put_up(control.as_fd(), walls, &mut stage) {
        Ok(watch) => watch.until_end(),
        Err(WallError { subject, errno }) => {
            send(control.as_fd(), &Report::Failed { stage, errno, subject }, &[]);
            1
        }
    }
}

fn put_up<'a>(
    control: BorrowedFd<'a>,
    walls: &InitWalls,
    stage: &mut Stage,
) -> Result<InitState<'a>, WallError> {
    // A process that is not the first of a PID namespace could not answer for the others, and would kill unrelated
    // processes.
    if !rustix::process::getpid().is_init() {
        return Err(Errno::PERM).about("process 1");
    }
    rustix::thread::set_name(c"belljar-init").about("name")?;
    *stage = Stage::Limits;
    // The user may have processes in other sandboxes, too: how many there may be is for a control group to say.
    privileges::limit(Limits { open_files: walls.open_files, processes: u64::MAX, ..Limits::default() })?;
    *stage = Stage::Landlock;
    let (rules, landlock_abi) = landlock::rules(&walls.writable, None)?;
    *stage = Stage::Privileges;
    privileges::hold_none()?;
    rules.map_or(Ok(()), |rules| kernel::enter_landlock(rules.as_fd(), landlock_abi)).about("landlock")?;
    *stage = Stage::Seccomp;
    install_filter(&seccomp::spare::spare(&walls.spared))?;
    install_filter(seccomp::policy(walls.audience))?;
    *stage = Stage::Exec;
    let own = walls.own.iter().map(String::as_str);
    let watched = own.clone().chain(walls.writable.iter().map(String::as_str));
    let own = OwnResources::of(own, watched, walls.filters)?;
    let watch = InitState::begin(control, own, None, MemoryWatch::of_container())?;
    send(control, &Report::Started { marks: Vec::new(), landlock_abi }, &[]);
    watch.close_all_but_its_own(());
    Ok(watch)
}
