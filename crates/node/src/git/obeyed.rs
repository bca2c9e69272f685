//! What git and ssh obey of the user's: settings with all files that they include, programs, and what both read by themselves. None of
//! it may be something that a sandbox or another user could write.

mod ssh;

use super::environment::{HostEnv, Settings};
use belljar_policy::git::Scheme;
use belljar_trusted::command::check_texts;
use belljar_trusted::trusted_file::{self, UntrustedFileError};
use std::ffi::OsStr;
use std::path::Path;

/// Variables that name directories in which git, ssh and helpers find files of the user's.
const DIRECTORIES: [&str; 4] = ["HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"];

/// Checks the file that a setting of the user's comes from.
pub(super) fn check_origin(path: &Path) -> Result<(), UntrustedFileError> {
    trusted_file::check(path).map(drop)
}

/// Checks what git is told for its way to a server: settings and variables.
pub(super) fn check(settings: &Settings, env: &HostEnv, scheme: Scheme) -> Result<(), UntrustedFileError> {
    for name in DIRECTORIES {
        check_directory(env.get(name).unwrap_or_default())?;
    }
    let kept = settings.kept.iter().map(|(_, value)| value);
    check_texts(kept.chain(&settings.ssh_command).map(OsStr::new))?;
    check_texts(env.of_programs())?;
    match scheme {
        Scheme::Ssh => ssh::check(env, settings.ssh_command.as_deref()),
        Scheme::Https | Scheme::Http | Scheme::File => Ok(()),
    }
}

/// A workspace may be below such a directory, but not the other way round.
fn check_directory(path: &OsStr) -> Result<(), UntrustedFileError> {
    match trusted_file::look_at(Path::new(path)) {
        Err(UntrustedFileError::Look { .. }) | Ok(()) => Ok(()),
        Err(error) => Err(error),
    }
}
