//! LF1: processes that try to outlive their sandbox. The host looks for them.

use crate::belljar::belljar;
use crate::host;
use crate::scene::{PreparedHost, random};
use crate::tally::{Tally, Verdict};
use crate::way::{PROBE, StartMethod, end_session};
use belljar_promises::attempt::{Attempt, LeftBehindKind, SpecialAct, Step};
use belljar_testkit::job::job;
use belljar_testkit::wait;
use belljar_testkit::world::World;
use rustix::process::{Signal, pidfd_send_signal};
use serde_json::json;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const WAYS_TO_STAY: [LeftBehindKind; 7] = [
    LeftBehindKind::Child,
    LeftBehindKind::Orphan,
    LeftBehindKind::Session,
    LeftBehindKind::Deaf,
    LeftBehindKind::Stopped,
    LeftBehindKind::Closed,
    LeftBehindKind::Restless,
];

/// A way to end a sandbox in which every kind of process is left behind.
type SandboxEnd = (&'static str, fn(&PreparedHost<'_>, &str));

const ENDS: [SandboxEnd; 4] = [
    ("out of time", out_of_time),
    ("a session's command out of time", command_out_of_time),
    ("belljar killed", belljar_killed),
    ("a session's end", session_ended),
];

/// Grace period. A process that is still there afterwards has outlived the sandbox.
const GONE_WITHIN: Duration = Duration::from_secs(1);

#[test]
fn every_lingering_process_is_gone_with_its_sandbox() {
    let tally = Tally::new("remains");
    World::as_everyone(belljar(), |world| judge_all(&PreparedHost::lay(world), &tally));
    tally.close();
}

/// Makes every kind of process try to stay in every sandbox of a scene, for each way to end it.
pub(crate) fn judge_all(scene: &PreparedHost<'_>, tally: &Tally) {
    let stays = control(scene);
    let place = |what: &str| format!("{what} {:?}", scene.world.user());
    for way in scene.ways {
        let (attempts, marks) = attempts();
        let _answers = way.attempt(scene, &attempts);
        for (leave, mark) in WAYS_TO_STAY.iter().zip(&marks) {
            let verdict = judge(mark, stays.contains(leave));
            tally.count("LF1", &format!("LF1 {leave:?} after the end"), &place(&format!("{way:?}")), verdict);
        }
    }
    let of_jobs: &[SandboxEnd] = &[("a step out of time", step_out_of_time)];
    let of_jobs = if scene.ways.contains(&StartMethod::Job) { of_jobs } else { &[] };
    for (what, end) in ENDS.iter().chain(of_jobs) {
        let mark = format!("mark{}", random(8));
        end(scene, &mark);
        let verdict = judge(&mark, stays.len() == WAYS_TO_STAY.len());
        tally.count("LF1", &format!("LF1 everyone, {what}"), &place(what), verdict);
    }
}

/// When PID 1 is stopped, no process in the sandbox can notice that the host process is gone: the kernel must end them.
#[test]
fn no_process_is_left_of_a_sandbox_with_a_stopped_pid_1() {
    let tally = Tally::new("standing still");
    World::as_everyone(belljar(), |world| {
        let scene = PreparedHost::lay(world);
        let stays = control(&scene).len() == WAYS_TO_STAY.len();
        for stands_still in [false, true] {
            let mark = format!("mark{}", random(8));
            let mut belljar =
                with_everyone(&mut StartMethod::Empty.command(&scene, &[PROBE, "leave", &mark]), &mark);
            let init = host::child_of(belljar.id()).unwrap();
            if stands_still {
                pidfd_send_signal(&init, Signal::STOP).unwrap();
            }
            belljar.kill().unwrap();
            belljar.wait().unwrap();
            let what = if stands_still { "PID 1 stands still" } else { "PID 1 goes on" };
            let verdict = judge(&mark, stays);
            let _ = pidfd_send_signal(&init, Signal::KILL);
            let place = format!("{:?}", world.user());
            tally.count("LF1", &format!("LF1 belljar killed while {what}"), &place, verdict);
        }
    });
    tally.close();
}

/// Returns one attempt for each way to stay, and the marks of its processes.
fn attempts() -> (Vec<Attempt>, Vec<String>) {
    let marks: Vec<String> = WAYS_TO_STAY.iter().map(|_| format!("mark{}", random(8))).collect();
    let attempts = WAYS_TO_STAY.iter().zip(&marks).map(|(how, mark)| Attempt {
        case: format!("{how:?}"),
        steps: vec![Step::Act(SpecialAct::Leave { how: *how, mark: mark.clone() })],
    });
    (attempts.collect(), marks)
}

/// Returns the ways to stay that work where no process is killed.
fn control(scene: &PreparedHost<'_>) -> Vec<LeftBehindKind> {
    let (attempts, marks) = attempts();
    let file = scene.world.write("outside/attempts.json", serde_json::to_string(&attempts).unwrap());
    let probe = scene.path("lent/belljar-probe");
    let mut command = scene.leaking(probe.as_ref(), &["run", file.to_str().unwrap()]);
    assert!(command.stdout(Stdio::null()).status().unwrap().success());
    let there = |mark: &String| host::is_anybody_there(mark);
    let stays =
        WAYS_TO_STAY.iter().zip(&marks).filter(|(_, mark)| there(mark)).map(|(way, _)| *way).collect();
    for mark in &marks {
        host::end_all(mark);
    }
    stays
}

fn judge(mark: &str, stays_outside: bool) -> Verdict {
    let deadline = Instant::now() + GONE_WITHIN;
    let mut found = Vec::new();
    while host::is_anybody_there(mark) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
        found = host::processes(mark);
    }
    let is_gone = !host::is_anybody_there(mark);
    let names = host::names_of(&found);
    host::end_all(mark);
    match (is_gone, stays_outside) {
        (false, _) => Verdict::Escaped(format!("still there: {names:?}")),
        (true, true) => Verdict::Held,
        (true, false) => Verdict::Invalid("outside, no process stays, either".to_owned()),
    }
}

/// Starts the command, and waits until every process in it is there.
fn with_everyone(command: &mut Command, mark: &str) -> std::process::Child {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    let is_there = lines.any(|line| line == "everyone is there");
    assert!(is_there, "{mark}: no process appeared");
    child
}

fn out_of_time(scene: &PreparedHost<'_>, mark: &str) {
    let lent = format!("{}:/lent", scene.path("lent"));
    let ran = scene.make(&["exec"], &["--timeout", "1s", "--ro", &lent], &[PROBE, "leave", mark]);
    assert_eq!((ran.code, ran.stdout.as_str()), (124, "everyone is there\n"), "{}", ran.stderr);
}

fn step_out_of_time(scene: &PreparedHost<'_>, mark: &str) {
    let step =
        json!({ "type": "run_command", "args": { "argv": [PROBE, "leave", mark], "timeout_seconds": 1 } });
    scene.world.write("leave.json", job(&json!([step])).to_string());
    let lent = format!("{}:/lent", scene.path("lent"));
    let ran = scene.world.run(&["run", "--json", "--ro", &lent, "leave.json"]);
    assert_eq!((ran.code, &ran.json()["status"]), (124, &json!("timeout")), "{}", ran.stdout);
}

fn session(scene: &PreparedHost<'_>) -> String {
    let lent = format!("{}:/lent", scene.path("lent"));
    scene.make(&["session", "create"], &["--ro", &lent], &[]).succeeded().stdout.trim().to_owned()
}

fn command_out_of_time(scene: &PreparedHost<'_>, mark: &str) {
    let session = session(scene);
    let ran = scene.world.run(&["session", "exec", "--timeout", "1s", &session, "--", PROBE, "leave", mark]);
    assert_eq!((ran.code, ran.stdout.as_str()), (124, "everyone is there\n"), "{}", ran.stderr);
    end_session(scene, &session);
}

fn session_ended(scene: &PreparedHost<'_>, mark: &str) {
    let session = session(scene);
    let mut command = scene.world.command(&["session", "exec", &session, "--", PROBE, "leave", mark]);
    let mut client = with_everyone(&mut command, mark);
    end_session(scene, &session);
    let _ = client.wait();
}

fn belljar_killed(scene: &PreparedHost<'_>, mark: &str) {
    let mut belljar = with_everyone(&mut StartMethod::Empty.command(scene, &[PROBE, "leave", mark]), mark);
    belljar.kill().unwrap();
    belljar.wait().unwrap();
    wait::until(|| !host::is_anybody_there(mark));
}
