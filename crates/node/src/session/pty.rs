//! Terminals in sessions: input is written to the terminal, and output is buffered until its reader has it.
//!
//! ```text
//! program ─► terminal ─► buffer, up to a limit ─► the reader acknowledges bytes by `after`
//!                └─ full: the terminal is not read, and the program blocks
//! ```

use super::{Session, SessionError, SessionUse};
use belljar_confine::plan::Stdio;
use belljar_contract::id::PtyId;
use belljar_sandbox::backend::{Execution, TerminalSize};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::collections::{HashMap, VecDeque};
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A terminal. Dropping it kills its program.
pub(crate) struct Pty {
    pub(crate) id: PtyId,
    terminal: Arc<AsyncFd<OwnedFd>>,
    execution: Mutex<Box<dyn Execution>>,
    buffer: Arc<Mutex<PtyBuffer>>,
    /// Notified when output was added or consumed.
    changed: watch::Sender<()>,
    reader: JoinHandle<()>,
    exit_code: Mutex<Option<i32>>,
    /// Number of clients that have attached; only the last one is served.
    attached: watch::Sender<u64>,
    _using: SessionUse,
}

/// A client that is attached, until another one is.
pub(crate) struct PtyAttachment {
    own: u64,
    last: watch::Receiver<u64>,
}

/// A piece of a terminal's output, and its end if it has ended.
pub(crate) struct PtyChunk {
    pub(crate) bytes: Vec<u8>,
    pub(crate) next: u64,
    pub(crate) closed: bool,
    pub(crate) exit_code: Option<i32>,
}

#[derive(Default)]
struct PtyBuffer {
    /// Number of bytes that were dropped from the front.
    gone: u64,
    bytes: VecDeque<u8>,
    /// True if no more output will come.
    is_over: bool,
}

/// Maximum number of terminals in one session.
const MOST_TERMINALS: usize = 8;

/// Maximum number of bytes that are kept for the reader.
const MOST_KEPT: usize = 256 << 10;

/// Maximum number of bytes that are read at once.
const LARGEST_PIECE: usize = 64 << 10;

/// Maximum time for writing input to a program that doesn't read it.
const TYPED_WITHIN: Duration = Duration::from_secs(10);

/// Time after a program's end for which its remaining output is read.
const LAST_WORDS: Duration = Duration::from_millis(200);

impl Session {
    /// Opens a terminal with a program in it.
    pub(crate) async fn open_pty(
        self: &Arc<Self>,
        (argv, cwd): (Vec<String>, Option<String>),
        size: TerminalSize,
    ) -> Result<Arc<Pty>, SessionError> {
        self.with_room_for_terminal(|_| ())?;
        let using = self.begin()?;
        let session = Arc::clone(self);
        let started = tokio::task::spawn_blocking(move || {
            let execution = session.start((argv, cwd), Stdio::Terminal)?;
            execution.resize(size).map_err(SessionError::Sandbox)?;
            Ok(execution)
        });
        let died = |died: tokio::task::JoinError| SessionError::Terminal(io::Error::other(died));
        let execution = started.await.map_err(died)??;
        let pty = Arc::new(Pty::begin(execution, using).map_err(SessionError::Terminal)?);
        // Other terminals may have been opened meanwhile, or the session may have ended.
        self.with_room_for_terminal(|terminals| terminals.insert(pty.id.key(), Arc::clone(&pty)))?;
        Ok(pty)
    }

    /// Runs `act` if there is room for another terminal. Terminals that have ended and were read completely are removed if
    /// necessary.
    fn with_room_for_terminal<T>(
        &self,
        act: impl FnOnce(&mut HashMap<String, Arc<Pty>>) -> T,
    ) -> Result<T, SessionError> {
        let mut terminals = self.terminals();
        let ended = || SessionError::Unknown(self.request().session_id.clone());
        let terminals = terminals.as_mut().ok_or_else(ended)?;
        if terminals.len() >= MOST_TERMINALS {
            terminals.retain(|_, pty| !pty.is_read_to_its_end());
        }
        match terminals.len() >= MOST_TERMINALS {
            true => Err(SessionError::TooManyTerminals(MOST_TERMINALS)),
            false => Ok(act(terminals)),
        }
    }

    /// Finds a terminal that is open, or has ended with unread output. Counts as use of the session.
    pub(crate) fn pty(&self, id: &PtyId) -> Result<Arc<Pty>, SessionError> {
        self.touch();
        self.untouched_pty(id)
    }

    /// Finds a terminal, without counting as use of the session.
    pub(crate) fn untouched_pty(&self, id: &PtyId) -> Result<Arc<Pty>, SessionError> {
        let found = self.terminals().as_ref().and_then(|terminals| terminals.get(&id.key()).cloned());
        found.ok_or_else(|| SessionError::UnknownTerminal(id.clone()))
    }

    /// Closes a terminal, and kills its program. Closing an unknown terminal succeeds.
    pub(crate) fn close_pty(&self, id: &PtyId) {
        self.touch();
        let closed = self.terminals().as_mut().and_then(|terminals| terminals.remove(&id.key()));
        if let Some(pty) = closed {
            pty.kill();
        }
    }

    fn terminals(&self) -> MutexGuard<'_, Option<HashMap<String, Arc<Pty>>>> {
        self.ptys.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

// === impl Pty ===

impl Pty {
    fn begin(mut execution: Box<dyn Execution>, using: SessionUse) -> io::Result<Self> {
        let terminal = execution.take_terminal().ok_or(Errno::NOTTY)?;
        rustix::io::ioctl_fionbio(&terminal, true)?;
        let ending = execution.ending().try_clone_to_owned()?;
        let terminal = Arc::new(watched(terminal, Interest::READABLE | Interest::WRITABLE)?);
        let ending = watched(ending, Interest::READABLE)?;
        let buffer = Arc::<Mutex<PtyBuffer>>::default();
        let (changed, _) = watch::channel(());
        let reading = read(Arc::clone(&terminal), ending, Arc::clone(&buffer), changed.clone());
        Ok(Self {
            id: PtyId::from_uuid(uuid::Uuid::now_v7()),
            terminal,
            execution: Mutex::new(execution),
            buffer,
            changed,
            reader: tokio::spawn(reading),
            exit_code: Mutex::default(),
            attached: watch::channel(0).0,
            _using: using,
        })
    }

    /// Attaches a client, and detaches the previous one, whose connection may be gone unnoticed.
    pub(crate) fn attach(&self) -> PtyAttachment {
        let last = self.attached.subscribe();
        let mut own = 0;
        self.attached.send_modify(|number| {
            *number += 1;
            own = *number;
        });
        PtyAttachment { own, last }
    }

    /// Writes input. Returns when all of it is in the terminal.
    pub(crate) async fn send(&self, mut bytes: &[u8]) -> Result<(), SessionError> {
        let typing = async {
            while !bytes.is_empty() {
                let mut ready = self.terminal.writable().await?;
                let typed = ready.try_io(|terminal| Ok(rustix::io::write(terminal, bytes)?));
                match typed {
                    Ok(Ok(size)) => bytes = &bytes[size..],
                    Ok(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                    Ok(Err(error)) => return Err(error),
                    Err(_would_block) => {}
                }
            }
            Ok(())
        };
        let typed = tokio::time::timeout(TYPED_WITHIN, typing).await;
        typed.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())).map_err(SessionError::Terminal)
    }

    /// Returns output from byte `after` on; waits for some, or for the end. Output before `after` is dropped.
    pub(crate) async fn receive(&self, after: u64, wait: Duration) -> PtyChunk {
        let mut changed = self.changed.subscribe();
        let given_up = tokio::time::Instant::now() + wait;
        loop {
            let piece = self.piece(after);
            if !piece.bytes.is_empty() || piece.closed {
                return piece;
            }
            if tokio::time::timeout_at(given_up, changed.changed()).await.is_err() {
                return piece;
            }
        }
    }

    pub(crate) fn resize(&self, size: TerminalSize) -> Result<(), SessionError> {
        let execution = self.execution.lock().unwrap_or_else(PoisonError::into_inner);
        execution.resize(size).map_err(SessionError::Sandbox)
    }

    /// Returns true if no more output will come, and all of it was read.
    fn is_read_to_its_end(&self) -> bool {
        let buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        buffer.is_over && buffer.bytes.is_empty()
    }

    fn kill(&self) {
        let execution = self.execution.lock().unwrap_or_else(PoisonError::into_inner);
        // An error means that it has ended.
        let _ = execution.kill();
    }

    fn piece(&self, after: u64) -> PtyChunk {
        let mut buffer = self.buffer.lock().unwrap_or_else(PoisonError::into_inner);
        let had =
            usize::try_from(after.saturating_sub(buffer.gone)).unwrap_or(usize::MAX).min(buffer.bytes.len());
        buffer.bytes.drain(..had);
        buffer.gone += had as u64;
        let bytes: Vec<u8> = buffer.bytes.iter().take(LARGEST_PIECE).copied().collect();
        let next = buffer.gone + bytes.len() as u64;
        let closed = buffer.is_over && bytes.len() == buffer.bytes.len();
        drop(buffer);
        if had > 0 {
            self.changed.send_replace(());
        }
        PtyChunk { bytes, next, closed, exit_code: closed.then(|| self.exit_code()).flatten() }
    }

    /// Returns the exit code of its program.
    fn exit_code(&self) -> Option<i32> {
        let mut known = self.exit_code.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_none() {
            let mut execution = self.execution.lock().unwrap_or_else(PoisonError::into_inner);
            let ending = execution.wait_until(Some(Instant::now())).ok().flatten();
            *known = ending.map(|ending| ending.outcome.exit_code().into());
        }
        *known
    }
}

// === impl PtyAttachment ===

impl PtyAttachment {
    /// Returns when another client is attached.
    pub(crate) async fn until_replaced(mut self) {
        // An error means that the terminal is gone.
        let _ = self.last.wait_for(|last| *last != self.own).await;
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        self.reader.abort();
        self.kill();
    }
}

#[expect(
    deprecated,
    reason = "unsound only for what may name another descriptor later, which an owned one does not"
)]
fn watched(descriptor: OwnedFd, interest: Interest) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(descriptor, interest)
}

/// Reads a terminal while the buffer has room, until its program has ended.
async fn read(
    terminal: Arc<AsyncFd<OwnedFd>>,
    ending: AsyncFd<OwnedFd>,
    buffer: Arc<Mutex<PtyBuffer>>,
    changed: watch::Sender<()>,
) {
    let mut room = changed.subscribe();
    let mut piece = vec![0; LARGEST_PIECE];
    let mut given_up = None::<Instant>;
    loop {
        let is_full = buffer.lock().unwrap_or_else(PoisonError::into_inner).bytes.len() >= MOST_KEPT;
        if is_full {
            // Continues when a reader has consumed bytes. Dropping the terminal aborts this task.
            let _ = room.changed().await;
            continue;
        }
        if given_up.is_some_and(|given_up| Instant::now() >= given_up) {
            // Background processes may keep the terminal open, but its program has ended.
            break;
        }
        tokio::select! {
            ready = terminal.readable() => {
                let Ok(mut ready) = ready else { break };
                match ready.try_io(|terminal| Ok(rustix::io::read(terminal, &mut piece[..])?)) {
                    // The last program that had it open is gone.
                    Ok(Ok(0) | Err(_)) => break,
                    Ok(Ok(size)) => {
                        buffer.lock().unwrap_or_else(PoisonError::into_inner).bytes.extend(&piece[..size]);
                        changed.send_replace(());
                    }
                    Err(_would_block) => {}
                }
            }
            _ = ending.readable(), if given_up.is_none() => given_up = Some(Instant::now() + LAST_WORDS),
            () = tokio::time::sleep_until(given_up.unwrap_or_else(Instant::now).into()), if given_up.is_some() => {}
        }
    }
    // If all processes have closed the terminal, its program has ended or is about to.
    let _ = ending.readable().await;
    let mut buffer = buffer.lock().unwrap_or_else(PoisonError::into_inner);
    buffer.is_over = true;
    drop(buffer);
    changed.send_replace(());
}
