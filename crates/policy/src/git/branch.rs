//! Names of branches that a sandbox's work may be pushed to.

use std::fmt;

/// A branch: `refs/heads/` and this name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchName(String);

/// Text that is no such branch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidBranch {
    /// It is none, or one that somebody reads otherwise.
    #[error(
        "{name:?} is no name of a branch: letters, digits, `.`, `_`, `+`, `-`, in parts with `/` between them"
    )]
    Name {
        /// The text.
        name: String,
    },
    /// It is one that others build on or that something is deployed from.
    #[error("{name:?} is a branch that others build on; nothing of a sandbox is pushed there")]
    Protected {
        /// The text.
        name: String,
    },
}

const LONGEST: usize = 200;

/// Branches that others build on wherever they are, and that something is deployed from in many places.
const PROTECTED: [&str; 11] = [
    "main",
    "master",
    "trunk",
    "default",
    "develop",
    "development",
    "production",
    "prod",
    "staging",
    "stable",
    "gh-pages",
];

/// All that is below these.
const PROTECTED_BELOW: [&str; 4] = ["release/", "releases/", "hotfix/", "deploy/"];

// === impl BranchName ===

impl BranchName {
    /// Reads one; stricter than git.
    ///
    /// # Errors
    /// [`InvalidBranch`].
    pub fn parse(text: &str) -> Result<Self, InvalidBranch> {
        let folded = text.to_ascii_lowercase();
        if !is_branch_name(text) {
            return Err(InvalidBranch::Name { name: text.to_owned() });
        }
        let is_protected = PROTECTED.contains(&folded.as_str())
            || PROTECTED_BELOW.iter().any(|above| folded.starts_with(above));
        match is_protected {
            true => Err(InvalidBranch::Protected { name: text.to_owned() }),
            false => Ok(Self(text.to_owned())),
        }
    }

    /// Its name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The ref that it is.
    pub fn reference(&self) -> String {
        format!("refs/heads/{}", self.0)
    }
}

impl fmt::Display for BranchName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether a text names a branch that everybody reads as one. Whether anything may be pushed there is another question.
pub fn is_branch_name(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./+".contains(&byte);
    let is_part = |part: &str| {
        let has_hidden_end = part.to_ascii_lowercase().ends_with(".lock") || part.ends_with('.');
        !(part.is_empty() || part.starts_with(['.', '-', '+']) || has_hidden_end || part.contains(".."))
    };
    let folded = text.to_ascii_lowercase();
    (1..=LONGEST).contains(&text.len())
        && text.bytes().all(is_allowed)
        && text.split('/').all(is_part)
        // Who writes that means another name than it would be.
        && !matches!(folded.split('/').next(), Some("refs" | "heads" | "tags" | "remotes" | "head"))
        && !looks_like_an_object(&folded)
}

/// A branch that is called as an object is taken for it by many a program.
fn looks_like_an_object(folded: &str) -> bool {
    matches!(folded.len(), 40 | 64) && folded.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_branch_is_a_plain_name_that_nobody_builds_on() {
        for good in ["belljar/0192f0c1", "fix-1", "a/b.c", "main-fix", "feature/main", "x+y_z"] {
            assert_eq!(BranchName::parse(good).unwrap().reference(), format!("refs/heads/{good}"));
        }
        for bad in [
            "",
            "-x",
            "a b",
            "a..b",
            "a:b",
            "+a",
            "a~1",
            "a^",
            "@",
            "@{u}",
            "/a",
            "a/",
            "a//b",
            ".a",
            "a/.b",
            "a.lock",
            "a.LOCK/b",
            "a.",
            "HEAD",
            "refs/heads/a",
            "refs/tags/a",
            "tags/v1",
            "heads/a",
            "a\n",
            "a\0",
            "a*",
            "a?",
            "a[",
            "a\\b",
            "bücher",
            "a/-b",
            "0123456789abcdef0123456789abcdef01234567",
        ] {
            assert!(matches!(BranchName::parse(bad), Err(InvalidBranch::Name { .. })), "{bad:?}");
        }
        for protected in ["main", "MASTER", "trunk", "release/1", "Releases/1", "gh-pages", "production"] {
            let denied = BranchName::parse(protected);
            assert!(matches!(denied, Err(InvalidBranch::Protected { .. })), "{protected:?}");
        }
    }
}
