//! A process of a measurement, which ends with this one.

use super::part::{PLAYS, Part};
use serde::de::DeserializeOwned;
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

/// The process, with its children.
pub(crate) struct Process {
    child: Child,
    output: BufReader<ChildStdout>,
    /// True for another program, which doesn't end when its input does.
    is_foreign: bool,
}

// === impl Process ===

impl Process {
    /// Starts a process that plays a part.
    pub(crate) fn play(part: &Part) -> Self {
        let mut command = Command::new(std::env::current_exe().expect("the path of this executable"));
        command.arg(PLAYS).arg(serde_json::to_string(part).expect("a part is plain data"));
        Self::start(command, false)
    }

    /// Starts another program.
    pub(crate) fn foreign(program: &str, arguments: &[String]) -> Self {
        // The program must not survive if this one is killed.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "TERM", program]).args(arguments);
        Self::start(command, true)
    }

    fn start(mut command: Command, is_foreign: bool) -> Self {
        // A process group of its own, which identifies its children.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("a program that starts");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { child, output, is_foreign }
    }

    /// Plays a part to its end, and returns its result.
    pub(crate) fn result<T: DeserializeOwned>(part: &Part) -> T {
        let mut process = Self::play(part);
        let result = process.hear();
        process.end();
        result
    }

    /// Returns the next value that it prints.
    pub(crate) fn hear<T: DeserializeOwned>(&mut self) -> T {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("a line");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("it has said {line:?}: {error}"))
    }

    /// Ends it, and checks that it succeeds.
    pub(crate) fn end(mut self) {
        drop(self.child.stdin.take());
        let status = self.child.wait().expect("an end");
        assert!(status.success(), "a part has failed: {status}");
    }

    /// Ends it, and returns its last value.
    pub(crate) fn last_word<T: DeserializeOwned>(mut self) -> T {
        drop(self.child.stdin.take());
        let word = self.hear();
        self.end();
        word
    }

    /// Returns the processor time of it and its children, including those that have ended.
    pub(crate) fn processor_time(&self) -> Duration {
        let ticks: u64 = self.of_group().map(|(_, times)| times.iter().sum::<u64>()).sum();
        Duration::from_secs_f64(ticks as f64 / rustix::param::clock_ticks_per_second() as f64)
    }

    /// Returns the memory of it and its children (PSS), in KiB.
    pub(crate) fn pss_kib(&self) -> usize {
        let of_one = |pid: u32| {
            let rollup = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
            let line = rollup.lines().find_map(|line| line.strip_prefix("Pss:"))?;
            line.split_whitespace().next()?.parse::<usize>().ok()
        };
        self.of_group().map(|(pid, _)| of_one(pid).expect("a process that lives")).sum()
    }

    /// Returns the processes of its group, with their times: their own, and those of the children that they have waited for.
    fn of_group(&self) -> impl Iterator<Item = (u32, [u64; 4])> {
        const GROUP: usize = 2;
        const TIMES: usize = 11;
        let group = self.child.id().to_string();
        let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
        processes.filter_map(move |entry| {
            let pid = entry.file_name().to_str()?.parse().ok()?;
            let stat = std::fs::read_to_string(entry.path().join("stat")).ok()?;
            // A process name may contain any character.
            let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
            let time = |at: usize| fields.get(TIMES + at)?.parse().ok();
            (*fields.get(GROUP)? == group).then_some((pid, [time(0)?, time(1)?, time(2)?, time(3)?]))
        })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        if self.is_foreign
            && let Some(group) = i32::try_from(self.child.id()).ok().and_then(rustix::process::Pid::from_raw)
        {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::TERM);
        }
        let _ = self.child.wait();
    }
}
