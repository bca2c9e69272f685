//! One program in one sandbox, from its arguments to its result (`spec/2 §Schema`): one run, one session, one proxy.
//!
//! ```text
//! leave ─► copy, messages ─► sandbox ─► models served ─► watched ─► torn down ─► billed ─► changes told ─► result
//!                                 │                           │
//!                                 └─ refused: a result        └─ out of time, out of memory: all the same from there on
//! ```
//! There is a result whatever happens, and what was called is billed whatever happens.

mod capture;
mod code;
mod copied;
mod enclosure;
mod error;
mod messages;
mod place;
mod spec;
mod ways_out;

pub use code::OnceCode;
pub use error::OnceError;
pub use messages::{MESSAGES, PlaceError};
pub use place::Place;
pub use spec::{OnceLimits, OnceSpec, OnceWeb, Watch};

use crate::book::{Book, Calls, Span};
use crate::grant::Granted;
use belljar_confine::sealed::Outcome;
use belljar_contract::egress::WebUsage;
use belljar_contract::id::RunId;
use belljar_contract::isolation::Isolation;
use belljar_contract::usage::UsageTotals;
use belljar_egress::identity::{CallMetadata, Identity};
use belljar_sandbox::enclosure::{Enclosure, Site};
use belljar_sandbox::limits::Limit;
use belljar_sandbox::run::Changes;
use belljar_sandbox::state::RunFolder;
use belljar_sandbox::streams::Streams;
use capture::{Captured, Reason, Watching};
use copied::Copied;
use serde_json::json;
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
    /// What all of them have used together, also those that are not listed.
    pub usage: UsageTotals,
    /// What it has had of the web, if it might reach any.
    pub web: Option<WebUsage>,
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
    web: Option<WebUsage>,
    book: Option<Arc<Book>>,
}

/// The kind under which a run's end stands in the audit.
pub const ENDED: &str = "run_ended";

/// The exit code of what didn't come to one.
const NO_EXIT_CODE: i32 = -1;

/// Runs a program in a sandbox of its own.
#[expect(clippy::needless_pass_by_value, reason = "leave is for one run, which uses it up")]
pub fn run_once(
    place: Place,
    mut spec: OnceSpec,
    granted: Granted,
    site: &Site<'_>,
    watch: &mut dyn Watch,
) -> OnceResult {
    let (begun, since) = (Instant::now(), SystemTime::now());
    let mut ended = Ended { captured: Captured::new(spec.limits.max_output_bytes), ..Ended::default() };
    let mut copied = None;
    let done = carry_out(&place, (&mut spec, &granted), site, (&mut ended, &mut copied), watch);
    if let Err(error) = done {
        ended.fail(error);
    }
    let Place { folder, .. } = place;
    let changes = copied.and_then(|copied| match copied.changes(spec.messages.as_deref(), since) {
        Ok(changes) => Some(changes),
        Err(error) => {
            ended.fail(error);
            None
        }
    });
    ended.judge();
    let (calls, usage) = ended.book.as_ref().map(|book| (book.calls(), book.usage())).unwrap_or_default();
    let audit = close(&mut ended, (&granted, spec.attempt), (&calls, &usage), site);
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
        usage,
        web: ended.web,
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
    (spec, granted): (&mut OnceSpec, &Granted),
    site: &Site<'_>,
    (ended, copied): (&mut Ended, &mut Option<Copied>),
    watch: &mut dyn Watch,
) -> Result<(), OnceError> {
    if granted.run_id() != place.folder.id() {
        return Err(OnceError::OtherRun);
    }
    let identity = identity(granted, (spec.attempt, spec.metadata.clone()));
    identity.check()?;
    ways_out::furnish(spec)?;
    let (stdio, streams) = Streams::make().map_err(|source| OnceError::Watch { source })?;
    let mut enclosure = enclosure::begin(place, spec, site, (stdio, copied), &|| watch.is_canceled())?;
    // Its time begins with it.
    let deadline = Instant::now() + spec.limits.max_runtime;
    ended.isolation = Some(enclosure.isolation().clone());
    // Only now may there be threads. Whatever goes wrong from here on, the sandbox ends with `enclosure`.
    let book = Arc::new(Book::open(site.state.path())?);
    ended.book = Some(Arc::clone(&book));
    let served = ways_out::serve(spec, identity, &book, enclosure.take_hatches())?;
    let watching = Watching { streams, deadline: Some(deadline), book: &book };
    let watched = watching.until_end(&mut enclosure, &mut ended.captured, watch);
    let noted = watched.map(|(ending, reason)| note(&enclosure, (ending.outcome, reason), ended));
    let is_gone = enclosure.end().map_err(OnceError::Lost);
    // With the sandbox gone nothing more is called, and what was under way is over.
    ended.web = served.end();
    noted.and(is_gone)
}

/// Notes how a program ended.
fn note(enclosure: &Enclosure, (outcome, reason): (Outcome, Reason), ended: &mut Ended) {
    let limit = enclosure.ended_by(outcome);
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

/// Records the end, and with it everything before.
fn close(
    ended: &mut Ended,
    (granted, attempt): (&Granted, u32),
    (calls, usage): (&Calls, &UsageTotals),
    site: &Site<'_>,
) -> Option<Span> {
    let event = json!({
        "graph_id": granted.graph_id(),
        "attempt": attempt,
        "exit_code": ended.exit_code.unwrap_or(NO_EXIT_CODE),
        "error_code": ended.code.map(OnceCode::as_str),
        "calls": calls.listed.len() as u64 + calls.unlisted,
        "usage": usage,
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

fn identity(granted: &Granted, (attempt, metadata): (u32, CallMetadata)) -> Identity {
    let (account, graph_id) = (granted.billing_account_id().to_owned(), granted.graph_id().to_owned());
    let user_id = granted.user_id().map(str::to_owned).or(metadata.user_id);
    let identity = Identity::new(granted.run_id().clone(), attempt, account, graph_id);
    identity.with_metadata(CallMetadata { user_id, ..metadata })
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
