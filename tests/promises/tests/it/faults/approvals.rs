//! A call that requires a person's approval, killed at every place of the request, the answer and the use: it is made
//! at most once per approval, and never without one.

use crate::belljar::belljar;
use belljar_failpoint::{APPROVALS, VARIABLE};
use belljar_testkit::world::{ProgramOutput, World};
use serde_json::{Value, json};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

const HOUSE: &str = "
tool_access:
  agents:
    - {name: asker, level: standard, autonomy: full, human_approval: ['code:write']}
";

/// Exit code of a call that requires an approval.
const REFUSED: i32 = 3;

/// Places in the write path of each audit record, which a call passes several times.
const RECORDS: [&str; 4] = ["audit.announced", "audit.written", "audit.stored", "audit.confirmed"];

/// A session in which each call of an agent leaves one line.
struct ApprovalWorld(World);

// === impl ApprovalWorld ===

impl ApprovalWorld {
    fn lay() -> Self {
        let world = World::new(belljar());
        world.write(".config/belljar/config.yaml", HOUSE);
        world.run(&["session", "create", "--name", "work"]).succeeded();
        Self(world)
    }

    /// Runs a command that dies at a place if one is named.
    fn run(&self, arguments: &[&str], place: Option<&str>) -> (ExitStatus, ProgramOutput) {
        let mut command = self.0.command(arguments);
        command.envs(place.map(|place| (VARIABLE, place)));
        let output = command.output().unwrap();
        (output.status, ProgramOutput::from(output))
    }

    /// Makes the agent's call.
    fn call(&self, place: Option<&str>) -> (ExitStatus, ProgramOutput) {
        let line = json!({ "command": "echo made >> made" }).to_string();
        let whose = ["--session", "work", "--agent", "asker", "--json"];
        self.run(&[&["tools", "call", "shell_command", &line], &whose[..]].concat(), place)
    }

    /// Returns the ids of the approvals with this status.
    fn listed(&self, status: &str) -> Vec<String> {
        let listed = self.0.run(&["approval", "list", "--status", status, "--json"]).succeeded().json();
        listed.as_array().unwrap().iter().map(|one: &Value| one["id"].as_str().unwrap().to_owned()).collect()
    }

    /// Approves the open request.
    fn approve(&self, place: Option<&str>) -> (ExitStatus, ProgramOutput) {
        let open = [self.listed("pending"), self.listed("approved")].concat();
        assert_eq!(open.len(), 1, "the same call is one question: {open:?}");
        let shown = self.0.run(&["approval", "show", &open[0], "--json"]).succeeded().json();
        let digest = shown["arguments_sha256"].as_str().unwrap();
        self.run(&["approval", "approve", &open[0], "--digest", digest], place)
    }

    /// Returns the number of times that the call was made.
    fn made(&self) -> usize {
        let count = ["session", "exec", "work", "--", "sh", "-c", "cat made 2> /dev/null | wc -l"];
        self.0.run(&count).succeeded().stdout.trim().parse().unwrap()
    }
}

impl Drop for ApprovalWorld {
    fn drop(&mut self) {
        let _ = self.0.run(&["session", "end", "--discard", "work"]);
    }
}

#[test]
fn call_killed_around_its_approval_runs_at_most_once_and_only_if_approved() {
    let places = super::places(APPROVALS, &[]);
    for place in &places {
        let ground = ApprovalWorld::lay();
        let armed = format!("{place}@1");
        let at = |write: &str| place.starts_with(write).then_some(armed.as_str());
        let dies = |(status, ran): (ExitStatus, ProgramOutput)| {
            assert_eq!(status.signal(), Some(9), "{place}: it has not died there: {ran:?}");
        };
        let is_late = place.ends_with(".after");
        if let Some(armed) = at("approval_ask") {
            dies(ground.call(Some(armed)));
            assert_eq!(ground.listed("pending").len(), usize::from(is_late), "{place}");
        }
        assert_eq!(ground.call(None).1.code, REFUSED, "{place}: no approval was given");
        if let Some(armed) = at("approval_decide") {
            dies(ground.approve(Some(armed)));
            assert_eq!(ground.listed("approved").len(), usize::from(is_late), "{place}");
        }
        ground.approve(None).1.succeeded();
        assert_eq!(ground.made(), 0, "{place}: an approval alone makes no call");
        let mut makes = true;
        if let Some(armed) = at("approval_use") {
            dies(ground.call(Some(armed)));
            assert_eq!((ground.made(), ground.listed("used").len()), (0, usize::from(is_late)), "{place}");
            makes = !is_late;
        }
        // The control: an unused approval is good for the call.
        let code = if makes { 0 } else { REFUSED };
        assert_eq!(ground.call(None).1.code, code, "{place}");
        assert_eq!(ground.call(None).1.code, REFUSED, "{place}: it requires a new approval");
        assert_eq!((ground.made(), ground.listed("used").len()), (usize::from(makes), 1), "{place}");
        assert_eq!(ground.0.run(&["audit", "verify"]).code, 0, "{place}");
    }
    super::tell(&format!(
        "approvals were killed at {} places; each call was made once or requires a new approval",
        places.len()
    ));
}

#[test]
fn call_killed_at_any_audit_record_runs_at_most_once() {
    let mut deaths = 0;
    for place in super::places(&[], &RECORDS) {
        for time in 1.. {
            let ground = ApprovalWorld::lay();
            assert_eq!(ground.call(None).1.code, REFUSED);
            ground.approve(None).1.succeeded();
            let (status, ran) = ground.call(Some(&format!("{place}@{time}")));
            let died = status.signal() == Some(9);
            let again = ground.call(None).1.code;
            assert!([0, REFUSED].contains(&again), "{place}, {time}: {again}");
            let (made, used) = (ground.made(), ground.listed("used").len());
            assert!(made <= 1 && used == 1, "{place}, {time}: made {made} times, used {used}");
            assert_eq!(ground.0.run(&["audit", "verify"]).code, 0, "{place}, {time}");
            if !died {
                // The control: the call was made by the process that wasn't killed.
                assert_eq!((ran.code, made, again), (0, 1, REFUSED), "{place}, {time}: {ran:?}");
                assert!(time > 1, "nothing died at {place}");
                break;
            }
            deaths += 1;
        }
    }
    super::tell(&format!("approved calls died at {deaths} moments of their records, none was made twice"));
}
