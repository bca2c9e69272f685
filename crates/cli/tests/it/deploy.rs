//! What `deploy/` has, tried as far as it can be without the machines that it is for.

mod compose;
mod container;
mod unit;

use std::path::PathBuf;
use std::process::Command;

/// A file of `deploy/`.
fn file(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy")).join(name)
}

fn text(name: &str) -> String {
    std::fs::read_to_string(file(name)).unwrap()
}

/// What a program says on both streams, and whether it succeeded; nothing if there is no such program here.
fn said(command: &mut Command) -> Option<(bool, String)> {
    let output = command.output().ok()?;
    let text = [output.stdout, output.stderr].concat();
    Some((output.status.success(), String::from_utf8(text).unwrap()))
}
