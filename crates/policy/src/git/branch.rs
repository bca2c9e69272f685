//! Names of branches that a sandbox's work may be pushed to.

use std::fmt;

/// Branch: `refs/heads/` and this name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BranchName(String);

/// Reason why a text is no such branch.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidBranch {
    /// The text is no branch name, or some programs read it as something else.
    #[error(
        "{name:?} is not a valid branch name: use letters, digits, `.`, `_`, `+` and `-`, with `/` between parts"
    )]
    Name {
        /// The text.
        name: String,
    },
    /// The branch is one that others build on, or that is deployed from.
    #[error("{name:?} is a protected branch; push to another branch")]
    Protected {
        /// The text.
        name: String,
    },
}

const LONGEST: usize = 200;

/// Branches that others usually build on, or that are often deployed from.
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

/// Prefixes of such branches.
const PROTECTED_BELOW: [&str; 4] = ["release/", "releases/", "hotfix/", "deploy/"];

// === impl BranchName ===

impl BranchName {
    /// Parses a branch name; stricter than git.
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

    /// Returns the name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the full ref.
    pub fn reference(&self) -> String {
        format!("refs/heads/{}", self.0)
    }
}

impl fmt::Display for BranchName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns true if all programs read the text as the same branch name. It may still be protected from pushes.
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
        // The author of such a name probably means another ref.
        && !matches!(folded.split('/').next(), Some("refs" | "heads" | "tags" | "remotes" | "head"))
        && !looks_like_an_object(&folded)
}

/// Returns true for a branch name that looks like an object id; many programs take it for one.
fn looks_like_an_object(folded: &str) -> bool {
    matches!(folded.len(), 40 | 64) && folded.bytes().all(|byte| byte.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branch_is_a_plain_name_and_not_a_protected_one() {
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

    fn is_protected(text: &str) -> bool {
        matches!(BranchName::parse(text), Err(InvalidBranch::Protected { .. }))
    }

    #[test]
    fn protected_branch_is_refused_in_any_case() {
        for name in PROTECTED {
            assert!(is_protected(name) && is_protected(&name.to_ascii_uppercase()), "{name}");
            for other in [format!("{name}-fix"), format!("my-{name}"), format!("fix/{name}")] {
                assert_eq!(BranchName::parse(&other).map(|branch| branch.0), Ok(other));
            }
        }
        for above in PROTECTED_BELOW {
            for below in [format!("{above}1"), format!("{above}a/b"), format!("{above}1").to_uppercase()] {
                assert!(is_protected(&below), "{below}");
            }
            for other in
                [above.trim_end_matches('/').to_owned(), format!("my-{above}1"), format!("a/{above}1")]
            {
                assert!(BranchName::parse(&other).is_ok(), "{other}");
            }
        }
    }

    #[test]
    fn branch_name_is_at_most_200_characters_and_no_object_id() {
        let hex = "0123456789abcdef".repeat(5);
        for good in [
            &"x".repeat(200),
            "x",
            &hex[..39],
            &hex[..41],
            &hex[..63],
            &hex[..65],
            &format!("{}x", &hex[..39]),
        ] {
            assert!(is_branch_name(good), "{good}");
        }
        for bad in [&"x".repeat(201), "", &hex[..40], &hex[..64], &hex[..40].to_uppercase()] {
            assert!(!is_branch_name(bad), "{bad}");
        }
    }

    #[test]
    fn branch_characters_are_forbidden_only_where_git_interprets_them() {
        for (good, bad) in [
            ("a.b", "a."),
            ("a.b/c", "a./c"),
            ("a.b", ".b"),
            ("a-b", "-b"),
            ("a+b", "+b"),
            ("a.b.c", "a..c"),
            ("a.locked", "a.lock"),
            ("lock", "a.Lock"),
            ("a/refs", "refs/a"),
            ("a/heads", "heads/a"),
            ("a/tags", "Tags/a"),
            ("a/remotes", "remotes/a"),
            ("a/head", "head"),
            ("a/b", "a//b"),
            ("a_b", "a,b"),
        ] {
            assert!(is_branch_name(good), "{good}");
            assert!(!is_branch_name(bad), "{bad}");
        }
    }

    #[test]
    fn branch_name_displays_as_written() {
        let branch = BranchName::parse("Fix/Login").unwrap();
        assert_eq!((branch.as_str(), branch.to_string().as_str()), ("Fix/Login", "Fix/Login"));
        assert_eq!(branch.reference(), "refs/heads/Fix/Login");
    }
}
