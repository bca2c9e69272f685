//! Checks the files that git and ssh obey: settings with all included files, programs, and files that both read by default. A
//! sandbox or another user must not be able to write any of them.

mod ssh;

use super::environment::{HostEnv, UserGitSettings};
use belljar_policy::git::Scheme;
use belljar_trusted::command::check_texts;
use belljar_trusted::trusted_file::{self, UntrustedFileError};
use std::ffi::OsStr;
use std::path::Path;

/// Variables that name directories in which git, ssh and helpers look for the user's files.
const DIRECTORIES: [&str; 4] = ["HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"];

/// Checks the file that a user's setting comes from.
pub(super) fn check_origin(path: &Path) -> Result<(), UntrustedFileError> {
    trusted_file::check(path).map(drop)
}

/// Checks the settings and variables that git gets for a server.
pub(super) fn check(
    settings: &UserGitSettings,
    env: &HostEnv,
    scheme: Scheme,
) -> Result<(), UntrustedFileError> {
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

/// Checks a directory of the user's files. A workspace may be below it, but it must not be in a workspace.
fn check_directory(path: &OsStr) -> Result<(), UntrustedFileError> {
    match trusted_file::look_at(Path::new(path)) {
        Err(UntrustedFileError::Look { .. }) | Ok(()) => Ok(()),
        Err(error) => Err(error),
    }
}
