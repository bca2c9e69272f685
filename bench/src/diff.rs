//! `apply_unified_diff` of 1,000 files and 10,000 hunks against `git apply`: each the whole process, on a fresh tree.

use crate::contest::{Contestant, hold, judge, missing};
use crate::{Programs, installed};
use serde_json::json;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

const FILES: usize = 1_000;
const HUNKS: usize = 10;
const LINES: usize = 400;
const TURNS: usize = 41;

pub(crate) fn run(programs: &Programs) -> bool {
    let Some(git) = installed(&["git"]) else { return missing("git") };
    let folder = crate::in_memory();
    let (tree, patch, job) =
        (folder.path().join("tree"), folder.path().join("patch"), folder.path().join("job.json"));
    let diff = lay_out(&tree);
    std::fs::write(&patch, &diff).expect("a file");
    std::fs::write(&job, job_of(&diff).to_string()).expect("a file");
    let reset = || lay_out(&tree).truncate(0);
    let program = programs.runner();
    let ours = || {
        let mut command = Command::new(&program);
        command
            .arg("--allow-root")
            .arg("--job")
            .arg(&job)
            .arg("--result")
            .arg(folder.path().join("result.json"));
        command.arg("--workspace").arg(&tree).arg("--artifacts").arg(folder.path().join("artifacts"));
        command
    };
    let theirs = || {
        let mut command = Command::new(&git);
        command.arg("apply").arg(&patch).current_dir(&tree);
        command
    };
    let times = hold(
        "diff: 1,000 files, 10,000 hunks",
        TURNS,
        vec![
            Contestant::command("cynode-sba, a job of one apply_unified_diff", ours).prepared(reset),
            Contestant::command("git apply", theirs).prepared(reset),
        ],
    );
    judge(&times[0], &times[1], 0.6)
}

fn job_of(diff: &str) -> serde_json::Value {
    json!({
        "protocol_version": "1.0",
        "job_id": "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e",
        "task_id": "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0f",
        "constraints": { "max_runtime_seconds": 60, "max_output_bytes": 1 << 20 },
        "steps": [{ "type": "apply_unified_diff", "args": { "diff": diff } }],
    })
}

fn line(file: usize, number: usize) -> String {
    format!("file {file} line {number}: some text that makes it about as long as a line of code\n")
}

/// Writes the tree and returns a diff for it.
fn lay_out(tree: &Path) -> String {
    let mut diff = String::new();
    for file in 0..FILES {
        let directory = format!("d{:02}", file / 20);
        std::fs::create_dir_all(tree.join(&directory)).expect("a directory");
        let name = format!("{directory}/f{file:04}.txt");
        let text: String = (0..LINES).map(|number| line(file, number)).collect();
        std::fs::write(tree.join(&name), text).expect("a file");
        let _ = write!(diff, "diff --git a/{name} b/{name}\n--- a/{name}\n+++ b/{name}\n");
        for hunk in 0..HUNKS {
            let at = hunk * (LINES / HUNKS) + 10;
            let _ = writeln!(diff, "@@ -{},7 +{},7 @@", at + 1, at + 1);
            for number in at..at + 7 {
                let line = line(file, number);
                let _ = match number == at + 3 {
                    true => write!(diff, "-{line}+changed {line}"),
                    false => write!(diff, " {line}"),
                };
            }
        }
    }
    diff
}
