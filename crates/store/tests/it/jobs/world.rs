//! A database for one test, and its contents.

use belljar_contract::failure::FailureCode;
use belljar_contract::id::{JobId, RunId, TaskId};
use belljar_contract::worker::assignment::{Assignment, RunJobRequest};
use belljar_contract::worker::event::JobEventKind;
use belljar_contract::worker::job::JobOutcome;
use belljar_policy::lifecycle::ReportedEnding;
use belljar_store::database::{Database, Location};
use belljar_store::jobs::{
    AcceptedJob, ClaimedJob, FinalReport, JobNews, JobRecord, Jobs, Owner, RunStart, Submission, SubmitError,
};
use belljar_testkit::postgres::Postgres;
use belljar_testkit::skip::skip;
use jiff::Timestamp;
use std::future::Future;
use std::sync::Arc;
use tempfile::TempDir;
use tokio::sync::Barrier;

/// A database of its own.
pub(crate) struct StoreFixture {
    pub(crate) location: Location,
    pub(crate) jobs: Jobs,
    pub(crate) database: Database,
    _folder: TempDir,
    pub(crate) postgres: Option<(Postgres, String)>,
}

/// Instance that owns the jobs of most cases.
pub(crate) const OWNER: &str = "instance-1";

pub(crate) const MOST_WAITING: u64 = 1_000;

impl StoreFixture {
    pub(crate) fn run_on_sqlite<F: Future<Output = ()>>(case: impl FnOnce(Self) -> F) {
        let folder = tempfile::tempdir().unwrap();
        let location = Location::File(folder.path().join("belljar.db"));
        Self::run(location, folder, None, case);
    }

    pub(crate) fn run_on_postgres<F: Future<Output = ()>>(name: &str, case: impl FnOnce(Self) -> F) {
        let begun = Postgres::start().and_then(|server| server.database().map(|url| (server, url)));
        match begun {
            Ok((server, url)) => {
                let location = Location::Server(url.clone());
                Self::run(location, tempfile::tempdir().unwrap(), Some((server, url)), case);
            }
            Err(why) => skip(name, &why),
        }
    }

    fn run<F: Future<Output = ()>>(
        location: Location,
        folder: TempDir,
        postgres: Option<(Postgres, String)>,
        case: impl FnOnce(Self) -> F,
    ) {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
        runtime.block_on(async {
            let database = Database::open(&location).await.unwrap();
            let jobs = Jobs::new(database.clone());
            let world = Self { location, jobs, database, _folder: folder, postgres };
            world.register(OWNER).await;
            case(world).await;
        });
    }

    pub(crate) async fn register(&self, instance: &str) {
        let owner = Owner { instance: instance.to_owned(), node: format!("node of {instance}") };
        self.jobs.register(&owner, now()).await.unwrap();
    }

    /// Opens the same database a second time, as another process would.
    pub(crate) async fn elsewhere(&self) -> Jobs {
        Jobs::new(Database::open(&self.location).await.unwrap())
    }

    /// Runs an operation several times concurrently, each on a database that it has opened itself; returns the results.
    pub(crate) async fn at_once<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
        &self,
        many: usize,
        each: impl Fn(usize, Database) -> F,
    ) -> Vec<T> {
        let all_ready = Arc::new(Barrier::new(many));
        let mut doing = Vec::new();
        for number in 0..many {
            let work = each(number, Database::open(&self.location).await.unwrap());
            let ready = Arc::clone(&all_ready);
            doing.push(tokio::spawn(async move {
                ready.wait().await;
                work.await
            }));
        }
        let mut done = Vec::new();
        for doing in doing {
            done.push(doing.await.unwrap());
        }
        done
    }

    pub(crate) async fn submit(&self, assignment: &Assignment) -> Result<AcceptedJob, SubmitError> {
        self.jobs.submit(submission(assignment)).await
    }

    /// A job that was accepted just now.
    pub(crate) async fn accepted(&self, assignment: &Assignment) -> JobRecord {
        match self.submit(assignment).await.unwrap() {
            AcceptedJob::New(job) => job,
            AcceptedJob::Known(job) => panic!("known: {job:?}"),
        }
    }

    /// A job that is the owner's to carry out.
    pub(crate) async fn claimed(&self, assignment: &Assignment) -> ClaimedJob {
        self.accepted(assignment).await;
        self.jobs.claim(OWNER, now()).await.unwrap().unwrap()
    }

    pub(crate) async fn started(&self, assignment: &Assignment) -> ClaimedJob {
        let claimed = self.claimed(assignment).await;
        self.jobs.tell(&claimed.job.job_id, claimed.fence(), starting(started())).await.unwrap();
        claimed
    }

    pub(crate) async fn job(&self, job_id: &JobId) -> JobRecord {
        self.jobs.find(job_id).await.unwrap().unwrap()
    }

    /// Returns the kinds of a job's events, with the state if they have one; checks their ids.
    pub(crate) async fn story(&self, job_id: &JobId) -> Vec<String> {
        let events = self.jobs.events_after(job_id, 0, 1_000).await.unwrap();
        let ids: Vec<_> = events.iter().map(|event| event.id).collect();
        assert_eq!(ids, (1..=events.len() as u64).collect::<Vec<_>>());
        let told = |happening: JobEventKind| match happening {
            JobEventKind::Status { status, attempt, .. } => format!("{status} {attempt}"),
            other => other.kind().to_owned(),
        };
        events.into_iter().map(|event| told(event.happening)).collect()
    }
}

pub(crate) fn submission(assignment: &Assignment) -> Submission {
    Submission {
        assignment: assignment.clone(),
        resolved: None,
        idempotency_key: None,
        most_waiting: MOST_WAITING,
        callback: None,
        hired: None,
        now: now(),
    }
}

/// A job of a new task.
pub(crate) fn assignment() -> Assignment {
    assignment_of(&task_id())
}

pub(crate) fn assignment_of(task: &TaskId) -> Assignment {
    let document = serde_json::json!({
        "version": 1,
        "task_id": task,
        "job_id": uuid::Uuid::new_v4().to_string(),
        "sandbox": { "command": ["true"] },
    });
    RunJobRequest::parse(document.to_string().as_bytes()).unwrap().assignment
}

pub(crate) fn task_id() -> TaskId {
    TaskId::from_uuid(uuid::Uuid::new_v4())
}

/// Returns the present time in milliseconds, as it is stored.
pub(crate) fn now() -> Timestamp {
    Timestamp::from_millisecond(Timestamp::now().as_millisecond()).unwrap()
}

pub(crate) fn started() -> RunStart {
    RunStart { run_id: RunId::from_uuid(uuid::Uuid::new_v4()), at: now(), deadline: now() }
}

pub(crate) fn starting(started: RunStart) -> JobNews {
    JobNews { started: Some(started), ..JobNews::default() }
}

pub(crate) fn report(ending: ReportedEnding, outcome: JobOutcome) -> FinalReport {
    FinalReport { untold: JobNews::default(), ending, outcome, trust: None }
}

pub(crate) fn outcome(stdout: &str) -> JobOutcome {
    JobOutcome {
        stdout: stdout.to_owned(),
        exit_code: 0,
        failure_code: None,
        failure_message: None,
        ..JobOutcome::of_failure(FailureCode::InternalError, "")
    }
}
