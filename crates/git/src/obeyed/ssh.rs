//! Settings files of ssh, with all files that they include or a command line names (`ssh -F FILE`).

use super::super::environment::HostEnv;
use belljar_trusted::accounts;
use belljar_trusted::command::{check_texts, paths_named_in};
use belljar_trusted::trusted_file::{self, PathRole, PathState, UntrustedFileError};
use rustix::io::Errno;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Lists of trusted server keys, below the home directory.
const KNOWN_HOSTS: [&str; 2] = [".ssh/known_hosts", ".ssh/known_hosts2"];

/// The user's settings file, below the home directory, and the base of relative names in it.
const OF_USER: (&str, &str) = (".ssh/config", "~/.ssh");

/// The system-wide settings file, and the base of relative names in it.
const OF_SYSTEM: (&str, &str) = ("/etc/ssh/ssh_config", "/etc/ssh");

/// Maximum size of a settings file, in bytes.
const MOST_BYTES: u64 = 1 << 20;

/// Maximum number of settings files.
const MOST_FILES: usize = 1_000;

/// A settings file. Included files have the same base of relative names as the first file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct SshConfigFile {
    file: PathBuf,
    base: &'static str,
}

/// Checks the user's files that ssh reads, and those that its settings name. ssh takes the home directory from the user's
/// account; other programs may take it from `HOME`, so both are checked.
pub(super) fn check(env: &HostEnv, command: Option<&str>) -> Result<(), UntrustedFileError> {
    let variable = env.get("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    let homes: BTreeSet<PathBuf> = variable.into_iter().chain(accounts::homes_of_process()).collect();
    for home in &homes {
        for name in KNOWN_HOSTS {
            trusted_file::expect(&home.join(name), PathRole::File)?;
        }
    }
    let source = |file, base| SshConfigFile { file, base };
    let of_user = homes.iter().map(|home| source(home.join(OF_USER.0), OF_USER.1));
    let of_system = [source(OF_SYSTEM.0.into(), OF_SYSTEM.1)];
    let of_command = named_files(command.unwrap_or_default()).into_iter();
    check_settings(of_user.chain(of_system).chain(of_command.map(|file| source(file, OF_USER.1))).collect())
}

fn check_settings(mut pending: Vec<SshConfigFile>) -> Result<(), UntrustedFileError> {
    let mut seen = BTreeSet::new();
    while let Some(source) = pending.pop() {
        if !seen.insert(source.clone()) {
            continue;
        }
        if seen.len() > MOST_FILES {
            return Err(UntrustedFileError::Look { path: source.file, source: Errno::TOOBIG });
        }
        let text = read(&source.file)?;
        let is_obeyed = |line: &&[u8]| !line.trim_ascii_start().starts_with(b"#");
        let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').filter(is_obeyed).collect();
        check_texts(lines.iter().copied().map(OsStr::from_bytes))?;
        for line in lines {
            let files = included(&String::from_utf8_lossy(line), source.base);
            pending.extend(files.into_iter().map(|file| SshConfigFile { file, base: source.base }));
        }
    }
    Ok(())
}

/// Reads a settings file; empty if it doesn't exist.
fn read(path: &Path) -> Result<Vec<u8>, UntrustedFileError> {
    if trusted_file::expect(path, PathRole::File)? != PathState::File {
        return Ok(Vec::new());
    }
    let look = |source| UntrustedFileError::Look { path: path.to_owned(), source };
    let mut text = Vec::new();
    let read = trusted_file::open(path)?.take(MOST_BYTES + 1).read_to_end(&mut text);
    read.map_err(|error| look(Errno::from_io_error(&error).unwrap_or(Errno::IO)))?;
    match text.len() as u64 > MOST_BYTES {
        true => Err(look(Errno::FBIG)),
        false => Ok(text),
    }
}

/// Returns the files that a line includes.
fn included(line: &str, base: &str) -> Vec<PathBuf> {
    let words = words(line);
    let Some((keyword, patterns)) = words.split_first() else { return Vec::new() };
    if !keyword.eq_ignore_ascii_case("include") {
        return Vec::new();
    }
    let begins = |pattern: &String| pattern.starts_with(['/', '~', '$', '%']);
    let relative = patterns.iter().filter(|pattern| !begins(pattern)).map(|name| format!("{base}/{name}"));
    let patterns = patterns.iter().cloned().chain(relative);
    patterns.flat_map(|pattern| paths_named_in(OsStr::new(&pattern))).collect()
}

/// Returns the settings files that a command line names: `-F FILE`, `-FFILE`, `-vF FILE`. A word with blanks may be a command
/// line itself (`sh -c '…'`).
fn named_files(command: &str) -> Vec<PathBuf> {
    let outer = words(command);
    let inner = outer.iter().filter(|word| word.contains(char::is_whitespace)).map(|word| words(word));
    let mut files = Vec::new();
    for words in inner.chain([outer.clone()]) {
        for (at, word) in words.iter().enumerate() {
            let file = word.strip_prefix('-').and_then(|options| options.split_once('F'));
            let file = match file.map(|(_, file)| file) {
                None => continue,
                Some("") => words.get(at + 1).map_or("", String::as_str),
                Some(file) => file,
            };
            files.extend(paths_named_in(OsStr::new(file)));
        }
    }
    files
}

/// Splits a line at blanks and `=`, and removes quotes.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut quote) = (vec![String::new()], None);
    let mut chars = line.chars().peekable();
    while let Some(char) = chars.next() {
        let Some(word) = words.last_mut() else { break };
        match char {
            '\\' if chars.peek().is_some_and(|next| matches!(next, '\\' | '"' | '\'' | ' ')) => {
                word.extend(chars.next());
            }
            char if quote == Some(char) => quote = None,
            '"' | '\'' if quote.is_none() => quote = Some(char),
            char if quote.is_none() && (char.is_whitespace() || char == '=') => words.push(String::new()),
            char => word.push(char),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn ssh_config_includes_are_resolved() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name).display().to_string();
        for name in ["a b/x.conf", "conf.d/work", "conf.d/home"] {
            std::fs::create_dir_all(place.path().join(name).parent().unwrap()).unwrap();
            std::fs::write(place.path().join(name), "").unwrap();
        }
        let base: &'static str = Box::leak(place.path().display().to_string().into_boxed_str());
        for (line, file) in [
            (format!("Include {}", at("conf.d/work")), "conf.d/work"),
            (format!("\tinclude={}", at("conf.d/work")), "conf.d/work"),
            (format!("INCLUDE /none \"{}\"", at("conf.d/work")), "conf.d/work"),
            (format!("\"Include\" {}", at("conf.d/w?rk")), "conf.d/work"),
            ("Include conf.d/*".to_owned(), "conf.d/home"),
            ("Include conf.d/%n".to_owned(), "conf.d/home"),
            ("Include \"a b/x.conf\"".to_owned(), "a b/x.conf"),
            ("Include \"a b/*.conf\"".to_owned(), "a b/x.conf"),
        ] {
            assert!(included(&line, base).contains(&at(file).into()), "{line}");
        }
        for line in ["Match exec conf.d/work", "IncludeX conf.d/work", "", "#Include conf.d/work"] {
            assert_eq!(included(line, base), [""; 0].map(PathBuf::from), "{line}");
        }
    }

    #[test]
    fn config_file_of_an_ssh_command_line_is_checked() {
        for command in [
            "ssh -F /c",
            "ssh -F/c",
            "ssh -4vF /c",
            "ssh -F '/c'",
            "sh -c 'ssh -F /c x'",
            "env A=b ssh -F \"/c\"",
        ] {
            let found = named_files(command);
            assert!(found.contains(&"/c".into()), "{command} {found:?}");
        }
        assert_eq!(named_files("ssh -i /c -o Port=2"), [""; 0].map(PathBuf::from));
    }

    #[test]
    fn ssh_config_naming_a_program_writable_by_others_is_rejected() {
        let place = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str, mode: u32| {
            let path = place.path().join(name);
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            path
        };
        let checked = |mode: u32| {
            let program = write("x.sh", "", mode).display().to_string();
            let inner =
                write("inner", &format!("Match exec \"sh {program}\"\n"), 0o644).display().to_string();
            let outer = write("outer", &format!("Host a\n  Include {inner}\n"), 0o644);
            check_settings(vec![SshConfigFile { file: outer, base: OF_USER.1 }])
        };
        assert!(matches!(checked(0o666), Err(UntrustedFileError::Mode { .. })));
        checked(0o644).unwrap();
        let long = write("long", &"# long\n".repeat(200_000), 0o644);
        let refused = check_settings(vec![SshConfigFile { file: long, base: OF_USER.1 }]);
        assert!(matches!(refused, Err(UntrustedFileError::Look { source: Errno::FBIG, .. })), "{refused:?}");
    }
}
