//! One program in one sandbox, from its arguments to its result (`spec/2 §Schema`): one run, one session, one proxy.
//!
//! ```text
//! leave ─► layers, messages ─► sandbox ─► models served ─► watched ─► torn down ─► billed ─► changes told ─► result
//!                                 │                           │
//!                                 └─ refused: a result        └─ out of time, out of memory: all the same from there on
//! ```
//! There is a result whatever happens, and what was called is billed whatever happens.

mod capture;
mod code;
mod error;
mod messages;
mod place;
mod spec;

pub use code::OnceCode;
pub use error::OnceError;
pub use messages::{MESSAGES, PlaceError};
pub use place::Place;
pub use spec::{OnceLimits, OnceSpec, Site, Watch};

use crate::book::{Book, Calls, Span};
use crate::grant::Granted;
use crate::serving::Served;
use belljar_confine::plan::HostPath;
use belljar_confine::sealed::Outcome;
use belljar_contract::id::RunId;
use belljar_contract::isolation::Isolation;
use belljar_egress::identity::Identity;
use belljar_sandbox::directory::Directory;
use belljar_sandbox::hatch::Hatch;
use belljar_sandbox::limits::Limit;
use belljar_sandbox::native::{self, Running};
use belljar_sandbox::run::{Changes, WorkspaceChoice};
use belljar_sandbox::spec::{Program, SandboxSpec, Workspace};
use belljar_sandbox::state::{RunFolder, StateError};
use belljar_sandbox::workspace::changes::ChangeSet;
use capture::{Captured, Reason, Watching};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

/// What came of it.
#[derive(Debug)]
pub struct OnceResult {
    /// The run.
    pub run_id: RunId,
    /// Whether the program ended well, and everything that had to be done around it was.
    pub ok: bool,
    /// What it printed to standard output, as far as there was room.
    pub stdout: Vec<u8>,
    /// The same of standard error; its last line says so when there was too much.
    pub stderr: Vec<u8>,
    /// Its exit code, 128 and the signal that ended it, or -1 where it didn't come to that.
    pub exit_code: i32,
    /// Why it isn't `ok`, besides what its exit code says.
    pub error_code: Option<OnceCode>,
    /// What went wrong around it.
    pub cause: Option<OnceError>,
    /// Whether something that it printed was dropped.
    pub output_truncated: bool,
    /// Its calls of models, in the order in which they ended.
    pub calls: Calls,
    /// Where it is in the audit; nothing if not all of it could be recorded.
    pub audit: Option<Span>,
    /// What it changed in its copy of the workspace.
    pub changes: Option<Changes>,
    /// The run's folder, with everything that the run has left.
    pub folder: RunFolder,
    /// The walls that it was behind; nothing if there was no sandbox.
    pub isolation: Option<Isolation>,
    /// How long it took.
    pub duration: Duration,
}

/// What is known of a run at its end.
#[derive(Default)]
struct Ended {
    captured: Captured,
    exit_code: Option<i32>,
    code: Option<OnceCode>,
    cause: Option<OnceError>,
    isolation: Option<Isolation>,
    book: Option<Arc<Book>>,
}

/// The two layers of a copy, held: whatever comes to their names, these are what was meant.
struct Layers {
    source: Directory,
    upper: Directory,
}

/// The kind under which a run's end stands in the audit.
pub const ENDED: &str = "run_ended";

/// The exit code of what didn't come to one.
const NO_EXIT_CODE: i32 = -1;

/// Runs a program in a sandbox of its own.
#[expect(clippy::needless_pass_by_value, reason = "leave is for one run, which uses it up")]
pub fn run_once(
    place: Place,
    spec: OnceSpec,
    granted: Granted,
    site: &Site<'_>,
    watch: &mut dyn Watch,
) -> OnceResult {
    let (begun, since) = (Instant::now(), SystemTime::now());
    let messages = spec.messages.clone();
    let attempt = spec.attempt;
    let mut ended = Ended { captured: Captured::new(spec.limits.max_output_bytes), ..Ended::default() };
    let mut layers = None;
    let done = carry_out(&place, (spec, &granted), site, (&mut ended, &mut layers), watch);
    if let Err(error) = done {
        ended.fail(error);
    }
    let Place { folder, .. } = place;
    let changes = layers.and_then(|layers| match told(layers, messages.as_deref(), since) {
        Ok(changes) => Some(changes),
        Err(error) => {
            ended.fail(error);
            None
        }
    });
    ended.judge();
    let calls = ended.book.as_ref().map(|book| book.calls()).unwrap_or_default();
    let audit = close(&mut ended, (&granted, attempt, &calls), site);
    OnceResult {
        run_id: folder.id().clone(),
        ok: ended.exit_code == Some(0) && ended.code.is_none(),
        exit_code: ended.exit_code.unwrap_or(NO_EXIT_CODE),
        error_code: ended.code,
        cause: ended.cause,
        output_truncated: ended.captured.is_cut(),
        stdout: ended.captured.stdout,
        stderr: ended.captured.stderr,
        calls,
        audit,
        changes,
        folder,
        isolation: ended.isolation,
        duration: begun.elapsed(),
    }
}

/// Everything up to the moment at which nothing of the sandbox is left, and nothing is called any more.
fn carry_out(
    place: &Place,
    (spec, granted): (OnceSpec, &Granted),
    site: &Site<'_>,
    (ended, layers): (&mut Ended, &mut Option<Layers>),
    watch: &mut dyn Watch,
) -> Result<(), OnceError> {
    if granted.run_id() != place.folder.id() {
        return Err(OnceError::OtherRun);
    }
    let identity = identity(granted, spec.attempt);
    identity.check()?;
    let workspace = workspace(place, &spec.source)?;
    let held = Layers::hold(&workspace)?;
    if let Some(messages) = &spec.messages {
        messages::place(messages, (&held.source, &held.upper), place.user.identity())?;
    }
    *layers = held.into();
    let deadline = Instant::now() + spec.limits.max_runtime;
    let program = Program { argv: spec.argv, directory: "/workspace".to_owned() };
    let sandbox = SandboxSpec {
        workspace,
        lent: spec.lent,
        env: with_run(spec.env, place.folder.id()),
        home: spec.home,
        hatches: spec.models.iter().map(|_| Hatch::Inference).collect(),
        limits: spec.limits.sandbox,
        required: spec.required,
        ..SandboxSpec::new(place.folder.id().clone(), place.user)
    };
    let (stdio, streams) = capture::streams().map_err(|source| OnceError::Watch { source })?;
    let mut running = match site.launcher {
        Some(launcher) => native::start_through(launcher, &sandbox, site.state, &program, stdio)?,
        None => native::start(&sandbox, site.state, &program, stdio)?,
    };
    ended.isolation = Some(running.isolation.clone());
    // Only now may there be threads. Whatever goes wrong from here on, the sandbox ends with `running`.
    let book = Arc::new(Book::open(site.state.path())?);
    ended.book = Some(Arc::clone(&book));
    let sockets = std::mem::take(&mut running.launched.hatches);
    let served = spec.models.map(|models| Served::begin(models, identity, &book, sockets)).transpose()?;
    let watching = Watching { streams, deadline: Some(deadline), book: &book };
    let watched = watching.until_end(&mut running.launched.sealed, &mut ended.captured, watch);
    let noted = watched.map(|(ending, reason)| note(&running, (ending.outcome, reason), ended));
    drop(running);
    // With the sandbox gone nothing more is called, and what was under way is over.
    served.map(Served::end);
    noted.map_err(|source| OnceError::Watch { source })
}

/// Notes how a program ended.
fn note(running: &Running, (outcome, reason): (Outcome, Reason), ended: &mut Ended) {
    let limit = running.ended_by(outcome);
    ended.code = match (reason, limit) {
        (Reason::OutOfTime, _) => Some(OnceCode::Timeout),
        (Reason::Canceled, _) => Some(OnceCode::Canceled),
        (Reason::ByItself, Some(Limit::Memory)) => Some(OnceCode::OomKilled),
        (Reason::ByItself, Some(Limit::Disk)) => Some(OnceCode::DiskFull),
        // Killed from outside, and by nobody that is known of.
        (Reason::ByItself, None) if outcome == Outcome::Killed => Some(OnceCode::Internal),
        (Reason::ByItself, None) => None,
    };
    let came_to_an_end =
        !matches!(ended.code, Some(OnceCode::Timeout | OnceCode::Canceled | OnceCode::Internal));
    ended.exit_code = came_to_an_end.then(|| i32::from(outcome.exit_code()));
}

/// What it changed, without what the host has put there.
fn told(layers: Layers, messages: Option<&[u8]>, since: SystemTime) -> Result<Changes, OnceError> {
    let Layers { source, upper } = layers;
    let mut set = ChangeSet::read(&source, &upper)?;
    if let Some(messages) = messages
        && messages::is_untouched(messages, &upper)?
    {
        set.leave_out(Path::new(MESSAGES));
    }
    Ok(Changes { set, source, upper, since })
}

/// Records the end, and with it everything before.
fn close(
    ended: &mut Ended,
    (granted, attempt, calls): (&Granted, u32, &Calls),
    site: &Site<'_>,
) -> Option<Span> {
    let event = json!({
        "graph_id": granted.graph_id(),
        "attempt": attempt,
        "exit_code": ended.exit_code.unwrap_or(NO_EXIT_CODE),
        "error_code": ended.code.map(OnceCode::as_str),
        "calls": calls.listed.len() as u64 + calls.unlisted,
        "stdout_bytes": ended.captured.stdout.len(),
        "stderr_bytes": ended.captured.stderr.len(),
        "output_truncated": ended.captured.is_cut(),
    });
    let book = ended.book.take().map_or_else(|| Book::open(site.state.path()).map(Arc::new), Ok);
    match book.and_then(|book| book.close(ENDED, Some(granted.run_id()), &event)) {
        Ok(span) => Some(Span { first: granted.receipt().sequence, ..span }),
        Err(error) => {
            ended.fail(error.into());
            None
        }
    }
}

fn identity(granted: &Granted, attempt: u32) -> Identity {
    Identity {
        run_id: granted.run_id().clone(),
        attempt,
        billing_account_id: granted.billing_account_id().to_owned(),
        graph_id: granted.graph_id().to_owned(),
        user_id: None,
        existing_trace_id: None,
        session_id: None,
        trace_user_id: None,
    }
}

/// The id is the host's, whatever was asked for.
fn with_run(mut env: BTreeMap<String, String>, id: &RunId) -> BTreeMap<String, String> {
    env.insert("RUN_ID".to_owned(), id.to_string());
    env
}

fn workspace(place: &Place, source: &HostPath) -> Result<Workspace, StateError> {
    Workspace::of_run(&WorkspaceChoice::Copy(source.clone()), Some(&place.folder), place.user)
}

// === impl Layers ===

impl Layers {
    fn hold(workspace: &Workspace) -> Result<Self, OnceError> {
        match workspace {
            Workspace::Copy { source, upper, .. } => {
                Ok(Self { source: Directory::open_meant(source)?, upper: Directory::open_meant(upper)? })
            }
            Workspace::Empty | Workspace::Direct(_) => Err(StateError::NoFolder.into()),
        }
    }
}

// === impl Ended ===

impl Ended {
    /// The first failure is the one that is told.
    fn fail(&mut self, error: OnceError) {
        self.code.get_or_insert(error.code());
        self.cause.get_or_insert(error);
    }

    /// An answer that isn't whole is none.
    fn judge(&mut self) {
        if self.code.is_none() && self.exit_code == Some(0) && self.captured.has_lost_answer() {
            self.code = Some(OnceCode::OutputTruncated);
        }
    }
}
