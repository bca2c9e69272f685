//! The relay: carries between the engine's one stream and the programs that PID 1 starts.
//!
//! A single thread that waits for all of its descriptors at once. It is trusted, but a program inside may attack it: it
//! does what the host's frames say, and treats the programs' bytes as opaque.

mod program;

use super::frame::{self, Decoder, HostMessage, InvalidFrame, LONGEST_BODY, RelayMessage, StartRequest};
use super::measured::MeasuredIsolation;
use super::processes;
use crate::backend::with_causes;
use belljar_confine::execution::ExecutionError;
use belljar_confine::inner_init::WalledInit;
use belljar_confine::plan::Command;
use program::{ProgramPipes, RelayedProgram};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::process::{DumpableBehavior, set_dumpable_behavior};
use std::error::Error;
use std::ffi::CString;

/// Descriptor that is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadyDescriptor {
    Engine,
    Init,
    Ending(u32),
    Input(u32),
    Output(u32, frame::OutputStream),
}

struct Relay {
    attended: WalledInit,
    from_engine: OwnedFd,
    decoder: Decoder,
    programs: Vec<RelayedProgram>,
}

/// Runs until either side is gone.
pub(super) fn run(places: &[String]) -> Result<(), Box<dyn Error>> {
    // Where the kernel keeps no signals within Landlock domains, it may at least not be traced.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    let copy = |stream| rustix::io::fcntl_dupfd_cloexec(stream, 3);
    let from_engine = copy(rustix::stdio::stderr())?;
    let attended = match WalledInit::expect(copy(rustix::stdio::stdin())?) {
        Ok(attended) => attended,
        Err(error) => return Ok(send(&RelayMessage::Failed(with_causes(&error)), &[])?),
    };
    send(&RelayMessage::Ready(Box::new(MeasuredIsolation::take(&attended, places))), &[])?;
    let mut relay = Relay { attended, from_engine, decoder: Decoder::default(), programs: Vec::new() };
    while relay.step()? {}
    Ok(())
}

/// Why the relay ends: it has no peer any more.
#[derive(Debug, thiserror::Error)]
enum RelayError {
    #[error("cannot send to the host")]
    Speak(#[source] Errno),
    #[error("cannot receive from the host")]
    Hear(#[source] Errno),
    #[error("process 1 has ended")]
    Init,
    #[error(transparent)]
    NoFrame(#[from] InvalidFrame),
}

/// Sends a frame to the host, which always reads: more than it has room for is not sent in the first place.
fn send(told: &RelayMessage, body: &[u8]) -> Result<(), RelayError> {
    let bytes = frame::encode(told, body)?;
    let mut left = bytes.as_slice();
    while !left.is_empty() {
        let engine = rustix::stdio::stdout();
        match rustix::io::write(engine, left) {
            Ok(written) => left = left.get(written..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let mut room = [PollFd::from_borrowed_fd(engine, PollFlags::OUT)];
                poll(&mut room, None).map_err(RelayError::Speak)?;
            }
            Err(errno) => return Err(RelayError::Speak(errno)),
        }
    }
    Ok(())
}

// === impl Relay ===

impl Relay {
    /// Waits for something to happen and sees to it; false when it is over.
    fn step(&mut self) -> Result<bool, RelayError> {
        for (ready, events) in self.wait()? {
            match ready {
                ReadyDescriptor::Engine => {
                    if !self.hear()? {
                        return Ok(false);
                    }
                }
                ReadyDescriptor::Init => return Ok(false),
                ReadyDescriptor::Ending(id) => self.with(id, RelayedProgram::collect)?,
                ReadyDescriptor::Input(id) => self.with(id, |program| program.write_input(events))?,
                ReadyDescriptor::Output(id, output) => {
                    self.with(id, |program| program.read_output(output))?;
                }
            }
        }
        self.programs.retain(|program| !program.is_over());
        Ok(true)
    }

    fn with(
        &mut self,
        id: u32,
        act: impl FnOnce(&mut RelayedProgram) -> Result<(), RelayError>,
    ) -> Result<(), RelayError> {
        self.programs.iter_mut().find(|program| program.id() == id).map_or(Ok(()), act)
    }

    fn wait(&self) -> Result<Vec<(ReadyDescriptor, PollFlags)>, RelayError> {
        let mut watched = vec![
            (ReadyDescriptor::Engine, PollFd::new(&self.from_engine, PollFlags::IN)),
            (ReadyDescriptor::Init, PollFd::new(&self.attended, PollFlags::IN)),
        ];
        for program in &self.programs {
            program.watch(&mut watched);
        }
        let (readies, mut descriptors): (Vec<ReadyDescriptor>, Vec<PollFd<'_>>) = watched.into_iter().unzip();
        match poll(&mut descriptors, None) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(RelayError::Hear(errno)),
        }
        let events = descriptors.iter().map(PollFd::revents);
        Ok(readies.into_iter().zip(events).filter(|(_, events)| !events.is_empty()).collect())
    }

    /// Handles the frames of the host. Returns false when it has gone.
    fn hear(&mut self) -> Result<bool, RelayError> {
        let mut bytes = [0; LONGEST_BODY];
        match rustix::io::read(&self.from_engine, &mut bytes) {
            Ok(0) => return Ok(false),
            Ok(read) => self.decoder.push(bytes.get(..read).unwrap_or_default()),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(errno) => return Err(RelayError::Hear(errno)),
        }
        while let Some((order, body)) = self.decoder.next()? {
            self.obey(order, &body)?;
        }
        Ok(true)
    }

    fn obey(&mut self, order: HostMessage, body: &[u8]) -> Result<(), RelayError> {
        match order {
            HostMessage::Start(id, start) => match self.start(id, start) {
                Ok(program) => {
                    self.programs.push(program);
                    send(&RelayMessage::Started(id), &[])
                }
                // PID 1 has ended with all that was in the sandbox; the host sees that when the stream ends.
                Err(ExecutionError::Gone | ExecutionError::NoAnswer { .. }) => Err(RelayError::Init),
                Err(ExecutionError::NotStarted { subject, source }) => {
                    send(&RelayMessage::NotStarted(id, source.raw_os_error(), subject), &[])
                }
                Err(ExecutionError::Channel { source }) => {
                    send(&RelayMessage::NotStarted(id, source.raw_os_error(), String::new()), &[])
                }
            },
            HostMessage::Input(id) => self.with(id, |program| program.take_input(body)),
            HostMessage::Took(id, output, bytes) => self.with(id, |program| program.took(output, bytes)),
            HostMessage::Shut(id, output) => self.with(id, |program| program.shut(output)),
            HostMessage::Signal(id, signal) => self.with(id, |program| program.signal(signal)),
            HostMessage::Kill(id) => self.with(id, RelayedProgram::kill),
            HostMessage::Resize(id, rows, columns) => self.with(id, |program| program.resize(rows, columns)),
            HostMessage::StopAll(id, true) => {
                processes::stop();
                send(&RelayMessage::Done(id), &[])
            }
            HostMessage::StopAll(id, false) => {
                processes::resume();
                send(&RelayMessage::Done(id), &[])
            }
            HostMessage::Count(id) => send(&RelayMessage::Counted(id, processes::count()), &[]),
        }
    }

    fn start(&self, id: u32, start: StartRequest) -> Result<RelayedProgram, ExecutionError> {
        let refused = |source: Errno| ExecutionError::NotStarted { subject: String::new(), source };
        let texts = |texts: Vec<Vec<u8>>| {
            let texts = texts.into_iter().map(CString::new).collect::<Result<Vec<_>, _>>();
            texts.map_err(|_| refused(Errno::INVAL))
        };
        let directory = CString::new(start.directory).map_err(|_| refused(Errno::INVAL))?;
        let command = Command { argv: texts(start.argv)?, env: texts(start.env)?, directory };
        let ProgramPipes { ours, theirs } = ProgramPipes::make(start.has_terminal).map_err(refused)?;
        let execution = self.attended.start(command, theirs)?;
        RelayedProgram::new(id, execution, ours).map_err(refused)
    }
}
