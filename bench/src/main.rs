//! Measures belljar side by side with its peers and prints ratios:
//! `cargo run --release -p belljar-bench [--history FILE] [CASE …]`.
//!
//! The contestants of a case take turns in one run, so that a slow phase of the machine affects all of them. Figures are
//! medians; the goals are those of `bench/README.md`. A missing peer is reported, not skipped silently.

#![deny(unsafe_code)]
#![expect(clippy::print_stdout, reason = "printing figures is what this program does")]
#![expect(clippy::expect_used, reason = "a measurement that can't be made has no other way on")]

mod contest;
mod diff;
mod exec;
#[expect(unsafe_code, reason = "a bare `clone3` is what ours is measured by")]
mod floor;
mod fork;
mod history;
mod jobs;
mod models;
mod neighbour;
mod permissions;
mod rounds;
mod sandboxes;
mod tools;
mod tree;
mod turns;
mod web;

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// The programs under measurement, built in the same profile as this one.
pub(crate) struct Programs {
    built: PathBuf,
    installed: tempfile::TempDir,
}

type Case = (&'static str, fn(&Programs) -> bool);

const CASES: [Case; 25] = [
    ("exec", exec::run),
    ("diff", diff::run),
    ("tree", tree::run),
    ("fork", fork::run),
    ("cold", sandboxes::cold),
    ("warm", sandboxes::warm),
    ("docker", sandboxes::docker),
    ("rate", sandboxes::rate),
    ("density", sandboxes::density),
    ("churn", sandboxes::churn),
    ("neighbour", neighbour::run),
    // While this process has one thread.
    ("jobs", jobs::jobs),
    ("proxy", models::proxy),
    ("stream", models::stream),
    ("streams", models::streams),
    ("audit", models::audit),
    ("turns", turns::run),
    ("tools", tools::run),
    ("permissions", permissions::run),
    ("submit", jobs::submit),
    ("growth", jobs::growth),
    ("memory", jobs::memory),
    ("opened", web::opened),
    ("passed", web::passed),
    ("tunnels", web::many),
];

// === impl Programs ===

impl Programs {
    fn of_this_build() -> Self {
        let own = std::env::current_exe().expect("the path of this executable");
        let built = own.parent().expect("the directory of this executable").to_owned();
        Self { built, installed: tempfile::tempdir().expect("a temporary folder") }
    }

    pub(crate) fn belljar(&self) -> PathBuf {
        self.install("belljar")
    }

    pub(crate) fn runner(&self) -> PathBuf {
        self.install("cynode-sba")
    }

    /// Copies a program like an installation. A linker writes its file in pieces, and the page cache keeps such a file in
    /// small pieces, too: every start from it takes about 0.1 ms longer than from a file that was written at once.
    fn install(&self, name: &str) -> PathBuf {
        let (program, copy) = (self.built.join(name), self.installed.path().join(name));
        if !copy.exists() {
            assert!(
                program.exists(),
                "build it first: cargo build --release --workspace ({})",
                program.display()
            );
            std::fs::copy(program, &copy).expect("a copy of a program");
        }
        copy
    }
}

fn main() -> ExitCode {
    let asked: Vec<String> = std::env::args().skip(1).collect();
    if let Some(ended) = models::play(&asked) {
        return ended;
    }
    let Ok((asked, figures)) = option_in(asked, "--figures") else { return ExitCode::FAILURE };
    let Ok((asked, history)) = option_in(asked, "--history") else {
        println!("--history takes a file, or `-` for standard output");
        return ExitCode::FAILURE;
    };
    let load_before = history::load();
    let mut met = true;
    for unknown in asked.iter().filter(|case| CASES.iter().all(|(name, _)| name != case)) {
        println!("unknown case {unknown}");
        met = false;
    }
    let cases: Vec<Case> = CASES
        .into_iter()
        .filter(|(name, _)| asked.is_empty() || asked.iter().any(|case| case == name))
        .collect();
    match &cases[..] {
        [(name, run)] => {
            history::begin(name);
            met &= run(&Programs::of_this_build());
        }
        many => {
            for (name, _) in many {
                history::begin(name);
                met &= in_its_own_process(name);
            }
        }
    }
    if let Some(path) = figures {
        history::hand_over(Path::new(&path)).expect("a file for figures");
    }
    if let Some(destination) = history.map(history::RowDestination::from) {
        history::write(&destination, &CASES.map(|(name, _)| name), &load_before)
            .expect("a row of the history");
    }
    ExitCode::from(u8::from(!met))
}

/// Runs a case in a new process. Sandboxes begin as copies of the calling process, so memory of an earlier case would be
/// measured as well. Returns true if the case has met its goals.
fn in_its_own_process(case: &str) -> bool {
    let figures = tempfile::NamedTempFile::new().expect("a temporary file");
    let own = std::env::current_exe().expect("the path of this executable");
    let status = Command::new(own).arg("--figures").arg(figures.path()).arg(case).status();
    history::take_over(figures.path());
    status.is_ok_and(|status| status.success())
}

/// Removes an option with its value from the arguments. Returns an error if the option has no value.
fn option_in(mut asked: Vec<String>, option: &str) -> Result<(Vec<String>, Option<String>), ()> {
    let Some(at) = asked.iter().position(|argument| argument == option) else { return Ok((asked, None)) };
    asked.remove(at);
    match at < asked.len() {
        true => {
            let value = asked.remove(at);
            Ok((asked, Some(value)))
        }
        false => Err(()),
    }
}

/// Creates a temporary folder in memory if possible: the disk is not what is compared.
pub(crate) fn in_memory() -> tempfile::TempDir {
    let shared_memory = Path::new("/dev/shm");
    let place = if shared_memory.is_dir() { shared_memory.to_owned() } else { std::env::temp_dir() };
    tempfile::tempdir_in(place).expect("a temporary folder")
}

/// Returns the program's path, if it is installed.
pub(crate) fn installed(names: &[&str]) -> Option<PathBuf> {
    let found =
        |name: &&&str| Command::new("which").arg(name).output().is_ok_and(|output| output.status.success());
    names.iter().find(found).map(PathBuf::from)
}
