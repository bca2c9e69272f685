//! The configuration in use, read after the state directory is opened: it records which paths sandboxes can write.

use crate::error::CliError;
use crate::state;
use belljar_agent::catalogue::Catalogue;
use belljar_config::discovery::{self, ReadError};
use belljar_store::audit::anchor::AnchorSettings;
use std::error::Error;
use std::path::{Path, PathBuf};

pub(crate) use belljar_config::Configuration;
pub(crate) use belljar_config::discovery::{candidates, found, read_bytes};

/// Reads a file. A process reads each file only once and caches its bytes.
pub(crate) fn read(path: &Path) -> Result<Configuration, CliError> {
    state::open();
    Ok(discovery::read(path)?)
}

/// Reads the current content of a file, without the cache.
pub(crate) fn read_again(path: &Path) -> Result<Configuration, CliError> {
    state::open();
    Ok(discovery::read_again(path)?)
}

/// Sets the configuration that the command line names, for this whole process. The file is read immediately, so that a mistake in it is
/// always reported.
pub(crate) fn name(path: PathBuf) -> Result<(), CliError> {
    state::open();
    Ok(discovery::name(path)?)
}

/// Reads the configuration in use; `None` if there is none.
pub(crate) fn current() -> Result<Option<Configuration>, CliError> {
    found(None).map(|path| read(&path)).transpose()
}

/// Returns the audit log anchors of the configuration in use. An unreadable configuration is an error, because the audit log must not be
/// written without its anchors.
pub(crate) fn anchors() -> Result<Vec<AnchorSettings>, Box<dyn Error + Send + Sync>> {
    Ok(current()?.map(|configuration| configuration.anchors).unwrap_or_default())
}

/// Returns all agents: the built-in ones and those of the configuration, which take precedence.
pub(crate) fn catalogue(named: Option<&Path>) -> Result<Catalogue, CliError> {
    let built_in = Catalogue::built_in();
    match found(named) {
        Some(path) => Ok(built_in.with(read(&path)?.agents)),
        None => Ok(built_in),
    }
}

// === impl CliError ===

impl From<ReadError> for CliError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Read { path, source } => Self::Read { path, source },
            ReadError::Mistakes { path, source } => Self::Config { path, source },
        }
    }
}
