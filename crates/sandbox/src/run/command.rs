//! One program in one sandbox, with a job's folder but without the runner: a job that is a command.
//!
//! What it writes is kept up to a bound for each stream; what is beyond is read and dropped, so that no program stands
//! still for want of a reader. What it leaves in `/job/artifacts` is kept.

use super::supervise::{self, Hearer, Reason};
use super::{Begun, Deadline, RunError, collect, place, with_identity};
use crate::backend::with_causes;
use crate::enclosure::Site;
use crate::hatch::{self, Hatch};
use crate::limits::{Limit, Limits};
use crate::native::HostUser;
use crate::spec::{Lent, Program, SandboxSpec};
use crate::state::{JOB, RunFolder};
use crate::streams::{Stream, Streams};
use belljar_confine::plan::HostPath;
use belljar_confine::sealed::Outcome;
use belljar_confine::stage::Timings;
use belljar_contract::failure::FailureCode;
use belljar_contract::id::{JobId, TaskId};
use belljar_contract::isolation::{Isolation, Required};
use belljar_contract::path::WORKSPACE;
use belljar_contract::programs::ProgramList;
use belljar_contract::result::{Artifact, Failure, ResourceUsage};
use std::collections::BTreeMap;
use std::time::Duration;

/// A command to carry out.
#[derive(Debug)]
pub struct CommandRequest {
    /// The job that it is.
    pub job_id: JobId,
    /// The task of that.
    pub task_id: TaskId,
    /// The program and its arguments; never empty.
    pub argv: Vec<String>,
    /// What it is lent, read-only.
    pub lent: Vec<Lent>,
    /// Variables for its environment.
    pub env: BTreeMap<String, String>,
    /// Files in its home that are there before anything runs, by their path below it.
    pub home: BTreeMap<String, String>,
    /// The only programs that can be started in its sandbox, if not all can.
    pub programs: Option<ProgramList>,
    /// What its sandbox may use.
    pub limits: Limits,
    /// The layers without which it shall not run.
    pub required: Required,
    /// Ways out of its sandbox. Whoever watches it gets their sockets.
    pub hatches: Vec<Hatch>,
    /// How long it may last.
    pub timeout: Duration,
    /// How much is kept of each stream, in bytes.
    pub max_output_bytes: usize,
}

/// A command that is over.
#[derive(Debug)]
pub struct FinishedCommand {
    /// How it ended, as an exit code: 128 and the signal for one that a signal ended.
    pub exit_code: i32,
    /// Why it did not end well by itself; nothing if only its exit code tells of that.
    pub failure: Option<Failure>,
    /// What it wrote to standard output.
    pub stdout: Printed,
    /// What it wrote to standard error.
    pub stderr: Printed,
    /// The files that it left.
    pub artifacts: Vec<Artifact>,
    /// What it has used.
    pub resource_usage: ResourceUsage,
    /// The walls that it was behind.
    pub isolation: Isolation,
    /// The run's folder.
    pub folder: RunFolder,
    /// How long each stage of the launch took.
    pub timings: Timings,
}

/// What a program wrote to one stream.
#[derive(Debug, Default)]
pub struct Printed {
    /// The first of it.
    pub bytes: Vec<u8>,
    /// Whether there was more.
    pub is_cut: bool,
}

/// Hears how a command goes on.
pub trait CommandWatch {
    /// Its sandbox stands, and it has been started.
    fn begun(&mut self, begun: Begun);
    /// It has written something that is kept. It comes from inside.
    fn printed(&mut self, stream: Stream, bytes: &[u8]);
    /// Whether somebody wants it to stop, and how long it may take until it is killed.
    fn is_to_stop(&self) -> Option<Duration>;
}

struct Capture<'w> {
    watch: &'w mut dyn CommandWatch,
    most: usize,
    stdout: Printed,
    stderr: Printed,
}

/// Carries a command out, in a sandbox that is made at `site`, by a launcher or an engine.
///
/// # Errors
/// [`RunError`] when the host can't do its part; nothing ran then, or nobody knows how it ended.
pub fn carry_out_command(
    request: CommandRequest,
    site: &Site<'_>,
    watch: &mut dyn CommandWatch,
) -> Result<FinishedCommand, RunError> {
    let user = HostUser::choose();
    let folder = site.state.begin_run(site.maker.owner(user))?;
    let spec = SandboxSpec {
        job: Some(HostPath::resolve(folder.private().join(JOB))?),
        lent: request.lent,
        env: with_identity(request.env, (&request.job_id, &request.task_id), &request.hatches),
        home: request.home,
        hatches: request.hatches,
        programs: request.programs,
        limits: request.limits,
        required: request.required,
        ..SandboxSpec::new(folder.id().clone(), user)
    };
    let argv = request.argv.into_iter().map(Into::into).collect();
    let program = Program { argv, directory: WORKSPACE.to_owned() };
    let (stdio, mut streams) = Streams::make().map_err(|source| RunError::Watch { source })?;
    let mut enclosure = place::begin(site, (&folder, &spec), &program, stdio)?;
    belljar_failpoint::reached("run.launched");
    let deadline = Deadline::after(request.timeout);
    let hatches = hatch::by_hatch(&spec.hatches, enclosure.take_hatches());
    watch.begun(Begun { run: folder.id().clone(), hatches, deadline: deadline.clone() });
    let most = request.max_output_bytes;
    let mut capture = Capture { watch, most, stdout: Printed::default(), stderr: Printed::default() };
    let until = || deadline.at();
    let ended = supervise::until_end(&mut enclosure, &mut streams, &until, &mut capture)?;
    belljar_failpoint::reached("run.ended");
    let outcome = ended.ending.outcome;
    let mut failure = why_ended((ended.reason, outcome), enclosure.ended_by(outcome), &spec.limits);
    let (isolation, timings) = (enclosure.isolation().clone(), enclosure.timings());
    if let Err(error) = enclosure.end() {
        failure = failure.or(Some(Failure::new(FailureCode::NodeFailure, with_causes(&error))));
    }
    let (artifacts, lost) = match collect::artifacts(site.state, &folder, None) {
        Ok((kept, failed)) => {
            (kept, failed.map(|error| Failure::new(collect::code_of(&error), with_causes(&error))))
        }
        Err(error) => (Vec::new(), Some(Failure::new(FailureCode::InternalError, with_causes(&error)))),
    };
    // A command that has failed already has its own reason, whatever it made of its artifacts.
    if outcome.exit_code() == 0 {
        failure = failure.or(lost);
    }
    Ok(FinishedCommand {
        exit_code: outcome.exit_code().into(),
        failure,
        stdout: capture.stdout,
        stderr: capture.stderr,
        artifacts,
        resource_usage: collect::used(&ended),
        isolation,
        folder,
        timings,
    })
}

fn why_ended(
    (reason, outcome): (Reason, Outcome),
    exceeded: Option<Limit>,
    limits: &Limits,
) -> Option<Failure> {
    match (reason, exceeded) {
        (Reason::OutOfTime, _) => {
            Some(Failure::new(FailureCode::Timeout, "the command ran longer than allowed and was ended"))
        }
        (Reason::Canceled, _) => Some(Failure::new(FailureCode::Canceled, "the job was canceled")),
        (Reason::ByItself, Some(limit)) => Some(collect::out_of_room(limit, limits)),
        // Killed from outside, and by nobody that is known of.
        (Reason::ByItself, None) if outcome == Outcome::Killed => {
            Some(Failure::new(FailureCode::NodeFailure, "the sandbox was killed from outside"))
        }
        (Reason::ByItself, None) => None,
    }
}

// === impl Capture ===

impl Hearer for Capture<'_> {
    fn heard(&mut self, stream: Stream, bytes: &[u8]) {
        let printed = match stream {
            Stream::Stdout => &mut self.stdout,
            Stream::Stderr => &mut self.stderr,
        };
        let room = self.most.saturating_sub(printed.bytes.len());
        let (kept, dropped) = bytes.split_at(room.min(bytes.len()));
        printed.bytes.extend_from_slice(kept);
        printed.is_cut |= !dropped.is_empty();
        if !kept.is_empty() {
            self.watch.printed(stream, kept);
        }
    }

    fn is_to_stop(&self) -> Option<Duration> {
        self.watch.is_to_stop()
    }
}
