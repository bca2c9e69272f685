//! The process that keeps a session.

mod checkpoint;

use super::protocol::{Answer, Ask, Outcome, receive, send};
use super::{DESCRIPTION, SOCKET, Session, SessionError};
use crate::backend::{BackendError, Execution, Sandbox, TerminalSize, Wanted, with_causes};
use crate::backends::chosen::{Chosen, Site};
use crate::limits::Limit;
use crate::spec::Program;
use crate::state::State;
use crate::workspace::baseline::Baseline;
use belljar_confine::launch::LaunchError;
use belljar_confine::launcher::Launcher;
use belljar_confine::plan::Stdio;
use belljar_confine::sealed;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen, socket_with,
};
use std::error::Error;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

/// The name under which belljar is a keeper.
pub const KEEPER: &str = "belljar-keeper";

/// What a keeper shall keep.
#[derive(Debug)]
pub struct Keeping {
    /// Where.
    pub site: Site,
    /// What makes the sandbox.
    pub backend: Chosen,
    /// The sandbox.
    pub wanted: Wanted,
    /// The session; its id and its backend are filled in.
    pub session: Session,
}

/// Serves the sockets of a session's hatches, if it has any; for as long as what it gives lives.
pub type Serve<'s> =
    &'s dyn Fn(&Session, Vec<OwnedFd>) -> Result<Box<dyn Send>, Box<dyn Error + Send + Sync>>;

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub enum KeeperError {
    /// There is no launcher.
    #[error("can't start a launcher")]
    Launcher(#[from] LaunchError),
    /// There is no sandbox.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// What it shall be a fork of can't be reached.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// It has hatches that can't be served.
    #[error("can't serve what the session may reach")]
    Serve(#[source] Box<dyn Error + Send + Sync>),
    /// Nobody can reach it.
    #[error("can't listen for commands")]
    Listen(#[source] std::io::Error),
}

/// A session that is kept.
struct Keeper {
    session: Session,
    state: State,
    /// What its sandbox was asked to be.
    wanted: Wanted,
    sandbox: RwLock<Option<Box<dyn Sandbox>>>,
    activity: Mutex<Activity>,
    /// What a commit is measured against. Whoever holds it is alone with the workspace: no program is started meanwhile.
    baseline: Mutex<Baseline>,
}

/// What goes on.
struct Activity {
    running: u64,
    /// The commands among it, oldest first.
    commands: Vec<String>,
    since: Instant,
}

/// How often it is looked whether the session's time is over.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// Keeps a session until it is over. `ready` is called with it once it can be reached. To be called before the process
/// has a second thread.
///
/// # Errors
/// [`KeeperError`] when there is no session; how it ends is nobody's to hear.
pub fn keep(keeping: Keeping, serve: Serve<'_>, ready: impl FnOnce(&Session)) -> Result<(), KeeperError> {
    let Keeping { site, backend, wanted, session } = keeping;
    let (state, session) = (State::at(&site.state), Session { backend: backend.name(), ..session });
    let backend = backend.make(Arc::new(Launcher::start()?), &site)?;
    let baseline = Baseline::now();
    let sandbox = backend.create(wanted.clone())?;
    look_after(Begun { state, wanted, session, sandbox, baseline }, serve, ready)
}

/// A session whose sandbox is made.
pub(super) struct Begun {
    pub(super) state: State,
    pub(super) wanted: Wanted,
    pub(super) session: Session,
    pub(super) sandbox: Box<dyn Sandbox>,
    pub(super) baseline: Baseline,
}

/// Looks after a session until it is over.
pub(super) fn look_after(
    begun: Begun,
    serve: Serve<'_>,
    ready: impl FnOnce(&Session),
) -> Result<(), KeeperError> {
    let Begun { state, wanted, mut session, mut sandbox, baseline } = begun;
    session.id = sandbox.id().to_string();
    let sockets = sandbox.take_hatches();
    let served = (!sockets.is_empty()).then(|| serve(&session, sockets)).transpose();
    let served = served.map_err(KeeperError::Serve)?;
    let folder = state.run_folder(sandbox.id());
    let listener = publish(&folder, &session).map_err(KeeperError::Listen)?;
    let begun = Instant::now();
    ready(&session);
    let keeper = Arc::new(Keeper {
        session,
        state,
        wanted,
        sandbox: RwLock::new(Some(sandbox)),
        activity: Mutex::new(Activity { running: 0, commands: Vec::new(), since: begun }),
        baseline: Mutex::new(baseline),
    });
    while !keeper.is_over(begun) {
        let mut called = [PollFd::new(&listener, PollFlags::IN)];
        if matches!(poll(&mut called, Some(&TICK)), Ok(1..))
            && let Ok(caller) = accept_own(&listener)
        {
            let keeper = Arc::clone(&keeper);
            std::thread::spawn(move || keeper.serve(&caller));
        }
    }
    keeper.end();
    // With the sandbox gone nothing more is asked for.
    drop(served);
    Ok(())
}

/// Puts the description and the socket into the run's folder.
fn publish(folder: &Path, session: &Session) -> std::io::Result<OwnedFd> {
    let listener = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    let directory = std::fs::File::open(folder)?;
    bind(&listener, &address(directory.as_fd())?)?;
    std::fs::set_permissions(folder.join(SOCKET), std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    listen(&listener, 64)?;
    std::fs::write(folder.join(DESCRIPTION), serde_json::to_vec(session)?)?;
    Ok(listener)
}

/// The address of the socket in a folder, whose own path may be longer than an address can be.
pub(super) fn address(folder: rustix::fd::BorrowedFd<'_>) -> Result<SocketAddrUnix, Errno> {
    use rustix::fd::AsRawFd;
    SocketAddrUnix::new(format!("/proc/self/fd/{}/{SOCKET}", folder.as_raw_fd()))
}

/// Accepts a call, if it comes from this process's own user.
fn accept_own(listener: &OwnedFd) -> Result<OwnedFd, Errno> {
    let caller = accept_with(listener, SocketFlags::CLOEXEC)?;
    let credentials = rustix::net::sockopt::socket_peercred(&caller)?;
    match credentials.uid == rustix::process::geteuid() {
        true => Ok(caller),
        false => Err(Errno::ACCESS),
    }
}

// === impl Keeper ===

impl Keeper {
    fn is_over(&self, begun: Instant) -> bool {
        let activity = lock(&self.activity);
        let is_idle = activity.running == 0 && activity.since.elapsed() >= self.session.idle_limit;
        // Somebody who is ending it holds the lock, and callers need not wait for that.
        let is_gone = self.sandbox.try_read().is_ok_and(|sandbox| sandbox.is_none());
        is_idle || begun.elapsed() >= self.session.lifetime_limit || is_gone
    }

    fn sandbox(&self) -> RwLockReadGuard<'_, Option<Box<dyn Sandbox>>> {
        self.sandbox.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn end(&self) {
        if let Some(sandbox) = self.sandbox.write().unwrap_or_else(PoisonError::into_inner).take() {
            // What can't be cleared away now is cleared away as a leftover.
            let _ = sandbox.destroy();
        }
    }

    /// Serves one caller to the end.
    fn serve(&self, caller: &OwnedFd) {
        let Ok(Some((ask, descriptors))) = receive::<Ask>(caller) else { return };
        let answer = match ask {
            Ask::Exec { argv, directory, terminal } => {
                let stdio = match (terminal, <[OwnedFd; 3]>::try_from(descriptors)) {
                    (true, _) => Stdio::Terminal,
                    (false, Ok(streams)) => Stdio::Descriptors(streams),
                    (false, Err(_)) => return,
                };
                let argv = argv.into_iter().map(OsString::from_vec).collect();
                self.exec(caller, &Program { argv, directory }, stdio)
            }
            Ask::Describe => self.describe(),
            Ask::Changes => return self.tell(caller, || self.changes()),
            Ask::Commit { trusted } => {
                return self.tell(caller, || self.commit(&trusted.into()));
            }
            Ask::Discard { paths, forced } => return self.tell(caller, || self.discard(&paths, forced)),
            Ask::Fork => return self.fork(caller),
            Ask::End => {
                self.end();
                Ok(Answer::Over)
            }
            Ask::Kill | Ask::Resize { .. } | Ask::Hold | Ask::Release => return,
        };
        let answer = answer.unwrap_or_else(|error| Answer::Failed { message: with_causes(&error) });
        // Whoever has hung up wants to hear nothing.
        let _ = send(caller.as_fd(), &answer, &[]);
    }

    fn exec(&self, caller: &OwnedFd, program: &Program, stdio: Stdio) -> Result<Answer, BackendError> {
        let _running = Running::command(&self.activity, program);
        let started = {
            let _alone = lock(&self.baseline);
            match &*self.sandbox() {
                Some(sandbox) => sandbox.exec(program, stdio),
                None => Err(BackendError::Gone),
            }
        };
        let mut execution = match started {
            Ok(execution) => execution,
            Err(BackendError::NotStarted { program, source }) => {
                return Ok(Answer::NotStarted { program, errno: source.raw_os_error() });
            }
            Err(error) => return Err(error),
        };
        let terminal: Vec<OwnedFd> = execution.take_terminal().into_iter().collect();
        if send(caller.as_fd(), &Answer::Started, &terminal).is_ok() {
            watch(caller, execution.as_mut())?;
        }
        // One whose caller has hung up is still waited for: it was killed.
        let ended = execution.wait_until(None)?;
        let Some(ending) = ended else { return Ok(Answer::Over) };
        Ok(Answer::Ended(match (ending.outcome, self.ended_by()) {
            (sealed::Outcome::Killed, Some(limit)) => Outcome::Exceeded(limit),
            (outcome, _) => outcome.into(),
        }))
    }

    /// The limit that has ended the sandbox, if one has.
    fn ended_by(&self) -> Option<Limit> {
        self.sandbox().as_ref()?.ended_by()
    }

    fn describe(&self) -> Result<Answer, BackendError> {
        let stats = self.sandbox().as_ref().ok_or(BackendError::Gone)?.stats()?;
        let activity = lock(&self.activity);
        let idle_for = if activity.running == 0 { activity.since.elapsed() } else { Duration::ZERO };
        let (session, running) = (self.session.clone(), activity.running);
        Ok(Answer::Description { session: Box::new(session), running, idle_for, load: stats.into() })
    }
}

/// Watches a program and its caller: kills the one when the other wants it or hangs up.
fn watch(caller: &OwnedFd, execution: &mut dyn Execution) -> Result<(), BackendError> {
    loop {
        let (has_ended, is_called) = {
            let mut watched = [
                PollFd::from_borrowed_fd(execution.ending(), PollFlags::IN),
                PollFd::new(caller, PollFlags::IN),
            ];
            if poll(&mut watched, None).is_err() {
                continue;
            }
            (!watched[0].revents().is_empty(), !watched[1].revents().is_empty())
        };
        if has_ended {
            return Ok(());
        }
        if is_called {
            let asked = receive::<Ask>(caller);
            if let Ok(Some((Ask::Resize { rows, columns }, _))) = asked {
                // A program without a terminal has no use for a size.
                let _ = execution.resize(TerminalSize { rows, columns });
                continue;
            }
            execution.kill()?;
            if !matches!(asked, Ok(Some((Ask::Kill, _)))) {
                return Ok(());
            }
        }
    }
}

/// A panic in one thread leaves nothing half done here that another could trip over.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Counts as running as long as it lives.
struct Running<'a> {
    activity: &'a Mutex<Activity>,
    command: Option<String>,
}

// === impl Running ===

impl<'a> Running<'a> {
    fn begin(activity: &'a Mutex<Activity>) -> Self {
        lock(activity).running += 1;
        Self { activity, command: None }
    }

    fn command(activity: &'a Mutex<Activity>, program: &Program) -> Self {
        let words: Vec<_> = program.argv.iter().map(|word| word.to_string_lossy()).collect();
        let command: String = words.join(" ").chars().take(80).collect();
        let mut running = Self::begin(activity);
        running.command = Some(command.clone());
        lock(activity).commands.push(command);
        running
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let mut activity = lock(self.activity);
        activity.running -= 1;
        activity.since = Instant::now();
        let command = self.command.as_ref();
        if let Some(at) = activity.commands.iter().position(|running| Some(running) == command) {
            activity.commands.remove(at);
        }
    }
}
