//! The history of all figures: one row of `bench/history.md` for each release candidate.
//!
//! `--history FILE` appends a row to a table in that file, which is created if it doesn't exist; `--history -` prints the
//! row. A cell has the figures of a case in the order in which they are judged. A figure that misses its goal has an
//! exclamation mark.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// Destination of rows.
pub(crate) enum RowDestination {
    File(String),
    Output,
}

/// A judged figure.
struct JudgedFigure {
    case: &'static str,
    figure: f64,
    is_met: bool,
}

/// The figures so far, and the current case.
struct HistoryCollector {
    case: &'static str,
    judged: Vec<JudgedFigure>,
}

static GATHERED: Mutex<HistoryCollector> = Mutex::new(HistoryCollector { case: "", judged: Vec::new() });

const TITLE: &str = "# Figures of each release candidate\n\nOne row for each run of all cases, appended by `--history` \
    ([README.md](README.md#history)). A cell has the figures of a case in the order in which the program judges them;\n`!` marks \
    one that misses its goal, `–` a case that was not run. The load is the average of a minute, before and after.\n";

/// Begins a case: figures from now on belong to it.
pub(crate) fn begin(case: &'static str) {
    GATHERED.lock().unwrap_or_else(PoisonError::into_inner).case = case;
}

/// Writes the figures for the process that runs all cases.
pub(crate) fn hand_over(to: &Path) -> io::Result<()> {
    let gathered = GATHERED.lock().unwrap_or_else(PoisonError::into_inner);
    let figures: Vec<(f64, bool)> = gathered.judged.iter().map(|one| (one.figure, one.is_met)).collect();
    std::fs::write(to, serde_json::to_vec(&figures)?)
}

/// Adds the figures of a case's process to the current case. A process that failed has written none.
pub(crate) fn take_over(from: &Path) {
    let written = std::fs::read(from).unwrap_or_default();
    let figures: Vec<(f64, bool)> = serde_json::from_slice(&written).unwrap_or_default();
    for (figure, is_met) in figures {
        note(figure, is_met);
    }
}

/// Adds a figure to the row.
pub(crate) fn note(figure: f64, is_met: bool) {
    let mut gathered = GATHERED.lock().unwrap_or_else(PoisonError::into_inner);
    let case = gathered.case;
    gathered.judged.push(JudgedFigure { case, figure, is_met });
}

/// Returns the load average of the last minute.
pub(crate) fn load() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("?").to_owned()
}

impl From<String> for RowDestination {
    /// Converts a path, or `-` for standard output.
    fn from(text: String) -> Self {
        match text.as_str() {
            "-" => Self::Output,
            _ => Self::File(text),
        }
    }
}

/// Writes the row of this run.
///
/// # Errors
/// When the file can't be written.
pub(crate) fn write(to: &RowDestination, cases: &[&'static str], load_before: &str) -> io::Result<()> {
    let gathered = GATHERED.lock().unwrap_or_else(PoisonError::into_inner);
    let facts = [candidate(), machine(), format!("{load_before} to {}", load())];
    let cells = cases.iter().map(|case| cell(&gathered.judged, case));
    let row = row(facts.into_iter().chain(cells));
    let RowDestination::File(path) = to else {
        println!("\n{row}");
        return Ok(());
    };
    let head = row_of_names(cases);
    let is_new = !Path::new(path).exists();
    let known = if is_new { String::new() } else { std::fs::read_to_string(path)? };
    let mut file = File::options().append(true).create(true).open(path)?;
    let title = if is_new { TITLE } else { "" };
    // Different cases begin a new table.
    let table = match known.lines().rfind(|line| line.starts_with("| candidate ")) {
        Some(last) if last == head.lines().next().unwrap_or_default() => row,
        _ => format!("{title}\n{head}\n{row}"),
    };
    file.write_all(format!("{table}\n").as_bytes())
}

fn row_of_names(cases: &[&'static str]) -> String {
    let names = ["candidate", "machine", "load"].into_iter().chain(cases.iter().copied());
    let names: Vec<String> = names.map(str::to_owned).collect();
    let rule = vec!["---".to_owned(); names.len()];
    format!("{}\n{}", row(names), row(rule))
}

fn row(cells: impl IntoIterator<Item = String>) -> String {
    let mut row = "|".to_owned();
    for cell in cells {
        let _ = write!(row, " {cell} |");
    }
    row
}

fn cell(judged: &[JudgedFigure], case: &str) -> String {
    let of_case = judged.iter().filter(|one| one.case == case);
    let figures: Vec<String> =
        of_case.map(|one| format!("{:.2}{}", one.figure, if one.is_met { "" } else { "!" })).collect();
    if figures.is_empty() { "–".to_owned() } else { figures.join(" · ") }
}

/// Returns the date and the commit.
fn candidate() -> String {
    let said = |arguments: &[&str]| {
        let output =
            Command::new("git").args(arguments).output().ok().filter(|output| output.status.success());
        output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let commit = said(&["describe", "--tags", "--always", "--dirty"]).unwrap_or_else(|| "unknown".to_owned());
    let day = jiff::Zoned::now().date();
    format!("{day} {commit}")
}

/// Returns the machine's name, processors and kernel.
fn machine() -> String {
    let system = rustix::system::uname();
    let [name, release] =
        [system.nodename(), system.release()].map(|text| text.to_string_lossy().into_owned());
    let information = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = information.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let model = model.map_or("unknown processor", |(_, model)| model);
    let count = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    format!("{name}, {count} × {model}, Linux {release}").replace('|', "/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_has_a_cell_for_each_case_with_its_figures_in_order() {
        let judged = [
            JudgedFigure { case: "exec", figure: 0.784, is_met: false },
            JudgedFigure { case: "tree", figure: 0.83, is_met: true },
            JudgedFigure { case: "tree", figure: 0.66, is_met: true },
        ];
        let cells = ["exec", "diff", "tree"].map(|case| cell(&judged, case));
        assert_eq!(cells, ["0.78!", "–", "0.83 · 0.66"]);
        assert_eq!(row(cells), "| 0.78! | – | 0.83 · 0.66 |");
        assert_eq!(
            row_of_names(&["exec"]),
            "| candidate | machine | load | exec |\n| --- | --- | --- | --- |"
        );
    }

    #[test]
    fn rows_of_the_same_cases_share_a_table() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("history.md");
        let to = RowDestination::File(path.display().to_string());
        for cases in [&["exec"][..], &["exec"], &["exec", "diff"]] {
            write(&to, cases, "0.00").expect("a file");
        }
        let text = std::fs::read_to_string(path).expect("a file");
        assert_eq!(text.matches("# Figures").count(), 1, "{text}");
        assert_eq!(text.matches("| candidate |").count(), 2, "{text}");
        assert_eq!(text.lines().filter(|line| line.ends_with("– |")).count(), 3, "{text}");
    }
}
