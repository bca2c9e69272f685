//! LF3: a time limit ends a program, whatever it waits for.

use crate::belljar::belljar;
use crate::host;
use crate::scene::{PreparedHost, random};
use crate::tally::{Tally, Verdict};
use crate::way::{PROBE, StartMethod};
use belljar_testkit::job::job;
use belljar_testkit::world::{ProgramOutput, World};
use serde_json::{Value, json};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const KINDS: [&str; 6] = ["sleep", "spin", "fifo", "lock", "deaf", "stopped"];

/// The time limit of the programs.
const LIMIT: Duration = Duration::from_secs(1);

#[test]
fn program_is_killed_at_its_timeout_whatever_it_waits_for() {
    let tally = Tally::new("timeouts");
    World::as_everyone(belljar(), |world| judge_all(&PreparedHost::lay(world), &tally));
    tally.close();
}

/// Waits in every way in sandboxes of a scene.
pub(crate) fn judge_all(scene: &PreparedHost<'_>, tally: &Tally) {
    let mark = format!("mark{}", random(8));
    let waits = control(scene, &mark);
    let judge = |how: &str, is_timeout: fn(&ProgramOutput) -> bool, ran: Vec<ProgramOutput>| {
        for (kind, ran) in KINDS.iter().zip(ran) {
            let verdict = match (is_timeout(&ran), waits.contains(kind)) {
                (true, true) => Verdict::Held,
                (true, false) => Verdict::Invalid("it doesn't wait outside, either".to_owned()),
                (false, _) => Verdict::Escaped(format!("{ran:?}")),
            };
            tally.count("LF3", &format!("LF3 {kind}, {how}"), &format!("{:?}", scene.world.user()), verdict);
        }
    };
    let executed = all_at_once(&|kind| exec(scene, kind, &mark));
    judge("exec", |ran| ran.code == 124 && ran.stdout == "waiting\n", executed);
    if scene.ways.contains(&StartMethod::Job) {
        let is_timeout = |ran: &ProgramOutput| {
            let status = serde_json::from_str::<Value>(&ran.stdout).unwrap_or_default()["status"].clone();
            ran.code == 124 && status == "timeout"
        };
        judge("run", is_timeout, all_at_once(&|kind| run(scene, kind)));
    }
}

fn exec(scene: &PreparedHost<'_>, kind: &str, mark: &str) -> Command {
    let limit = format!("{}s", LIMIT.as_secs());
    let workspace = scene.world.write(&format!("{mark}/{kind}/file"), "");
    let workspace = workspace.parent().unwrap().display().to_string();
    let lent = format!("{}:/lent", scene.path("lent"));
    let mut options = vec!["--timeout", &limit, "--ro", &lent];
    if scene.engine.is_none() {
        options.extend(["--workspace", &workspace]);
    }
    scene.making(&["exec"], &options, &[PROBE, "wait", kind, "/workspace"])
}

fn run(scene: &PreparedHost<'_>, kind: &str) -> Command {
    let argv = [PROBE, "wait", kind, "/workspace"];
    let mut document = job(&json!([{ "type": "run_command", "args": { "argv": argv } }]));
    document["constraints"]["max_runtime_seconds"] = json!(LIMIT.as_secs());
    let name = format!("wait-{kind}.json");
    scene.world.write(&name, document.to_string());
    let lent = format!("{}:/lent", scene.path("lent"));
    scene.world.command(&["run", "--json", "--ro", &lent, &name])
}

/// Runs one command per kind, all at the same time.
fn all_at_once(command: &dyn Fn(&str) -> Command) -> Vec<ProgramOutput> {
    let begun = Instant::now();
    let start = |kind: &str| {
        let mut command = command(kind);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let children: Vec<Child> = KINDS.into_iter().map(start).collect();
    let ran =
        children.into_iter().map(|child| ProgramOutput::from(child.wait_with_output().unwrap())).collect();
    crate::tally::tell(&format!(
        "all ended {:?} after a limit of {LIMIT:?}",
        begun.elapsed().saturating_sub(LIMIT)
    ));
    ran
}

/// Returns the kinds that still wait after that time if they aren't killed.
fn control(scene: &PreparedHost<'_>, mark: &str) -> Vec<&'static str> {
    let probe = scene.path("lent/belljar-probe");
    let start = |kind: &'static str| {
        let folder = scene.world.write(&format!("outside/{mark}/{kind}/file"), "");
        let folder = folder.parent().unwrap().display().to_string();
        let mut command = scene.world.command_of(probe.as_ref(), &["wait", kind, &folder]);
        (kind, folder, command.stdout(Stdio::null()).spawn().unwrap())
    };
    let mut children: Vec<_> = KINDS.into_iter().map(start).collect();
    std::thread::sleep(LIMIT + LIMIT / 10);
    let waits: Vec<&str> = children
        .iter()
        .filter(|(_, folder, _)| !host::processes(folder).is_empty())
        .map(|(kind, ..)| *kind)
        .collect();
    for (_, _, child) in &mut children {
        let _ = child.kill();
        let _ = child.wait();
    }
    waits
}
