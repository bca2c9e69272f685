//! A program of the host's that a configuration or a policy names, such as one that prints a credential.
//!
//! It must do what the host's user means by it, whatever sandboxes write. So it doesn't start in the working directory,
//! which often is a workspace. Directories in a workspace aren't on its search path. Variables by which runtimes load code,
//! or that name a workspace, are removed.

use crate::mentioned_paths::{Variables, paths_in};
use crate::trusted_file::{self, PathRole, UntrustedFileError};
use crate::workspaces::Workspaces;
use rustix::fs::Access;
use std::collections::BTreeMap;
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

/// The first line of a script: what interprets it, and what that is given before the script.
struct FirstLine {
    interpreter: PathBuf,
    argument: OsString,
}

/// The working directory's names, which are the caller's.
const OF_PLACE: [&str; 2] = ["PWD", "OLDPWD"];

/// Maximum number of programs of which each is interpreted by the next. The kernel has a limit, too.
const MOST_INTERPRETERS: usize = 8;

/// Returns a command that is ready to run, each of its files checked at this moment, with the harmless variables of this
/// process.
///
/// # Errors
/// One of the kind [`io::ErrorKind::PermissionDenied`] that holds an [`UntrustedFileError`], if a sandbox or another user could decide
/// what it does; the system's, if there is no such program.
pub fn command(argv: &[OsString]) -> io::Result<Command> {
    let mut command = bare(argv, &std::env::var_os("PATH").unwrap_or_default(), &BTreeMap::new())?;
    let variables = std::env::vars_os().filter(|(name, _)| name != "PATH" && !is_of_code(name));
    command.envs(harmless(variables));
    Ok(command)
}

/// Returns a command with no variables except the search path and those that the configuration gives it. The search path
/// keeps only directories that no other user and no sandbox can write. Each given variable is checked as an argument is.
///
/// # Errors
/// The errors of [`command`].
pub fn bare(argv: &[OsString], search_path: &OsStr, given: &BTreeMap<String, String>) -> io::Result<Command> {
    let (name, arguments) = argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let search_path = trusted_search_path(search_path);
    let program = match name.as_bytes().contains(&b'/') {
        true => PathBuf::from(name),
        false => on(&search_path, name)?,
    };
    let variables = Variables::of(given.clone());
    let arguments: Vec<&OsStr> = arguments.iter().map(OsString::as_os_str).collect();
    let of_arguments = arguments.iter().map(|text| (*text, PathRole::Mentioned));
    let of_variables = given.iter().map(|(name, value)| (OsStr::new(value), Variables::role_of(name)));
    check_all(of_arguments.chain(of_variables), &variables)?;
    check_program(&program, &arguments, &search_path, MOST_INTERPRETERS)?;
    let mut command = Command::new(program);
    let search_path = std::env::join_paths(&search_path).map_err(|_| io::ErrorKind::InvalidInput)?;
    command.args(arguments).current_dir("/").env_clear().env("PATH", search_path).envs(given);
    Ok(command)
}

/// Checks texts that control a program of the host, such as arguments and settings: no file that they name may be writable
/// by a sandbox or another user.
///
/// # Errors
/// [`UntrustedFileError`] for the first text that names such a file.
pub fn check_texts<'t>(texts: impl IntoIterator<Item = &'t OsStr>) -> Result<(), UntrustedFileError> {
    check_all(texts.into_iter().map(|text| (text, PathRole::Mentioned)), &Variables::default())
}

/// Returns the paths named by a text that controls a program of the host, including those that wildcards match.
pub fn paths_named_in(text: &OsStr) -> Vec<PathBuf> {
    paths_in(text, &Variables::default())
}

fn check_all<'t>(
    texts: impl IntoIterator<Item = (&'t OsStr, PathRole)>,
    variables: &Variables,
) -> Result<(), UntrustedFileError> {
    let workspaces = Workspaces::now();
    for (text, role) in texts {
        workspaces.refuse(text)?;
        let paths = paths_in(text, variables);
        paths.iter().try_for_each(|path| trusted_file::check_argument(path, role))?;
    }
    Ok(())
}

/// Checks a program, what its first line names, and the interpreter, which may be a script itself; of `env` also the program that it
/// starts.
fn check_program(path: &Path, arguments: &[&OsStr], search_path: &[PathBuf], left: usize) -> io::Result<()> {
    trusted_file::check(path)?;
    let left = left.checked_sub(1).ok_or_else(|| {
        let told = format!("{} is interpreted by too many programs; name the last of them", path.display());
        io::Error::new(io::ErrorKind::InvalidInput, told)
    })?;
    if let Some(FirstLine { interpreter, argument }) = FirstLine::of(path) {
        check_texts([argument.as_os_str()])?;
        let words = argument.as_bytes().split(u8::is_ascii_whitespace).map(OsStr::from_bytes);
        let words: Vec<&OsStr> = words.filter(|word| !word.is_empty()).collect();
        check_program(&interpreter, &words, search_path, left)?;
    }
    if path.file_name() == Some(OsStr::new("env")) {
        for started in started_by_env(arguments, search_path) {
            check_program(&started, &[], search_path, left)?;
        }
    }
    Ok(())
}

/// The programs that words given to `env` may mean.
fn started_by_env(arguments: &[&OsStr], search_path: &[PathBuf]) -> Vec<PathBuf> {
    let words = arguments.iter().flat_map(|argument| argument.as_bytes().split(u8::is_ascii_whitespace));
    // `-Sname`
    let words = words.map(|word| word.strip_prefix(b"-S").unwrap_or(word)).map(OsStr::from_bytes);
    let program = |word: &OsStr| match word.as_bytes().contains(&b'/') {
        true => Some(Path::new("/").join(word)).filter(|path| path.is_file()),
        false => on(search_path, word).ok(),
    };
    words.filter(|word| !word.is_empty()).filter_map(program).collect()
}

/// Returns the variables whose value names no file that a sandbox writes.
pub fn harmless<N, V: AsRef<OsStr>>(
    variables: impl IntoIterator<Item = (N, V)>,
) -> impl Iterator<Item = (N, V)> {
    let workspaces = Workspaces::now();
    variables.into_iter().filter(move |(_, value)| !workspaces.are_named_in(value.as_ref()))
}

/// Returns the directories of a search path into which no sandbox and no other user can put a program.
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

// === impl FirstLine ===

impl FirstLine {
    /// Reads it as the kernel does. Returns `None` for what is no such script, or can't be read.
    fn of(program: &Path) -> Option<Self> {
        /// The kernel reads no more.
        const LONGEST_LINE: u64 = 256;
        let is_space = |byte: &u8| matches!(byte, b' ' | b'\t');
        let mut begin = Vec::new();
        File::open(program).ok()?.take(LONGEST_LINE).read_to_end(&mut begin).ok()?;
        let line = begin.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?.trim_ascii_start();
        let end = line.iter().position(is_space).unwrap_or(line.len());
        let (name, argument) = line.split_at_checked(end).filter(|(name, _)| !name.is_empty())?;
        // It starts at the root.
        let interpreter = Path::new("/").join(OsStr::from_bytes(name));
        Some(Self { interpreter, argument: OsStr::from_bytes(argument.trim_ascii()).to_owned() })
    }
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
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn code_loading_variables_are_removed_and_other_variables_stay() {
        for name in ["LD_PRELOAD", "PYTHONPATH", "NODE_OPTIONS", "ENV", "BASH_ENV", "GIT_CONFIG_COUNT", "PWD"]
        {
            assert!(is_of_code(OsStr::new(name)), "{name}");
        }
        for name in ["HOME", "PATH", "ENVIRONMENT", "AWS_PROFILE", "VAULT_ADDR", "SSH_AUTH_SOCK", "LANG"] {
            assert!(!is_of_code(OsStr::new(name)), "{name}");
        }
    }

    #[test]
    fn script_shebang_line_and_each_interpreter_are_checked() {
        let place = tempfile::tempdir().unwrap();
        let script = |name: &str, line: &str| {
            let path = place.path().join(name);
            std::fs::write(&path, format!("{line}\nexit 0\n")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
            path.into_os_string()
        };
        let open = place.path().join("open.sh");
        std::fs::write(&open, "").unwrap();
        std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o666)).unwrap();
        let bad = script("bad", &format!("#!/bin/sh {}", open.display()));
        let lines = [
            format!("#!/bin/sh {}", open.display()),
            format!("#!/usr/bin/env -S sh {}", open.display()),
            format!("#!/usr/bin/env -S A={} sh", open.display()),
            format!("#!{}", open.display()),
            format!("#!{} -x", bad.display()),
            format!("#!/usr/bin/env {}", bad.display()),
        ];
        for line in lines {
            let refused = command(&[script("a", &line)]).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied, "{line}: {refused}");
        }
        let itself = place.path().join("a");
        let refused = command(&[script("a", &format!("#!{}", itself.display()))]).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::InvalidInput, "{refused}");
        // The controls.
        for line in ["#!/bin/sh -e", "#!/usr/bin/env sh", "#!/usr/bin/env -S sh -e", "# plain"] {
            command(&[script("a", line)]).unwrap();
        }
    }

    #[test]
    fn configured_variables_are_checked_like_arguments() {
        let place = tempfile::tempdir().unwrap();
        let (open, closed) = (place.path().join("open.sh"), place.path().join("closed.sh"));
        for (path, mode) in [(&open, 0o666), (&closed, 0o644)] {
            std::fs::write(path, "").unwrap();
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let given = |value: String| {
            let place = ("PLACE".to_owned(), place.path().display().to_string());
            bare(&["/bin/sh".into()], OsStr::new("/bin"), &BTreeMap::from([("X".to_owned(), value), place]))
        };
        let forms = |path: &Path| {
            let path = path.display().to_string();
            let name = path.rsplit('/').next().unwrap_or_default();
            [
                format!("/etc:{path}"),
                format!("--require {path}"),
                format!("$PLACE/{name}"),
                path[1..].to_owned(),
            ]
        };
        for value in forms(&open) {
            let refused = given(value.clone()).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied, "{value}: {refused}");
        }
        // The control.
        forms(&closed).into_iter().for_each(|value| drop(given(value).unwrap()));
    }

    #[test]
    fn trusted_command_starts_in_the_root_directory() {
        let printed = command(&["pwd".into()]).unwrap().output().unwrap();
        assert_eq!(printed.stdout, b"/\n");
        assert_eq!(command(&["no-such-program-here".into()]).unwrap_err().kind(), io::ErrorKind::NotFound);
        assert_eq!(command(&[]).unwrap_err().kind(), io::ErrorKind::InvalidInput);
    }
}
