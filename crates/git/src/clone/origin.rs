//! The origin of a clone: `URL`, or `URL#REF`.

use belljar_policy::git::{InvalidRemote, Remote, redact};

/// A repository that may be cloned, and the reference to check out. Default: `HEAD`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    remote: Remote,
    reference: String,
}

/// Reasons why an origin is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OriginError {
    /// The URL is not one that git may connect to.
    #[error("{url:?} {reason}")]
    Remote {
        /// The URL, without secrets.
        url: String,
        /// The defect.
        reason: InvalidRemote,
    },
    /// The reference is not a valid name.
    #[error("{reference:?} is no branch, tag or commit")]
    Reference {
        /// The text.
        reference: String,
    },
}

// === impl Origin ===

impl Origin {
    /// Parses an origin. Directories of the host are accepted only if `allows_files` is true.
    ///
    /// # Errors
    /// [`OriginError`].
    pub fn parse(text: &str, allows_files: bool) -> Result<Self, OriginError> {
        let (url, reference) = text.rsplit_once('#').unwrap_or((text, "HEAD"));
        let unknown = |reason| OriginError::Remote { url: redact(url), reason };
        let remote = Remote::parse(url, allows_files).map_err(unknown)?;
        match is_reference(reference) {
            true => Ok(Self { remote, reference: reference.to_owned() }),
            false => Err(OriginError::Reference { reference: reference.to_owned() }),
        }
    }

    /// Returns the repository's address.
    pub fn remote(&self) -> &Remote {
        &self.remote
    }

    /// Returns the branch, tag or commit.
    pub fn reference(&self) -> &str {
        &self.reference
    }
}

/// Stricter than git's own rules: revision expressions such as `a~1` are rejected.
fn is_reference(text: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./+@=".contains(&byte);
    (1..=256).contains(&text.len())
        && text.bytes().all(is_allowed)
        && !text.starts_with(['-', '/', '.', '+'])
        && !text.ends_with(['/', '.'])
        && !text.contains("..")
        && !text.contains("@{")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clone_url_fragment_selects_the_reference() {
        let read = |text: &str| {
            Origin::parse(text, false).map(|origin| (origin.remote.to_string(), origin.reference)).unwrap()
        };
        let both = |url: &str, reference: &str| (url.to_owned(), reference.to_owned());
        assert_eq!(read("https://example.com/a.git"), both("https://example.com/a.git", "HEAD"));
        assert_eq!(read("https://example.com/a#v1.0"), both("https://example.com/a", "v1.0"));
        assert_eq!(read("git@example.com:a/b.git#x/y"), both("git@example.com:a/b.git", "x/y"));
        for reference in ["", "-x", "+x", "a..b", "a b", "a:b", "a^", "a~1", "@{u}", "/a", "a/", "a*"] {
            let url = format!("https://example.com/a#{reference}");
            let refused = Origin::parse(&url, false);
            assert!(matches!(refused, Err(OriginError::Reference { .. })), "{reference:?}");
        }
    }

    #[test]
    fn unsupported_clone_urls_are_rejected() {
        for url in
            ["", "/srv/a", "file:///srv/a", "git://a/b", "ext::sh -c true", "-a@b:c", "http://example.com/a"]
        {
            assert!(matches!(Origin::parse(url, false), Err(OriginError::Remote { .. })), "{url:?}");
        }
    }

    #[test]
    fn clone_url_error_does_not_repeat_the_password() {
        let refused = Origin::parse("https://user:token@example.com/a", false).unwrap_err();
        let told = refused.to_string();
        assert!(told.contains("contains a user or password") && !told.contains("token@"), "{told}");
    }
}
