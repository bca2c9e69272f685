//! Writes out everything that is readable below some directories, for the test to search.

use super::kernel::{self, call_named};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Maximum number of bytes that are read of one file.
const MOST_OF_A_FILE: u64 = 64 << 10;

/// Maximum depth of directories. `/proc` contains cycles.
const DEEPEST: usize = 7;

/// Time limit for reading a file, in seconds.
const PATIENCE_SECONDS: u64 = 2;

/// Writes the names and contents of all files, the targets of links, and the fields of `uname`.
pub(super) fn print(roots: &[&str]) -> Result<(), String> {
    let mut out = std::io::stdout().lock();
    let said = |error: std::io::Error| error.to_string();
    for (name, value) in std::env::vars_os() {
        writeln!(out, "environment {}={}", name.display(), value.display()).map_err(said)?;
    }
    for argument in std::env::args_os() {
        writeln!(out, "argument {}", argument.display()).map_err(said)?;
    }
    writeln!(out, "uname {}", uname()).map_err(said)?;
    for root in roots {
        walk(Path::new(root), 0, &mut out)?;
    }
    Ok(())
}

/// Returns the six texts of `uname`.
fn uname() -> String {
    let mut text = vec![0_u64; 6 * 65 / 8 + 1];
    let _ = call_named(libc::SYS_uname, [text.as_mut_ptr().expose_provenance() as u64, 0, 0, 0, 0, 0]);
    let bytes: Vec<u8> = text.iter().flat_map(|word| word.to_ne_bytes()).collect();
    bytes
        .split(|byte| *byte == 0)
        .map(String::from_utf8_lossy)
        .collect::<Vec<_>>()
        .join(" ")
        .trim()
        .to_owned()
}

fn walk(path: &Path, depth: usize, out: &mut impl Write) -> Result<(), String> {
    let said = |error: std::io::Error| error.to_string();
    let Ok(metadata) = fs::symlink_metadata(path) else { return Ok(()) };
    let kind = metadata.file_type();
    if kind.is_symlink() {
        let target = fs::read_link(path).unwrap_or_default();
        return writeln!(out, "link {} {}", path.display(), target.display()).map_err(said);
    }
    if kind.is_dir() {
        writeln!(out, "directory {}", path.display()).map_err(said)?;
        let own = std::process::id().to_string();
        for entry in fs::read_dir(path).into_iter().flatten().filter_map(Result::ok) {
            // Skip `task` and this process's own directory by number: they repeat others, and there are many.
            let is_repetition = entry.file_name() == "task" || entry.file_name() == own.as_str();
            if depth < DEEPEST && !is_repetition {
                walk(&entry.path(), depth + 1, out)?;
            }
        }
        return Ok(());
    }
    if kind.is_file() {
        write!(out, "file {} ", path.display()).map_err(said)?;
        // One character per byte, so that any content is text.
        // The kernel's settings are many, and reading them never blocks.
        let content =
            if path.starts_with("/proc/sys") { fs::read(path).ok() } else { Some(read_patiently(path)) };
        let content: String = content.unwrap_or_default().into_iter().map(char::from).collect();
        out.write_all(content.as_bytes()).map_err(said)?;
        return writeln!(out).map_err(said);
    }
    writeln!(out, "other {}", path.display()).map_err(said)
}

/// Reads the beginning of a file in a child process, because some files of `/proc` block until an event.
fn read_patiently(path: &Path) -> Vec<u8> {
    let Ok((mut reader, mut writer)) = std::io::pipe() else { return Vec::new() };
    let child = kernel::fork();
    if let Ok(None) = child {
        let _ = call_named(libc::SYS_alarm, [PATIENCE_SECONDS, 0, 0, 0, 0, 0]);
        let opened = fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open(path);
        if let Ok(mut file) = opened {
            // Read in pieces, so that content from before the file blocks is kept.
            let mut piece = [0; 4096];
            let mut left = MOST_OF_A_FILE;
            while let Ok(read @ 1..) = file.read(&mut piece) {
                let _ = writer.write_all(&piece[..read]);
                left = left.saturating_sub(read as u64);
                if left == 0 {
                    break;
                }
            }
        }
        kernel::end(0);
    }
    drop(writer);
    let mut content = Vec::new();
    let _ = reader.read_to_end(&mut content);
    if let Ok(Some(child)) = child {
        let _ = kernel::wait_for(child);
    }
    content
}
