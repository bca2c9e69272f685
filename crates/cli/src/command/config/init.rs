//! `belljar config init`

use crate::error::CliError;
use crate::sandbox_args::given_target;
use std::fs::{DirBuilder, File};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub(super) struct InitArguments {
    /// The file to create; `-` writes to standard output [default: config.yaml in the user's configuration, such as
    /// ~/.config/belljar/config.yaml]
    path: Option<PathBuf>,
}

// === impl InitArguments ===

impl InitArguments {
    pub(super) fn run(&self) -> Result<ExitCode, CliError> {
        let text = belljar_config::example();
        let path = match &self.path {
            Some(path) if path.as_os_str() == "-" => {
                crate::command::printing::print(&text)?;
                return Ok(ExitCode::SUCCESS);
            }
            Some(path) => path.clone(),
            None => usual()?,
        };
        write_new(&path, &text)?;
        crate::output::outln!("{}", crate::output::path(&path));
        Ok(ExitCode::SUCCESS)
    }
}

/// Returns the path at which the user's configuration is searched for. Its directory is created, for the user alone.
fn usual() -> Result<PathBuf, CliError> {
    let usual = belljar_config::discovery::usual();
    let path = usual.into_iter().next().unwrap_or_default();
    if let Some(directory) = path.parent() {
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(directory)
            .map_err(|source| CliError::Write { path: directory.to_owned(), source })?;
    }
    Ok(path)
}

/// An existing file is never replaced: it may be in use.
fn write_new(path: &Path, text: &str) -> Result<(), CliError> {
    let target = given_target(path)?;
    let file = File::options().write(true).create_new(true).mode(0o600).open(target);
    file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|source| match source.kind() {
        ErrorKind::AlreadyExists => {
            let path = crate::output::path(path);
            CliError::usage(format!(
                "{path} exists, and is not overwritten; name another file, or move it away"
            ))
        }
        _ => CliError::Write { path: path.to_owned(), source },
    })
}
