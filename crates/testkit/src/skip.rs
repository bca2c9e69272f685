//! Tests that can't run on this machine: reported and counted, so that none is skipped silently.

use std::ffi::OsStr;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;

/// The variable that names the file where skips are noted; `scripts/test` sets it, counts them and tells them.
pub const SKIPS: &str = "BELLJAR_SKIPS";

/// Records that a test can't run here, and why. The test returns after calling this.
///
/// # Panics
/// When the skip can't be recorded: an uncounted skip would look like a passed test.
pub fn skip(test: &str, reason: &str) {
    let noted = note(std::env::var_os(SKIPS).as_deref(), test, reason);
    assert!(noted.is_ok(), "cannot record that {test} is skipped: {noted:?}");
}

fn note(file: Option<&OsStr>, test: &str, reason: &str) -> io::Result<()> {
    let line = format!("{}\t{}\n", one_line(test), one_line(reason));
    io::stderr().write_all(format!("skipped: {line}").as_bytes())?;
    let Some(file) = file else { return Ok(()) };
    // One write in append mode: tests run in many processes at once.
    OpenOptions::new().create(true).append(true).open(Path::new(file))?.write_all(line.as_bytes())
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn skips_are_added_to_the_file_one_a_line() {
        let directory = std::env::temp_dir().join(format!("belljar-skips-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let file = directory.join("skips");
        note(Some(file.as_os_str()), "a_test", "no\nkernel\there").unwrap();
        note(Some(file.as_os_str()), "another", "no network").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "a_test\tno kernel here\nanother\tno network\n");
        assert!(note(Some(directory.as_os_str()), "a_test", "a directory can't be written").is_err());
        fs::remove_dir_all(&directory).unwrap();
    }
}
