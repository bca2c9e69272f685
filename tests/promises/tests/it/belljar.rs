//! The program under test: `belljar` of the same target folder, built if it is missing or older than its source.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::LazyLock;
use std::time::SystemTime;

/// Path of the probe, which only this package builds.
pub(crate) const PROBE: &str = env!("CARGO_BIN_EXE_belljar-probe");

static BELLJAR: LazyLock<PathBuf> = LazyLock::new(|| {
    let program = Path::new(PROBE).with_file_name("belljar");
    let built = fs::metadata(&program).and_then(|metadata| metadata.modified()).ok();
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates");
    if built.is_none_or(|built| built < newest_source(&crates)) {
        build(&program);
    }
    program
});

/// Returns the path of the program under test. A run of all tests has built it beforehand; a run of this package alone may
/// not have.
pub(crate) fn belljar() -> &'static str {
    BELLJAR.to_str().unwrap()
}

fn build(program: &Path) {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["build", "--quiet", "--package", "belljar-cli", "--bin", "belljar"]);
    command.current_dir(env!("CARGO_MANIFEST_DIR"));
    let features = [
        ("removable-walls", cfg!(feature = "removable-walls")),
        ("failpoints", cfg!(feature = "failpoints")),
    ];
    for (feature, _) in features.into_iter().filter(|(_, is_wanted)| *is_wanted) {
        command.args(["--features", feature]);
    }
    if program.parent().is_some_and(|folder| folder.ends_with("release")) {
        command.arg("--release");
    }
    assert!(command.status().unwrap().success(), "belljar can't be built");
}

/// Returns the time at which the newest source file of a shipped crate was changed.
fn newest_source(crates: &Path) -> SystemTime {
    let mut newest = SystemTime::UNIX_EPOCH;
    // Only tests import the crate of what tests share.
    let of_program = |name: &Path| !name.ends_with("testkit");
    let crates = fs::read_dir(crates).unwrap().map(|entry| entry.unwrap().path());
    let mut pending: Vec<PathBuf> =
        crates.filter(|path| of_program(path)).map(|path| path.join("src")).collect();
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let metadata = entry.metadata().unwrap();
            match metadata.is_dir() {
                true => pending.push(entry.path()),
                false => newest = newest.max(metadata.modified().unwrap()),
            }
        }
    }
    newest
}
