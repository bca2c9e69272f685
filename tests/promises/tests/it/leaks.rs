//! Leaks: no secret of the host, and nothing that identifies the host, can be read inside.

pub(crate) mod identity;
pub(crate) mod secrets;

use crate::scene::PreparedHost;
use crate::way::{PROBE, StartMethod};
use std::path::Path;

/// Directories of a sandbox with content other than the host's programs.
const ROOTS: [&str; 9] = ["/proc", "/etc", "/run", "/tmp", "/home", "/workspace", "/job", "/dev", "/sys"];

/// Returns everything that can be read inside, in one text.
fn dump_inside(scene: &PreparedHost<'_>, way: StartMethod) -> String {
    way.run(scene, &[&[PROBE, "dump"], &ROOTS[..]].concat())
}

/// Returns everything that can be read in some directories of the host, as the user who starts the sandbox.
fn dump_outside(scene: &PreparedHost<'_>, roots: &[String]) -> String {
    let probe = scene.path("lent/belljar-probe");
    let roots: Vec<&str> = roots.iter().map(String::as_str).collect();
    let mut command = scene.leaking(Path::new(&probe), &[&["dump"], &roots[..]].concat());
    String::from_utf8_lossy(&command.output().unwrap().stdout).into_owned()
}
