//! The output of the machine on its serial line.

use crate::guest::Task;

/// The whole output, line by line.
#[derive(Debug, Default)]
pub struct Transcript {
    lines: Vec<String>,
}

/// The result of a task in the machine.
#[derive(Debug)]
pub struct TaskResult<'a> {
    /// Its exit code.
    pub code: i32,
    /// Its output.
    pub output: &'a [String],
}

/// Beginning of a line that the machine's own scripts print.
const MARK: &str = "@belljar ";

/// Heading of a test program's list of failures.
const FAILURES: &str = "failures:";

// === impl Transcript ===

impl Transcript {
    /// Adds a line of output.
    pub fn push(&mut self, line: &str) {
        // The output of a program without a final newline shares its line with the next mark.
        let at = line.find(MARK).unwrap_or(0);
        let (before, own) = line.split_at(at);
        let parts = [before, own].into_iter().map(str::trim_end).filter(|part| !part.is_empty());
        self.lines.extend(parts.map(str::to_owned));
    }

    /// Returns true if the kernel and the first program have started.
    pub fn is_up(&self) -> bool {
        self.lines.iter().any(|line| line == "@belljar up")
    }

    /// Returns true if all tasks have run.
    pub fn is_done(&self) -> bool {
        self.lines.iter().any(|line| line == "@belljar done")
    }

    /// Returns the value of a fact about the machine, such as its `kernel`.
    pub fn fact(&self, key: &str) -> Option<&str> {
        let about =
            |line: &'_ String| line.strip_prefix(MARK)?.strip_prefix(key)?.strip_prefix(' ').map(str::len);
        let line = self.lines.iter().find(|line| about(line).is_some())?;
        line.get(line.len() - about(line)?..)
    }

    /// Returns the result of a task, if it has ended.
    pub fn ended(&self, task: &Task) -> Option<TaskResult<'_>> {
        let whose = format!("{} {}", task.user.as_str(), task.name);
        let begun = self.lines.iter().position(|line| *line == format!("{MARK}begin {whose}"))?;
        let ending = format!("{MARK}end {whose} ");
        let length = self.lines[begun..].iter().position(|line| line.starts_with(&ending))?;
        let code = self.lines[begun + length].strip_prefix(&ending)?.parse().ok()?;
        Some(TaskResult { code, output: &self.lines[begun + 1..begun + length] })
    }

    /// Returns the output to show after a failure: the reported failures of each failed task, or else the whole transcript.
    pub fn failures(&self, tasks: &[Task]) -> String {
        let of_task = |task| {
            let ended = self.ended(task).filter(|ended| ended.code != 0)?;
            let failures = ended.output.iter().position(|line| line == FAILURES)?;
            Some(&ended.output[failures..])
        };
        let mut shown = tasks.iter().filter_map(of_task).flatten().peekable();
        let lines: Vec<&str> = match shown.peek() {
            Some(_) => shown.map(String::as_str).collect(),
            None => self.lines.iter().map(String::as_str).collect(),
        };
        lines.join("\n")
    }
}

// === impl TaskResult ===

impl TaskResult<'_> {
    /// Returns the number of passed tests, if this is a test program without failures.
    pub fn tests_passed(&self) -> Option<u32> {
        let summary = self.output.iter().find_map(|line| line.strip_prefix("test result: ok. "))?;
        summary.split_once(" passed")?.0.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guest::User;
    use std::time::Duration;

    #[test]
    fn transcript_task_is_found_with_its_output() {
        let mut transcript = Transcript::default();
        for line in ["@belljar kernel 6.1\r\n", "@belljar begin root a\r\n", "running 2 tests\r\n"] {
            transcript.push(line);
        }
        transcript.push("test result: ok. 2 passed; 0 failed@belljar end root a 0\r\n");
        let task = |user| Task { name: "a", user, command: String::new(), timeout: Duration::ZERO };
        let ended = transcript.ended(&task(User::Root)).unwrap();
        assert_eq!((ended.code, ended.tests_passed(), ended.output.len()), (0, Some(2), 2));
        assert!(transcript.ended(&task(User::Ordinary)).is_none());
        assert_eq!(transcript.fact("kernel"), Some("6.1"));
        assert!(!transcript.is_up() && !transcript.is_done());
    }

    #[test]
    fn transcript_shows_failed_tasks_only() {
        let mut transcript = Transcript::default();
        let lines = "@belljar begin root a\ntest x ... ok\nfailures:\npanicked\n@belljar end root a 101\n@belljar begin root b\nwell\n@belljar end root b 0";
        lines.lines().for_each(|line| transcript.push(line));
        let task = |name| Task { name, user: User::Root, command: String::new(), timeout: Duration::ZERO };
        assert_eq!(transcript.failures(&[task("a"), task("b")]), "failures:\npanicked");
        assert_eq!(transcript.failures(&[task("b")]), lines);
    }
}
