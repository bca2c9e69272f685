//! Takes what a run leaves: the result, if it can be believed, the artifacts, the changes.

use super::{PendingChanges, RunError};
use crate::artifact::{ArtifactError, Caps, Collector};
use crate::backend::with_causes;
use crate::limits::{Bytes, Limit, Limits};
use crate::spec::Workspace;
use crate::state::{JOB, RunFolder, StateDirectory};
use crate::supervise::{ProgramEnd, Reason};
use crate::workspace::changes::{ChangeSet, ChangesError};
use crate::workspace::diff;
use belljar_confine::sealed::ProgramOutcome;
use belljar_contract::failure::FailureCode;
use belljar_contract::job::Job;
use belljar_contract::result::{Artifact, Failure, JobResult, ResourceUsage};
use belljar_files::directory::{Directory, DirectoryError};
use belljar_files::reserve::OR_LESS;
use belljar_policy::admission::AdmittedJob;
use jiff::Timestamp;
use rustix::io::Errno;
use std::error::Error;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::time::SystemTime;

/// A larger result is none: nothing that a job may return adds up to this.
const LARGEST_RESULT_BYTES: u64 = 256 << 20;

/// The runner's result if it can be believed, else one of the host's own. What was reported by a hatch counts only where there
/// is no file: a step may report what it likes, and the file is written when no step lives any more.
pub(super) fn result(
    folder: &RunFolder,
    admitted: &AdmittedJob,
    (ended, errors): (&ProgramEnd, &str),
    reported: Option<JobResult>,
) -> JobResult {
    let job = admitted.job();
    let usage = used(ended);
    let failure = match read(folder).or_else(|why| reported.ok_or(why)) {
        Ok(result) => match why_not_believed(&result, job, ended) {
            None => return result,
            Some(why) => unbelievable(ended, errors, &why),
        },
        Err(why) => unbelievable(ended, errors, &why),
    };
    let mut result = JobResult::begun(job, Timestamp::now()).failed(failure, Timestamp::now());
    result.resource_usage = usage;
    result
}

/// The folder of a run that its job's document lies in, and its result.
pub(super) fn job_folder(folder: &RunFolder) -> Result<Directory, DirectoryError> {
    Directory::open_host(&folder.private()).and_then(|folder| folder.open_own(Path::new(JOB)))
}

/// Returns the resource usage of everything in a sandbox.
pub(super) fn used(ended: &ProgramEnd) -> ResourceUsage {
    ResourceUsage {
        cpu_time_ms: u64::try_from(ended.ending.usage.cpu.as_millis()).unwrap_or(u64::MAX),
        max_rss_bytes: ended.ending.usage.max_rss_bytes,
    }
}

fn read(folder: &RunFolder) -> Result<JobResult, String> {
    let job_folder =
        job_folder(folder).map_err(|error| format!("the run's folder can't be read: {}", error.source))?;
    let file = job_folder.open_file(Path::new("result.json")).map_err(|error| match error.source {
        Errno::NOENT => "there is no result.json".to_owned(),
        errno => format!("result.json can't be read: {errno}"),
    })?;
    let mut document = Vec::new();
    let read = file.take(LARGEST_RESULT_BYTES + 1).read_to_end(&mut document);
    match read {
        Ok(size) if size as u64 > LARGEST_RESULT_BYTES => Err("result.json is too large".to_owned()),
        Ok(_) => serde_json::from_slice(&document)
            .map_err(|error| format!("result.json is not a valid result: {error}")),
        Err(error) => Err(format!("result.json can't be read: {error}")),
    }
}

fn why_not_believed(result: &JobResult, job: &Job, ended: &ProgramEnd) -> Option<String> {
    if ended.ending.outcome != ProgramOutcome::Exited(result.exit_code().into()) {
        return Some(format!(
            "the runner's exit status does not match its result ({:?})",
            ended.ending.outcome
        ));
    }
    if result.job_id.as_deref() != Some(job.job_id.as_str()) {
        return Some("the result belongs to another job".to_owned());
    }
    None
}

fn unbelievable(ended: &ProgramEnd, errors: &str, why: &str) -> Failure {
    match ended.reason {
        Reason::OutOfTime => {
            Failure::new(FailureCode::Timeout, "the job exceeded its time limit and was killed")
        }
        Reason::Canceled => Failure::new(FailureCode::Canceled, "the job was canceled"),
        Reason::ByItself => {
            let said = errors.trim();
            let said = if said.is_empty() { String::new() } else { format!("; its stderr: {said}") };
            Failure::new(FailureCode::NodeFailure, format!("the runner left no result: {why}{said}"))
        }
    }
}

/// The artifacts: those in the job's folder, and those of its workspace that it names. And why there are not all of them.
pub(super) fn artifacts(
    state: &StateDirectory,
    folder: &RunFolder,
    named: Option<(&Directory, &AdmittedJob)>,
) -> Result<(Vec<Artifact>, Option<ArtifactError>), RunError> {
    let store = state.artifacts()?;
    let job_folder = Directory::open_host(&folder.private())?.open_own(Path::new(JOB))?;
    let mut collector = Collector::new(&store, Caps::default());
    let mut failed = match job_folder.open_own(Path::new("artifacts")) {
        Ok(left) => collector.take_folder(&left).err(),
        // A job may remove it: then there are none.
        Err(error) if error.source == Errno::NOENT => None,
        Err(source) if is_of_run(source.source) => Some(ArtifactError::Folder { source }),
        Err(error) => return Err(error.into()),
    };
    if let Some((workspace, admitted)) = named {
        for path in admitted.artifacts() {
            if let Err(error) = collector.take_named(workspace, path) {
                failed.get_or_insert(error);
            }
        }
    }
    Ok((collector.finish(), failed))
}

/// Returns true if the run itself is the reason why its leftovers can't be opened, and not a lack of resources on the host.
fn is_of_run(errno: Errno) -> bool {
    matches!(errno, Errno::NOTDIR | Errno::LOOP | Errno::ACCESS | Errno::PERM | Errno::XDEV)
}

/// The failure code for a job whose artifacts can't all be kept.
pub(super) fn code_of(error: &ArtifactError) -> FailureCode {
    match error {
        ArtifactError::Open { .. } => FailureCode::StepFailed,
        ArtifactError::Folder { .. } | ArtifactError::TooMuch { .. } => FailureCode::ConstraintViolation,
        // A run decides itself how much it leaves, and has filled the disk before.
        ArtifactError::Store { source, .. } if source.kind() == ErrorKind::StorageFull => {
            FailureCode::ConstraintViolation
        }
        ArtifactError::Store { .. } => FailureCode::InternalError,
    }
}

/// Directories of a workspace that is a copy, held while the job runs: the tree that is read afterwards is the one that was
/// copied, whatever has taken over its name.
pub(super) struct HeldCopy {
    source: Directory,
    upper: Directory,
    since: SystemTime,
}

// === impl HeldCopy ===

impl HeldCopy {
    /// Opens them; `None` for a workspace that is no copy.
    pub(super) fn open(workspace: &Workspace, since: SystemTime) -> Result<Option<Self>, DirectoryError> {
        let Workspace::Copy { source, upper, .. } = workspace else { return Ok(None) };
        let (source, upper) = (Directory::open_meant(source)?, Directory::open_meant(upper)?);
        Ok(Some(Self { source, upper, since }))
    }

    /// Returns the changes, and adds them to the result. A job with more changes than can be reported has failed.
    pub(super) fn changes(self, result: &mut JobResult) -> Option<PendingChanges> {
        let Self { source, upper, since } = self;
        let read = ChangeSet::read(&source, &upper).and_then(|set| {
            diff::render(&set, &source, &upper).map(|shown| (set, shown)).map_err(Into::into)
        });
        match read {
            Ok((set, shown)) => {
                result.changes = Some(shown);
                if !set.left_out().is_empty() {
                    fail(result, FailureCode::ConstraintViolation, &ChangesError::TooLong);
                }
                Some(PendingChanges { set, source, upper, since })
            }
            Err(error) => {
                let code = match error {
                    ChangesError::TooMany | ChangesError::TooLong => FailureCode::ConstraintViolation,
                    ChangesError::Directory(_) => FailureCode::InternalError,
                };
                fail(result, code, &error);
                None
            }
        }
    }
}

/// Makes the result a failure of exceeded limits, whatever the runner's result: the runner saw only a step that died.
pub(super) fn exceeded(result: &mut JobResult, limit: Limit, limits: &Limits) {
    *result = result.clone().failed(out_of_room(limit, limits), Timestamp::now());
    result.exceeded_limit = Some(limit);
}

/// The failure of what ran into a limit of its sandbox.
pub(super) fn out_of_room(limit: Limit, limits: &Limits) -> Failure {
    let (most, or_less) = match limit {
        Limit::Memory => (limits.memory_bytes, ""),
        Limit::Disk => (limits.disk_bytes, OR_LESS),
    };
    let most = most.map_or(String::new(), |most| format!(" ({}{or_less})", Bytes(most)));
    Failure::new(FailureCode::ConstraintViolation, format!("the sandbox was ended: {limit}{most}"))
}

/// Makes the result a failed one, unless it is that already: then it has its own reason.
pub(super) fn fail(result: &mut JobResult, code: FailureCode, why: &dyn Error) {
    if result.failure_code.is_none() {
        let message = with_causes(why);
        *result = result.clone().failed(Failure::new(code, message), Timestamp::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::HostUser;
    use std::fs;

    /// The artifacts of a run that left this at the place of its artifacts folder.
    fn left(make: fn(&Path)) -> (usize, Option<FailureCode>) {
        let place = tempfile::tempdir().unwrap();
        let state = StateDirectory::at(place.path().join("state"));
        let folder = state.begin_run(HostUser::choose().identity()).unwrap();
        let at = folder.private().join(JOB).join("artifacts");
        fs::write(at.join("kept"), "kept").unwrap();
        make(&at);
        let (kept, failed) = artifacts(&state, &folder, None).unwrap();
        folder.remove().unwrap();
        (kept.len(), failed.as_ref().map(code_of))
    }

    fn moved(at: &Path) {
        fs::rename(at, at.with_file_name("moved")).unwrap();
    }

    #[test]
    fn artifacts_folder_that_the_run_replaced_is_the_failure_of_the_run() {
        let link: fn(&Path) = |at| {
            moved(at);
            std::os::unix::fs::symlink("/etc", at).unwrap();
        };
        let file: fn(&Path) = |at| {
            moved(at);
            fs::write(at, "").unwrap();
        };
        let pipe: fn(&Path) = |at| {
            moved(at);
            let mode = rustix::fs::Mode::from_raw_mode(0o600);
            rustix::fs::mknodat(rustix::fs::CWD, at, rustix::fs::FileType::Fifo, mode, 0).unwrap();
        };
        for (name, make) in [("link", link), ("file", file), ("pipe", pipe)] {
            assert_eq!(left(make), (0, Some(FailureCode::ConstraintViolation)), "{name}");
        }
        // Controls: what is there is kept, and a run may remove its folder.
        assert_eq!(left(|_| {}), (1, None));
        assert_eq!(left(moved), (0, None));
    }
}
