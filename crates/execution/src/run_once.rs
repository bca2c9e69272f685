//! Runs one program in one sandbox, from its arguments to its result (`docs/contracts/agents.md#a3.1`): one run, one
//! session, one proxy.
//!
//! ```text
//! grant ─► copy, messages ─► sandbox ─► models served ─► watched ─► torn down ─► billed ─► changes reported ─► result
//!                                 │                           │
//!                                 └─ refused: a result        └─ timeout, OOM kill: the same steps from there on
//! ```
//! There is a result whatever happens, and model calls are billed whatever happens.

mod capture;
mod enclosure;
mod error;
mod error_code;
mod messages;
mod program_hatches;
mod run_place;
mod spec;
mod workspace_copy;

pub use error::OnceError;
pub use error_code::OnceCode;
pub use messages::{MESSAGES, WriteMessagesError};
pub use run_place::RunReservation;
pub use spec::{OnceLimits, OnceSpec, OnceWeb, RunObserver};

use crate::grant::ExecutionPermit;
use belljar_confine::sealed::ProgramOutcome;
use belljar_contract::egress::WebUsage;
use belljar_contract::id::RunId;
use belljar_contract::isolation::Isolation;
use belljar_contract::usage::UsageTotals;
use belljar_egress::identity::{CallMetadata, Identity};
use belljar_journal::{AuditRange, ModelCalls, RunJournal};
use belljar_sandbox::enclosure::{Enclosure, EnclosureSite};
use belljar_sandbox::limits::Limit;
use belljar_sandbox::run::PendingChanges;
use belljar_sandbox::state::RunFolder;
use belljar_sandbox::streams::PipeEnds;
use belljar_sandbox::supervise::{self, Reason};
use capture::{Capture, CapturedStreams};
use enclosure::ProgramStart;
use serde_json::json;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use workspace_copy::CopiedDirectory;

/// Result of a run.
#[derive(Debug)]
pub struct OnceResult {
    /// The run.
    pub run_id: RunId,
    /// True if the program exited with 0 and every step around it succeeded.
    pub ok: bool,
    /// Standard output, up to the limit.
    pub stdout: Vec<u8>,
    /// Standard error, up to the limit; its last line states the truncation if there was one.
    pub stderr: Vec<u8>,
    /// Its exit code, 128 plus the signal that ended it, or -1 if it has none: timeout, cancellation, internal error.
    pub exit_code: i32,
    /// Reason why it isn't `ok`, other than its exit code.
    pub error_code: Option<OnceCode>,
    /// The error around the program, if there was one.
    pub cause: Option<OnceError>,
    /// True if a part of its output was dropped.
    pub output_truncated: bool,
    /// Its model calls, in the order in which they ended.
    pub calls: ModelCalls,
    /// Usage of all calls, also of those that are not listed.
    pub usage: UsageTotals,
    /// Its use of the web, if it had access.
    pub web: Option<WebUsage>,
    /// Its range of records in the audit log; `None` if not all of it could be recorded.
    pub audit: Option<AuditRange>,
    /// Changes in its copy of the workspace.
    pub changes: Option<PendingChanges>,
    /// The run's folder, with everything that the run left.
    pub folder: RunFolder,
    /// The isolation layers of the sandbox; `None` if there was no sandbox.
    pub isolation: Option<Isolation>,
    /// Duration of the run.
    pub duration: Duration,
}

/// Data of a run that is collected until its end.
#[derive(Default)]
struct RunSummary {
    captured: CapturedStreams,
    exit_code: Option<i32>,
    code: Option<OnceCode>,
    cause: Option<OnceError>,
    isolation: Option<Isolation>,
    web: Option<WebUsage>,
    book: Option<Arc<RunJournal>>,
    /// Copy that the program worked on.
    copied: Option<CopiedDirectory>,
}

/// Kind of the audit record of a run's end.
pub const ENDED: &str = "run_ended";

/// Exit code of a run whose program has none.
const NO_EXIT_CODE: i32 = -1;

/// A run that is under way.
#[derive(Clone, Copy)]
struct OnceRun<'r> {
    place: &'r RunReservation,
    granted: &'r ExecutionPermit,
    site: &'r EnclosureSite<'r>,
}

/// Runs a program in a sandbox of its own.
#[expect(clippy::needless_pass_by_value, reason = "leave is for one run, which uses it up")]
pub fn run_once(
    place: RunReservation,
    mut spec: OnceSpec,
    granted: ExecutionPermit,
    site: &EnclosureSite<'_>,
    watch: &mut dyn RunObserver,
) -> OnceResult {
    let (begun, since) = (Instant::now(), SystemTime::now());
    let mut ended =
        RunSummary { captured: CapturedStreams::new(spec.limits.max_output_bytes), ..RunSummary::default() };
    let run = OnceRun { place: &place, granted: &granted, site };
    if let Err(error) = run.carry_out(&mut spec, &mut ended, watch) {
        ended.fail(error);
    }
    let changes =
        ended.copied.take().and_then(|copied| match copied.changes(spec.messages.as_deref(), since) {
            Ok(changes) => Some(changes),
            Err(error) => {
                ended.fail(error);
                None
            }
        });
    ended.judge();
    let (calls, usage) = ended.book.as_ref().map(|book| (book.calls(), book.usage())).unwrap_or_default();
    let audit = run.close(&mut ended, spec.attempt, &calls, &usage);
    let RunReservation { folder, .. } = place;
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

// === impl OnceRun ===

impl OnceRun<'_> {
    /// Runs everything up to the sandbox's teardown and the end of its calls.
    fn carry_out(
        &self,
        spec: &mut OnceSpec,
        ended: &mut RunSummary,
        watch: &mut dyn RunObserver,
    ) -> Result<(), OnceError> {
        let Self { place, granted, site } = self;
        if granted.run_id() != place.folder.id() {
            return Err(OnceError::OtherRun);
        }
        let identity = identity(granted, (spec.attempt, spec.metadata.clone()));
        identity.check()?;
        program_hatches::furnish(spec)?;
        let (stdio, mut streams) = PipeEnds::make().map_err(|source| OnceError::Watch { source })?;
        let start = ProgramStart { place, spec, stdio, copied: &mut ended.copied };
        let mut enclosure = enclosure::begin(site, start, &|| watch.is_canceled())?;
        // The time limit begins with the sandbox.
        let deadline = Instant::now() + spec.limits.max_runtime;
        ended.isolation = Some(enclosure.isolation().clone());
        // Threads may be started only now. Whatever fails from here on, dropping `enclosure` ends the sandbox.
        let book = Arc::new(RunJournal::open(site.state.path())?);
        ended.book = Some(Arc::clone(&book));
        let served = program_hatches::serve(spec, identity, &book, enclosure.take_hatches())?;
        let mut capture = Capture { captured: &mut ended.captured, book: &book, watch, reported: 0 };
        let watched = supervise::until_end(&mut enclosure, &mut streams, &|| deadline, &mut capture);
        ended.captured.finish();
        let watched = watched.map_err(OnceError::Lost);
        let noted = watched.map(|over| note(&enclosure, (over.ending.outcome, over.reason), ended));
        let is_gone = enclosure.end().map_err(OnceError::Lost);
        // With the sandbox gone no call is made any more, and those that were under way are over.
        ended.web = served.end();
        noted.and(is_gone)
    }

    /// Records the end, which waits for all earlier records.
    fn close(
        &self,
        ended: &mut RunSummary,
        attempt: u32,
        calls: &ModelCalls,
        usage: &UsageTotals,
    ) -> Option<AuditRange> {
        let Self { granted, site, .. } = self;
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
        let book = ended.book.take().map_or_else(|| RunJournal::open(site.state.path()).map(Arc::new), Ok);
        match book.and_then(|book| book.close(ENDED, Some(granted.run_id()), &event)) {
            Ok(span) => Some(AuditRange { first: granted.receipt().sequence, ..span }),
            Err(error) => {
                ended.fail(error.into());
                None
            }
        }
    }
}

/// Notes how a program ended.
fn note(enclosure: &Enclosure, (outcome, reason): (ProgramOutcome, Reason), ended: &mut RunSummary) {
    let limit = enclosure.ended_by(outcome);
    ended.code = match (reason, limit) {
        (Reason::OutOfTime, _) => Some(OnceCode::Timeout),
        (Reason::Canceled, _) => Some(OnceCode::Canceled),
        (Reason::ByItself, Some(Limit::Memory)) => Some(OnceCode::OomKilled),
        (Reason::ByItself, Some(Limit::Disk)) => Some(OnceCode::DiskFull),
        // Killed from outside, by an unknown process.
        (Reason::ByItself, None) if outcome == ProgramOutcome::Killed => Some(OnceCode::Internal),
        (Reason::ByItself, None) => None,
    };
    let came_to_an_end =
        !matches!(ended.code, Some(OnceCode::Timeout | OnceCode::Canceled | OnceCode::Internal));
    ended.exit_code = came_to_an_end.then(|| i32::from(outcome.exit_code()));
}

fn identity(granted: &ExecutionPermit, (attempt, metadata): (u32, CallMetadata)) -> Identity {
    let (account, graph_id) = (granted.billing_account_id().to_owned(), granted.graph_id().to_owned());
    let user_id = granted.user_id().map(str::to_owned).or(metadata.user_id);
    let identity = Identity::new(granted.run_id().clone(), attempt, account, graph_id);
    identity.with_metadata(CallMetadata { user_id, ..metadata })
}

// === impl RunSummary ===

impl RunSummary {
    /// Keeps the first failure.
    fn fail(&mut self, error: OnceError) {
        self.code.get_or_insert(error.code());
        self.cause.get_or_insert(error);
    }

    /// A truncated answer is a failure.
    fn judge(&mut self) {
        if self.code.is_none() && self.exit_code == Some(0) && self.captured.has_lost_answer() {
            self.code = Some(OnceCode::OutputTruncated);
        }
    }
}
