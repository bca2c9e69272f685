//! Measures a scenario with all processes that it starts: system calls and syncs by `strace`, page faults by the kernel's
//! totals of ended children.

use belljar_budgets::Cost;
use belljar_testkit::wait::until;
use belljar_testkit::world::World;
use rustix::process::{WaitOptions, getpid, set_child_subreaper, waitpid};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Number of runs of each scenario; the minimum counts.
const RUNS: usize = 3;

/// The system calls that make data durable.
const SYNCS: [&str; 5] = ["fsync", "fdatasync", "sync_file_range", "syncfs", "msync"];

/// Endings of paths that are synced once per commit: a database's write-ahead log, and a segment of the audit log.
const COMMITTED: [&str; 2] = ["-wal", ".jsonl"];

/// The output of a tracer.
enum TracerOutput {
    /// The number of calls of each system call.
    Numbers,
    /// Each sync, with its file.
    Syncs,
}

/// Returns the reason why nothing can be measured here.
pub(crate) fn can_measure() -> Result<(), String> {
    if !rustix::process::geteuid().is_root() {
        return Err("following sandboxes with strace takes root".to_owned());
    }
    let strace = Command::new("strace").arg("--version").output();
    strace.map(drop).map_err(|_| "strace is not installed".to_owned())
}

/// Returns the cost of the scenario with this many operations.
pub(crate) fn measure(run: &dyn Fn(&World, usize), times: usize) -> Cost {
    // Keepers and tracers outlive the program that started them, and are waited for, too.
    set_child_subreaper(Some(getpid())).unwrap();
    let least = |count: &dyn Fn() -> u64| (0..RUNS).map(|_| count()).min().unwrap();
    let system_calls = least(&|| numbers(&traced(run, times, &TracerOutput::Numbers)));
    let page_faults = least(&|| faults(run, times));
    let synced = (0..RUNS).map(|_| traced(run, times, &TracerOutput::Syncs));
    let synced = synced.min_by_key(|text| syncs(text).count()).unwrap();
    let commits = syncs(&synced).filter(|line| COMMITTED.iter().any(|end| line.contains(&format!("{end}>"))));
    Cost { system_calls, page_faults, commits: commits.count() as u64, syncs: syncs(&synced).count() as u64 }
}

/// Runs the scenario with every program of ours under a tracer, and returns the tracers' output.
fn traced(run: &dyn Fn(&World, usize), times: usize, trace: &TracerOutput) -> String {
    let folder = tempfile::tempdir().unwrap();
    let traces = folder.path().join("traces");
    fs::create_dir(&traces).unwrap();
    let what = match trace {
        TracerOutput::Numbers => "-c -U calls,name".to_owned(),
        TracerOutput::Syncs => format!("-y -e signal=none -e trace={}", SYNCS.join(",")),
    };
    // With -D the tracer isn't the parent: signals, pid and exit code are the program's own. It keeps standard output open as
    // long as the traced processes live, so a command that leaves a keeper behind writes to a file.
    let traced =
        format!("strace -D -f {what} -o {}/$$ {} \"$@\"", traces.display(), installed(&folder).display());
    let created = folder.path().join("created").display().to_string();
    let script = format!(
        "#!/bin/sh\nif [ \"$2\" = create ]; then\n    {traced} >{created} 2>/dev/null || exit\n    exec cat {created}\nfi\n\
         exec {traced}\n"
    );
    let wrapper = folder.path().join("traced");
    fs::write(&wrapper, script).unwrap();
    fs::set_permissions(&wrapper, PermissionsExt::from_mode(0o755)).unwrap();
    run(&World::new(wrapper), times);
    reap();
    let files = fs::read_dir(&traces).unwrap().map(|entry| entry.unwrap().path());
    files.map(|file| fs::read_to_string(file).unwrap()).collect()
}

/// Runs the scenario untraced, and returns the page faults of all ended processes.
fn faults(run: &dyn Fn(&World, usize), times: usize) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let world = World::new(installed(&folder));
    let before = faults_of_children();
    run(&world, times);
    reap();
    faults_of_children() - before
}

/// Returns a copy of the program, like an installation: the page cache keeps a linker's output in other pieces.
fn installed(folder: &TempDir) -> PathBuf {
    let copy = folder.path().join("belljar");
    fs::copy(super::belljar(), &copy).unwrap();
    // In some places users other than root start it.
    fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    copy
}

/// Waits until every started process has ended.
fn reap() {
    until(|| {
        loop {
            match waitpid(None, WaitOptions::NOHANG) {
                Ok(Some(_)) => {}
                Ok(None) => break false,
                Err(_) => break true,
            }
        }
    });
}

/// Returns the page faults of all children that were waited for, and of their children (`cminflt` and `cmajflt` of
/// `proc(5)`).
fn faults_of_children() -> u64 {
    let text = fs::read_to_string(Path::new("/proc/self/stat")).unwrap();
    let fields: Vec<&str> = text.rsplit_once(')').unwrap().1.split_whitespace().collect();
    [8, 10].iter().map(|at| fields[*at].parse::<u64>().unwrap()).sum()
}

/// Returns the sum of all calls in the tracers' tables.
fn numbers(text: &str) -> u64 {
    let totals = text.lines().filter(|line| line.trim_end().ends_with(" total"));
    totals.map(|line| line.split_whitespace().next().unwrap().parse::<u64>().unwrap()).sum()
}

fn syncs(text: &str) -> impl Iterator<Item = &str> {
    // A call that is interrupted in the trace has a second line with `resumed`.
    text.lines().filter(|line| SYNCS.iter().any(|call| line.contains(&format!(" {call}("))))
}
