//! A sandbox that proves its walls by trying to break them.
//!
//! Each attempt is made twice: outside, where it must succeed, and inside, where it must not. An attempt that fails outside
//! too proves nothing and is reported as invalid. What can be seen from outside (a connection that came in) is judged
//! outside. The report of the process inside counts only for what can't be seen from elsewhere.

mod attempts;

use crate::native::{self, HostUser, StartError};
use crate::provision::Provision;
use crate::spec::{Lent, Program, SandboxSpec};
use crate::state::StateDirectory;
use attempts::{ATTEMPTS, AttemptTargets};
use belljar_confine::plan::Stdio;
use belljar_files::host_path::{HostPath, HostPathError};
use rustix::fs::{CWD, Mode, OFlags, openat};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// The name under which this program attempts what a sandbox must not allow.
pub const PROGRAM: &str = "belljar-canary";

/// Result of one attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CanaryFinding {
    /// The layer that should withstand it.
    pub layer: &'static str,
    /// Name of the attempt.
    pub attempt: &'static str,
    /// Verdict on the attempt.
    pub verdict: Verdict,
    /// Outcome inside, or the reason why the control failed.
    pub detail: String,
}

/// Verdict on an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The wall held.
    Held,
    /// The attempt got through.
    Broken,
    /// The attempt failed outside too, so nothing is proved.
    Invalid,
}

/// Why the canary could not be run.
#[derive(Debug, thiserror::Error)]
pub enum CanaryError {
    /// Something that it should try to reach can't be set up.
    #[error("cannot create the canary's targets on the host")]
    Bait {
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The program can't be lent to it.
    #[error(transparent)]
    Program(#[from] HostPathError),
    /// There is no sandbox.
    #[error(transparent)]
    Start(#[from] StartError),
    /// The canary's answer can't be read.
    #[error("the canary's answer can't be read")]
    Answer,
}

/// Results of attempts by name: `None` for one that got through, or the error that stopped it.
type AttemptErrors = BTreeMap<String, Option<String>>;

/// Paths inside of the canary's own program and of its bait.
const PROGRAM_INSIDE: &str = "run/belljar/belljar-canary";
const UNLISTED_SCRATCH: &str = "run/belljar/unlisted";

/// Things of the host that a sandbox must not reach.
struct HostBait {
    file: PathBuf,
    tcp: TcpListener,
    abstract_socket: UnixListener,
    targets: AttemptTargets,
}

/// Lets the canary out in a sandbox like any other. `program` is this program's file, `folder` takes its bait.
///
/// # Errors
/// [`CanaryError`] when it can't be let out; what it found otherwise, good or bad, is in the answer.
pub fn let_out(
    program: &Path,
    folder: &Path,
    state: &StateDirectory,
) -> Result<Vec<CanaryFinding>, CanaryError> {
    let bait = HostBait::lay(folder).map_err(|source| CanaryError::Bait { source })?;
    let outside = attempts::all(&bait.targets);
    let (seen_tcp, seen_abstract) = (bait.count_tcp(), bait.count_abstract());
    let inside = answers_from_inside(program, &bait.targets, state)?;
    let reached = [("tcp", bait.count_tcp() > 0), ("abstract_socket", bait.count_abstract() > 0)];
    let seen = [("tcp", seen_tcp > 0), ("abstract_socket", seen_abstract > 0)];
    Ok(ATTEMPTS
        .iter()
        .map(|attempt| {
            let witness = |list: &[(&str, bool)]| {
                list.iter().find(|(name, _)| *name == attempt.name).map(|found| found.1)
            };
            let got_through_outside =
                outside.get(attempt.name) == Some(&None) && witness(&seen) != Some(false);
            let (verdict, detail) = match (inside.get(attempt.name), witness(&reached)) {
                (_, Some(true)) => (Verdict::Broken, "the host observed the access"),
                (None, _) => (Verdict::Broken, "there was no answer"),
                (Some(None), _) => (Verdict::Broken, "it got through"),
                (Some(Some(stopped)), _) if got_through_outside || !attempt.needs_control => {
                    (Verdict::Held, stopped.as_str())
                }
                (Some(Some(_)), _) => (Verdict::Invalid, "it fails outside, too"),
            };
            CanaryFinding { layer: attempt.layer, attempt: attempt.what, verdict, detail: detail.to_owned() }
        })
        .collect())
}

/// The canary's main function, inside.
pub fn main_inside(mut arguments: impl Iterator<Item = std::ffi::OsString>) -> ExitCode {
    let targets =
        arguments.next().and_then(|text| serde_json::from_str::<AttemptTargets>(text.to_str()?).ok());
    let Some(targets) = targets else { return ExitCode::FAILURE };
    match serde_json::to_writer(std::io::stdout(), &attempts::all(&targets)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn answers_from_inside(
    program: &Path,
    targets: &AttemptTargets,
    state: &StateDirectory,
) -> Result<AttemptErrors, CanaryError> {
    let bait = |source| CanaryError::Bait { source };
    let spec = SandboxSpec {
        provision: Provision {
            lent: vec![Lent { path: HostPath::resolve(program)?, inside: PROGRAM_INSIDE.to_owned() }],
            ..Provision::default()
        },
        unlisted_scratch: Some(UNLISTED_SCRATCH.to_owned()),
        ..SandboxSpec::new(StateDirectory::new_id(), HostUser::choose())
    };
    let targets = targets.as_seen_inside();
    let targets = serde_json::to_string(&targets).map_err(|_| CanaryError::Answer)?;
    let program = Program {
        argv: vec![format!("/{PROGRAM_INSIDE}").into(), targets.into()],
        directory: "/".to_owned(),
    };
    let (answers, output) =
        rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).map_err(|e| bait(e.into()))?;
    let null = |flags| openat(CWD, "/dev/null", flags | OFlags::CLOEXEC, Mode::empty());
    let input = null(OFlags::RDONLY).map_err(|errno| bait(errno.into()))?;
    let errors = null(OFlags::WRONLY).map_err(|errno| bait(errno.into()))?;
    let mut running = native::start(&spec, state, &program, Stdio::Descriptors([input, output, errors]))?;
    let mut text = Vec::new();
    let most = 1 << 20;
    File::from(answers).take(most).read_to_end(&mut text).map_err(bait)?;
    running.launched.sealed.wait().map_err(|errno| bait(errno.into()))?;
    serde_json::from_slice(&text).map_err(|_| CanaryError::Answer)
}

// === impl HostBait ===

impl HostBait {
    fn lay(folder: &Path) -> std::io::Result<Self> {
        let file = folder.join("canary");
        let name = uuid::Uuid::new_v4().to_string();
        std::fs::write(&file, &name)?;
        let tcp = TcpListener::bind(("127.0.0.1", 0))?;
        let abstract_socket = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
        tcp.set_nonblocking(true)?;
        abstract_socket.set_nonblocking(true)?;
        let targets = AttemptTargets::of_host(&file, tcp.local_addr()?.port(), name)?;
        Ok(Self { file, tcp, abstract_socket, targets })
    }

    fn count_tcp(&self) -> usize {
        std::iter::from_fn(|| self.tcp.accept().ok()).count()
    }

    fn count_abstract(&self) -> usize {
        std::iter::from_fn(|| self.abstract_socket.accept().ok()).count()
    }
}

impl Drop for HostBait {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.file);
    }
}

impl AttemptTargets {
    /// Returns the targets with their paths inside. Only one differs: a directory that only Landlock protects.
    fn as_seen_inside(&self) -> Self {
        Self { unlisted: format!("/{UNLISTED_SCRATCH}"), ..self.clone() }
    }
}

/// An answer for [`attempts`]: `Ok` got through.
fn answer(attempt: Result<(), String>) -> Option<String> {
    attempt.err()
}
