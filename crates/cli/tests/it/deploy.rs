//! The files of `deploy/`, tested as far as possible without the machines that they are for.

mod compose;
mod container;
mod unit;

use std::path::PathBuf;
use std::process::Command;

/// Returns the path of a file of `deploy/`.
fn file(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy")).join(name)
}

fn text(name: &str) -> String {
    std::fs::read_to_string(file(name)).unwrap()
}

/// Returns true if a program succeeds, with its output; `None` if the program isn't installed.
fn said(command: &mut Command) -> Option<(bool, String)> {
    let output = command.output().ok()?;
    let text = [output.stdout, output.stderr].concat();
    Some((output.status.success(), String::from_utf8(text).unwrap()))
}
