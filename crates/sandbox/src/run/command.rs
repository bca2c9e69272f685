//! Run of a program in a sandbox, with a job's folder but without the runner: a job that is a command.
//!
//! Its output is kept up to a limit for each stream. Further output is read and dropped, so that no program blocks because
//! its output isn't read. Files that it leaves in `/job/artifacts` are kept.

use super::{Deadline, RunError, StartedRun, collect, run_start, with_identity};
use crate::backend::with_causes;
use crate::enclosure::EnclosureSite;
use crate::hatch::{self};
use crate::limits::{Limit, Limits};
use crate::native::HostUser;
use crate::provision::Provision;
use crate::spec::{Program, SandboxSpec};
use crate::state::{JOB, RunFolder};
use crate::streams::{PipeEnds, Stream};
use crate::supervise::{self, Hearer, Reason};
use belljar_confine::sealed::ProgramOutcome;
use belljar_confine::stage::Timings;
use belljar_contract::failure::FailureCode;
use belljar_contract::id::{JobId, TaskId};
use belljar_contract::isolation::Isolation;
use belljar_contract::path::WORKSPACE;
use belljar_contract::result::{Artifact, Failure, ResourceUsage};
use belljar_files::host_path::HostPath;
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
    /// Provision of its sandbox. The watcher of the run gets the sockets of its hatches.
    pub provision: Provision,
    /// Time limit.
    pub timeout: Duration,
    /// Maximum number of bytes kept of each stream.
    pub max_output_bytes: usize,
}

/// A command that is over.
#[derive(Debug)]
pub struct FinishedCommand {
    /// Exit code: 128 and the signal for one that a signal ended.
    pub exit_code: i32,
    /// Failure that ended it; `None` if only its exit code shows a failure.
    pub failure: Option<Failure>,
    /// Standard output.
    pub stdout: CapturedOutput,
    /// Standard error.
    pub stderr: CapturedOutput,
    /// The files that it left.
    pub artifacts: Vec<Artifact>,
    /// Resource usage.
    pub resource_usage: ResourceUsage,
    /// The walls that it was behind.
    pub isolation: Isolation,
    /// The run's folder.
    pub folder: RunFolder,
    /// Duration of each stage of the launch.
    pub timings: Timings,
}

/// Output of a program to one stream.
#[derive(Debug, Default)]
pub struct CapturedOutput {
    /// The first of it.
    pub bytes: Vec<u8>,
    /// True if there was more.
    pub is_cut: bool,
}

/// Receiver of a command's progress.
pub trait CommandWatch {
    /// The sandbox stands, and the command has been started.
    fn begun(&mut self, begun: StartedRun);
    /// The command has written output that is kept. It comes from inside.
    fn printed(&mut self, stream: Stream, bytes: &[u8]);
    /// Returns the grace period before it is killed, if it is to stop.
    fn is_to_stop(&self) -> Option<Duration>;
}

struct OutputCapture<'w> {
    watch: &'w mut dyn CommandWatch,
    most: usize,
    stdout: CapturedOutput,
    stderr: CapturedOutput,
}

/// Runs a command in a sandbox that is made at `site`, by a launcher or an engine.
///
/// # Errors
/// [`RunError`] when the host can't do its part; then nothing ran, or its end is unknown.
pub fn carry_out_command(
    request: CommandRequest,
    site: &EnclosureSite<'_>,
    watch: &mut dyn CommandWatch,
) -> Result<FinishedCommand, RunError> {
    let user = HostUser::choose();
    let folder = site.state.begin_run(site.maker.owner(user))?;
    let Provision { env, hatches, .. } = request.provision;
    let env = with_identity(env, (&request.job_id, &request.task_id), &hatches);
    let spec = SandboxSpec {
        job: Some(HostPath::resolve(folder.private().join(JOB))?),
        provision: Provision { env, hatches, ..request.provision },
        ..SandboxSpec::new(folder.id().clone(), user)
    };
    let argv = request.argv.into_iter().map(Into::into).collect();
    let program = Program { argv, directory: WORKSPACE.to_owned() };
    let (stdio, mut streams) = PipeEnds::make().map_err(|source| RunError::Watch { source })?;
    let mut enclosure = run_start::begin(site, (&folder, &spec), &program, stdio)?;
    belljar_failpoint::reached("run.launched");
    let deadline = Deadline::after(request.timeout);
    let hatches = hatch::by_hatch(&spec.provision.hatches, enclosure.take_hatches());
    let workspace = None;
    watch.begun(StartedRun { run: folder.id().clone(), hatches, deadline: deadline.clone(), workspace });
    let most = request.max_output_bytes;
    let mut capture =
        OutputCapture { watch, most, stdout: CapturedOutput::default(), stderr: CapturedOutput::default() };
    let until = || deadline.at();
    let ended = supervise::until_end(&mut enclosure, &mut streams, &until, &mut capture)?;
    belljar_failpoint::reached("run.ended");
    let outcome = ended.ending.outcome;
    let mut failure = why_ended((ended.reason, outcome), enclosure.ended_by(outcome), &spec.provision.limits);
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
    (reason, outcome): (Reason, ProgramOutcome),
    exceeded: Option<Limit>,
    limits: &Limits,
) -> Option<Failure> {
    match (reason, exceeded) {
        (Reason::OutOfTime, _) => {
            Some(Failure::new(FailureCode::Timeout, "the command ran longer than allowed and was ended"))
        }
        (Reason::Canceled, _) => Some(Failure::new(FailureCode::Canceled, "the job was canceled")),
        (Reason::ByItself, Some(limit)) => Some(collect::out_of_room(limit, limits)),
        // Killed from outside, by an unknown process.
        (Reason::ByItself, None) if outcome == ProgramOutcome::Killed => {
            Some(Failure::new(FailureCode::NodeFailure, "the sandbox was killed from outside"))
        }
        (Reason::ByItself, None) => None,
    }
}

// === impl OutputCapture ===

impl Hearer for OutputCapture<'_> {
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
