//! Where a clone is from: `URL`, or `URL#REF`.

/// An address that may be cloned from, and what is wanted of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    url: String,
    scheme: Scheme,
    reference: String,
}

/// Why nothing is cloned from there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OriginError {
    /// It is reached in a way that isn't allowed.
    #[error(
        "{url:?} can't be cloned: https:// and ssh:// addresses can, http:// ones of this machine, and file:// with --allow-file-clone"
    )]
    Scheme {
        /// The address.
        url: String,
    },
    /// It has a password in it, which whoever lists processes would see.
    #[error(
        "the address has a password in it; the host's git gets passwords from its credential helper or GIT_ASKPASS"
    )]
    Password,
    /// What is wanted is not the name of anything.
    #[error("{reference:?} is no branch, tag or commit")]
    Reference {
        /// The text.
        reference: String,
    },
}

/// How it is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scheme {
    Https,
    Http,
    Ssh,
    File,
}

// === impl Origin ===

impl Origin {
    /// Reads one. Directories of the host are an origin only for whoever says so.
    ///
    /// # Errors
    /// [`OriginError`].
    pub fn parse(text: &str, allows_files: bool) -> Result<Self, OriginError> {
        let (url, reference) = text.rsplit_once('#').unwrap_or((text, "HEAD"));
        let unknown = || OriginError::Scheme { url: url.to_owned() };
        let is_plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if !is_plain(url) || url.starts_with('-') {
            return Err(unknown());
        }
        let scheme = match url.split_once("://") {
            Some(("https", rest)) if has_host(rest) => Scheme::Https,
            Some(("http", rest)) if is_of_this_machine(rest) => Scheme::Http,
            Some(("ssh", rest)) if has_host(rest) => Scheme::Ssh,
            Some(("file", path)) if allows_files && path.starts_with('/') => Scheme::File,
            None if is_short_ssh(url) => Scheme::Ssh,
            _ => return Err(unknown()),
        };
        if has_password(url) {
            return Err(OriginError::Password);
        }
        match is_reference(reference) {
            true => Ok(Self { url: url.to_owned(), scheme, reference: reference.to_owned() }),
            false => Err(OriginError::Reference { reference: reference.to_owned() }),
        }
    }

    /// The address.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The branch, tag or commit.
    pub fn reference(&self) -> &str {
        &self.reference
    }

    /// Settings for git under which it goes there, and nowhere else that an answer may send it to.
    pub(super) fn settings(&self) -> Vec<String> {
        let scheme = match self.scheme {
            Scheme::Https => "https",
            Scheme::Http => "http",
            Scheme::Ssh => "ssh",
            Scheme::File => "file",
        };
        let settings = ["protocol.allow=never".to_owned(), format!("protocol.{scheme}.allow=always")];
        settings.into_iter().flat_map(|setting| ["-c".to_owned(), setting]).collect()
    }
}

/// Who is asked, behind a user and before a port and a path.
fn host_of(rest: &str) -> &str {
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    match host.strip_prefix('[') {
        Some(address) => address.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    }
}

/// A host with a hyphen in front would be an option to ssh.
fn has_host(rest: &str) -> bool {
    let host = host_of(rest);
    !host.is_empty() && !host.starts_with('-') && !rest.starts_with('-')
}

fn is_of_this_machine(rest: &str) -> bool {
    let host = host_of(rest);
    let is_loopback = host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback());
    is_loopback || host == "localhost"
}

/// `user@host:path`, as git takes it for an address of ssh.
fn is_short_ssh(url: &str) -> bool {
    let Some((authority, path)) = url.split_once(':') else { return false };
    let Some((user, host)) = authority.split_once('@') else { return false };
    let is_name = |text: &str| {
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        !text.is_empty() && !text.starts_with('-') && text.bytes().all(is_allowed)
    };
    // Two colons are the address of a helper, a program of its own.
    is_name(user) && is_name(host) && !path.is_empty() && !path.starts_with([':', '-'])
}

fn has_password(url: &str) -> bool {
    let authority = url.split_once("://").map(|(_, rest)| rest.split(['/', '?']).next().unwrap_or_default());
    let user = authority.and_then(|authority| authority.rsplit_once('@')).map(|(user, _)| user);
    user.is_some_and(|user| user.contains(':'))
}

/// Stricter than git: no name of another repository's object is lost by that.
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
    fn addresses_that_git_reaches_safely_are_origins() {
        let read = |text: &str| Origin::parse(text, false).map(|origin| (origin.url, origin.reference));
        let url = |url: &str, reference: &str| Ok((url.to_owned(), reference.to_owned()));
        assert_eq!(read("https://example.com/a.git"), url("https://example.com/a.git", "HEAD"));
        assert_eq!(read("https://example.com/a#v1.0"), url("https://example.com/a", "v1.0"));
        assert_eq!(read("git@example.com:a/b.git#x/y"), url("git@example.com:a/b.git", "x/y"));
        assert_eq!(read("ssh://git@example.com:22/a"), url("ssh://git@example.com:22/a", "HEAD"));
        assert_eq!(read("http://127.0.0.1:8000/a"), url("http://127.0.0.1:8000/a", "HEAD"));
        assert_eq!(read("http://[::1]/a"), url("http://[::1]/a", "HEAD"));
        assert!(Origin::parse("file:///srv/a", true).is_ok());
    }

    #[test]
    fn others_are_not_whatever_git_would_make_of_them() {
        let refused = [
            "",
            "/srv/a",
            "a",
            "../a",
            "file:///srv/a",
            "http://example.com/a",
            "http://127.0.0.1.example.com/a",
            "http://127.0.0.1@example.com/a",
            "git://example.com/a",
            "ext::sh -c true",
            "ext::sh",
            "fd::17",
            "--upload-pack=true",
            "-a@b:c",
            "ssh://-oProxyCommand=true/a",
            "ssh://git@-oProxyCommand=true/a",
            "git@-oProxyCommand:a",
            "git@example.com::a",
            "https:///a",
            "HTTPS://example.com/a",
            "https://example.com/a b",
            "https://example.com/a\n",
        ];
        for url in refused {
            assert!(matches!(Origin::parse(url, false), Err(OriginError::Scheme { .. })), "{url:?}");
        }
        let password = Origin::parse("https://user:token@example.com/a", false);
        assert_eq!(password, Err(OriginError::Password));
        for reference in ["", "-x", "+x", "a..b", "a b", "a:b", "a^", "a~1", "@{u}", "/a", "a/", "a*"] {
            let url = format!("https://example.com/a#{reference}");
            assert!(
                matches!(Origin::parse(&url, false), Err(OriginError::Reference { .. })),
                "{reference:?}"
            );
        }
    }
}
