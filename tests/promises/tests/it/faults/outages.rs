//! Outages of what a node needs: its database, the disk, or its own time.

use super::client::{WantedJob, pursue_all};
use super::ground::FaultWorld;
use super::tell;
use belljar_testkit::http::{HttpRequest, HttpResponse};
use belljar_testkit::node::{Node, new_id, script};
use belljar_testkit::postgres::Postgres;
use belljar_testkit::processes;
use belljar_testkit::skip::skip;
use belljar_testkit::wait;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Time for which a database doesn't respond.
const OUTAGE: Duration = Duration::from_secs(30);

/// Time for which a node is stopped. It is longer than its lease.
const STANDSTILL: Duration = Duration::from_secs(60);

/// Time after which a node has noticed that its database is unreachable.
const NOTICED: Duration = Duration::from_secs(10);

/// Maximum response time while the node itself is asking its database; and that of most requests.
const SOON: Duration = Duration::from_secs(4);
const AT_ONCE: Duration = Duration::from_millis(500);

#[test]
fn unresponsive_database_is_reported_at_once_and_jobs_continue() {
    let server = match Postgres::start_own() {
        Ok(server) => server,
        Err(why) => {
            const NAME: &str = "faults::outages::unresponsive_database_is_reported_at_once_and_jobs_continue";
            return skip(NAME, &why);
        }
    };
    let ground = FaultWorld::lay("database", Some(server.database().unwrap()));
    let node = Node::start(&ground.world, &ground.arguments());
    // The job ends while its end can't be recorded.
    let running = WantedJob::new(script("sleep 10; echo done"), super::client::FollowUp::Nothing);
    let mut wanted = vec![running];
    let _ = wanted[0].pursue(&node);
    node.wait_for(wanted[0].id(), "in_progress");
    wanted.extend(ground.jobs());

    server.hold(true);
    let since = Instant::now();
    let mut waited = Vec::new();
    let mut job = wanted[1].job.clone();
    job["wait"] = json!(false);
    let requests = [
        HttpRequest::new("GET", "/v1/worker/jobs"),
        HttpRequest::new("POST", "/v1/worker/jobs:run").json(job.to_string()),
    ];
    while since.elapsed() < OUTAGE {
        for asked in &requests {
            let begun = Instant::now();
            let answered = node.send(asked);
            let told = (answered.status, answered.header("retry-after"));
            assert_eq!(told, (503, Some("1")), "{}", said(&answered));
            if since.elapsed() > NOTICED {
                waited.push(begun.elapsed());
            }
        }
        assert_eq!(node.get("/healthz").status, 200, "it lives");
        wait::until(|| node.get("/readyz").status == 503);
        std::thread::sleep(Duration::from_millis(100));
    }
    server.hold(false);
    waited.sort();
    let asked = waited.len();
    assert!(asked > 20 && waited[asked - 1] < SOON, "the longest of {asked}: {:?}", waited[asked - 1]);
    assert!(waited[asked / 2] < AT_ONCE, "half of {asked}: {:?}", waited[asked / 2]);
    assert!(pursue_all(&node, &mut wanted).is_ok());
    assert_eq!(node.job(wanted[0].id())["stdout"], "done\n");
    ground.check(&node, &wanted);
    tell(&format!(
        "a database that was silent for {OUTAGE:?}: {asked} clients got an error, half of them within {:?}, 0 jobs lost, 0 ended twice",
        waited[asked / 2]
    ));
}

#[test]
fn node_stopped_for_a_minute_writes_nothing_of_jobs_claimed_by_others() {
    let server = match Postgres::start_own() {
        Ok(server) => server,
        Err(why) => {
            const NAME: &str =
                "faults::outages::node_stopped_for_a_minute_writes_nothing_of_jobs_claimed_by_others";
            return skip(NAME, &why);
        }
    };
    let url = server.database().unwrap();
    let (first, second) = (FaultWorld::lay("first", Some(url.clone())), FaultWorld::lay("second", Some(url)));
    let one = Node::start(&first.world, &first.arguments());
    // A job that may be retried, and one that may not.
    let mut again = script("sleep 8; echo done");
    again["max_attempts"] = json!(4);
    let mut wanted = vec![
        WantedJob::new(again, super::client::FollowUp::Nothing),
        WantedJob::endless(&first.mark, super::client::FollowUp::Nothing),
    ];
    for job in &mut wanted {
        let _ = job.pursue(&one);
        one.wait_for(job.id(), "in_progress");
    }
    let other = Node::start(&second.world, &second.arguments());
    signal(&one, Signal::STOP);
    let since = Instant::now();
    wait::until(|| other.job(wanted[0].id())["status"] == "completed");
    let told = other.job(wanted[0].id());
    assert_eq!((&told["attempt"], &told["stdout"]), (&json!(2), &json!("done\n")), "{told}");
    assert_eq!(other.job(wanted[1].id())["status"], "node_failure");
    // Until the orchestrator has accepted the ends, the records may still change.
    for job in &wanted {
        wait::until(|| other.job(job.id())["acknowledged_at"].is_string());
    }
    let before = wanted.iter().map(|job| (other.job(job.id()), other.story(job.id()))).collect::<Vec<_>>();
    std::thread::sleep(STANDSTILL.saturating_sub(since.elapsed()));
    signal(&one, Signal::CONT);
    // The node learns that it no longer owns the jobs, and kills their processes.
    wait::until(|| processes::sealed_below(one.pid().cast_signed()).is_empty());
    for (job, before) in wanted.iter().zip(before) {
        assert_eq!((other.job(job.id()), other.story(job.id())), before, "nothing of it has changed");
    }
    // It accepts new jobs.
    let mut more = Vec::from(first.jobs());
    assert!(pursue_all(&one, &mut more).is_ok());
    wanted.extend(more);
    // Both nodes return the same records, each to its own orchestrator.
    for job in &wanted {
        assert_eq!(one.job(job.id()), other.job(job.id()));
    }
    tell(&format!(
        "a node that stood still for {STANDSTILL:?}: {} jobs, 0 lost, 0 ended twice",
        wanted.len()
    ));
}

#[test]
fn full_disk_rejects_new_jobs_and_running_jobs_end_normally() {
    let ground = FaultWorld::lay("disk", None);
    let state = ground.world.path().join("small");
    std::fs::create_dir(&state).unwrap();
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=16m", "tmpfs"]).arg(&state);
    if !mount.status().is_ok_and(|status| status.success()) {
        const NAME: &str = "faults::outages::full_disk_rejects_new_jobs_and_running_jobs_end_normally";
        return skip(NAME, "nothing may be mounted here");
    }
    let _mounted = TemporaryMount(&state);
    let arguments = [ground.arguments(), vec!["--state-dir", "small/node"]].concat();
    let node = Node::start(&ground.world, &arguments);
    let mut wanted = Vec::from(ground.jobs());
    assert!(pursue_all(&node, &mut wanted).is_ok());
    let running = WantedJob::new(script("sleep 3; echo done"), super::client::FollowUp::Nothing);
    wanted.push(running);
    let last = wanted.len() - 1;
    let _ = wanted[last].pursue(&node);
    node.wait_for(wanted[last].id(), "in_progress");

    let filler = state.join("filler");
    let _ = std::fs::write(&filler, vec![0; 32 << 20]);
    let refused: Vec<_> = (0..40).map(|_| attempt(&node)).collect();
    assert!(refused.contains(&503), "{refused:?}");
    assert!(refused.iter().all(|status| [202, 503].contains(status)), "{refused:?}");
    assert_eq!(node.get("/healthz").status, 200, "it lives");
    assert_eq!(node.get("/readyz").status, 503);
    assert_eq!(open_session(&node), 503);
    // The record of the job's end doesn't fit on the disk, and waits.
    std::thread::sleep(Duration::from_secs(5));
    std::fs::remove_file(&filler).unwrap();
    wait::until(|| attempt(&node) == 202);
    wait::until(|| node.get("/readyz").status == 200);
    assert_eq!(open_session(&node), 201, "the control");
    assert!(pursue_all(&node, &mut wanted).is_ok());
    assert_eq!(node.job(wanted[last].id())["status"], "completed");
    let mut more = Vec::from(ground.jobs());
    assert!(pursue_all(&node, &mut more).is_ok(), "without being started again");
    assert_eq!(node.job(more[4].id())["status"], "completed", "models can be called again");
    let listed = node.get("/v1/worker/jobs?limit=1000").json();
    let open = |job: &&serde_json::Value| job["status"] == "accepted" || job["status"] == "in_progress";
    wait::until(|| {
        !node.get("/v1/worker/jobs?limit=1000").json()["jobs"]
            .as_array()
            .unwrap()
            .iter()
            .any(|job| open(&job))
    });
    let jobs = listed["jobs"].as_array().unwrap().len();
    drop(node);
    const CHECK: &str = "import sqlite3, sys\nfor row in sqlite3.connect(sys.argv[1]).execute('PRAGMA integrity_check'): print(row[0])";
    let checked =
        Command::new("python3").args(["-c", CHECK]).arg(state.join("node/node.db")).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&checked.stdout).trim(), "ok", "{checked:?}");
    tell(&format!("a disk that was full: {jobs} jobs, 0 lost, 0 ended twice, and it went on by itself"));
}

#[test]
fn job_that_fills_the_disk_is_killed_and_the_node_continues() {
    const NAME: &str = "faults::outages::job_that_fills_the_disk_is_killed_and_the_node_continues";
    const FILL: &str =
        "cat /dev/zero > /job/artifacts/x; while :; do echo x >> /job/artifacts/y; done 2>/dev/null";
    let ground = FaultWorld::lay("filled", None);
    let state = ground.world.path().join("small");
    std::fs::create_dir(&state).unwrap();
    let mut mount = Command::new("mount");
    mount.args(["-t", "tmpfs", "-o", "size=48m", "tmpfs"]).arg(&state);
    if !mount.status().is_ok_and(|status| status.success()) {
        return skip(NAME, "nothing may be mounted here");
    }
    let _mounted = TemporaryMount(&state);
    let arguments = [ground.arguments(), vec!["--state-dir", "small/node"]].concat();
    let mut node = Node::start(&ground.world, &arguments);
    // Control: a job that writes little completes.
    let ends_as = |node: &Node<'_>, text: &str| node.run(&script(text)).json()["status"].clone();
    assert_eq!(ends_as(&node, "echo kept > /job/artifacts/x"), "completed");
    let id = node.submit(script(FILL));
    let job = node.wait_for(&id, "failed");
    assert_eq!(job["failure_code"], "constraint_violation", "{job}");
    let runs = || std::fs::read_dir(state.join("node/runs")).unwrap().flatten().map(|run| run.path());
    wait::until(|| runs().next().is_none());
    assert_eq!(ends_as(&node, "true"), "completed");

    // A node that was killed while a run had filled the disk.
    let id = node.submit(script("sleep 600"));
    node.wait_for(&id, "in_progress");
    signal(&node, Signal::KILL);
    node.ended();
    let left = runs().next().unwrap().join("private/job/filler");
    let _ = std::fs::write(&left, vec![1_u8; 64 << 20]);
    assert!(std::fs::write(state.join("control"), [1_u8; 64 << 10]).is_err(), "the disk is full");
    node.killed_and_started();
    assert!(!left.exists());
    assert_eq!(node.get("/readyz").status, 200);
    assert_eq!(node.job(&id)["failure_code"], "node_failure");
    assert_eq!(ends_as(&node, "true"), "completed");
}

/// A mount that lasts until it is dropped.
struct TemporaryMount<'p>(&'p Path);

impl Drop for TemporaryMount<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(self.0).status();
    }
}

fn attempt(node: &Node<'_>) -> u16 {
    let mut job = script("true");
    job["wait"] = json!(false);
    node.run(&job).status
}

fn open_session(node: &Node<'_>) -> u16 {
    let wanted = json!({ "version": 1, "task_id": new_id(), "session_id": new_id() });
    node.post("/v1/worker/sessions", &wanted).status
}

fn signal(node: &Node<'_>, signal: Signal) {
    kill_process(Pid::from_raw(node.pid().cast_signed()).unwrap(), signal).unwrap();
}

fn said(answered: &HttpResponse) -> String {
    String::from_utf8_lossy(&answered.body).into_owned()
}
