//! `cargo xtask tidy`: every check examines the whole repository and reports what is wrong where, and what is expected.

mod architecture;
mod contracts;
mod effects;
mod errors;
mod features;
mod generated;
mod headers;
mod imports;
mod links;
mod manifests;
mod markers;
mod modules;
mod names;
mod pages;
mod parameters;
mod printing;
mod promises;
mod purity;
mod separators;
mod sizes;
mod unreached;
mod unsafety;
mod whitespace;
mod words;

use serde_json::Value;
use std::error::Error;
use std::fmt;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, ExitCode};
use std::thread;

/// The repository: its files, and cargo's metadata of its crates.
pub(crate) struct Repository {
    files: Vec<File>,
    metadata: Value,
}

/// A file.
pub(crate) struct File {
    /// Its path from the root.
    path: String,
    /// Text of the file; empty if it is not text.
    text: String,
}

/// A violation of a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    path: String,
    line: usize,
    found: String,
    right: String,
}

impl Finding {
    /// Creates the finding for a required document that is missing.
    fn missing_document(path: &str) -> Self {
        Self { path: path.into(), line: 1, found: "nothing".into(), right: "this document".into() }
    }
}

type Check = fn(&Repository) -> Vec<Finding>;

const CHECKS: &[(&str, Check)] = &[
    ("architecture", architecture::check),
    ("contracts", contracts::check),
    ("effects", effects::check),
    ("errors", errors::check),
    ("features", features::check),
    ("headers", headers::check),
    ("imports", imports::check),
    ("links", links::check),
    ("manifests", manifests::check),
    ("markers", markers::check),
    ("modules", modules::check),
    ("names", names::check),
    ("pages", pages::check),
    ("parameters", parameters::check),
    ("printing", printing::check),
    ("promises", promises::check),
    ("purity", purity::check),
    ("separators", separators::check),
    ("generated", generated::check),
    ("unreached", unreached::check),
    ("unsafety", unsafety::check),
    ("whitespace", whitespace::check),
    ("words", words::check),
];

/// Runs every check and prints the findings.
pub(crate) fn run(root: &Path) -> Result<ExitCode, Box<dyn Error>> {
    let repository = Repository::read(root)?;
    let mut out = std::io::stdout().lock();
    let mut found = 0;
    let all: Vec<Vec<Finding>> = thread::scope(|scope| {
        let checks: Vec<_> = CHECKS.iter().map(|(_, check)| scope.spawn(|| check(&repository))).collect();
        checks
            .into_iter()
            .map(|check| check.join().map_err(|_| "a check has panicked"))
            .collect::<Result<_, _>>()
    })?;
    for ((name, _), mut findings) in CHECKS.iter().zip(all) {
        findings.sort();
        found += findings.len();
        for finding in findings {
            writeln!(out, "{finding} [{name}]")?;
        }
    }
    write!(out, "{}", sizes::report(&repository))?;
    match found {
        0 => writeln!(out, "tidy: {} checks, nothing found", CHECKS.len())?,
        _ => writeln!(out, "tidy: {found} found")?,
    }
    Ok(if found == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

// === impl Repository ===

impl Repository {
    fn read(root: &Path) -> Result<Self, Box<dyn Error>> {
        let metadata = output(
            Command::new(env!("CARGO")).args(["metadata", "--format-version", "1", "--no-deps"]),
            root,
        )?;
        let mut files = Vec::new();
        for path in list(root)? {
            // A file that was deleted, and not committed yet, can't be read.
            if let Ok(bytes) = fs::read(root.join(&path)) {
                files.push(File { path, text: String::from_utf8(bytes).unwrap_or_default() });
            }
        }
        Ok(Self { files, metadata: serde_json::from_slice(&metadata)? })
    }

    fn file(&self, path: &str) -> Option<&File> {
        self.files.iter().find(|file| file.path == path)
    }

    fn exists(&self, path: &str) -> bool {
        let directory = format!("{}/", path.trim_end_matches('/'));
        self.files.iter().any(|file| file.path == path || file.path.starts_with(&directory))
    }

    fn with_extension<'r>(&'r self, extension: &'r str) -> impl Iterator<Item = &'r File> {
        self.files.iter().filter(move |file| file.path.rsplit_once('.').is_some_and(|(_, e)| e == extension))
    }

    fn rust_files(&self) -> impl Iterator<Item = &File> {
        self.with_extension("rs")
    }

    fn packages(&self) -> impl Iterator<Item = &Value> {
        self.metadata["packages"].as_array().into_iter().flatten()
    }

    /// A repository of these files, for the tests of checks.
    #[cfg(test)]
    fn of(files: &[(&str, &str)]) -> Self {
        let files =
            files.iter().map(|(path, text)| File { path: (*path).to_owned(), text: (*text).to_owned() });
        Self { files: files.collect(), metadata: Value::Null }
    }
}

/// Returns the paths of all files in the repository, including those that the next `git add` would add; without git, of
/// all but build outputs.
fn list(root: &Path) -> Result<Vec<String>, Box<dyn Error>> {
    // In a checkout that another user owns, as in a container, git requires this setting.
    let git = ["-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    if let Ok(listed) = output(Command::new("git").args(git), root) {
        let paths = listed.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        return Ok(paths.map(|path| String::from_utf8(path.to_vec())).collect::<Result<_, _>>()?);
    }
    let (mut paths, mut directories) = (Vec::new(), vec![root.to_owned()]);
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory)? {
            let (path, kind) = entry.map(|entry| (entry.path(), entry.file_type()))?;
            match kind?.is_dir() {
                true if path.ends_with("target") || path.ends_with(".git") => {}
                true => directories.push(path),
                false => paths.push(path.strip_prefix(root)?.to_string_lossy().into_owned()),
            }
        }
    }
    Ok(paths)
}

fn output(command: &mut Command, directory: &Path) -> Result<Vec<u8>, Box<dyn Error>> {
    let output = command.current_dir(directory).output().map_err(|error| format!("{command:?}: {error}"))?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(format!("{command:?}: {}", String::from_utf8_lossy(&output.stderr)).into()),
    }
}

// === impl File ===

impl File {
    /// A finding in a line, counted from one.
    fn finding(&self, line: usize, found: impl Into<String>, right: impl Into<String>) -> Finding {
        Finding { path: self.path.clone(), line, found: found.into(), right: right.into() }
    }

    /// The lines with their numbers.
    fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// The folder below `crates/` or `tests/`, or `xtask`.
    fn room(&self) -> Option<&str> {
        match self.path.strip_prefix("crates/").or_else(|| self.path.strip_prefix("tests/")) {
            Some(below) => below.split('/').next(),
            None => self.path.starts_with("xtask/").then_some("xtask"),
        }
    }

    /// The file's name without its directories.
    fn name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// Returns true if this is the root of a crate: a library, a program, a test, an example, a build script, a fuzz
    /// target.
    fn is_crate_root(&self) -> bool {
        let parts: Vec<&str> = self.path.split('/').collect();
        match parts.as_slice() {
            [.., "src", "lib.rs" | "main.rs"] | [.., "build.rs"] | [.., "src", "bin", _] => true,
            // A module of tests may have modules of its own.
            [.., "tests", _] if parts.contains(&"src") => false,
            [.., "tests" | "examples" | "benches", _, "main.rs"] => true,
            [.., "tests" | "examples" | "benches" | "fuzz_targets", file] => file.ends_with(".rs"),
            _ => false,
        }
    }
}

// === impl Finding ===

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}; {}", self.path, self.line, self.found, self.right)
    }
}
