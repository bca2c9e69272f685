//! Names of images, read as engines read them.
//!
//! ```text
//! debian            docker.io/library/debian:latest
//! team/tools:1      docker.io/team/tools:1
//! localhost/a@…     localhost/a@sha256:…           what comes first is a registry if it has a `.` or a `:`, or is `localhost`
//! ```

use std::fmt;

/// The name of an image, with everything that an engine would add to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageReference {
    registry: String,
    repository: String,
    tag: Option<String>,
    digest: Option<String>,
}

/// A text that names no image.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid image name `{text}`: {why}")]
pub struct InvalidImage {
    /// The text.
    pub text: String,
    /// Reason why it is not accepted.
    pub why: &'static str,
}

/// Pattern for schemas of the texts that [`ImageReference::parse`] accepts. A test compares both.
pub const PATTERN: &str = concat!(
    "^(",
    // A registry and a path there; a path whose first part is no registry; one name.
    "(localhost|[a-z0-9]([a-z0-9-]*[a-z0-9])?(\\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)+)(:[1-9][0-9]{0,4})?(/[a-z0-9]+((\\.|__?|-+)[a-z0-9]+)*)+",
    "|[a-z0-9]([a-z0-9-]*[a-z0-9])?:[1-9][0-9]{0,4}(/[a-z0-9]+((\\.|__?|-+)[a-z0-9]+)*)+",
    "|[a-z0-9]+((__?|-+)[a-z0-9]+)*(/[a-z0-9]+((\\.|__?|-+)[a-z0-9]+)*)+",
    "|[a-z0-9]+((\\.|__?|-+)[a-z0-9]+)*",
    ")(:[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(@sha256:[0-9a-f]{64})?$",
);

/// Maximum length of a name, with its tag and its digest.
pub const LONGEST_NAME: usize = 512;

/// Registry of references that name none.
pub const USUAL_REGISTRY: &str = "docker.io";

/// Alternative name of [`USUAL_REGISTRY`].
pub const ITS_OTHER_NAME: &str = "index.docker.io";

/// Prefix of repositories there whose reference has only one component.
pub const OFFICIAL: &str = "library/";

const USUAL_TAG: &str = "latest";
const LONGEST_TAG: usize = 128;

// === impl ImageReference ===

impl ImageReference {
    /// Parses a name.
    ///
    /// # Errors
    /// [`InvalidImage`] for a name that no engine accepts.
    pub fn parse(text: &str) -> Result<Self, InvalidImage> {
        let invalid = |why| InvalidImage { text: text.to_owned(), why };
        if text.len() > LONGEST_NAME {
            return Err(invalid("it is longer than 512 characters"));
        }
        let (named, digest) =
            text.split_once('@').map_or((text, None), |(named, digest)| (named, Some(digest)));
        if !digest.is_none_or(is_digest) {
            return Err(invalid("the digest after @ must be `sha256:` and 64 digits of 0-9 and a-f"));
        }
        // A colon before the last slash is that of a port.
        let (path, tag) = match named.rsplit_once(':') {
            Some((path, tag)) if !tag.contains('/') => (path, Some(tag)),
            _ => (named, None),
        };
        if !tag.is_none_or(is_tag) {
            return Err(invalid(
                "a tag is 1 to 128 letters, digits, `_`, `.` and `-`, and must not begin with `.` or `-`",
            ));
        }
        let (registry, repository) = place(path).map_err(invalid)?;
        let tag = match (tag, digest) {
            (None, None) => Some(USUAL_TAG),
            (tag, _) => tag,
        };
        Ok(Self { registry, repository, tag: tag.map(str::to_owned), digest: digest.map(str::to_owned) })
    }

    /// Returns true if the reference has a digest, and so always names the same image.
    pub fn is_pinned(&self) -> bool {
        self.digest.is_some()
    }

    /// Returns the registry.
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// Returns the repository within the registry.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// Returns the tag. It has no meaning beside a digest.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// Its digest.
    pub fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }
}

/// Writes the full name, as engines accept it. A tag beside a digest has no meaning, and is left out.
impl fmt::Display for ImageReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.repository)?;
        match (&self.digest, &self.tag) {
            (Some(digest), _) => write!(f, "@{digest}"),
            (None, Some(tag)) => write!(f, ":{tag}"),
            (None, None) => Ok(()),
        }
    }
}

/// The registry and the repository of a path without tag and digest.
fn place(path: &str) -> Result<(String, String), &'static str> {
    let is_registry = |part: &str| part.contains(['.', ':']) || part == "localhost";
    let (registry, repository) = match path.split_once('/') {
        Some((first, rest)) if is_registry(first) => (first, rest),
        _ => (USUAL_REGISTRY, path),
    };
    let registry = if registry == ITS_OTHER_NAME { USUAL_REGISTRY } else { registry };
    if !is_host(registry) {
        return Err("a registry is a host in lower case, optionally with a port");
    }
    if repository.is_empty() || !repository.split('/').all(is_component) {
        return Err("its parts are lower-case letters and digits, with `.`, `_`, `__` or `-` between them");
    }
    let is_official = registry == USUAL_REGISTRY && !repository.contains('/');
    let repository = if is_official { format!("{OFFICIAL}{repository}") } else { repository.to_owned() };
    Ok((registry.to_owned(), repository))
}

fn is_host(text: &str) -> bool {
    let (host, port) = text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
    let is_label = |label: &str| {
        let is_end = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        let bytes = label.as_bytes();
        is_end(bytes.first())
            && is_end(bytes.last())
            && bytes.iter().all(|byte| byte.is_ascii_digit() || byte.is_ascii_lowercase() || *byte == b'-')
    };
    let is_port =
        |port: &str| port.parse::<u16>().is_ok_and(|number| number > 0 && port == number.to_string());
    host.split('.').all(is_label) && port.is_none_or(is_port)
}

/// Letters and digits, with single separators between them: `.`, `_`, `__`, or any number of `-`.
fn is_component(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_digit() || c.is_ascii_lowercase();
    let is_separator = |text: &str| {
        matches!(text, "." | "_" | "__") || (!text.is_empty() && text.bytes().all(|byte| byte == b'-'))
    };
    let separators = text.split(is_plain).filter(|part| !part.is_empty());
    text.starts_with(is_plain) && text.ends_with(is_plain) && separators.into_iter().all(is_separator)
}

fn is_tag(text: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (1..=LONGEST_TAG).contains(&text.len())
        && text.bytes().next().is_some_and(is_word)
        && text.bytes().all(|byte| is_word(byte) || matches!(byte, b'.' | b'-'))
}

fn is_digest(text: &str) -> bool {
    let is_hex =
        |hex: &str| hex.len() == 64 && hex.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    text.strip_prefix("sha256:").is_some_and(is_hex)
}

#[cfg(test)]
mod tests;
