//! Remotes that agents may use through the host's git: one, or all below a URL.

use super::{InvalidRemote, Remote};
use std::fmt;

/// Pattern of remotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemotePattern {
    /// One remote.
    One(Remote),
    /// All below a URL that ends with a slash, or with the colon of `user@host:`.
    Below(RemoteBaseUrl),
}

/// Base URL of remotes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteBaseUrl {
    /// Any remote below the URL.
    example: Remote,
    /// Prefix of the paths.
    beginning: String,
}

/// Repository name that makes a base URL a complete remote for parsing.
const SOME: &str = "x";

// === impl RemotePattern ===

impl RemotePattern {
    /// Parses a pattern. Directories of the host are refused.
    ///
    /// # Errors
    /// [`InvalidRemote`].
    pub fn parse(text: &str) -> Result<Self, InvalidRemote> {
        if !text.ends_with(['/', ':']) {
            return Remote::parse(text, false).map(Self::One);
        }
        let example = Remote::parse(&format!("{text}{SOME}"), false)?;
        let beginning = example.path().trim_end_matches(SOME).to_owned();
        Ok(Self::Below(RemoteBaseUrl { example, beginning }))
    }

    /// Returns true if a remote matches.
    pub fn matches(&self, remote: &Remote) -> bool {
        match self {
            Self::One(one) => one == remote,
            // A server may decode a path to one that leads elsewhere.
            Self::Below(RemoteBaseUrl { example, beginning }) => {
                example.is_beside(remote)
                    && remote.path().starts_with(beginning.as_str())
                    && !remote.path().contains('%')
            }
        }
    }
}

impl fmt::Display for RemotePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::One(remote) => remote.fmt(f),
            Self::Below(RemoteBaseUrl { example, .. }) => {
                f.write_str(example.to_string().trim_end_matches(SOME))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn matches(pattern: &str, url: &str) -> bool {
        RemotePattern::parse(pattern).unwrap().matches(&Remote::parse(url, true).unwrap())
    }

    #[test]
    fn remote_pattern_is_one_repository_or_all_below_a_url() {
        assert!(matches("https://git.example/team/", "https://git.example/team/app.git"));
        assert!(matches("https://git.example/", "https://git.example:443/team/app.git"));
        assert!(matches("https://git.example/team/app.git", "https://GIT.example/team/app.git"));
        assert!(matches("git@git.example:team/", "git@git.example:team/app.git"));
        assert!(matches("git@git.example:", "git@git.example:team/app.git"));
        assert!(matches("ssh://git@git.example/team/", "ssh://git@git.example/team/app.git"));
    }

    #[test]
    fn remote_pattern_matches_nothing_outside_its_base_url() {
        for url in [
            "https://git.example/team",
            "https://git.example/teams/app.git",
            "https://git.example/other/app.git",
            "https://git.example/team/%2e%2e/other/app.git",
            "https://git.example:8443/team/app.git",
            "https://other.example/team/app.git",
            "ssh://git.example/team/app.git",
            "git@git.example:team/app.git",
            "file:///team/app.git",
        ] {
            assert!(!matches("https://git.example/team/", url), "{url}");
        }
        assert!(!matches("https://git.example/team/app.git", "https://git.example/team/app.git/more"));
        assert!(!matches("git@git.example:team/", "ssh://git@git.example/team/app.git"));
        assert!(!matches("git@git.example:team/", "other@git.example:team/app.git"));
    }

    #[test]
    fn invalid_base_url_is_no_remote_pattern() {
        for text in
            ["", "/", ":", "git.example/", "file:///srv/", "https://", "https://a:b@git.example/", "**"]
        {
            assert!(RemotePattern::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_pattern_reads_as_it_was_written() {
        for text in ["https://git.example/team/", "git@git.example:", "https://git.example/team/app.git"] {
            assert_eq!(RemotePattern::parse(text).unwrap().to_string(), text);
        }
    }
}
