//! Paths named by a text that controls a program of the host: an argument, a variable, a setting, a first line.

mod expansion;
mod wildcards;

use crate::trusted_file::PathRole;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Bytes that separate paths.
const BETWEEN: &[u8] = b" \t\r\n:;,='\"()<>|&`[]{}@";

/// Bytes that separate words with wildcards.
const BETWEEN_NAMES: &[u8] = b" \t\r\n;='\"()<>|&`";

/// Variables that name a directory of the user's: a workspace may be below it, but not the other way round.
const USER_DIRECTORIES: [&str; 9] = [
    "HOME",
    "TMPDIR",
    "TMP",
    "TEMP",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_CACHE_HOME",
    "XDG_RUNTIME_DIR",
];

/// The variables that a program is given, by which its texts may name paths.
#[derive(Debug, Default)]
pub(crate) struct Variables(BTreeMap<String, String>);

// === impl Variables ===

impl Variables {
    pub(crate) fn of(variables: impl IntoIterator<Item = (String, String)>) -> Self {
        Self(variables.into_iter().collect())
    }

    /// Returns the way in which the paths in the value of a variable are used.
    pub(crate) fn role_of(name: &str) -> PathRole {
        match USER_DIRECTORIES.contains(&name) {
            true => PathRole::UserDirectory,
            false => PathRole::Mentioned,
        }
    }
}

/// Returns the paths in a text, which a program may read or run: also below the values of variables, users and tokens, and
/// those that wildcards match. A relative path begins at the root, where programs of the host start. Values that a shell
/// gives to variables which the program isn't given are not seen, except for those of the user's directories.
pub(crate) fn paths_in(text: &OsStr, variables: &Variables) -> Vec<PathBuf> {
    let mut paths = Vec::new();
    for spelling in spellings(text.as_bytes()) {
        note_paths(&spelling, false, &mut paths);
        variables.readings(&spelling).iter().for_each(|reading| note_paths(reading, true, &mut paths));
    }
    paths
}

/// The forms of a text in which a path may stand: as it is, with its `%2F` decoded, and without what quotes it.
pub(crate) fn spellings(text: &[u8]) -> Vec<Vec<u8>> {
    let is_quote = |byte: &u8| matches!(byte, b'\\' | b'\'' | b'"');
    let unquoted = text.iter().copied().filter(|byte| !is_quote(byte)).collect();
    let mut spellings = vec![text.to_vec(), percent_decoded(text), unquoted];
    spellings.dedup();
    spellings
}

/// Adds the paths in a text. `is_read` means that variables and tokens have their values, so that what is left of them
/// matches all names.
fn note_paths(text: &[u8], is_read: bool, paths: &mut Vec<PathBuf>) {
    let value = text.iter().position(|byte| *byte == b'=').and_then(|at| text.get(at + 1..));
    let whole = [Some(text), value].into_iter().flatten();
    let mut parts: Vec<&[u8]> = whole.chain(text.split(|byte| BETWEEN.contains(byte))).collect();
    // `-fFILE`
    let of_flags: Vec<&[u8]> = parts
        .iter()
        .filter(|part| part.starts_with(b"-"))
        .filter_map(|part| part.get(part.iter().position(|byte| *byte == b'/')?..))
        .collect();
    parts.extend(of_flags);
    // Text in quotes is one word, whatever it contains.
    for quotes in [b"\"".as_slice(), b"'", b"\"'"] {
        parts.extend(text.split(|byte| quotes.contains(byte)));
    }
    let escaped = with_escaped_blanks(text);
    parts.extend(escaped.iter().map(Vec::as_slice));
    // `[ab]` and `{a,b}` are one name.
    parts.extend(text.split(|byte| BETWEEN_NAMES.contains(byte)).filter(|_| is_read));
    for path in parts.into_iter().filter_map(path_of) {
        let matching = if is_read { wildcards::matches(&path) } else { Vec::new() };
        for path in std::iter::once(path).chain(matching) {
            if !paths.contains(&path) {
                paths.push(path);
            }
        }
    }
}

/// The words of a text in which a backslash makes blanks part of a name, as in `my\ link/x`.
fn with_escaped_blanks(text: &[u8]) -> Vec<Vec<u8>> {
    let mut words = vec![Vec::new()];
    let mut left = text.iter().copied();
    while let Some(byte) = left.next() {
        let Some(word) = words.last_mut() else { break };
        match byte {
            b'\\' => word.extend(left.next()),
            byte if BETWEEN.contains(&byte) => words.push(Vec::new()),
            byte => word.push(byte),
        }
    }
    words.retain(|word| word.contains(&b' '));
    words
}

/// The path that one word means: it begins at the root, or where the program starts.
fn path_of(word: &[u8]) -> Option<PathBuf> {
    let path = Path::new(OsStr::from_bytes(word));
    if path.is_absolute() {
        return Some(path.to_owned());
    }
    if word.iter().any(|byte| BETWEEN.contains(byte)) || word.starts_with(b"-") {
        return None;
    }
    // Only root can make another name at the root. Most other words with a slash are no paths, and may be secrets.
    let begins_there = |first: &OsStr| Path::new("/").join(first).symlink_metadata().is_ok();
    let is_there = word.contains(&b'/') && path.iter().next().is_some_and(begins_there);
    is_there.then(|| Path::new("/").join(path))
}

fn percent_decoded(text: &[u8]) -> Vec<u8> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut left = text;
    while let Some((first, rest)) = left.split_first() {
        let digits = (*first == b'%').then(|| rest.get(..2)).flatten();
        let value = digits.and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        decoded.push(value.unwrap_or(*first));
        left = if value.is_some() { rest.get(2..).unwrap_or_default() } else { rest };
    }
    decoded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(text: &str, variables: &[(&str, &str)]) -> Vec<String> {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let paths = paths_in(OsStr::new(text), &Variables::of(variables)).into_iter();
        paths.map(|path| path.display().to_string()).collect()
    }

    #[test]
    fn every_path_in_an_argument_is_extracted() {
        for argument in [
            "/w/env.sh",
            "--env=/w/env.sh",
            ". /w/env.sh; print",
            "a:/w/env.sh",
            "'/w/env.sh'",
            "-f/w/env.sh",
            "/w/e\\nv.sh",
            "file:%2Fw/env.sh",
        ] {
            assert!(seen(argument, &[]).contains(&"/w/env.sh".to_owned()), "{argument}");
        }
        for argument in ["etc/env.sh", "sh etc/env.sh"] {
            assert!(seen(argument, &[]).contains(&"/etc/env.sh".to_owned()), "{argument}");
        }
        assert_eq!(seen("no-such-directory/env.sh", &[]), [""; 0]);
        for argument in
            ["--env=/w/a b", ". \"/w/a b\"; x", ". '/w/a b'", ". /w/a\\ b; x", "sh -c \". '/w/a b'\""]
        {
            assert!(seen(argument, &[]).contains(&"/w/a b".to_owned()), "{argument}");
        }
        assert!(seen("/w/a b", &[]).contains(&"/w/a b".to_owned()));
        assert_eq!(seen("print --format=text env.sh", &[]), [""; 0]);
    }

    #[test]
    fn variables_in_arguments_are_expanded() {
        let variables = [("A", "/w"), ("HOME", "/h")];
        for text in ["$A/x", "${A}/x", ". \"$A/x\"", "${A:-/y}/x", "a:$A/x"] {
            assert!(seen(text, &variables).contains(&"/w/x".to_owned()), "{text}");
            // The control: no such variable.
            assert!(!seen(text, &[]).contains(&"/w/x".to_owned()), "{text}");
        }
        for text in ["~/x", "$HOME/x", "${HOME}/x"] {
            assert!(seen(text, &variables).contains(&"/h/x".to_owned()), "{text}");
        }
        assert!(!seen("$AB/x", &variables).contains(&"/w/x".to_owned()));
    }

    #[test]
    fn home_directories_are_recognised_in_every_spelling() {
        let variables = [("HOME", "/h")];
        for text in [
            ". ${HOME}/x; echo k",
            "!sh ${HOME}/x",
            "sh \"${HOME}\"/x",
            "sh \"$HOME\"/x",
            "sh ${HOME%/}/x",
            "sh ${A:-$HOME}/x",
            "-S sh \"${HOME}/x\"",
            "sh ${A:-${HOME}}/x",
            "ssh -F ~/x",
            "ssh -F~/x",
            "ssh -F${HOME}/x",
            "Match exec \"sh %d/x\"",
            "IdentityFile=%d/x",
            "%h/x",
        ] {
            assert!(seen(text, &variables).contains(&"/h/x".to_owned()), "{text}");
            // The control: another home.
            assert!(!seen(text, &[("HOME", "/g")]).contains(&"/h/x".to_owned()), "{text}");
        }
        for text in ["a~/x", "ProxyCommand nc %h %p", "cd $HOME", "date +%d/x", "/a/%d/x"] {
            assert!(!seen(text, &variables).iter().any(|path| path.starts_with("/h/")), "{text}");
        }
        // A user without an account has no home but that of the variable.
        if let Some(own) = crate::accounts::own() {
            let below = |name: &str| own.home.join(name).display().to_string();
            for text in [format!("~{}/x", own.name), format!("a: ~{}/x", own.name), "~/x".to_owned()] {
                assert!(seen(&text, &variables).contains(&below("x")), "{text}");
            }
            assert!(!seen("~no-such-user/x", &variables).contains(&below("x")));
            assert!(seen("/home/%u/x", &[]).contains(&format!("/home/{}/x", own.name)));
        }
        // A token that stands for something else matches all names.
        assert!(seen("Include /et%n/passwd", &[]).contains(&"/etc/passwd".to_owned()));
        assert!(seen("sh /et[c]/pass*", &[]).contains(&"/etc/passwd".to_owned()));
    }
}
