//! The supervisor: it has programs started, collects what ends, and when the host wants it so or is gone, ends
//! everything, itself last.

use super::metadata::MetadataService;
use super::starter::{StartError, Starter};
use super::walls::ActiveWalls;
use super::{Files, STAGE, SupervisedPlan};
use crate::execution::attended::{self, UnreapedProgram};
use crate::execution::{InitRequest, ProgramEvent, SandboxLoad};
use crate::init::streams::Streams;
use crate::kernel::{self, ReapedChild};
use crate::message;
use crate::plan::{Program, wire};
use crate::process_group::{self, HeldProcess};
use crate::reaping::{RemainingChildren, reap_some};
use crate::report::Report;
use crate::sealed::timespec;
use crate::walls::{ErrorContext, WallError, privileges};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, ResolveFlags, openat, openat2};
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, Resource, Rlimit, Signal};
use std::collections::HashSet;
use std::ffi::CStr;
use std::ops::ControlFlow;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// The supervisor of one sandbox.
struct Supervisor {
    plan: SupervisedPlan,
    control: OwnedFd,
    /// Readable when a child has ended.
    children: OwnedFd,
    starter: Starter,
    /// Answers for what Landlock has no say in.
    metadata: Option<MetadataService>,
    executions: Vec<UnreapedProgram>,
}

/// The sandbox is over.
struct SupervisionEnd;

/// Main function of the supervisor, for an executable that was started under its name. The host is at standard input.
pub fn main_inside() -> ExitCode {
    kernel::close_from(3);
    let Ok(control) = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3) else {
        return ExitCode::FAILURE;
    };
    if let Ok(nowhere) = openat(CWD, c"/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
        let _ = rustix::stdio::dup2_stdin(&nowhere);
    }
    let plan = match message::receive(control.as_fd()) {
        Ok(Some((bytes, descriptors))) => wire::decode::<SupervisedPlan>(&bytes, descriptors),
        _ => return ExitCode::FAILURE,
    };
    let built = plan.about("plan").and_then(|plan| Supervisor::build(plan, control.as_fd()));
    match built {
        Ok(supervisor) => supervisor.until_end(),
        Err(WallError { subject, errno }) => {
            let failed = Report::Failed { stage: STAGE, errno, subject };
            let _ = message::send(control.as_fd(), &failed.encode(), &[]);
            end_everything();
            ExitCode::FAILURE
        }
    }
}

/// Ends everything that descends from this process, and comes back when nothing does any more: orphans come to it, so
/// without children it has no descendants.
fn end_everything() {
    while reap_some(|_| ControlFlow::<()>::Continue(())) != ControlFlow::Continue(RemainingChildren::None) {
        // Stopped first, so that they don't start others faster than they are found.
        for signal in [Signal::STOP, Signal::KILL] {
            for member in process_group::descendants() {
                let _ = member.signal(signal);
            }
        }
        let shortly = Timespec { tv_sec: 0, tv_nsec: 1_000_000 };
        let _ = poll(&mut [], Some(&shortly));
    }
}

// === impl Supervisor ===

impl Supervisor {
    fn build(plan: SupervisedPlan, control: BorrowedFd<'_>) -> Result<Self, WallError> {
        let control = rustix::io::fcntl_dupfd_cloexec(control, 3).about("control socket")?;
        // The user that started the host may log out, which signals the processes of its terminal.
        let _ = rustix::process::setsid();
        let _ = rustix::thread::set_name(c"belljar-super");
        rustix::process::set_dumpable_behavior(DumpableBehavior::NotDumpable).about("dumpable")?;
        rustix::process::set_child_subreaper(Some(rustix::process::getpid())).about("child subreaper")?;
        // It holds every process that it ends by a descriptor.
        let most = rustix::process::getrlimit(Resource::Nofile).maximum;
        rustix::process::setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most })
            .about("limit")?;
        // Before the first child: no end of one may be missed.
        let children = kernel::children_descriptor().about("signals")?;
        let (starter, ActiveWalls { landlock_abi, listener }) = Starter::begin(&plan)?;
        match plan.user {
            Some(user) => privileges::act_for(user)?,
            None => privileges::keep_none_but_sight()?,
        }
        // Nothing may trace it, so where `/proc` hides such processes, it does now.
        if !process_group::descendants().iter().any(|member| member.pid == starter.pid) {
            return Err(Errno::ACCESS).about("/proc hides processes, which could not be ended then");
        }
        let metadata = match (&plan.files, listener) {
            (Files::Listed { writable, .. }, Some(listener)) => {
                Some(MetadataService::new(listener, writable)?)
            }
            _ => None,
        };
        let standing = Report::Supervised { starter: starter.pid, landlock_abi };
        message::send(control.as_fd(), &standing.encode(), &[]).about("host")?;
        Ok(Self { plan, control, children, starter, metadata, executions: Vec::new() })
    }

    fn until_end(mut self) -> ExitCode {
        loop {
            let over = match self.collect() {
                ControlFlow::Break(over) => Some(over),
                ControlFlow::Continue(left) => self.wait_for_something(left),
            };
            if over.is_some() {
                end_everything();
                // The host sees the end when everything that this process holds is closed.
                return ExitCode::SUCCESS;
            }
        }
    }

    /// Reaps children that have ended. Without its starter the sandbox is over.
    fn collect(&mut self) -> ControlFlow<SupervisionEnd, RemainingChildren> {
        reap_some(|ReapedChild { pid, status, usage }| {
            if pid == self.starter.pid {
                return ControlFlow::Break(SupervisionEnd);
            }
            if let Some(at) = self.executions.iter().position(|execution| execution.pid == pid) {
                self.executions.swap_remove(at).tell_end(status, usage);
            }
            ControlFlow::Continue(())
        })
    }

    /// Waits for a child to end, unless some are left that have, or a word of the host's, and sees to it.
    fn wait_for_something(&mut self, left: RemainingChildren) -> Option<SupervisionEnd> {
        let channels = self.executions.iter().map(|execution| execution.channel.as_fd());
        let listener = self.metadata.iter().map(MetadataService::listener);
        let all = [self.children.as_fd(), self.control.as_fd()].into_iter().chain(channels).chain(listener);
        let mut watched: Vec<_> = all.map(|one| PollFd::from_borrowed_fd(one, PollFlags::IN)).collect();
        if poll(&mut watched, left.patience().map(timespec).as_ref()).is_err() {
            return None;
        }
        let events: Vec<PollFlags> = watched.iter().map(PollFd::revents).collect();
        let (of_self, rest) = events.split_at_checked(2)?;
        let (of_channels, of_listener) = rest.split_at_checked(self.executions.len())?;
        if let (Some(metadata), Some(event)) = (&self.metadata, of_listener.first())
            && event.contains(PollFlags::IN)
        {
            metadata.answer_one();
        }
        attended::obey(&mut self.executions, of_channels);
        // The content about ended children doesn't matter: `reap` finds them.
        let mut signals = [0; 1024];
        let _ = rustix::io::read(&self.children, &mut signals);
        if of_self[1].is_empty() { None } else { self.serve() }
    }

    /// Does what the host asks.
    fn serve(&mut self) -> Option<SupervisionEnd> {
        match InitRequest::receive(self.control.as_fd()) {
            Ok(Some(InitRequest::Start { program, channel })) => self.start_execution(&program, channel),
            Ok(Some(InitRequest::Count { channel })) => {
                let _ = ProgramEvent::Counted(self.load()).send(channel.as_fd(), None);
                None
            }
            Ok(Some(InitRequest::SignalAll(signal))) => {
                self.signal_all(signal);
                None
            }
            // There is no such program: every one is an execution, which is signalled by its own channel.
            Ok(Some(InitRequest::Terminate)) => None,
            Ok(None) => Some(SupervisionEnd),
            // The request was not understood, and so not carried out; the waiting requester sees its channel closed.
            Err(_) => None,
        }
    }

    fn start_execution(&mut self, program: &Program, channel: OwnedFd) -> Option<SupervisionEnd> {
        match self.start(program) {
            Ok((pid, terminal)) => {
                let told = ProgramEvent::Started.send(channel.as_fd(), terminal.as_ref().map(AsFd::as_fd));
                let kill = |leader| process_group::kill_branch(process_group::descendants, leader);
                let execution = UnreapedProgram { pid, channel, kill };
                match told {
                    Ok(()) => self.executions.push(execution),
                    Err(_) => execution.end(),
                }
                None
            }
            Err(StartError::Program(WallError { subject, errno })) => {
                let _ = ProgramEvent::NotStarted { errno, subject }.send(channel.as_fd(), None);
                None
            }
            // One that doesn't answer any more starts nothing any more.
            Err(StartError::StarterLost) => Some(SupervisionEnd),
        }
    }

    fn start(&self, Program { command, stdio }: &Program) -> Result<(i32, Option<OwnedFd>), StartError> {
        let directory = self.directory(&command.directory).about("working directory");
        let directory = directory.map_err(StartError::Program)?;
        let mut streams = Streams::connect(stdio).map_err(StartError::Program)?;
        let pid = self.starter.start(command, &streams, directory)?;
        Ok((pid, streams.host_end.take()))
    }

    /// Opens a working directory: below the base, wherever links lead, if files are limited at all.
    fn directory(&self, path: &CStr) -> Result<OwnedFd, Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        match &self.plan.files {
            Files::AllOfTheUsers if path.to_bytes().starts_with(b"/") => {
                openat(CWD, path, flags, Mode::empty())
            }
            _ => {
                let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
                openat2(&self.plan.base, path, flags, Mode::empty(), resolve)
            }
        }
    }

    /// Returns the processes that run, without the starter.
    fn load(&self) -> SandboxLoad {
        let mut load = SandboxLoad { cpu: kernel::usage_of_children().cpu, ..SandboxLoad::default() };
        for member in self.members() {
            load.processes += 1;
            load.threads += member.threads;
            load.resident_bytes += member.resident_bytes;
            load.cpu += member.cpu;
        }
        load
    }

    /// Stops or continues all but the starter. A process that is signalled late may have started others meanwhile.
    fn signal_all(&self, signal: i32) {
        match signal {
            libc::SIGSTOP => self.stop_all(),
            _ => self.go_on(),
        }
    }

    fn members(&self) -> Vec<HeldProcess> {
        process_group::descendants().into_iter().filter(|member| member.pid != self.starter.pid).collect()
    }

    /// Repeats until all stand still, seen twice in a row: a process that isn't stopped yet may continue one that is.
    /// Programs that do so on purpose may never come to rest, and are waited for no longer than this.
    fn stop_all(&self) {
        const PATIENCE: Duration = Duration::from_millis(500);
        let begun = Instant::now();
        let mut were_still = false;
        while begun.elapsed() < PATIENCE {
            let moving: Vec<_> = self.members().into_iter().filter(|member| !member.is_still()).collect();
            if moving.is_empty() && were_still {
                return;
            }
            were_still = moving.is_empty();
            for member in moving {
                let _ = member.signal(Signal::STOP);
            }
            let shortly = Timespec { tv_sec: 0, tv_nsec: 200_000 };
            let _ = poll(&mut [], Some(&shortly));
        }
    }

    fn go_on(&self) {
        const ROUNDS: usize = 64;
        let mut signalled = HashSet::new();
        for _ in 0..ROUNDS {
            let mut members = self.members();
            members.retain(|member| signalled.insert(member.pid));
            if members.is_empty() {
                return;
            }
            for member in members {
                let _ = member.signal(Signal::CONT);
            }
        }
    }
}
