//! `/bin/true` in a sandbox, the whole process, compared with bubblewrap.

use crate::contest::{Contestant, hold, judge, missing};
use crate::sandboxes::bubblewrap;
use crate::{Programs, installed};
use std::path::Path;
use std::process::Command;

const TURNS: usize = 300;

pub(crate) fn run(programs: &Programs) -> bool {
    let Some(bwrap) = installed(&["bwrap"]) else { return missing("bwrap") };
    let program = programs.belljar();
    let belljar = || {
        let mut command = Command::new(&program);
        command.args(["exec", "--", "/bin/true"]);
        command
    };
    let times = hold(
        "exec: one sealed /bin/true, process start to exit",
        TURNS,
        vec![
            Contestant::command("belljar exec -- /bin/true", belljar),
            Contestant::command("bwrap --unshare-all … /bin/true", || bubblewrap(&bwrap)),
            Contestant::command("/bin/true, not sealed", || Command::new("/bin/true")),
        ],
    );
    let goal = judge(&times[0], &times[1], 0.6);
    stages(&program);
    goal
}

/// Prints the duration of each stage, as the launch reports it.
fn stages(program: &Path) {
    let mut stages: Vec<(String, Vec<f64>)> = Vec::new();
    for _ in 0..100 {
        let output = Command::new(program).args(["exec", "--timings", "--", "/bin/true"]).output();
        let text = String::from_utf8(output.expect("a program that starts").stderr).expect("UTF-8");
        for line in text.lines() {
            let mut words = line.split_whitespace();
            let (Some(stage), Some(Ok(time))) = (words.next(), words.next().map(str::parse)) else {
                continue;
            };
            match stages.iter_mut().find(|(known, _)| known == stage) {
                Some((_, times)) => times.push(time),
                None => stages.push((stage.to_owned(), vec![time])),
            }
        }
    }
    println!("\n| stage | median µs | min µs |\n| --- | --- | --- |");
    for (stage, mut times) in stages {
        times.sort_unstable_by(f64::total_cmp);
        println!("| {stage} | {:.0} | {:.0} |", times[times.len() / 2], times[0]);
    }
}
