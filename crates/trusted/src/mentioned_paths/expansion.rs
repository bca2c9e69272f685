//! Expansion of the names of variables, users and tokens by shells, Git, ssh and their settings: `$NAME`, `${NAME}`, `~`,
//! `~NAME`, `%d`.

use super::{BETWEEN, USER_DIRECTORIES, Variables};
use crate::accounts;
use std::borrow::Cow;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// Variables with the user's name.
const USER_NAMES: [&str; 2] = ["USER", "LOGNAME"];

/// Value of a variable.
struct VariableValue<'v> {
    value: Cow<'v, [u8]>,
    /// True if the variable is the user's own, which counts where a path goes on below it.
    is_of_user: bool,
}

/// Replacement for the beginning of a text.
struct TextReplacement<'v> {
    value: Cow<'v, [u8]>,
    /// Length of what it replaces.
    length: usize,
}

// === impl Variables ===

impl Variables {
    /// Returns the possible meanings of a text, one for each home directory that the program may take for its user's.
    pub(super) fn readings(&self, text: &[u8]) -> Vec<Vec<u8>> {
        let given = self.0.get("HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
        let mut homes: Vec<PathBuf> = given.into_iter().chain(accounts::homes_of_process()).collect();
        homes.dedup();
        let mut readings: Vec<Vec<u8>> = match homes.is_empty() {
            true => vec![self.expanded(text, None)],
            false => homes.iter().map(|home| self.expanded(text, Some(home))).collect(),
        };
        // `${X:-${HOME}}/x`
        let is_brace = |byte: &u8| matches!(byte, b'{' | b'}');
        let bare = |text: &Vec<u8>| text.iter().copied().filter(|byte| !is_brace(byte)).collect::<Vec<u8>>();
        let without_braces: Vec<Vec<u8>> =
            readings.iter().filter(|text| text.iter().any(is_brace)).map(bare).collect();
        readings.extend(without_braces);
        readings.dedup();
        readings
    }

    fn expanded(&self, text: &[u8], home: Option<&Path>) -> Vec<u8> {
        let mut expanded = Vec::with_capacity(text.len());
        let mut at = 0;
        while let (Some(first), Some(left)) = (text.get(at), text.get(at..)) {
            let found = match first {
                b'$' => self.variable_at(left, home),
                b'%' => token_at(left, begins_word(text, at), home),
                b'~' if begins_word(text, at) => home_at(left, home),
                _ => None,
            };
            match found {
                Some(TextReplacement { value, length }) => {
                    expanded.extend_from_slice(&value);
                    at += length;
                }
                None => {
                    expanded.push(*first);
                    at += 1;
                }
            }
        }
        expanded
    }

    /// The value of the variable that a text begins with.
    fn variable_at(&self, text: &[u8], home: Option<&Path>) -> Option<TextReplacement<'_>> {
        let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let behind = text.strip_prefix(b"$")?;
        let inner = behind.strip_prefix(b"{").unwrap_or(behind);
        let end = inner.iter().position(|byte| !is_of_name(byte)).unwrap_or(inner.len());
        let (name, rest) = inner.split_at_checked(end)?;
        let VariableValue { value, is_of_user } = self.held(std::str::from_utf8(name).ok()?, home)?;
        let rest = match inner.len() < behind.len() {
            // The text behind the name in the braces gives the result without a value.
            true => rest.iter().position(|byte| *byte == b'}').and_then(|at| rest.get(at + 1..))?,
            false => rest,
        };
        let goes_on = rest.iter().find(|byte| **byte != b'}') == Some(&b'/');
        (goes_on || !is_of_user).then(|| TextReplacement { value, length: text.len() - rest.len() })
    }

    fn held(&self, name: &str, home: Option<&Path>) -> Option<VariableValue<'_>> {
        let is_of_user = !self.0.contains_key(name);
        if name == "HOME" {
            return home.map(|home| VariableValue { value: bytes(home.to_owned()), is_of_user });
        }
        if let Some(given) = self.0.get(name) {
            return Some(VariableValue { value: Cow::Borrowed(given.as_bytes()), is_of_user });
        }
        let own = |is_of_user| {
            let value = std::env::var_os(name).filter(|value| !value.is_empty())?;
            Some(VariableValue { value: Cow::Owned(value.into_vec()), is_of_user })
        };
        match name {
            name if USER_DIRECTORIES.contains(&name) => own(true),
            name if USER_NAMES.contains(&name) => own(false),
            _ => None,
        }
    }
}

/// Returns true if a word begins at this position, or goes on behind an option (`-F~/x`).
fn begins_word(text: &[u8], at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default();
    let word = before.rsplit(|byte| BETWEEN.contains(byte)).next().unwrap_or_default();
    word.is_empty() || word.starts_with(b"-")
}

/// `~/` and `~NAME/`, without the slash.
fn home_at<'v>(text: &[u8], home: Option<&Path>) -> Option<TextReplacement<'v>> {
    let length = text.iter().position(|byte| *byte == b'/')?;
    let home = match text.get(1..length)? {
        b"" => home?.to_owned(),
        name => accounts::named(std::str::from_utf8(name).ok().filter(|name| is_user_name(name))?)?.home,
    };
    Some(TextReplacement { value: bytes(home), length })
}

fn is_user_name(name: &str) -> bool {
    name.chars().all(|char| char.is_alphanumeric() || matches!(char, '_' | '-' | '.' | '$'))
}

/// Expands a token of ssh: the home directory (others call it `%h`), the user's name and number, a percent sign. The server
/// that is called decides about the others, so they match all names.
fn token_at<'v>(text: &[u8], begins_word: bool, home: Option<&Path>) -> Option<TextReplacement<'v>> {
    let value = match (text.get(1)?, text.get(2)) {
        (b'd' | b'h', Some(b'/')) if begins_word => bytes(home?.to_owned()),
        (b'u', _) => Cow::Owned(accounts::own()?.name.clone().into_bytes()),
        (b'i', _) => Cow::Owned(rustix::process::getuid().as_raw().to_string().into_bytes()),
        (b'%', _) => Cow::Borrowed(b"%".as_slice()),
        _ => return None,
    };
    Some(TextReplacement { value, length: 2 })
}

fn bytes<'v>(path: PathBuf) -> Cow<'v, [u8]> {
    Cow::Owned(path.into_os_string().into_vec())
}
