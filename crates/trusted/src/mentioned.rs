//! The paths that a text names by which a program of the host's is told what to do: an argument, a variable, a setting, a first line.

use crate::trusted_file::Role;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// What stands between paths.
const BETWEEN: &[u8] = b" \t\r\n:;,='\"()<>|&`[]{}@";

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

    /// In which way the paths in the value of a variable are named.
    pub(crate) fn role_of(name: &str) -> Role {
        match USER_DIRECTORIES.contains(&name) {
            true => Role::UserDirectory,
            false => Role::Mentioned,
        }
    }

    /// The home directories that a program may take for its own: the one that it is given, and that of this process, which is the
    /// user's.
    fn homes(&self) -> impl Iterator<Item = PathBuf> {
        let given = self.0.get("HOME").map(PathBuf::from);
        let own = std::env::var_os("HOME").map(PathBuf::from);
        given.into_iter().chain(own).filter(|home| !home.as_os_str().is_empty())
    }

    /// The text as a shell or a configuration would read it: `$NAME` and `${NAME}` are their values. Returns `None` if it names none.
    fn expanded(&self, text: &[u8]) -> Option<Vec<u8>> {
        let mut expanded = Vec::with_capacity(text.len());
        let (mut left, mut is_changed) = (text, false);
        while let Some((first, rest)) = left.split_first() {
            let found = (*first == b'$').then(|| self.named_at(rest)).flatten();
            match found {
                Some((value, rest)) => {
                    expanded.extend_from_slice(value.as_bytes());
                    left = rest;
                    is_changed = true;
                }
                None => {
                    expanded.push(*first);
                    left = rest;
                }
            }
        }
        is_changed.then_some(expanded)
    }

    /// The value of the variable whose name stands first in a text, and what follows it.
    fn named_at<'t>(&self, text: &'t [u8]) -> Option<(&str, &'t [u8])> {
        let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let inner = text.strip_prefix(b"{").unwrap_or(text);
        let end = inner.iter().position(|byte| !is_of_name(byte)).unwrap_or(inner.len());
        let (name, rest) = inner.split_at_checked(end)?;
        let value = self.0.get(std::str::from_utf8(name).ok()?)?;
        match inner.len() < text.len() {
            // What stands behind the name in the braces says what is meant without a value.
            true => rest.iter().position(|byte| *byte == b'}').and_then(|at| rest.get(at + 1..)),
            false => Some(rest),
        }
        .map(|rest| (value.as_str(), rest))
    }
}

/// The paths in a text, which a program may read or run. One that is relative begins at the root, where programs of the host's start.
/// What a shell makes of other variables isn't seen.
pub(crate) fn paths_in(text: &OsStr, variables: &Variables) -> Vec<PathBuf> {
    let bytes = text.as_bytes();
    let expanded = variables.expanded(bytes);
    let mut paths = Vec::new();
    for text in spellings(bytes).iter().chain(expanded.iter()) {
        note_paths(text, variables, &mut paths);
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

fn note_paths(text: &[u8], variables: &Variables, paths: &mut Vec<PathBuf>) {
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
    for path in parts.into_iter().flat_map(|part| paths_of(part, variables)) {
        if !paths.contains(&path) {
            paths.push(path);
        }
    }
}

/// The paths that one word means: it begins at the root, at a home directory, or where the program starts.
fn paths_of(word: &[u8], variables: &Variables) -> Vec<PathBuf> {
    let path = |bytes: &[u8]| PathBuf::from(OsStr::from_bytes(bytes));
    if word.starts_with(b"/") {
        return vec![path(word)];
    }
    let below = ["~/", "$HOME/", "${HOME}/"].iter().find_map(|home| word.strip_prefix(home.as_bytes()));
    if let Some(below) = below {
        return variables.homes().map(|home| home.join(path(below))).collect();
    }
    if word.iter().any(|byte| BETWEEN.contains(byte)) || word.starts_with(b"-") {
        return Vec::new();
    }
    // Only root can make another name at the root. Most other words with a slash are no paths, and may be secrets.
    let from_root = Path::new("/").join(path(word));
    let begins_there = |first: &OsStr| Path::new("/").join(first).symlink_metadata().is_ok();
    match word.contains(&b'/') && path(word).iter().next().is_some_and(begins_there) {
        true => vec![from_root],
        false => Vec::new(),
    }
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
    fn every_path_that_an_argument_holds_is_seen() {
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
        assert!(seen("--env=/w/a b", &[]).contains(&"/w/a b".to_owned()));
        assert!(seen("/w/a b", &[]).contains(&"/w/a b".to_owned()));
        assert_eq!(seen("print --format=text env.sh", &[]), [""; 0]);
    }

    #[test]
    fn variables_that_a_program_is_given_stand_for_their_values() {
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
}
