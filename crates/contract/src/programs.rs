//! The list of the only programs that can be started in a sandbox.

use crate::text::is_printable;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// Programs by name: files in any of a sandbox's program directories. An empty list allows no program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct ProgramList(BTreeSet<String>);

/// The names are no list of programs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseProgramsError {
    /// The name can't be a program's.
    #[error(
        "invalid program name {name:?}: expected 1 to {LONGEST} bytes of printable text without a slash, \
    and not `.` or `..`"
    )]
    Name {
        /// The name, cut off where it is too long.
        name: String,
    },
    /// There are too many.
    #[error("{count} programs; a list has at most {MOST}")]
    TooMany {
        /// Number of names.
        count: usize,
    },
}

/// Maximum length of a name in bytes, as on every file system.
pub const LONGEST: usize = 255;

/// A list has no more names.
pub const MOST: usize = 1024;

// === impl ProgramList ===

impl ProgramList {
    /// Creates a list; repeated names are merged.
    ///
    /// # Errors
    /// [`ParseProgramsError`] for the first name that can't be a program's, or for too many.
    pub fn new(names: impl IntoIterator<Item = String>) -> Result<Self, ParseProgramsError> {
        let names: BTreeSet<String> = names.into_iter().collect();
        if names.len() > MOST {
            return Err(ParseProgramsError::TooMany { count: names.len() });
        }
        match names.iter().find(|name| !is_name(name)) {
            None => Ok(Self(names)),
            Some(name) => Err(ParseProgramsError::Name { name: name.chars().take(LONGEST).collect() }),
        }
    }

    /// The names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(String::as_str)
    }

    /// Returns true if the list has that name.
    pub fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }

    /// Returns the names that are in both lists.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self(self.0.intersection(&other.0).cloned().collect())
    }
}

impl TryFrom<Vec<String>> for ProgramList {
    type Error = ParseProgramsError;

    fn try_from(names: Vec<String>) -> Result<Self, Self::Error> {
        Self::new(names)
    }
}

impl From<ProgramList> for Vec<String> {
    fn from(list: ProgramList) -> Self {
        list.0.into_iter().collect()
    }
}

fn is_name(text: &str) -> bool {
    text.len() <= LONGEST && is_printable(text) && !text.contains('/') && !matches!(text, "." | "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(names: &[&str]) -> Result<ProgramList, ParseProgramsError> {
        ProgramList::new(names.iter().map(|&name| name.to_owned()))
    }

    #[test]
    fn program_list_accepts_names_and_rejects_paths() {
        assert_eq!(list(&["sh", "[", "g++", "sh"]).unwrap().names().collect::<Vec<_>>(), ["[", "g++", "sh"]);
        assert_eq!(list(&[]).unwrap().names().count(), 0);
        for bad in ["", "/bin/sh", "a/b", ".", "..", "a\0b", "a\nb", &"x".repeat(LONGEST + 1)] {
            assert!(matches!(list(&["sh", bad]), Err(ParseProgramsError::Name { .. })), "{bad:?}");
        }
        list(&[&"x".repeat(LONGEST)]).unwrap();
    }

    #[test]
    fn program_list_length_is_limited() {
        let many = |count: usize| ProgramList::new((0..count).map(|number| format!("program{number}")));
        many(MOST).unwrap();
        assert_eq!(many(MOST + 1), Err(ParseProgramsError::TooMany { count: MOST + 1 }));
    }

    #[test]
    fn deserialized_program_list_is_validated() {
        assert_eq!(serde_json::from_str::<ProgramList>(r#"["b","a"]"#).unwrap(), list(&["a", "b"]).unwrap());
        assert!(serde_json::from_str::<ProgramList>(r#"["../a"]"#).is_err());
        assert_eq!(serde_json::to_string(&list(&["b", "a"]).unwrap()).unwrap(), r#"["a","b"]"#);
    }

    #[test]
    fn program_list_and_is_the_intersection() {
        let both = list(&["a", "b"]).unwrap().and(&list(&["b", "c"]).unwrap());
        assert_eq!(both, list(&["b"]).unwrap());
    }
}
