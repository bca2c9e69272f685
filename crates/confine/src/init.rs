//! PID 1 of a sandbox: puts up the walls, starts programs, looks after them, and ends with them.
//!
//! It is a copy of the launching process, so it never returns into what that process was doing. When it ends, the
//! kernel kills every process of its PID namespace; when the host ends, the kernel kills it.

pub(crate) mod attended_init;
mod attributes;
mod caller;
mod connector;
mod descriptors;
mod filters;
mod linger;
mod look_schedule;
mod memory;
mod own_sockets;
pub(crate) mod payload;
mod poll_tables;
mod reservation;
mod sandbox_state;
mod sockets;
mod starting_program;
pub(crate) mod streams;
mod uncharged;
mod watch;
mod watches;

use crate::inspection::SelfReport;
use crate::kernel;
use crate::launch::LaunchState;
use crate::message;
use crate::plan::Plan;
use crate::report::Report;
use crate::seccomp;
use crate::stage::Stage;
use crate::wall;
use crate::walls::{
    ErrorContext, WallError, devices, group, hatches, identity, landlock, privileges, root, sources,
    worker::{self, Worker},
};
use memory::MemoryWatch;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::process::Signal;
use sandbox_state::OwnResources;
use streams::Streams;
use watch::InitState;

/// Parameters of the child process.
pub(crate) struct ChildParameters<'a> {
    pub(crate) plan: &'a Plan,
    pub(crate) ground: LaunchState,
    /// The socket to the host.
    pub(crate) control: BorrowedFd<'a>,
}

/// The stage that is under way, and when the earlier ones ended.
struct Progress {
    stage: Stage,
    marks: Vec<(Stage, u64)>,
}

/// Runs as the child process. Never returns: the code that follows in the copied program is the parent's.
pub(crate) fn run(birth: &ChildParameters<'_>) -> ! {
    // A panic must not unwind into the program that this is a copy of.
    let _never_returns = ExitOnDrop;
    // A launcher lets the kernel collect its children; PID 1 must see its own end.
    kernel::reset_signals();
    let mut progress = Progress { stage: Stage::Clone, marks: Vec::with_capacity(Stage::ALL.len()) };
    progress.pass(Stage::Identity);
    let code = match build(birth, &mut progress) {
        Ok(watch) => watch.until_end(),
        Err(WallError { subject, errno }) => {
            send(birth.control, &Report::Failed { stage: progress.stage, errno, subject }, &[]);
            1
        }
    };
    kernel::exit_now(code)
}

/// Ends this process rather than let it go back to where it was copied.
struct ExitOnDrop;

impl Drop for ExitOnDrop {
    fn drop(&mut self) {
        kernel::exit_now(1);
    }
}

// === impl Progress ===

impl Progress {
    /// Ends the stage under way and begins the next.
    fn pass(&mut self, next: Stage) {
        self.marks.push((self.stage, now_in_nanoseconds()));
        self.stage = next;
    }
}

pub(crate) fn now_in_nanoseconds() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// Puts everything up and starts the program, if there is one.
fn build<'a>(birth: &ChildParameters<'a>, progress: &mut Progress) -> Result<InitState<'a>, WallError> {
    let plan = birth.plan;
    let worker = match birth.ground {
        LaunchState::Host => Some(Worker::begin()?),
        LaunchState::Prepared => None,
    };
    // Takes its time, as making a network does.
    group::enter(plan.group.as_ref())?;
    wall!(WipedMemory: kernel::wipe_arguments_and_environment(c"belljar-init"), else ());
    rustix::thread::set_name(c"belljar-init").about("name")?;
    identity::take(plan.identity)?;
    die_with_host(birth.control)?;
    progress.pass(Stage::Sources);
    // The modes of the files that follow are meant as written, whatever umask the starting process has.
    rustix::process::umask(Mode::empty());
    let SandboxRoot { root, mut worker, hidden } = match worker {
        Some(worker) => build_root(plan, worker, progress)?,
        None => furnish_root(plan, progress)?,
    };
    progress.pass(Stage::Limits);
    privileges::limit(plan.limits)?;
    progress.pass(Stage::Terminal);
    let mut streams = plan.program.as_ref().map(|program| Streams::connect(&program.stdio)).transpose()?;
    let exported = plan.exported.as_deref().map(export).transpose()?;
    let hatches = hatches::open(&plan.hatches)?;
    progress.pass(Stage::Landlock);
    let programs = wall!(ListedPrograms: plan.programs.as_ref(), else None);
    let (rules, landlock_abi) = wall!(Landlock: landlock::rules(&plan.writable, programs)?, else (None, 0));
    progress.pass(Stage::Privileges);
    privileges::drop_all()?;
    // PID 1 enters the domain, and so every program is in the same: they may signal each other.
    rules.map_or(Ok(()), |rules| kernel::enter_landlock(rules.as_fd(), landlock_abi)).about("landlock")?;
    progress.pass(Stage::Seccomp);
    if plan.programs.is_some() {
        wall!(MemoryFiles: install_filter(&seccomp::nameless::refuse())?, else ());
    }
    wall!(SystemCalls: install_filter(seccomp::policy(plan.audience))?, else ());
    // No program starts before the last wall stands, and nothing but PID 1 is there when it does.
    worker.take().map_or(Ok(()), Worker::finish)?;
    let testimony = SelfReport::give(plan, landlock_abi).about("/proc/self")?;
    send(birth.control, &Report::Built(testimony), &[]);
    progress.pass(Stage::Exec);
    let memory = MemoryWatch::watch(plan)?;
    let mut watch = InitState::begin(birth.control, OwnResources::of_plan(plan)?, hidden, memory)?;
    let terminal = streams.as_mut().and_then(|streams| streams.host_end.take());
    if let (Some(program), Some(streams)) = (&plan.program, streams) {
        watch.start_program(&program.command, streams, plan.audience)?;
    }
    progress.pass(Stage::Exec);
    let marks = std::mem::take(&mut progress.marks);
    let descriptors: Vec<BorrowedFd<'_>> =
        exported.iter().chain(&hatches).chain(&terminal).map(AsFd::as_fd).collect();
    send(birth.control, &Report::Started { marks, landlock_abi }, &descriptors);
    // Everything that was open for building is closed with this; only what the watch needs stays.
    let left = (terminal, exported, hatches, root);
    wall!(ClosedInInit: watch.close_all_but_its_own(left), else std::mem::forget(left));
    Ok(watch)
}

/// The root that a sandbox has, when it has it.
struct SandboxRoot {
    root: OwnedFd,
    /// The worker that is still busy with the root.
    worker: Option<Worker>,
    /// The mount namespace that holds it, if PID 1 has left that.
    hidden: Option<OwnedFd>,
}

/// Builds a root from nothing.
fn build_root(plan: &Plan, mut worker: Worker, progress: &mut Progress) -> Result<SandboxRoot, WallError> {
    wall!(Propagation: root::cut_propagation()?, else ());
    let entries = || plan.base.iter().chain(&plan.root);
    let taken = sources::take(entries())?;
    progress.pass(Stage::Root);
    let root = root::build(entries(), taken, plan.scratch_bytes)?;
    progress.pass(Stage::Proc);
    root::put_up_proc(root.as_fd(), &plan.limits)?;
    progress.pass(Stage::Devices);
    devices::put_up(root.as_fd(), plan.limits.terminals)?;
    progress.pass(Stage::Pivot);
    root::enter(&root)?;
    forbid_programs(plan)?;
    progress.pass(Stage::Network);
    worker.enter_network()?;
    worker::set_host_name(&plan.hostname).about("host name")?;
    worker.take_off_old_root()?;
    // Only now, or the copied namespace would hold the old root for ever.
    let (worker, hidden) = match wall!(HiddenMounts: plan.hides_mounts, else false) {
        true => worker.finish().and_then(|()| root::hide_mounts()).map(|hidden| (None, Some(hidden)))?,
        false => (Some(worker), None),
    };
    Ok(SandboxRoot { root, worker, hidden })
}

/// Adds the sandbox's own parts to a copy of its launcher's root.
fn furnish_root(plan: &Plan, progress: &mut Progress) -> Result<SandboxRoot, WallError> {
    progress.pass(Stage::Root);
    let places: Vec<&str> = plan.scratch_places().chain([devices::SHARED_MEMORY]).collect();
    let root = root::furnish(&places, plan.scratch_bytes)?;
    progress.pass(Stage::Proc);
    root::put_up_proc(root.as_fd(), &plan.limits)?;
    progress.pass(Stage::Devices);
    devices::put_up_terminals(root.as_fd(), plan.limits.terminals)?;
    forbid_programs(plan)?;
    progress.pass(Stage::Network);
    worker::set_host_name(&plan.hostname).about("host name")?;
    Ok(SandboxRoot { root, worker: None, hidden: None })
}

/// Makes sure that, with a list of programs, nothing else in the root can be started.
fn forbid_programs(plan: &Plan) -> Result<(), WallError> {
    if plan.programs.is_none() {
        return Ok(());
    }
    let places = plan.places_without_programs().chain([devices::SHARED_MEMORY]);
    wall!(NoProgramsHere: root::forbid_programs(places), else Ok(()))
}

/// Puts up a filter. What is full when the kernel has no memory left for it, its errno doesn't say.
fn install_filter(program: &[seccomp::program::Instruction]) -> Result<(), WallError> {
    kernel::install_filter(program)
        .map_err(|errno| WallError { subject: filter_subject(errno).to_owned(), errno })
}

/// Returns the subject of the error for a filter that can't be installed.
pub(crate) fn filter_subject(errno: Errno) -> &'static str {
    /// `ENOTSUPP`, which the kernel doesn't mean for programs: a filter can't be compiled, and is not run otherwise.
    const NOT_COMPILED: i32 = 524;
    match errno.raw_os_error() {
        NOT_COMPILED => {
            "a system call filter: the kernel's memory for compiled filters is used up; end programs that use it, or \
             raise the sysctl net.core.bpf_jit_limit"
        }
        _ => "filter",
    }
}

fn die_with_host(control: BorrowedFd<'_>) -> Result<(), WallError> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    let death = wall!(DeathSignal: Some(Signal::KILL), else None);
    rustix::process::set_parent_process_death_signal(death).about("death signal")?;
    // If the host died before that call, its end of the socket is closed already.
    let mut host = [PollFd::from_borrowed_fd(control, PollFlags::empty())];
    poll(&mut host, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).about("control socket")?;
    match host[0].revents().contains(PollFlags::HUP) {
        true => Err(Errno::CONNRESET).about("host"),
        false => Ok(()),
    }
}

fn export(inside: &str) -> Result<OwnedFd, WallError> {
    use rustix::fs::{CWD, Mode, OFlags, openat};
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(CWD, format!("/{inside}"), flags, Mode::empty()).about(inside)
}

fn send(control: BorrowedFd<'_>, report: &Report, descriptors: &[BorrowedFd<'_>]) {
    // If the host is gone, there is no receiver.
    let _ = message::send(control, &report.encode(), descriptors);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uncompilable_filter_error_names_the_exhausted_memory() {
        assert!(filter_subject(Errno::from_raw_os_error(524)).contains("net.core.bpf_jit_limit"));
        assert_eq!(filter_subject(Errno::INVAL), "filter");
    }
}
