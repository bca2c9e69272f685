//! The directory that is a job's `/job/context`, read as a request has it.

use crate::error::CliError;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Maximum number of files; the node takes no more.
const MOST_FILES: usize = 200;

/// Maximum length of a file, in bytes; the node takes no more in all of them together.
const LARGEST_FILE: u64 = 8 << 20;

/// Reads the files of a directory, by their paths in it. Links lead out of it and are refused, like all that is neither a file nor a
/// directory.
pub(super) fn read(directory: &Path) -> Result<BTreeMap<String, String>, CliError> {
    let mut files = BTreeMap::new();
    let mut waiting = vec![PathBuf::new()];
    while let Some(below) = waiting.pop() {
        let place = directory.join(&below);
        let failed = |error| CliError::read(&place, error);
        for entry in std::fs::read_dir(&place).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let (path, name) = (entry.path(), below.join(entry.file_name()));
            let kind = entry.file_type().map_err(|error| CliError::read(&path, error))?;
            if kind.is_dir() {
                waiting.push(name);
                continue;
            }
            let refused =
                |why: &str| CliError::usage(format!("--context: {}: {why}", crate::output::path(&path)));
            if !kind.is_file() {
                return Err(refused("neither a file nor a directory"));
            }
            let name = name.into_os_string().into_string().map_err(|_| refused("its name is not UTF-8"))?;
            if files.len() == MOST_FILES {
                return Err(refused(&format!("one file too many: {MOST_FILES} at most")));
            }
            let bytes = belljar_trusted::input::read(&path, LARGEST_FILE);
            let bytes = bytes.map_err(|error| CliError::read(&path, error))?;
            if bytes.len() as u64 > LARGEST_FILE {
                return Err(refused(&format!("longer than {LARGEST_FILE} bytes")));
            }
            let text = String::from_utf8(bytes).map_err(|_| refused("not a text in UTF-8"))?;
            files.insert(name, text);
        }
    }
    Ok(files)
}
