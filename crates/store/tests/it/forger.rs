//! An attacker who knows the format, has all permissions on the files, and lacks the key. The format is implemented a
//! second time here, from `docs/reference/audit.md`.

use sha2::{Digest, Sha256};
use std::path::Path;

fn hex(bytes: &[u8]) -> String {
    let digest: [u8; 32] = Sha256::digest(bytes).into();
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A member of a line, as it stands there.
pub(crate) fn member<'l>(line: &'l str, name: &str) -> &'l str {
    let (_, rest) = line.rsplit_once(&format!("\"{name}\":\"")).unwrap();
    rest.split_once('"').unwrap().0
}

/// Returns a line with correct hashes for any content.
pub(crate) fn sealed(begin: &str, previous: &str) -> String {
    let links = format!(",\"content\":\"{}\",\"previous\":\"{previous}", hex(begin.as_bytes()));
    format!("{begin}{links}\",\"hash\":\"{}\"}}", hex(links.as_bytes()))
}

/// Returns the part of a line with the event.
pub(crate) fn begin(line: &str) -> &str {
    line.rsplit_once(",\"content\":\"").unwrap().0
}

/// Returns the same records, each chained to the one before it and renumbered.
pub(crate) fn chained_anew(lines: &[String]) -> Vec<String> {
    let mut previous = "0".repeat(64);
    let mut chained = Vec::new();
    for (line, number) in lines.iter().zip(1..) {
        let (_, rest) = begin(line).split_once(',').unwrap();
        let line = sealed(&format!("{{\"sequence\":{number},{rest}"), &previous);
        previous = member(&line, "hash").to_owned();
        chained.push(line);
    }
    chained
}

pub(crate) fn lines(file: &Path) -> Vec<String> {
    std::fs::read_to_string(file).unwrap().lines().map(str::to_owned).collect()
}

pub(crate) fn write(file: &Path, lines: &[String]) {
    std::fs::write(file, lines.iter().map(|line| format!("{line}\n")).collect::<String>()).unwrap();
}
