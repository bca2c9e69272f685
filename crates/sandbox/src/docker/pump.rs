//! Carries a program's streams between the relay and the descriptors that the caller gave. A thread for each program:
//! the descriptors are the caller's, may wait, and must not be changed.

use super::channel::Channel;
use super::frame::{HostMessage, LONGEST_BODY, OutputStream, RelayMessage, WINDOW};
use super::inbox::{Inbox, NextFrame, ring};
use belljar_confine::sealed::{ProgramOutcome, SandboxEnding};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

/// State shared by pump and caller.
#[derive(Debug)]
pub(super) struct PumpState {
    ending: OnceLock<SandboxEnding>,
    /// Readable when it has ended.
    pub(super) bell: OwnedFd,
    pub(super) is_killed: AtomicBool,
}

/// A program's streams on the host.
#[derive(Debug)]
pub(super) struct Pump {
    pub(super) channel: Arc<Channel>,
    pub(super) id: u32,
    pub(super) inbox: Arc<Inbox>,
    pub(super) fate: Arc<PumpState>,
    input: Option<OwnedFd>,
    /// Number of bytes that the relay has room for.
    room: usize,
    outputs: [Option<OutputSink>; 2],
    ended: Option<SandboxEnding>,
}

/// Destination of output.
#[derive(Debug)]
struct OutputSink {
    descriptor: OwnedFd,
    waiting: VecDeque<u8>,
    is_last: bool,
}

/// Number of bytes that can always be written without blocking to a pipe that has room at all.
const PORTION: usize = 4096;

/// Host ends of a program's streams.
pub(super) struct PumpStreams {
    pub(super) input: OwnedFd,
    /// Standard output and standard error.
    pub(super) outputs: [Option<OwnedFd>; 2],
}

// === impl PumpState ===

impl PumpState {
    pub(super) fn new(bell: OwnedFd) -> Self {
        Self { ending: OnceLock::new(), bell, is_killed: AtomicBool::new(false) }
    }

    pub(super) fn ending(&self) -> Option<SandboxEnding> {
        self.ending.get().copied()
    }

    fn seal(&self, ending: SandboxEnding) {
        let _ = self.ending.set(ending);
        ring(&self.bell);
    }
}

// === impl Pump ===

impl Pump {
    pub(super) fn new(
        channel: Arc<Channel>,
        id: u32,
        inbox: Arc<Inbox>,
        fate: Arc<PumpState>,
        streams: PumpStreams,
    ) -> Self {
        let PumpStreams { input, outputs } = streams;
        let sink = |descriptor| OutputSink { descriptor, waiting: VecDeque::new(), is_last: false };
        let outputs = outputs.map(|output| output.map(sink));
        Self { channel, id, inbox, fate, input: Some(input), room: WINDOW, outputs, ended: None }
    }

    /// Runs until nothing more will come, or the sandbox is gone.
    pub(super) fn run(mut self) {
        while self.step() {}
        self.channel.forget(self.id);
        // A program whose end was not reported has ended with its sandbox.
        let killed = SandboxEnding {
            outcome: ProgramOutcome::Killed,
            usage: belljar_confine::ResourceUsage::default(),
        };
        self.fate.seal(self.ended.unwrap_or(killed));
    }

    fn step(&mut self) -> bool {
        loop {
            match self.inbox.next() {
                NextFrame::Frame(told, body) => self.hear(&told, &body),
                NextFrame::Nothing => break,
                NextFrame::Closed => return false,
            }
        }
        self.tell_end();
        if self.ended.is_some() && self.outputs.iter().all(Option::is_none) {
            return false;
        }
        for (at, events) in self.wait() {
            match at {
                0 => self.read_input(events),
                1 => self.write_output(OutputStream::First, events),
                _ => self.write_output(OutputStream::Errors, events),
            }
        }
        true
    }

    fn hear(&mut self, told: &RelayMessage, body: &[u8]) {
        match told {
            RelayMessage::Output(_, output) => {
                if let Some(sink) = self.outputs.get_mut(*output as usize).and_then(Option::as_mut) {
                    sink.is_last |= body.is_empty();
                    sink.waiting.extend(body);
                    // More than there was room for: that is not our relay any more.
                    if sink.waiting.len() > WINDOW {
                        self.channel.close();
                    }
                }
                self.close_finished(*output);
            }
            RelayMessage::InputTook(_, bytes) => self.room = (self.room + *bytes as usize).min(WINDOW),
            RelayMessage::InputShut(_) => self.input = None,
            RelayMessage::Ended(_, ending) => self.ended = Some(*ending),
            _ => {}
        }
    }

    /// Reports the program's end when all its output has arrived; for a killed program, that is not waited for.
    fn tell_end(&self) {
        let Some(ending) = self.ended else { return };
        let is_waiting =
            |sink: &Option<OutputSink>| sink.as_ref().is_some_and(|sink| !sink.waiting.is_empty());
        if self.fate.is_killed.load(Ordering::Acquire) || !self.outputs.iter().any(is_waiting) {
            self.fate.seal(ending);
        }
    }

    fn wait(&self) -> Vec<(usize, PollFlags)> {
        let mut places = Vec::new();
        let mut watched = vec![PollFd::new(&*self.inbox, PollFlags::IN)];
        if let Some(input) = self.input.as_ref().filter(|_| self.room > 0) {
            places.push(0);
            watched.push(PollFd::new(input, PollFlags::IN));
        }
        for (at, sink) in self.outputs.iter().enumerate() {
            if let Some(sink) = sink {
                // The end of the reader is reported without being asked for.
                let waits = if sink.waiting.is_empty() { PollFlags::empty() } else { PollFlags::OUT };
                places.push(at + 1);
                watched.push(PollFd::new(&sink.descriptor, waits));
            }
        }
        if poll(&mut watched, None).is_err() {
            return Vec::new();
        }
        let events = watched.iter().skip(1).map(PollFd::revents);
        places.into_iter().zip(events).filter(|(_, events)| !events.is_empty()).collect()
    }

    fn read_input(&mut self, _: PollFlags) {
        let Some(input) = &self.input else { return };
        let mut bytes = vec![0; self.room.min(LONGEST_BODY)];
        let read = match rustix::io::read(input, &mut bytes) {
            Ok(read) => read,
            Err(Errno::AGAIN | Errno::INTR) => return,
            // An input that can't be read has ended.
            Err(_) => 0,
        };
        bytes.truncate(read);
        self.room -= read;
        if read == 0 {
            self.input = None;
        }
        self.send(&HostMessage::Input(self.id), &bytes);
    }

    fn write_output(&mut self, output: OutputStream, events: PollFlags) {
        let Some(sink) = self.outputs.get_mut(output as usize).and_then(Option::as_mut) else { return };
        let portion = sink.waiting.as_slices().0;
        let portion = portion.get(..PORTION.min(portion.len())).unwrap_or_default();
        let written = match portion.is_empty() {
            true if events.intersects(PollFlags::ERR | PollFlags::HUP) => Err(Errno::PIPE),
            true => return,
            false => rustix::io::write(&sink.descriptor, portion),
        };
        match written {
            Ok(written) => {
                sink.waiting.drain(..written);
                let written = u32::try_from(written).unwrap_or(u32::MAX);
                self.send(&HostMessage::Took(self.id, output, written), &[]);
                self.close_finished(output);
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            // The output has no reader any more, and the program must be told.
            Err(_) => {
                self.outputs[output as usize] = None;
                self.send(&HostMessage::Shut(self.id, output), &[]);
            }
        }
    }

    fn close_finished(&mut self, output: OutputStream) {
        let sink = &mut self.outputs[output as usize];
        if sink.as_ref().is_some_and(|sink| sink.is_last && sink.waiting.is_empty()) {
            *sink = None;
        }
    }

    fn send(&self, order: &HostMessage, body: &[u8]) {
        // A sandbox that is gone is noticed by the inbox.
        let _ = self.channel.send(order, body);
    }
}
