//! The cost of many stored jobs: the time of a node to start, to list, to show one, and to accept one more.

use super::client::Client;
use super::{RUN, submitted, timed};
use crate::Programs;
use crate::rounds::{Goal, judge, median};
use belljar_contract::failure::FailureCode;
use belljar_contract::worker::assignment::Assignment;
use belljar_contract::worker::job::JobOutcome;
use belljar_policy::lifecycle::ReportedEnding;
use belljar_store::database::{Database, Location};
use belljar_store::jobs::{AcceptedJob, FinalReport, JobNews, Jobs, Owner, Submission};
use belljar_testkit::node::{Node, TOKEN, command, new_id};
use belljar_testkit::world::World;
use jiff::Timestamp;
use std::time::Instant;

/// Numbers of stored jobs at each measurement.
const SIZES: [usize; 5] = [10, 1_000, 10_000, 30_000, 100_000];

const TURNS: usize = 50;
const STARTS: usize = 5;

/// One measurement, in milliseconds.
struct GrowthSample {
    stored: usize,
    figures: [f64; 5],
}

const WHAT: [&str; 5] = ["start", "first page", "page of a task", "one job", "one more"];

pub(crate) fn growth(programs: &Programs) -> bool {
    println!("\n## growth: a node with so many ended jobs (SQLite)");
    println!("\n| jobs | {} ms |\n| --- | --- | --- | --- | --- | --- |", WHAT.join(" ms | "));
    let world = World::new(programs.belljar());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let mut looks = Vec::new();
    let mut stored = 0;
    // The first start creates the database.
    drop(Node::start(&world, &[]));
    for size in SIZES {
        let last = runtime.block_on(fill(&world, size - stored));
        stored = size;
        let look = look(&world, stored, &last);
        let figures: Vec<_> = look.figures.iter().map(|figure| format!("{figure:.2}")).collect();
        println!("| {stored} | {} |", figures.join(" | "));
        looks.push(look);
    }
    let [.., last] = looks.as_slice() else { return false };
    let Some(thousand) = looks.iter().find(|look| look.stored == 1_000) else { return false };
    let mut met = true;
    for (index, what) in WHAT.iter().enumerate() {
        let grown = last.figures[index] / thousand.figures[index];
        met &= judge(&format!("{what}: with 100,000 jobs / with 1,000"), grown, Goal::AtMost(1.5));
    }
    met
}

/// Stores ended jobs like a node. Returns the id and the task of the last.
async fn fill(world: &World, count: usize) -> (String, String) {
    let path = world.path().join("state/node/node.db");
    let database = Database::open(&Location::File(path)).await.expect("the node's database");
    let jobs = Jobs::new(database.clone());
    let owner = Owner { node: new_id(), instance: new_id() };
    jobs.register(&owner, Timestamp::now()).await.expect("an owner");
    let mut last = (String::new(), String::new());
    for _ in 0..count {
        let job = command(&["/bin/true"]);
        last = [&job["job_id"], &job["task_id"]].map(|id| id.as_str().unwrap_or_default().to_owned()).into();
        let mut document = job.clone();
        if let Some(members) = document.as_object_mut() {
            members.remove("version");
        }
        let assignment = Assignment::parse(document.to_string().as_bytes()).expect("an assignment");
        let now = Timestamp::now();
        let submission = Submission {
            assignment,
            resolved: None,
            idempotency_key: None,
            most_waiting: 1_000_000,
            callback: None,
            hired: None,
            now,
        };
        let AcceptedJob::New(_) = jobs.submit(submission).await.expect("a job") else { continue };
        let claimed = jobs.claim(&owner.instance, now).await.expect("a claim").expect("a job");
        let outcome = JobOutcome::of_failure(FailureCode::StepFailed, "it has come to nothing");
        let report =
            FinalReport { untold: JobNews::default(), ending: ReportedEnding::Failed, outcome, trust: None };
        jobs.end(&claimed.job.job_id, claimed.fence(), report, now).await.expect("an end");
    }
    jobs.forget(&owner.instance).await.expect("no other owner");
    database.close().await;
    last
}

fn look(world: &World, stored: usize, (job_id, task_id): &(String, String)) -> GrowthSample {
    let starts = (0..STARTS).map(|_| {
        let begun = Instant::now();
        let node = Node::start(world, &["--max-concurrency", "1"]);
        let took = begun.elapsed().as_secs_f64();
        drop(node);
        took
    });
    let start = median(starts.collect::<Vec<_>>());
    let node = Node::start(world, &["--max-concurrency", "1", "--max-waiting", "1000000"]);
    let mut client = Client::to(node.address(), TOKEN);
    let mut get = |path: String| {
        let took = (0..TURNS).map(|_| timed(|| assert_eq!(client.get(&path), 200)));
        median(took.collect::<Vec<_>>())
    };
    let page = get("/v1/worker/jobs?limit=100".to_owned());
    let of_task = get(format!("/v1/worker/jobs?task_id={task_id}"));
    let one = get(format!("/v1/worker/jobs/{job_id}"));
    let mut client = Client::to(node.address(), TOKEN);
    let more = (0..TURNS).map(|_| {
        let job = submitted(command(&["/bin/true"]));
        timed(|| assert_eq!(client.post(RUN, &job), 202))
    });
    let more = median(more.collect::<Vec<_>>());
    GrowthSample { stored, figures: [start, page, of_task, one, more].map(|seconds| seconds * 1e3) }
}
