//! The process that keeps a session: its sandboxes, its workspace, and the dispatch of requests.

mod checkpoint;
mod command;
mod ending;
mod keeper_workspace;
mod review;
mod sandboxes;

pub(in crate::session) use keeper_workspace::{CommitBaseline, SessionWorkspace};
pub use sandboxes::SandboxGroupRequest;

use super::protocol::{KeeperRequestMessage, KeeperResponse, Refusal, receive, send};
use super::{DESCRIPTION, SOCKET, Session, SessionError};
use crate::backend::{BackendError, Sandbox, SandboxRequest, with_causes};
use crate::backends::chosen::BackendSite;
use crate::config::{BackendName, Strategy};
use crate::correlation::fill_session;
use crate::docker::DockerBackend;
use crate::native::HostUser;
use crate::run::WorkspaceChoice;
use crate::spec::Program;
use crate::state::StateDirectory;
use crate::workspace::baseline::Baseline;
use belljar_confine::launch::LaunchError;
use belljar_confine::launcher::Launcher;
use belljar_confine::plan::Stdio;
use belljar_contract::id::RunId;
use belljar_trusted::trusted_file;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen, socket_with,
};
use sandboxes::{SandboxFactory, Sandboxes};
use std::error::Error;
use std::ffi::OsString;
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, mpsc};
use std::time::{Duration, Instant};

/// The name under which belljar is a keeper.
pub const KEEPER: &str = "belljar-keeper";

/// Request for a keeper.
#[derive(Debug)]
pub struct KeeperRequest {
    /// Site in which its sandboxes are made.
    pub site: BackendSite,
    /// Its workspace.
    pub workspace: WorkspaceChoice,
    /// Its sandboxes, of which the first is the one for commands of people. Where it has several, they are those of its
    /// divisions, in their order.
    pub compartments: Vec<SandboxGroupRequest>,
    /// The session; its id and its backend are filled in.
    pub session: Session,
}

/// Serves the sockets of the hatches of one of a session's sandboxes, for as long as the returned value lives.
pub type HatchServer = Arc<
    dyn Fn(&Session, Vec<OwnedFd>) -> Result<Box<dyn Send + Sync>, Box<dyn Error + Send + Sync>>
        + Send
        + Sync,
>;

/// Why there is no session.
#[derive(Debug, thiserror::Error)]
pub enum KeeperError {
    /// There is no launcher.
    #[error("can't start a launcher")]
    Launcher(#[from] LaunchError),
    /// There is no sandbox.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// The session to fork can't be reached.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The hatches can't be served.
    #[error("cannot serve the session's hatches")]
    Serve(#[source] Box<dyn Error + Send + Sync>),
    /// The record that is needed to keep its changes can't be written.
    #[error("cannot write the record of the session's workspace copy")]
    Record(#[source] std::io::Error),
    /// Clients can't reach it.
    #[error("can't listen for commands")]
    Listen(#[source] std::io::Error),
}

/// A session that is kept.
struct Keeper {
    session: Session,
    id: RunId,
    state: StateDirectory,
    /// Request for the first of its sandboxes, for forks.
    wanted: SandboxRequest,
    sandboxes: Sandboxes,
    ground: RwLock<SessionWorkspace>,
    activity: Mutex<SessionActivity>,
    /// State that a commit is measured against. Its holder is alone with the workspace: no program is started meanwhile.
    measure: Mutex<CommitBaseline>,
    /// Number of commits so far.
    commits: AtomicU64,
    /// True if it was ended, and the client that asked for that has its answer.
    is_ended: AtomicBool,
}

/// Current activity.
struct SessionActivity {
    running: u64,
    /// The commands among it, oldest first.
    commands: Vec<String>,
    since: Instant,
}

/// Interval of the checks for the end of the session's lifetime.
const TICK: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// Time for callers to receive the outcome of their commands, before a session ends whose sandbox has ended by itself.
const TOLD_WITHIN: Duration = Duration::from_secs(1);

/// Time for PID 1 of a sandbox to report its load for a description. One that is busy answers later, and lists of sessions
/// don't wait for it.
const LOAD_WITHIN: Duration = Duration::from_secs(2);

/// Keeps a session until it is over. `ready` is called with it once it can be reached. Call it before the process has a
/// second thread.
///
/// # Errors
/// [`KeeperError`] when there is no session. The way in which a session ends is not reported here.
pub fn keep(
    keeping: KeeperRequest,
    serve: HatchServer,
    ready: impl FnOnce(&Session),
) -> Result<(), KeeperError> {
    let KeeperRequest { site, workspace, mut compartments, session } = keeping;
    let state = StateDirectory::at(&site.state);
    state.begin_use();
    if let WorkspaceChoice::Direct(directory) = &workspace {
        // The requesting process has checked the paths to lend; this one lives as long as the sandbox.
        trusted_file::lend_workspace(directory.as_path(), &[])
            .map_err(|error| BackendError::Create(error.into()))?;
    }
    let launcher = Arc::new(Launcher::start()?);
    let first = compartments.first().ok_or(BackendError::Gone)?;
    let session = Session { backend: first.backend.name(), ..session };
    let wanted = SandboxRequest { workspace: workspace.clone(), ..first.wanted.clone() };
    // Only the kernel's own means show what was changed in a copy that no other program works on, and it can be written
    // there.
    let is_copied = matches!(workspace, WorkspaceChoice::Copy(_))
        && (session.backend != BackendName::Native || first.is_seen);
    // And what is for one command at a time can't be what holds the files.
    let is_kept = first.lifecycle.strategy != Strategy::PerCall;
    if compartments.len() == 1 && is_kept && !is_copied {
        let backend = first.backend.make(launcher, &site)?;
        let baseline = match &workspace {
            WorkspaceChoice::Copy(source) => Baseline::now().of_source_at(source, None),
            _ => Baseline::now(),
        };
        let measure = CommitBaseline::of_layer(baseline);
        let sandbox = backend.create(wanted.clone())?;
        let ground = SessionWorkspace::of_sandbox(workspace);
        return look_after(
            PreparedSession { state, wanted, session, ground, measure },
            sandbox,
            &serve,
            ready,
        );
    }
    // With containers only, it is the user that images know; with other backends on the host, a user that exists for
    // nothing else.
    let is_contained =
        compartments.iter().all(|compartment| compartment.backend.name() == BackendName::Docker);
    let owner = if is_contained { DockerBackend::owner_of_copies() } else { HostUser::choose().identity() };
    let folder = state.begin_run(owner).map_err(|error| BackendError::Create(error.into()))?;
    let id = folder.id().clone();
    let session = Session { id: id.to_string(), ..session };
    let (ground, measure) = SessionWorkspace::make(workspace, (folder, owner))?;
    for compartment in &mut compartments {
        compartment.wanted.workspace = ground.for_sandboxes(compartment.is_seen)?;
        fill_session(&mut compartment.wanted.provision.env, &id);
    }
    let is_one = compartments.len() == 1;
    let makers = SandboxFactory { site, launcher, serve, grown: ground.grown(), session: session.clone() };
    let sandboxes = Sandboxes::to_make(makers, compartments);
    // With a single sandbox, an error in making it is reported at once.
    if is_one {
        drop(sandboxes.place(0)?);
    }
    attend(PreparedSession { state, wanted, session, ground, measure }, (id, sandboxes), ready)
}

/// A session whose sandboxes are known.
pub(super) struct PreparedSession {
    pub(super) state: StateDirectory,
    pub(super) wanted: SandboxRequest,
    pub(super) session: Session,
    pub(super) ground: SessionWorkspace,
    pub(super) measure: CommitBaseline,
}

/// Looks after a session with one sandbox, which is made, until it is over.
pub(super) fn look_after(
    begun: PreparedSession,
    mut sandbox: Box<dyn Sandbox>,
    serve: &HatchServer,
    ready: impl FnOnce(&Session),
) -> Result<(), KeeperError> {
    let id = sandbox.id().clone();
    let session = Session { id: id.to_string(), ..begun.session };
    let sockets = sandbox.take_hatches();
    let served = (!sockets.is_empty()).then(|| serve(&session, sockets)).transpose();
    let served = served.map_err(KeeperError::Serve)?;
    attend(PreparedSession { session, ..begun }, (id, Sandboxes::made(sandbox, served)), ready)
}

fn attend(
    begun: PreparedSession,
    (id, sandboxes): (RunId, Sandboxes),
    ready: impl FnOnce(&Session),
) -> Result<(), KeeperError> {
    let PreparedSession { state, wanted, session, ground, measure } = begun;
    let folder = state.run_folder(&id);
    ending::record(&folder, &session, &sandboxes, &ground, &measure).map_err(KeeperError::Record)?;
    let listener = publish(&folder, &session).map_err(KeeperError::Listen)?;
    let begun = Instant::now();
    ready(&session);
    let keeper = Arc::new(Keeper {
        session,
        id,
        state,
        wanted,
        sandboxes,
        ground: RwLock::new(ground),
        activity: Mutex::new(SessionActivity { running: 0, commands: Vec::new(), since: begun }),
        measure: Mutex::new(measure),
        commits: AtomicU64::new(0),
        is_ended: AtomicBool::new(false),
    });
    while !keeper.is_over(begun) {
        let mut called = [PollFd::new(&listener, PollFlags::IN)];
        if matches!(poll(&mut called, Some(&TICK)), Ok(1..))
            && let Ok(caller) = accept_own(&listener)
        {
            let keeper = Arc::clone(&keeper);
            std::thread::spawn(move || keeper.serve(&caller));
        }
        if keeper.sandboxes.have_idle() {
            let keeper = Arc::clone(&keeper);
            std::thread::spawn(move || keeper.sandboxes.end_idle());
        }
    }
    keeper.end();
    Ok(())
}

/// Puts the description and the socket into the run's folder.
fn publish(folder: &Path, session: &Session) -> std::io::Result<OwnedFd> {
    let listener = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    let directory = std::fs::File::open(folder)?;
    bind(&listener, &address(directory.as_fd())?)?;
    std::fs::set_permissions(folder.join(SOCKET), std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    listen(&listener, 64)?;
    let mut options = std::fs::File::options();
    std::os::unix::fs::OpenOptionsExt::mode(options.write(true).create_new(true), 0o600);
    options.open(folder.join(DESCRIPTION))?.write_all(&serde_json::to_vec(session)?)?;
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
        let idle_for = {
            let activity = lock(&self.activity);
            (activity.running == 0).then(|| activity.since.elapsed())
        };
        let is_idle = idle_for.is_some_and(|idle_for| idle_for >= self.session.idle_limit);
        let is_told = idle_for.is_some_and(|idle_for| idle_for >= TOLD_WITHIN);
        // A sandbox that has ended by itself, by a limit for example, takes the session with it: its changes are kept at once.
        is_idle
            || (is_told && self.sandboxes.have_ended())
            || begun.elapsed() >= self.session.lifetime_limit
            || self.is_ended.load(Ordering::Acquire)
    }

    fn ground(&self) -> RwLockReadGuard<'_, SessionWorkspace> {
        self.ground.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// Serves one caller to the end.
    fn serve(self: &Arc<Self>, caller: &OwnedFd) {
        let Ok(Some((ask, descriptors))) = receive::<KeeperRequestMessage>(caller) else { return };
        let answer = match ask {
            KeeperRequestMessage::Exec { argv, directory, terminal, category } => {
                let stdio = match (terminal, <[OwnedFd; 3]>::try_from(descriptors)) {
                    (true, _) => Stdio::Terminal,
                    (false, Ok(streams)) => Stdio::Descriptors(streams),
                    (false, Err(_)) => return,
                };
                let argv = argv.into_iter().map(OsString::from_vec).collect();
                let place = self.session.division_for(category);
                self.exec(caller, place, (&Program { argv, directory }, stdio))
            }
            KeeperRequestMessage::Describe => self.describe(),
            KeeperRequestMessage::Changes => return self.tell(caller, || self.changes()),
            KeeperRequestMessage::Commit { trusted, reviewed, unshown } => {
                return self.tell(caller, || self.commit(&trusted.into(), reviewed, unshown));
            }
            KeeperRequestMessage::Review => return self.review(caller),
            KeeperRequestMessage::Discard { paths, forced } => {
                return self.tell(caller, || self.discard(&paths, forced));
            }
            KeeperRequestMessage::Fork => return self.fork(caller),
            KeeperRequestMessage::End { uncommitted } => return self.end_for(caller, uncommitted),
            KeeperRequestMessage::Kill
            | KeeperRequestMessage::Resize { .. }
            | KeeperRequestMessage::Write { .. }
            | KeeperRequestMessage::Hold
            | KeeperRequestMessage::Release => return,
        };
        let answer = answer.unwrap_or_else(|error| {
            let message = with_causes(&error);
            match error {
                BackendError::Unavailable { .. } => KeeperResponse::Unavailable { message },
                BackendError::Create(source) => match source.downcast::<Refusal>() {
                    Ok(refusal) => KeeperResponse::Refused(*refusal),
                    Err(_) => KeeperResponse::Failed { message },
                },
                _ => KeeperResponse::Failed { message },
            }
        });
        // A client that has hung up needs no answer.
        let _ = send(caller.as_fd(), &answer, &[]);
    }

    fn describe(self: &Arc<Self>) -> Result<KeeperResponse, BackendError> {
        if self.sandboxes.are_over() {
            return Err(BackendError::Gone);
        }
        let keeper = Arc::clone(self);
        let load = match within(LOAD_WITHIN, move || keeper.sandboxes.at_hand().stats()) {
            Some(Ok(stats)) => Some(stats.into()),
            Some(Err(BackendError::Gone)) => return Err(BackendError::Gone),
            // The session exists, whatever its state: a caller has to see it to end it.
            Some(Err(_)) | None => None,
        };
        let activity = lock(&self.activity);
        let idle_for = if activity.running == 0 { activity.since.elapsed() } else { Duration::ZERO };
        let (session, running) = (self.session.clone(), activity.running);
        Ok(KeeperResponse::Description { session: Box::new(session), running, idle_for, load })
    }
}

/// Returns the result of `work` if it is done within the limit. Otherwise the work goes on without a receiver.
fn within<T: Send + 'static>(limit: Duration, work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (tell, told) = mpsc::sync_channel(1);
    std::thread::spawn(move || tell.send(work()));
    told.recv_timeout(limit).ok()
}

/// A panic in one thread leaves nothing half done here that another could trip over.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_does_not_end_is_not_waited_for() {
        let (go_on, held) = mpsc::channel::<()>();
        // The work ends only after it was given up.
        assert_eq!(within(Duration::from_millis(1), move || held.recv().is_ok()), None);
        drop(go_on);
        // The control: work that ends is.
        assert_eq!(within(Duration::from_secs(60), || 7), Some(7));
    }
}
