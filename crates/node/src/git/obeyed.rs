//! What git and ssh obey of the user's: settings with all files that they include, programs, and what both read by themselves. None of
//! it may be something that a sandbox or another user could write.

use super::environment::{HostEnv, Settings};
use belljar_policy::git::Scheme;
use belljar_trusted::command::check_texts;
use belljar_trusted::trusted_file::{self, Found, Role, UntrustedFileError};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The keys of servers that ssh trusts, below the home directory.
const KNOWN_HOSTS: [&str; 2] = [".ssh/known_hosts", ".ssh/known_hosts2"];

/// The settings of ssh, below the home directory.
const SSH_SETTINGS: &str = ".ssh/config";

/// Variables that name directories in which git, ssh and helpers find files of the user's.
const DIRECTORIES: [&str; 4] = ["HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"];

/// As much of the settings of ssh is looked through.
const MOST_BYTES: u64 = 1 << 20;

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
    match (scheme, env.get("HOME").filter(|home| !home.is_empty())) {
        (Scheme::Ssh, Some(home)) => check_ssh(Path::new(home)),
        _ => Ok(()),
    }
}

/// A workspace may be below such a directory, but not the other way round.
fn check_directory(path: &OsStr) -> Result<(), UntrustedFileError> {
    match trusted_file::look_at(Path::new(path)) {
        Err(UntrustedFileError::Look { .. }) | Ok(()) => Ok(()),
        Err(error) => Err(error),
    }
}

/// The files that ssh reads of the user's, and those that the lines of its settings name.
fn check_ssh(home: &Path) -> Result<(), UntrustedFileError> {
    for name in KNOWN_HOSTS {
        trusted_file::expect(&home.join(name), Role::File)?;
    }
    let settings = home.join(SSH_SETTINGS);
    if trusted_file::expect(&settings, Role::File)? != Found::File {
        return Ok(());
    }
    let mut text = Vec::new();
    let read = trusted_file::open(&settings)?.take(MOST_BYTES).read_to_end(&mut text);
    read.map_err(|error| {
        let source = Errno::from_io_error(&error).unwrap_or(Errno::IO);
        UntrustedFileError::Look { path: settings, source }
    })?;
    check_texts(text.split(|byte| *byte == b'\n').map(OsStr::from_bytes))
}
