//! The file in use: where a configuration is searched for, and how it is read.
//!
//! A process reads each file once. All settings then come from one version of the file, and the file may be a pipe.

use crate::configuration::Configuration;
use belljar_contract::yaml::{LARGEST_BYTES, Mistakes};
use belljar_trusted::{named_files, trusted_file};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Variable that names the configuration file.
pub const VARIABLE: &str = "BELLJAR_CONFIG";

/// A configuration file that can't be used.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A file can't be read or isn't trusted: the configuration, or a file that it names.
    #[error("can't read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Reason.
        #[source]
        source: io::Error,
    },
    /// The configuration has mistakes.
    #[error("{} has mistakes", path.display())]
    Mistakes {
        /// The configuration.
        path: PathBuf,
        /// All its mistakes.
        #[source]
        source: Mistakes,
    },
}

/// Which source names the configuration in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NamedBy {
    /// The command line (`--config`).
    Flag,
    /// The environment ([`VARIABLE`]).
    Environment,
    /// No source: it is at one of the usual paths.
    Search,
}

/// Cache of the files that this process has read.
static READ: Mutex<BTreeMap<PathBuf, Vec<u8>>> = Mutex::new(BTreeMap::new());

/// The file that the command line names (`--config`), if it names one.
static NAMED: OnceLock<PathBuf> = OnceLock::new();

/// Sets the configuration that the command line names, for this whole process. The file is read immediately, so that a mistake in it is
/// always reported.
///
/// # Errors
/// [`ReadError`] if it can't be used.
pub fn name(path: PathBuf) -> Result<(), ReadError> {
    read(&path)?;
    let _ = NAMED.set(path);
    Ok(())
}

/// Reads a file.
///
/// # Errors
/// [`ReadError`] if it can't be read, a sandbox or another user could write it or a file that it names, or it has mistakes.
pub fn read(path: &Path) -> Result<Configuration, ReadError> {
    parse(path, &document(path)?)
}

/// Returns the bytes of a file, as [`read`] parses them.
///
/// # Errors
/// [`ReadError::Read`] if it can't be read, or a sandbox or another user could write it.
pub fn document(path: &Path) -> Result<Vec<u8>, ReadError> {
    let mut known = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(bytes) = known.get(path) {
        return Ok(bytes.clone());
    }
    let bytes = open_and_read(path)?;
    known.insert(path.to_owned(), bytes.clone());
    Ok(bytes)
}

/// Reads the current content of a file, without the cache.
///
/// # Errors
/// As [`read`].
pub fn read_again(path: &Path) -> Result<Configuration, ReadError> {
    parse(path, &open_and_read(path)?)
}

fn open_and_read(path: &Path) -> Result<Vec<u8>, ReadError> {
    let unreadable = |source| ReadError::Read { path: path.to_owned(), source };
    let file = trusted_file::open(path).map_err(|error| unreadable(error.into()))?;
    read_bytes(file).map_err(unreadable)
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Configuration, ReadError> {
    named_files::check(bytes).map_err(|error| {
        let path = error.path().to_owned();
        ReadError::Read { path, source: error.into() }
    })?;
    Configuration::parse(bytes).map_err(|source| ReadError::Mistakes { path: path.to_owned(), source })
}

/// Returns the path of the configuration in use: the named one, else `BELLJAR_CONFIG`, else the user's file, else the system's.
pub fn found(named: Option<&Path>) -> Option<PathBuf> {
    found_and_source(named).map(|(path, _)| path)
}

/// Returns the path of the configuration in use, as [`found`] does, and which source names it.
pub fn found_and_source(named: Option<&Path>) -> Option<(PathBuf, NamedBy)> {
    let named = named.or_else(|| NAMED.get().map(PathBuf::as_path)).map(Path::to_owned);
    let named = named.map(|path| (path, NamedBy::Flag));
    named
        .or_else(|| explicit().map(|path| (path, NamedBy::Environment)))
        .or_else(|| usual().into_iter().find(|path| is_there(path)).map(|path| (path, NamedBy::Search)))
}

/// Returns true if a path exists. A path that can't be inspected counts as existing: reading it then reports the reason.
fn is_there(path: &Path) -> bool {
    match path.symlink_metadata() {
        Ok(_) => true,
        Err(error) => !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
    }
}

/// Returns the paths where a configuration is searched for if none is named, including paths that don't exist.
pub fn candidates() -> Vec<PathBuf> {
    explicit().into_iter().chain(usual()).collect()
}

fn explicit() -> Option<PathBuf> {
    std::env::var_os(VARIABLE).map(PathBuf::from)
}

/// Returns the default paths: the user's file first, then the system's.
pub fn usual() -> Vec<PathBuf> {
    let config = std::env::var_os("XDG_CONFIG_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    // Never `home_dir()`: without HOME it asks the system's user database, for which glibc loads modules into this static program.
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let users = config.or_else(|| home.map(|home| home.join(".config")));
    users
        .into_iter()
        .chain([PathBuf::from("/etc")])
        .map(|folder| folder.join("belljar/config.yaml"))
        .collect()
}

/// Reads at most one byte more than [`LARGEST_BYTES`]: enough to detect a file that is too long.
///
/// # Errors
/// [`io::Error`] of the source.
pub fn read_bytes(source: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(LARGEST_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}
