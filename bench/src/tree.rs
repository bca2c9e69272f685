//! `list_tree` of 100,000 entries compared with `find` and `fd`: each the whole process.

use crate::contest::{Contestant, hold, judge, missing};
use crate::{Programs, installed};
use serde_json::json;
use std::path::Path;
use std::process::Command;

const DIRECTORIES: usize = 1_000;
const FILES: usize = 100;
const TURNS: usize = 25;

pub(crate) fn run(programs: &Programs) -> bool {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let tree = folder.path().join("tree");
    // The peers write to `/dev/null`; ours writes a result, at least not to a disk.
    let results = crate::in_memory();
    let job = results.path().join("job.json");
    lay_out(&tree);
    let document = json!({
        "protocol_version": "1.0",
        "job_id": "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e",
        "task_id": "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0f",
        "constraints": { "max_runtime_seconds": 60, "max_output_bytes": 1 << 28 },
        "steps": [{ "type": "list_tree", "args": { "max_entries": 1_000_000 } }],
    });
    std::fs::write(&job, document.to_string()).expect("a file");
    let result = results.path().join("result.json");
    let program = programs.runner();
    let ours = || {
        let mut command = Command::new(&program);
        command
            .arg("--allow-root")
            .arg("--job")
            .arg(&job)
            .arg("--result")
            .arg(&result)
            .arg("--workspace")
            .arg(&tree);
        command.arg("--artifacts").arg(results.path().join("artifacts"));
        command
    };
    let find = || {
        let mut command = Command::new("find");
        command.arg(&tree);
        command
    };
    let fd = installed(&["fd", "fdfind"]);
    let mut contestants = vec![
        Contestant::command("cynode-sba, a job of one list_tree", ours),
        Contestant::command("find", find),
    ];
    if let Some(fd) = &fd {
        let tree = &tree;
        let list = move || {
            let mut command = Command::new(fd);
            command.args(["--unrestricted", "."]).arg(tree);
            command
        };
        contestants.push(Contestant::command("fd -u", list));
    }
    let times = hold("tree: 101,000 entries", TURNS, contestants);
    assert_eq!(listed(&result), DIRECTORIES * (FILES + 1), "the listing must be whole");
    let against_find = judge(&times[0], &times[1], 1.5);
    let against_fd = times.get(2).map_or_else(|| missing("fd"), |fd| judge(&times[0], fd, 1.0));
    against_find && against_fd
}

fn lay_out(tree: &Path) {
    for directory in 0..DIRECTORIES {
        let directory = tree.join(format!("directory-{directory:04}"));
        std::fs::create_dir_all(&directory).expect("a directory");
        for file in 0..FILES {
            std::fs::write(directory.join(format!("file-{file:03}.txt")), "").expect("a file");
        }
    }
}

fn listed(result: &Path) -> usize {
    let text = std::fs::read(result).expect("a result");
    let result: serde_json::Value = serde_json::from_slice(&text).expect("JSON");
    result["steps"][0]["result"]["entries"].as_array().map_or(0, Vec::len)
}
