//! A program, as the relay holds it: its streams, and how far it has come.

use super::{ReadyDescriptor, RelayError, send};
use crate::docker::frame::{LONGEST_BODY, OutputStream, RelayMessage, WINDOW};
use belljar_confine::execution::SandboxedProgram;
use belljar_confine::plan::Stdio;
use belljar_confine::sealed::SandboxEnding;
use rustix::event::{PollFd, PollFlags};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::io::Errno;
use rustix::pipe::{PipeFlags, pipe_with};
use rustix::termios::{Winsize, tcsetwinsize};
use std::collections::VecDeque;
use std::time::Instant;

pub(super) struct RelayedProgram {
    id: u32,
    execution: SandboxedProgram,
    input: Option<ProgramInput>,
    /// Outputs; that of a terminal is the first.
    outputs: [Option<ProgramOutput>; 2],
    terminal: Option<OwnedFd>,
    life: ProgramState,
    is_killed: bool,
}

/// Destination of its input.
struct ProgramInput {
    descriptor: OwnedFd,
    queue: VecDeque<u8>,
    is_last: bool,
}

/// Source of its output.
struct ProgramOutput {
    descriptor: OwnedFd,
    /// Number of bytes that the host has room for.
    room: usize,
}

enum ProgramState {
    Runs,
    /// The program has ended; some of its earlier output has yet to be sent.
    Drains {
        ending: SandboxEnding,
        left: [u64; 2],
    },
    Told,
}

/// The streams of a program, before it runs.
pub(super) struct ProgramPipes {
    pub(super) ours: Option<[OwnedFd; 3]>,
    pub(super) theirs: Stdio,
}

// === impl ProgramPipes ===

impl ProgramPipes {
    pub(super) fn make(has_terminal: bool) -> Result<Self, Errno> {
        if has_terminal {
            return Ok(Self { ours: None, theirs: Stdio::Terminal });
        }
        let pipe = || pipe_with(PipeFlags::CLOEXEC);
        let ((input, to_it), (of_it, output), (of_its_errors, errors)) = (pipe()?, pipe()?, pipe()?);
        Ok(Self {
            ours: Some([to_it, of_it, of_its_errors]),
            theirs: Stdio::Descriptors([input, output, errors]),
        })
    }
}

fn never_waiting(descriptor: OwnedFd) -> Result<OwnedFd, Errno> {
    fcntl_setfl(&descriptor, fcntl_getfl(&descriptor)? | OFlags::NONBLOCK)?;
    Ok(descriptor)
}

// === impl RelayedProgram ===

impl RelayedProgram {
    pub(super) fn new(
        id: u32,
        mut execution: SandboxedProgram,
        pipes: Option<[OwnedFd; 3]>,
    ) -> Result<Self, Errno> {
        let terminal = execution.take_terminal().map(never_waiting).transpose()?;
        let (input, outputs) = match (pipes, &terminal) {
            (Some([input, output, errors]), _) => (input, [Some(output), Some(errors)]),
            (None, Some(terminal)) => {
                let copy = || rustix::io::fcntl_dupfd_cloexec(terminal, 3);
                (copy()?, [Some(copy()?), None])
            }
            (None, None) => return Err(Errno::NOTTY),
        };
        let source = |descriptor: Option<OwnedFd>| {
            let descriptor = descriptor.map(never_waiting).transpose()?;
            Ok::<_, Errno>(descriptor.map(|descriptor| ProgramOutput { descriptor, room: WINDOW }))
        };
        let [first, second] = outputs;
        Ok(Self {
            id,
            execution,
            input: Some(ProgramInput {
                descriptor: never_waiting(input)?,
                queue: VecDeque::new(),
                is_last: false,
            }),
            outputs: [source(first)?, source(second)?],
            terminal,
            life: ProgramState::Runs,
            is_killed: false,
        })
    }

    pub(super) fn id(&self) -> u32 {
        self.id
    }

    /// Returns true if the program is over and has no output left.
    pub(super) fn is_over(&self) -> bool {
        matches!(self.life, ProgramState::Told) && self.outputs.iter().all(Option::is_none)
    }

    pub(super) fn watch<'a>(&'a self, watched: &mut Vec<(ReadyDescriptor, PollFd<'a>)>) {
        if matches!(self.life, ProgramState::Runs) {
            watched.push((
                ReadyDescriptor::Ending(self.id),
                PollFd::from_borrowed_fd(self.execution.ending(), PollFlags::IN),
            ));
        }
        if let Some(input) = &self.input {
            // The end of a pipe's reader is reported without being asked for; a terminal would report it again and again.
            let waits = if input.queue.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
            if self.terminal.is_none() || !waits.is_empty() {
                watched.push((ReadyDescriptor::Input(self.id), PollFd::new(&input.descriptor, waits)));
            }
        }
        for (output, source) in [OutputStream::First, OutputStream::Errors].into_iter().zip(&self.outputs) {
            // Without room the data could not be read, and so it is not polled for.
            if let Some(source) = source.as_ref().filter(|source| source.room > 0) {
                watched.push((
                    ReadyDescriptor::Output(self.id, output),
                    PollFd::new(&source.descriptor, PollFlags::IN),
                ));
            }
        }
    }

    /// Notices the program's end, and reports it as soon as all its output is on its way.
    pub(super) fn collect(&mut self) -> Result<(), RelayError> {
        let Ok(Some(ending)) = self.execution.wait_until(Some(Instant::now())) else { return Ok(()) };
        let waiting = |source: &Option<ProgramOutput>| {
            source
                .as_ref()
                .and_then(|source| rustix::io::ioctl_fionread(&source.descriptor).ok())
                .unwrap_or(0)
        };
        // Its background processes may go on writing; their output is not waited for.
        let left = [waiting(&self.outputs[0]), waiting(&self.outputs[1])];
        self.life = ProgramState::Drains { ending, left };
        self.tell_end()
    }

    fn tell_end(&mut self) -> Result<(), RelayError> {
        let ProgramState::Drains { ending, left } = &self.life else { return Ok(()) };
        let is_drained = self.outputs.iter().zip(left).all(|(source, left)| source.is_none() || *left == 0);
        if !is_drained && !self.is_killed {
            return Ok(());
        }
        let told = RelayMessage::Ended(self.id, *ending);
        self.life = ProgramState::Told;
        send(&told, &[])
    }

    pub(super) fn take_input(&mut self, bytes: &[u8]) -> Result<(), RelayError> {
        let Some(input) = &mut self.input else { return Ok(()) };
        input.queue.extend(bytes);
        input.is_last |= bytes.is_empty();
        self.write_input(PollFlags::OUT)
    }

    pub(super) fn write_input(&mut self, events: PollFlags) -> Result<(), RelayError> {
        let Some(input) = &mut self.input else { return Ok(()) };
        let mut written = 0;
        let mut is_shut = input.queue.is_empty() && events.intersects(PollFlags::ERR);
        while !input.queue.is_empty() {
            match rustix::io::write(&input.descriptor, input.queue.as_slices().0) {
                Ok(count) => {
                    input.queue.drain(..count);
                    written += u32::try_from(count).unwrap_or(u32::MAX);
                }
                Err(Errno::AGAIN | Errno::INTR) => break,
                Err(_) => {
                    is_shut = true;
                    break;
                }
            }
        }
        let is_done = input.is_last && input.queue.is_empty();
        if written > 0 {
            send(&RelayMessage::InputTook(self.id, written), &[])?;
        }
        if is_shut {
            send(&RelayMessage::InputShut(self.id), &[])?;
        }
        if is_done && self.terminal.is_some() {
            // The user of the terminal is gone: hung up.
            self.end_output(OutputStream::First)?;
        }
        if is_shut || is_done {
            self.input = None;
        }
        Ok(())
    }

    pub(super) fn read_output(&mut self, output: OutputStream) -> Result<(), RelayError> {
        let at = output as usize;
        let Some(source) = self.outputs.get_mut(at).and_then(Option::as_mut) else { return Ok(()) };
        let mut bytes = vec![0; LONGEST_BODY.min(source.room)];
        match rustix::io::read(&source.descriptor, &mut bytes) {
            Ok(0) => self.end_output(output)?,
            Ok(count) => {
                source.room -= count;
                bytes.truncate(count);
                if let ProgramState::Drains { left, .. } = &mut self.life {
                    left[at] = left[at].saturating_sub(count as u64);
                }
                send(&RelayMessage::Output(self.id, output), &bytes)?;
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            // A terminal that no process has open any more.
            Err(_) => self.end_output(output)?,
        }
        self.tell_end()
    }

    fn end_output(&mut self, output: OutputStream) -> Result<(), RelayError> {
        if self.terminal.is_some() {
            (self.input, self.terminal) = (None, None);
        }
        match self.outputs.get_mut(output as usize).and_then(Option::take) {
            Some(_) => send(&RelayMessage::Output(self.id, output), &[]),
            None => Ok(()),
        }
    }

    pub(super) fn took(&mut self, output: OutputStream, bytes: u32) -> Result<(), RelayError> {
        if let Some(source) = self.outputs.get_mut(output as usize).and_then(Option::as_mut) {
            source.room = (source.room + bytes as usize).min(WINDOW);
        }
        Ok(())
    }

    /// Closes an output that has no reader any more: the kernel reports that to a process that writes there.
    pub(super) fn shut(&mut self, output: OutputStream) -> Result<(), RelayError> {
        self.end_output(output)?;
        self.tell_end()
    }

    pub(super) fn signal(&mut self, signal: i32) -> Result<(), RelayError> {
        self.execution.signal(signal);
        Ok(())
    }

    pub(super) fn kill(&mut self) -> Result<(), RelayError> {
        self.is_killed = true;
        self.execution.kill();
        self.tell_end()
    }

    pub(super) fn resize(&mut self, ws_row: u16, ws_col: u16) -> Result<(), RelayError> {
        if let Some(terminal) = &self.terminal {
            // A refused size is ignored: the program keeps the previous one.
            let _ = tcsetwinsize(terminal.as_fd(), Winsize { ws_row, ws_col, ws_xpixel: 0, ws_ypixel: 0 });
        }
        Ok(())
    }
}
