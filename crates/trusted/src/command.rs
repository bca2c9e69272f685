//! A program of the host's that a configuration or a policy names, such as one that prints a credential.
//!
//! It must do what the host's user means by it, whatever sandboxes write. So it doesn't start in the working directory, which often is
//! a workspace; what is in a workspace isn't on its search path; and variables by which runtimes load code, or that name a workspace,
//! are taken away.

use crate::named::paths_in;
use crate::trusted_file::{self, UntrustedFileError};
use crate::workspaces::Workspaces;
use rustix::fs::Access;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The beginnings of the names of variables by which loaders, shells and runtimes find code.
const OF_CODE: [&str; 17] = [
    "LD_",
    "DYLD_",
    "BASH_",
    "ENV",
    "ZDOTDIR",
    "PYTHON",
    "PERL5",
    "PERLLIB",
    "RUBY",
    "GEM_",
    "BUNDLE_",
    "NODE_",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "_JAVA_OPTIONS",
    "LUA_",
    "GIT_",
];

/// The working directory's names, which are the caller's.
const OF_PLACE: [&str; 2] = ["PWD", "OLDPWD"];

/// A command as it is to be run, each of its files checked at this moment, with those variables of this process that are harmless.
///
/// # Errors
/// One of the kind [`io::ErrorKind::PermissionDenied`] that holds an [`UntrustedFileError`], if a sandbox or another user could decide
/// what it does; the system's, if there is no such program.
pub fn command(argv: &[OsString]) -> io::Result<Command> {
    let mut command = bare(argv, &std::env::var_os("PATH").unwrap_or_default())?;
    let variables = std::env::vars_os().filter(|(name, _)| name != "PATH" && !is_of_code(name));
    command.envs(harmless(variables));
    Ok(command)
}

/// The same with no variables but the search path, of which those directories are left that no other user and no sandbox can write.
///
/// # Errors
/// As [`command`].
pub fn bare(argv: &[OsString], search_path: &OsStr) -> io::Result<Command> {
    let (name, arguments) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let search_path = trusted_search_path(search_path);
    let program = match name.as_bytes().contains(&b'/') {
        true => PathBuf::from(name),
        false => on(&search_path, name)?,
    };
    trusted_file::check(&program)?;
    if let Some(interpreter) = interpreter(&program) {
        trusted_file::check(&interpreter)?;
    }
    check_texts(arguments.iter().map(OsString::as_os_str))?;
    let mut command = Command::new(program);
    let search_path = std::env::join_paths(&search_path).map_err(|_| io::ErrorKind::InvalidInput)?;
    command.args(arguments).current_dir("/").env_clear().env("PATH", search_path);
    Ok(command)
}

/// Checks texts by which a program of the host's is told what to do, such as arguments and settings: the files that they name are none
/// that a sandbox or another user could write.
///
/// # Errors
/// [`UntrustedFileError`] for the first text that names such a file.
pub fn check_texts<'t>(texts: impl IntoIterator<Item = &'t OsStr>) -> Result<(), UntrustedFileError> {
    let workspaces = Workspaces::now();
    for text in texts {
        workspaces.refuse(text)?;
        paths_in(text).iter().try_for_each(|path| trusted_file::check_argument(path))?;
    }
    Ok(())
}

/// Those variables whose value names nothing that a sandbox writes.
pub fn harmless<N, V: AsRef<OsStr>>(
    variables: impl IntoIterator<Item = (N, V)>,
) -> impl Iterator<Item = (N, V)> {
    let workspaces = Workspaces::now();
    variables.into_iter().filter(move |(_, value)| !workspaces.are_named_in(value.as_ref()))
}

/// The directories of a search path into which no sandbox and no other user can put a program.
pub fn trusted_search_path(search_path: &OsStr) -> Vec<PathBuf> {
    let all = std::env::split_paths(search_path);
    all.filter(|path| path.is_absolute() && trusted_file::check_directory(path).is_ok()).collect()
}

fn on(search_path: &[PathBuf], name: &OsStr) -> io::Result<PathBuf> {
    let is_program = |path: &PathBuf| path.is_file() && rustix::fs::access(path, Access::EXEC_OK).is_ok();
    let found = search_path.iter().map(|directory| directory.join(name)).find(is_program);
    found.ok_or_else(|| {
        let told = "no such program in those directories of the search path that neither sandboxes nor other users can write";
        io::Error::new(io::ErrorKind::NotFound, told)
    })
}

/// What the first line of a script names.
fn interpreter(program: &Path) -> Option<PathBuf> {
    /// The kernel reads no more.
    const LONGEST_LINE: u64 = 256;
    let mut begin = Vec::new();
    File::open(program).ok()?.take(LONGEST_LINE).read_to_end(&mut begin).ok()?;
    let line = begin.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?.trim_ascii_start();
    let name = line.split(u8::is_ascii_whitespace).next().filter(|name| !name.is_empty())?;
    Some(PathBuf::from(OsStr::from_bytes(name)))
}

fn is_of_code(name: &OsStr) -> bool {
    let name = name.as_bytes();
    OF_PLACE.iter().any(|known| name == known.as_bytes())
        || OF_CODE.iter().any(|known| match *known {
            "ENV" => name == b"ENV",
            known => name.starts_with(known.as_bytes()),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_by_which_runtimes_load_code_are_taken_away_and_others_stay() {
        for name in ["LD_PRELOAD", "PYTHONPATH", "NODE_OPTIONS", "ENV", "BASH_ENV", "GIT_CONFIG_COUNT", "PWD"]
        {
            assert!(is_of_code(OsStr::new(name)), "{name}");
        }
        for name in ["HOME", "PATH", "ENVIRONMENT", "AWS_PROFILE", "VAULT_ADDR", "SSH_AUTH_SOCK", "LANG"] {
            assert!(!is_of_code(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn a_program_starts_at_the_root_with_what_is_said() {
        let printed = command(&["pwd".into()]).unwrap().output().unwrap();
        assert_eq!(printed.stdout, b"/\n");
        assert_eq!(command(&["no-such-program-here".into()]).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(command(&[]).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
