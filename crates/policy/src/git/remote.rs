//! Canonical remote repositories. Git gets a URL that is rebuilt from the parsed parts, so that it can't read anything into it
//! that was not checked.

use crate::egress::{Destination, Host, InvalidHost};
use std::fmt;

/// Remote repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    scheme: Scheme,
    /// User at the server. Only for ssh, where it is no secret.
    user: Option<String>,
    /// `None` for a directory of this host.
    destination: Option<Destination>,
    path: String,
    /// True if the path begins at the user's home directory: `user@host:path`.
    is_short: bool,
}

/// Scheme of a remote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// `https://…`
    Https,
    /// `http://…`, on this machine only.
    Http,
    /// `ssh://…` or `user@host:path`.
    Ssh,
    /// `file:///…`
    File,
}

/// Reason why the host's git refuses a remote.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidRemote {
    /// The scheme isn't allowed.
    #[error(
        "can't be used: https:// and ssh:// addresses can, http:// ones of this machine, and file:// where that is allowed"
    )]
    Scheme,
    /// The URL has a user or a password, which is visible in the list of processes.
    #[error(
        "contains a user or password; remove them, and configure git's credential helper or GIT_ASKPASS on the host"
    )]
    Credential,
    /// The host is invalid.
    #[error("has an ambiguous host")]
    Host(#[source] InvalidHost),
    /// The port is invalid.
    #[error("has no port from 1 to 65535")]
    Port,
    /// The user is invalid.
    #[error("has a user with other characters than letters, digits, `.`, `_` and `-`")]
    User,
    /// The path is invalid.
    #[error(
        "has no path, or its path contains `?`, `#`, `..`, `\\` or non-printable or non-ASCII characters"
    )]
    Path,
}

/// Maximum length of a URL in bytes.
const LONGEST: usize = 2048;

// === impl Remote ===

impl Remote {
    /// Parses a remote. Directories of the host are only accepted if `allows_files` is true.
    ///
    /// # Errors
    /// [`InvalidRemote`], with the reason. It never repeats the text, which may contain a password.
    pub fn parse(text: &str, allows_files: bool) -> Result<Self, InvalidRemote> {
        if text.len() > LONGEST || !text.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(InvalidRemote::Path);
        }
        match text.split_once("://") {
            Some(("https", rest)) => Self::web(Scheme::Https, rest),
            Some(("http", rest)) => Self::web(Scheme::Http, rest),
            Some(("ssh", rest)) => Self::ssh(rest),
            Some(("file", path)) if allows_files => Self::file(path),
            Some(_) => Err(InvalidRemote::Scheme),
            None => Self::short(text),
        }
    }

    fn web(scheme: Scheme, rest: &str) -> Result<Self, InvalidRemote> {
        let (authority, path) = split(rest)?;
        if authority.contains('@') {
            return Err(InvalidRemote::Credential);
        }
        let usual = if scheme == Scheme::Https { 443 } else { 80 };
        let destination = destination(authority, usual)?;
        if scheme == Scheme::Http && !is_of_this_machine(&destination.host) {
            return Err(InvalidRemote::Scheme);
        }
        Ok(Self { scheme, user: None, destination: Some(destination), path, is_short: false })
    }

    fn ssh(rest: &str) -> Result<Self, InvalidRemote> {
        let (authority, path) = split(rest)?;
        let (user, host) = match authority.rsplit_once('@') {
            Some((user, _)) if user.contains(':') => return Err(InvalidRemote::Credential),
            Some((user, host)) => (Some(self::user(user)?), host),
            None => (None, authority),
        };
        let destination = Some(destination(host, 22)?);
        Ok(Self { scheme: Scheme::Ssh, user, destination, path, is_short: false })
    }

    /// Parses `user@host:path`. Two colons would select a remote helper, which is a program of its own.
    fn short(text: &str) -> Result<Self, InvalidRemote> {
        let (authority, path) = text.split_once(':').ok_or(InvalidRemote::Scheme)?;
        let (user, host) = authority.split_once('@').ok_or(InvalidRemote::Scheme)?;
        if path.starts_with([':', '-', '/']) || path.is_empty() {
            return Err(InvalidRemote::Scheme);
        }
        let user = self::user(user).map_err(|_| InvalidRemote::Scheme)?;
        let host = Host::parse(host).map_err(|_| InvalidRemote::Scheme)?;
        let path = checked(path)?;
        let destination = Some(Destination { host, port: 22 });
        Ok(Self { scheme: Scheme::Ssh, user: Some(user), destination, path, is_short: true })
    }

    fn file(path: &str) -> Result<Self, InvalidRemote> {
        match path.starts_with('/') {
            true => Ok(Self {
                scheme: Scheme::File,
                user: None,
                destination: None,
                path: checked(path)?,
                is_short: false,
            }),
            false => Err(InvalidRemote::Scheme),
        }
    }

    /// Returns the scheme.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }

    /// Returns the host and port; `None` for a directory.
    pub fn destination(&self) -> Option<&Destination> {
        self.destination.as_ref()
    }

    /// Returns true if another remote has the same scheme, user and host.
    pub(super) fn is_beside(&self, other: &Self) -> bool {
        let Self { scheme, user, destination, is_short, path: _ } = self;
        (scheme, user, destination, is_short)
            == (&other.scheme, &other.user, &other.destination, &other.is_short)
    }

    /// Returns the path, as it is sent to the server.
    pub fn path(&self) -> &str {
        &self.path
    }
}

// URL that git gets. It contains no secret.
impl fmt::Display for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scheme, user, destination, path, is_short } = self;
        let Some(Destination { host, port }) = destination else { return write!(f, "file://{path}") };
        let user = user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
        if *is_short {
            return write!(f, "{user}{host}:{path}");
        }
        write!(f, "{}://{user}{host}", scheme.name())?;
        if *port != scheme.usual_port() {
            write!(f, ":{port}")?;
        }
        f.write_str(path)
    }
}

// === impl Scheme ===

impl Scheme {
    /// Returns the name in URLs and in git's settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Https => "https",
            Self::Http => "http",
            Self::Ssh => "ssh",
            Self::File => "file",
        }
    }

    const fn usual_port(self) -> u16 {
        match self {
            Self::Https => 443,
            Self::Http => 80,
            Self::Ssh => 22,
            Self::File => 0,
        }
    }
}

/// Splits off the path.
fn split(rest: &str) -> Result<(&str, String), InvalidRemote> {
    let end = rest.find('/').ok_or(InvalidRemote::Path)?;
    Ok((&rest[..end], checked(&rest[end..])?))
}

fn checked(path: &str) -> Result<String, InvalidRemote> {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"?#\\\"'`$;&|<>*(){}^".contains(&byte);
    let names = || path.split('/').filter(|name| !name.is_empty());
    let is_name = |name: &str| name != "." && name != ".." && !name.starts_with('-');
    match path.bytes().all(is_plain) && names().next().is_some() && names().all(is_name) {
        true => Ok(path.to_owned()),
        false => Err(InvalidRemote::Path),
    }
}

fn destination(text: &str, usual_port: u16) -> Result<Destination, InvalidRemote> {
    // A colon after the brackets belongs to the port.
    let end = text.find(']').unwrap_or_default();
    let (host, port) = match text[end..].split_once(':') {
        Some((rest, port)) => (&text[..end + rest.len()], Some(port)),
        None => (text, None),
    };
    let port = match port {
        None => usual_port,
        Some(port) if port.starts_with('0') || !port.bytes().all(|byte| byte.is_ascii_digit()) => {
            return Err(InvalidRemote::Port);
        }
        Some(port) => port.parse().map_err(|_| InvalidRemote::Port)?,
    };
    Ok(Destination { host: Host::parse(host).map_err(InvalidRemote::Host)?, port })
}

fn user(text: &str) -> Result<String, InvalidRemote> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    match !text.is_empty() && !text.starts_with('-') && text.bytes().all(is_allowed) {
        true => Ok(text.to_owned()),
        false => Err(InvalidRemote::User),
    }
}

fn is_of_this_machine(host: &Host) -> bool {
    match host {
        Host::Address(address) => address.is_loopback(),
        Host::Name(name) => name.as_str() == "localhost",
    }
}

#[cfg(test)]
mod tests;
