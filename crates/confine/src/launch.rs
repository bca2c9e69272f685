//! Launch of a sandbox from a plan.

use crate::as_user::AsUser;
use crate::group::CgroupJoin;
use crate::init::{self, ChildParameters, now_in_nanoseconds};
use crate::inspection::{Inspector, MissingLayer};
use crate::kernel::{self, CloneResult};
use crate::message;
use crate::plan::{Plan, wire};
use crate::report::{GO, Report};
use crate::sealed::SealedSandbox;
use crate::stage::{Stage, Timings};
use crate::wall;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// A sandbox that runs.
#[derive(Debug)]
pub struct LaunchedSandbox {
    /// The sandbox.
    pub sealed: SealedSandbox,
    /// The host's end of its terminal, if it has one.
    pub terminal: Option<OwnedFd>,
    /// The directory that the plan exports.
    pub exported: Option<OwnedFd>,
    /// The sockets of the plan's hatches, in their order.
    pub hatches: Vec<OwnedFd>,
    /// Its mounts, held, if it comes from a process that is ready for many. The kernel takes the mounts apart once no
    /// process holds them, which is a third of a sandbox's end: releasing them later moves that wait.
    pub mounts: Option<OwnedFd>,
    /// The Landlock ABI in force; 0 for none.
    pub landlock_abi: u32,
    /// Duration of each stage.
    pub timings: Timings,
}

/// Why there is no sandbox. Nothing of it is left.
#[derive(Debug, thiserror::Error, Serialize, Deserialize)]
pub enum LaunchError {
    /// Only a process with one thread may be copied safely.
    #[error("this process has {count} threads; sandboxes start from a process with one")]
    Threads {
        /// Number of threads.
        count: u64,
    },
    /// The kernel makes no such process.
    #[error("can't make a process in new namespaces")]
    Clone {
        /// Why.
        #[source]
        #[serde(with = "wire::errno")]
        source: Errno,
    },
    /// A wall could not be put up, or the program not be started.
    #[error("stage `{stage}` failed at {subject}")]
    Stage {
        /// The stage.
        stage: Stage,
        /// Subject of the failed operation, such as a path.
        subject: String,
        /// The error.
        #[source]
        #[serde(with = "wire::errno")]
        source: Errno,
    },
    /// Something that was put up doesn't hold.
    #[error(transparent)]
    NotInForce(#[from] MissingLayer),
    /// PID 1 ended without a report.
    #[error("the sandbox ended while it was built")]
    Vanished,
    /// The channel to the sandbox failed.
    #[error("can't communicate with the sandbox")]
    Control {
        /// Why.
        #[source]
        #[serde(with = "wire::errno")]
        source: Errno,
    },
}

/// Returns all namespaces but two. The network namespace is made meanwhile ([`crate::walls::worker`]), and the cgroup
/// namespace when PID 1 is in its group ([`crate::walls::group`]). The first two are no walls by themselves: without them
/// none of the others could be put up.
fn namespaces() -> libc::c_int {
    libc::CLONE_NEWUSER
        | libc::CLONE_NEWNS
        | wall!(PidNamespace: libc::CLONE_NEWPID, else 0)
        | wall!(IpcNamespace: libc::CLONE_NEWIPC, else 0)
        | wall!(UtsNamespace: libc::CLONE_NEWUTS, else 0)
}

/// State that the launching process starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LaunchState {
    /// The host's root and network: every sandbox builds its own.
    Host,
    /// A root made for plain sandboxes, and an unused network namespace ([`crate::launcher::ready`]).
    Prepared,
}

/// Launches a sandbox from this very process.
///
/// # Errors
/// [`LaunchError`]; the process must have a single thread.
pub fn launch(plan: &Plan) -> Result<LaunchedSandbox, LaunchError> {
    launch_from(LaunchState::Host, plan)
}

pub(crate) fn launch_from(ground: LaunchState, plan: &Plan) -> Result<LaunchedSandbox, LaunchError> {
    let count = kernel::thread_count().map_err(|source| LaunchError::Control { source })?;
    if count > 1 {
        return Err(LaunchError::Threads { count });
    }
    let (ours, theirs) = message::pair().map_err(|source| LaunchError::Control { source })?;
    let begun = now_in_nanoseconds();
    // For the moment of cloning, this thread is the sandbox's user. The user namespace is then owned by that user and may
    // be mapped to it from inside, without a privileged process having to write the maps.
    let (uid, gid) = (plan.identity.host_uid, plan.identity.host_gid);
    let group = plan.group.as_ref().and_then(CgroupJoin::birthplace);
    let became = AsUser::become_user(uid, gid).map_err(|source| LaunchError::Clone { source })?;
    // Only a process that may write to a group may place another in it. The child has no such right: in its user namespace
    // it begins with other privileges.
    group.map_or(Ok(()), |_| became.keep_access()).map_err(|source| LaunchError::Clone { source })?;
    // SAFETY: this is the only thread, as counted above.
    let cloned = unsafe { kernel::clone_into(namespaces(), group) };
    let (pid, pidfd) = match cloned {
        Ok(CloneResult::Child) => {
            // Otherwise no process in the sandbox would see that the host is gone.
            drop(ours);
            init::run(&ChildParameters { plan, ground, control: theirs.as_fd() });
        }
        Ok(CloneResult::Parent { pid, pidfd }) => (pid, pidfd),
        Err(source) => return Err(LaunchError::Clone { source }),
    };
    drop(became);
    drop(theirs);
    let sealed = SealedSandbox::child(pid, pidfd, ours);
    // While it may still be looked into.
    let mounts = match ground {
        LaunchState::Prepared => {
            openat(CWD, format!("/proc/{pid}/ns/mnt"), OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()
        }
        LaunchState::Host => None,
    };
    inspect(plan, &sealed)?;
    match hear(&sealed)? {
        (Report::Started { marks, landlock_abi }, descriptors) => {
            let mut descriptors = descriptors.into_iter();
            let exported = plan.exported.as_ref().and_then(|_| descriptors.next());
            let hatches = descriptors.by_ref().take(plan.hatches.len()).collect();
            let terminal = descriptors.next();
            Ok(LaunchedSandbox {
                sealed,
                terminal,
                exported,
                hatches,
                mounts,
                landlock_abi,
                timings: timings(begun, &marks),
            })
        }
        _ => Err(LaunchError::Vanished),
    }
}

/// Waits for the walls, looks whether they hold, and lets the program go. It doesn't before.
fn inspect(plan: &Plan, sealed: &SealedSandbox) -> Result<(), LaunchError> {
    let control = |source| LaunchError::Control { source };
    let inspector = wall!(Canary: Some(Inspector::begin(sealed.pid(), plan)), else None);
    let (Report::Built(testimony), _) = hear(sealed)? else { return Err(LaunchError::Vanished) };
    if let Some(inspector) = inspector {
        inspector.map_err(control)?.inspect(plan, &testimony)?;
    }
    match plan.program {
        Some(_) => message::send(sealed.control(), &[GO], &[]).map_err(control),
        None => Ok(()),
    }
}

/// Receives the next report of PID 1. A report that a wall could not be put up is an error.
fn hear(sealed: &SealedSandbox) -> Result<(Report, Vec<OwnedFd>), LaunchError> {
    match receive(sealed).map_err(|source| LaunchError::Control { source })? {
        (Some(Report::Failed { stage, errno, subject }), _) => {
            Err(LaunchError::Stage { stage, subject, source: errno })
        }
        (Some(report), descriptors) => Ok((report, descriptors)),
        (None, _) => Err(LaunchError::Vanished),
    }
}

/// Receives the next message with its descriptors; no message when the other end is gone.
pub(crate) fn receive(sealed: &SealedSandbox) -> Result<(Option<Report>, Vec<OwnedFd>), Errno> {
    let (bytes, descriptors) = message::receive(sealed.control())?.unwrap_or_default();
    Ok((Report::decode(&bytes), descriptors))
}

fn timings(begun: u64, marks: &[(Stage, u64)]) -> Timings {
    let mut timings = Timings::default();
    let mut before = begun;
    for (stage, at) in marks {
        timings.push(*stage, Duration::from_nanos(at.saturating_sub(before)));
        before = *at;
    }
    timings
}
