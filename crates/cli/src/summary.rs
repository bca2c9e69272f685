//! Results of jobs and runs, as text for the user and as JSON for programs.

use crate::error::CliError;
use crate::output::{self, Untrusted, UntrustedLines, path};
use crate::progress::harmless;
use crate::terminal::begin_review;
use anstyle::{AnsiColor, Style};
use belljar_confine::stage::Timings;
use belljar_contract::result::{Change, ChangedFile, JobResult, JobStatus, OmittedContent, WorkspaceChanges};
use belljar_sandbox::artifact::path_in;
use belljar_sandbox::session::SessionDescription;
use belljar_sandbox::state::StateDirectory;
use std::fmt::Write as _;
use std::io::IsTerminal;
use std::time::Duration;

/// Prints the result object alone on standard output.
pub(crate) fn print_json(result: &JobResult) -> Result<(), CliError> {
    let text = output::json(result) + "\n";
    output::write_exactly(text.as_bytes());
    output::outcome()
}

/// Prints the reason why a job was refused before it ran.
pub(crate) fn print_refusal(name: &str, result: &JobResult) {
    let bad = bold(AnsiColor::Red);
    let code = result.failure_code.map_or("refused", |code| code.as_str());
    crate::output::outln!("{bad}{code}{bad:#}: {} was not run", Untrusted(name));
    if result.problems.is_empty() {
        for line in result.failure_message.iter().flat_map(|message| message.lines()) {
            crate::output::outln!("  {}", harmless(line));
        }
    }
    for problem in &result.problems {
        crate::output::outln!("  {}", harmless(&problem.path));
        crate::output::outln!("    found     {}", harmless(&problem.found));
        crate::output::outln!("    expected  {}", harmless(&problem.expected));
    }
}

/// Formats a table of sessions.
pub(crate) fn sessions(sessions: &[SessionDescription]) -> String {
    if sessions.is_empty() {
        return "No sessions.\n".to_owned();
    }
    let head = Style::new().bold();
    let mut text = format!(
        "{head}{:36}  {:12}  {:>9}  {:>7}  {:>9}  WORKSPACE{head:#}\n",
        "ID", "NAME", "AGE", "RUNNING", "MEMORY"
    );
    for SessionDescription { session, running, load, .. } in sessions {
        let age = jiff::Timestamp::now().duration_since(session.created_at);
        let _ = writeln!(
            text,
            "{:36}  {:12}  {:>8}s  {running:>7}  {:>9}  {}",
            session.id,
            harmless(session.name.as_deref().unwrap_or("-")),
            age.as_secs(),
            load.as_ref().map_or_else(|| "?".to_owned(), |load| size(load.memory_bytes)),
            harmless(&session.workspace)
        );
    }
    text
}

/// Prints the summary of a job that ran.
pub(crate) fn print(result: &JobResult, state: &StateDirectory) {
    let mut text = String::new();
    for step in result.steps.iter().filter_map(|step| step.error.as_ref().map(|error| (step, error))) {
        let (step, error) = step;
        let _ = writeln!(text, "  {}: {}: {}", harmless(&step.id), error.code, harmless(&error.message));
        if let Some(belljar_contract::result::output::StepOutput::RunCommand(output)) = &step.result {
            for line in tail(&output.stderr, 10).chain(tail(&output.stdout, 10)) {
                let _ = writeln!(text, "    | {}", harmless(line));
            }
        }
    }
    for artifact in &result.artifacts {
        let place = path_in(&state.path().join("artifacts"), &artifact.sha256);
        let size = size(artifact.size_bytes);
        let _ = writeln!(text, "  artifact {} ({size}) is {}", harmless(&artifact.path), path(&place));
    }
    if let Some(changed) = result.changes.as_ref().filter(|changed| !changed.files.is_empty()) {
        if std::io::stdout().is_terminal() {
            begin_review();
        }
        text.push_str(&changes(changed));
    }
    crate::output::outln!("{}", headline(result));
    crate::output::out!("{text}");
}

fn headline(result: &JobResult) -> String {
    let (style, word) = match result.status {
        JobStatus::Success => (bold(AnsiColor::Green), "success"),
        JobStatus::Failure => (bold(AnsiColor::Red), "failure"),
        JobStatus::Timeout => (bold(AnsiColor::Yellow), "timeout"),
    };
    let took = result.finished_at.duration_since(result.started_at).unsigned_abs();
    let mut line = format!("{style}{word}{style:#} in {} · {} steps", duration(took), result.steps.len());
    if let Some(isolation) = &result.isolation {
        let off: Vec<&str> = isolation
            .layers
            .iter()
            .filter(|layer| !layer.in_force)
            .map(|layer| layer.name.as_str())
            .collect();
        let _ = write!(line, " · sealed by {} layers", isolation.layers.len() - off.len());
        if !off.is_empty() {
            let _ = write!(line, ", without {}", off.join(", "));
        }
    }
    if let (Some(code), Some(message)) = (result.failure_code, &result.failure_message) {
        let first = message.lines().next().unwrap_or_default();
        let _ = write!(line, "\n  {code}: {}", harmless(first));
    }
    line
}

/// The changed files and their diff.
pub(crate) fn changes(changes: &WorkspaceChanges) -> String {
    files(changes, "changed in the copy") + &diff(changes)
}

/// Formats the list of changed files, with notes about them.
pub(crate) fn files(changes: &WorkspaceChanges, what: &str) -> String {
    let mut text = format!("  {} {what}:\n", counted_files(changes));
    for file in &changes.files {
        let letter = match file.change {
            Change::Created => 'A',
            Change::Deleted => 'D',
            Change::Renamed => 'R',
            Change::Copied => 'C',
            Change::Modified | Change::ModeChanged => 'M',
        };
        let not_shown = file.unshown.as_ref().map(|unshown| format!("  (not shown: {})", content(unshown)));
        let _ = writeln!(text, "  {letter} {}{}", harmless(&file.path), not_shown.unwrap_or_default());
    }
    text
}

/// The files and directories that a diff doesn't show, for the person who reads the diff alone.
pub(crate) fn unshown(changes: &WorkspaceChanges) -> String {
    unshown_directories(changes) + &unshown_files(changes)
}

fn unshown_directories(changes: &WorkspaceChanges) -> String {
    let directories = changes.files.iter().filter(|file| is_directory(file));
    let line = |file: &ChangedFile| {
        let what = if file.change == Change::Deleted { "removed" } else { "new" };
        format!("  {}  {what}\n", harmless(&file.path))
    };
    let lines: String = directories.map(line).collect();
    match lines.is_empty() {
        true => lines,
        false => format!("belljar: these directories are changed, too, which a diff can't show:\n{lines}"),
    }
}

fn unshown_files(changes: &WorkspaceChanges) -> String {
    let files = changes.files.iter().filter_map(|file| Some((file, file.unshown.as_ref()?)));
    let lines: String =
        files.map(|(file, unshown)| format!("  {}  {}\n", harmless(&file.path), content(unshown))).collect();
    match lines.is_empty() {
        true => lines,
        false => format!(
            "belljar: these files are not shown; with --reviewed, they are written only with --unshown:\n{lines}"
        ),
    }
}

/// The size of a content, and its hash.
fn content(unshown: &OmittedContent) -> String {
    let hash = unshown.sha256.as_ref().map(|hash| format!(", sha256 {hash}"));
    format!("{} bytes{}", unshown.size_bytes, hash.unwrap_or_default())
}

fn diff(changes: &WorkspaceChanges) -> String {
    let mut text = String::new();
    // A carriage return before the line feed is part of the line.
    for line in changes.diff.split_terminator('\n') {
        let style = match line.as_bytes() {
            [b'+', ..] => Style::new().fg_color(Some(AnsiColor::Green.into())),
            [b'-', ..] => Style::new().fg_color(Some(AnsiColor::Red.into())),
            [b'@', ..] => Style::new().fg_color(Some(AnsiColor::Cyan.into())),
            _ => Style::new(),
        };
        let _ = writeln!(text, "{style}{}{style:#}", UntrustedLines(line));
    }
    if changes.truncated {
        text.push_str("  … and more\n");
    }
    text
}

/// Counts the lines added and removed in each file.
pub(crate) fn stat(changes: &WorkspaceChanges) -> String {
    let counted = counted(&changes.diff);
    let width = changes.files.iter().map(|file| harmless(&file.path).chars().count()).max().unwrap_or(0);
    let (plus, minus) = (bold(AnsiColor::Green), bold(AnsiColor::Red));
    let mut text = String::new();
    let mut total = DiffLineCounts::default();
    // Every file has its sections in the diff, in the same order; a directory has none.
    let mut counted = counted.into_iter();
    for file in &changes.files {
        let is_directory = is_directory(file);
        let lines = if is_directory { None } else { counted.next() }.unwrap_or_default();
        let what = match (lines.is_binary, lines.added, lines.removed) {
            _ if is_directory && file.change == Change::Deleted => "removed directory".to_owned(),
            _ if is_directory => "new directory".to_owned(),
            (true, ..) => "not compared".to_owned(),
            (_, 0, 0) if file.change == Change::ModeChanged => "mode".to_owned(),
            (_, added, removed) => format!("{plus}+{added}{plus:#} {minus}-{removed}{minus:#}"),
        };
        let _ = writeln!(text, "  {:width$}  {what}", harmless(&file.path));
        total.added += lines.added;
        total.removed += lines.removed;
    }
    let files = counted_files(changes);
    let _ = writeln!(
        text,
        "  {files} changed, {} added, {} removed",
        lines_of(total.added),
        lines_of(total.removed)
    );
    if changes.truncated {
        text.push_str("  … and more\n");
    }
    text
}

fn lines_of(number: usize) -> String {
    count(number, "line")
}

/// Content of a file's sections in a diff.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct DiffLineCounts {
    added: usize,
    removed: usize,
    is_binary: bool,
}

/// The lines of each file of a diff. One that became something else has two sections, one after the other, under one
/// headline.
fn counted(diff: &str) -> Vec<DiffLineCounts> {
    let mut counted: Vec<DiffLineCounts> = Vec::new();
    let (mut headline, mut in_hunk) = ("", false);
    for line in diff.split('\n') {
        // Lines of content have a sign before them.
        if line.starts_with("diff --git ") {
            if line != headline {
                counted.push(DiffLineCounts::default());
            }
            (headline, in_hunk) = (line, false);
        }
        let Some(lines) = counted.last_mut() else { continue };
        match line.as_bytes() {
            [b'@', b'@', ..] => in_hunk = true,
            [b'+', ..] if in_hunk => lines.added += 1,
            [b'-', ..] if in_hunk => lines.removed += 1,
            [b'B', b'i', b'n', ..] if !in_hunk => lines.is_binary = true,
            _ => {}
        }
    }
    counted
}

/// Prints how long each stage of a launch took, on standard error.
pub(crate) fn print_timings(timings: &Timings) {
    let total: Duration = timings.iter().map(|(_, duration)| duration).sum();
    for (stage, duration) in timings.iter() {
        crate::output::errln!("{stage:<12} {:>8.1} µs", duration.as_secs_f64() * 1e6);
    }
    crate::output::errln!("{:<12} {:>8.1} µs", "total", total.as_secs_f64() * 1e6);
}

/// Formats a duration in a suitable unit.
pub(crate) fn duration(duration: Duration) -> String {
    match duration.as_millis() {
        0..1000 => format!("{} ms", duration.as_millis()),
        _ => format!("{:.1} s", duration.as_secs_f64()),
    }
}

/// Formats a size in a suitable unit.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => count(usize::try_from(bytes).unwrap_or(usize::MAX), "byte"),
        _ => format!("{:.1} KiB", bytes as f64 / 1024.0),
    }
}

/// Formats the number of changed files and directories.
fn counted_files(changes: &WorkspaceChanges) -> String {
    let directories = changes.files.iter().filter(|file| is_directory(file)).count();
    let files = changes.files.len() - directories;
    let of_directories = match directories {
        1 => "1 directory".to_owned(),
        _ => format!("{directories} directories"),
    };
    match (files, directories) {
        (_, 0) => count(files, "file"),
        (0, _) => of_directories,
        _ => format!("{} and {of_directories}", count(files, "file")),
    }
}

/// Returns true if a line of the list is about a directory: its path ends with a slash.
fn is_directory(file: &ChangedFile) -> bool {
    file.path.ends_with('/')
}

fn count(number: usize, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {noun}s") }
}

fn tail(text: &str, lines: usize) -> impl Iterator<Item = &str> {
    let skipped = text.lines().count().saturating_sub(lines);
    text.lines().skip(skipped)
}

fn bold(color: AnsiColor) -> Style {
    Style::new().bold().fg_color(Some(color.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn diff_lines_that_look_like_headers_are_counted_as_content() {
        let diff = "diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n--- a/a\n-diff --git a/x b/x\n+++ b/a\n+@@\n\
                    diff --git a/kind b/kind\ndeleted file mode 120000\n--- a/kind\n+++ /dev/null\n@@ -1 +0,0 @@\n-to\n\
                    \\ No newline at end of file\ndiff --git a/kind b/kind\nnew file mode 100644\n--- /dev/null\n\
                    +++ b/kind\n@@ -0,0 +1 @@\n+file\ndiff --git a/m b/m\nold mode 100644\nnew mode 100755\n\
                    diff --git a/z b/z\nBinary files a/z and b/z differ\n";
        let lines = |added, removed, is_binary| DiffLineCounts { added, removed, is_binary };
        let expected = [lines(2, 2, false), lines(1, 1, false), lines(0, 0, false), lines(0, 0, true)];
        assert_eq!(counted(diff), expected);
    }
}
