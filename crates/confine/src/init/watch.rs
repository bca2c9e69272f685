//! Main loop of PID 1: it starts the programs that the host asks for, reaps processes, and answers questions. It ends when
//! the sandbox's program has ended, or when the host orders it.

use super::connector::Connector;
use super::memory::MemoryWatch;
use super::payload;
use super::sandbox_state::OwnResources;
use super::send;
use super::starting_program::StartingProgram;
use super::streams::Streams;
use crate::execution::attended::{self, UnreapedProgram};
use crate::execution::{InitRequest, ProgramEvent};
use crate::inner_init::OUT_OF_MEMORY;
use crate::kernel::{self, ReapedChild};
use crate::plan::{Command, Program};
use crate::reaping::{RemainingChildren, reap_some};
use crate::report::Report;
use crate::sealed::timespec;
use crate::seccomp::policy::Audience;
use crate::walls::{ErrorContext, WallError};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::process::{Pid, Signal, kill_process};
use std::ops::ControlFlow;
use std::rc::Rc;

/// State of PID 1.
pub(super) struct InitState<'a> {
    control: BorrowedFd<'a>,
    own: Rc<OwnResources>,
    /// The mount namespace that holds the root, if PID 1 has left it.
    hidden: Option<OwnedFd>,
    /// Readable when a child has ended.
    children: OwnedFd,
    /// The program that the sandbox is for.
    program: Option<i32>,
    /// Further programs that the host has started.
    executions: Vec<UnreapedProgram>,
    /// Programs that have not started yet.
    starts: Vec<PendingStart>,
    connectors: Vec<Connector>,
    memory: MemoryWatch,
}

/// Start of a program that the host has requested.
struct PendingStart {
    starting: StartingProgram,
    /// The host's end of its terminal.
    terminal: Option<OwnedFd>,
}

/// Why a sandbox is over.
enum SandboxEndReason {
    /// The program that it was for has ended.
    Program { status: i32 },
    /// The host wants it so, or is gone.
    Host,
    /// Its memory is used up.
    Memory,
}

// === impl InitState ===

impl<'a> InitState<'a> {
    pub(super) fn begin(
        control: BorrowedFd<'a>,
        own: OwnResources,
        hidden: Option<OwnedFd>,
        memory: MemoryWatch,
    ) -> Result<Self, WallError> {
        // Before the first program starts: no end of one may be missed.
        let children = kernel::children_descriptor().about("signals")?;
        let (executions, starts, connectors) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self {
            control,
            own: Rc::new(own),
            hidden,
            children,
            program: None,
            executions,
            starts,
            connectors,
            memory,
        })
    }

    /// Starts the sandbox's program, once the host releases it.
    pub(super) fn start_program(
        &mut self,
        command: &Command,
        streams: Streams,
        audience: Audience,
    ) -> Result<(), WallError> {
        let starting = payload::begin(command, streams, Some(self.control))?;
        let program = starting.pid();
        let listener = starting.wait()?;
        self.attend_to(listener);
        if audience == Audience::Runner {
            self.own.filters.borrow_mut().exempt(program);
        }
        self.program = Some(program);
        Ok(())
    }

    /// Answers the guard of a program from now on.
    fn attend_to(&mut self, listener: Option<OwnedFd>) {
        let own = &self.own;
        self.connectors.extend(listener.map(|listener| Connector::new(listener, Rc::clone(own))));
    }

    /// Closes every descriptor that is not for the watch, those that are left from building first.
    pub(super) fn close_all_but_its_own<T>(&self, left: T) {
        drop(left);
        let mut kept = vec![self.control, self.children.as_fd()];
        kept.extend(self.hidden.as_ref().map(AsFd::as_fd));
        kept.extend(self.memory.descriptors());
        kept.extend(self.connectors.iter().map(Connector::listener));
        kernel::close_all_but(&mut kept);
    }

    /// Runs until the sandbox is over. Then ends everything in it, and only then reports the end: the receiver knows that
    /// nothing of the sandbox runs any more. Returns PID 1's exit code.
    pub(super) fn until_end(mut self) -> i32 {
        let over = loop {
            let next = match self.collect() {
                ControlFlow::Break(over) => Some(over),
                ControlFlow::Continue(left) => self.wait_for_something(left),
            };
            if let Some(over) = next {
                break over;
            }
        };
        kernel::signal_all_others(libc::SIGKILL);
        while kernel::wait_for_child().is_ok() {}
        let usage = kernel::usage_of_children();
        match over {
            SandboxEndReason::Program { status } => send(self.control, &Report::Ended { status, usage }, &[]),
            SandboxEndReason::Memory => {
                send(self.control, &Report::OutOfMemory { usage }, &[]);
                // In a container there is no receiver for that report; an engine returns the exit code.
                return OUT_OF_MEMORY;
            }
            SandboxEndReason::Host => {}
        }
        0
    }

    /// Reaps children that have ended.
    fn collect(&mut self) -> ControlFlow<SandboxEndReason, RemainingChildren> {
        reap_some(|ReapedChild { pid, status, usage }| {
            if self.program == Some(pid) {
                return ControlFlow::Break(SandboxEndReason::Program { status });
            }
            self.connectors.iter_mut().for_each(|connector| connector.child_ended(pid));
            // That it has started is reported before its end.
            self.settle_starts();
            if let Some(at) = self.executions.iter().position(|execution| execution.pid == pid) {
                if self.memory.has_cost_somebody() {
                    return ControlFlow::Break(SandboxEndReason::Memory);
                }
                self.executions.swap_remove(at).tell_end(status, usage);
            }
            ControlFlow::Continue(())
        })
    }

    /// Waits for a child to end, unless some are left that have, a word of the host's or a question, and sees to it.
    fn wait_for_something(&mut self, left: RemainingChildren) -> Option<SandboxEndReason> {
        let channels = self.executions.iter().map(|execution| execution.channel.as_fd());
        let listeners = self.connectors.iter().map(Connector::listener);
        let starts = self.starts.iter().map(|start| start.starting.reports());
        let memory = self.memory.told();
        let own = [self.children.as_fd(), self.control];
        let all = own.into_iter().chain(channels).chain(listeners).chain(starts).chain(memory);
        let mut watched: Vec<_> = all.map(|one| PollFd::from_borrowed_fd(one, PollFlags::IN)).collect();
        let patience = left.patience().unwrap_or_else(|| self.memory.patience());
        if poll(&mut watched, Some(&timespec(patience))).is_err() {
            return None;
        }
        let events: Vec<PollFlags> = watched.iter().map(PollFd::revents).collect();
        let (of_self, rest) = events.split_at_checked(2)?;
        let (of_channels, rest) = rest.split_at_checked(self.executions.len())?;
        let (of_listeners, rest) = rest.split_at_checked(self.connectors.len())?;
        let (_, of_memory) = rest.split_at_checked(self.starts.len())?;
        if of_memory.iter().any(|event| !event.is_empty()) || self.memory.has_run_out(&self.own) {
            return Some(SandboxEndReason::Memory);
        }
        self.answer(of_listeners);
        attended::obey(&mut self.executions, of_channels);
        self.settle_starts();
        // The content about ended children doesn't matter: `reap` finds them.
        let mut signals = [0; 1024];
        let _ = rustix::io::read(&self.children, &mut signals);
        if of_self[1].is_empty() { None } else { self.serve() }
    }

    /// Answers a question of each guard that has one. A guard that has hung up has no process left to guard.
    fn answer(&mut self, events: &[PollFlags]) {
        let mut events = events.iter();
        self.connectors.retain_mut(|connector| {
            let event = events.next().copied().unwrap_or(PollFlags::empty());
            if event.contains(PollFlags::IN) {
                connector.answer_one();
            }
            !event.intersects(PollFlags::HUP | PollFlags::ERR)
        });
    }

    /// Does what the host asks of PID 1.
    fn serve(&mut self) -> Option<SandboxEndReason> {
        match InitRequest::receive(self.control) {
            Ok(Some(InitRequest::Start { program, channel })) => {
                self.start_execution(&program, channel);
                None
            }
            Ok(Some(InitRequest::Count { channel })) => {
                let _ = ProgramEvent::Counted(kernel::load()).send(channel.as_fd(), None);
                None
            }
            Ok(Some(InitRequest::SignalAll(signal))) => {
                kernel::signal_all_others(signal);
                None
            }
            Ok(Some(InitRequest::Terminate)) => {
                // Only the program itself: it ends the processes that it has started, and reports that.
                if let Some(program) = self.program.and_then(Pid::from_raw) {
                    let _ = kill_process(program, Signal::TERM);
                }
                None
            }
            Ok(None) => Some(SandboxEndReason::Host),
            // The request was not understood, and so not carried out; the waiting requester sees its channel closed.
            Err(_) => None,
        }
    }

    fn start_execution(&mut self, Program { command, stdio }: &Program, channel: OwnedFd) {
        let begun = Streams::connect(stdio).and_then(|mut streams| {
            let terminal = streams.host_end.take();
            payload::begin(command, streams, None).map(|starting| PendingStart { starting, terminal })
        });
        match begun {
            Ok(start) => {
                let pid = start.starting.pid();
                self.executions.push(UnreapedProgram { pid, channel, kill: kernel::kill_session });
                self.starts.push(start);
            }
            Err(fault) => report_failed_start(channel.as_fd(), fault),
        }
    }

    /// Reports the programs that have started or failed to.
    fn settle_starts(&mut self) {
        for mut start in std::mem::take(&mut self.starts) {
            match start.starting.settle() {
                Some(outcome) => self.report_start(&start, outcome),
                None => self.starts.push(start),
            }
        }
    }

    fn report_start(
        &mut self,
        PendingStart { starting, terminal }: &PendingStart,
        outcome: Result<Option<OwnedFd>, WallError>,
    ) {
        let at = self.executions.iter().position(|execution| execution.pid == starting.pid());
        let failure = outcome.map(|listener| self.attend_to(listener)).err();
        // Without one, the host has closed its channel, and the program has been killed.
        let Some(at) = at else { return };
        let channel = self.executions[at].channel.as_fd();
        match failure {
            None if ProgramEvent::Started.send(channel, terminal.as_ref().map(AsFd::as_fd)).is_ok() => {}
            None => self.executions.swap_remove(at).end(),
            Some(fault) => {
                report_failed_start(channel, fault);
                self.executions.swap_remove(at);
            }
        }
    }
}

fn report_failed_start(channel: BorrowedFd<'_>, WallError { subject, errno }: WallError) {
    let _ = ProgramEvent::NotStarted { errno, subject }.send(channel, None);
}
