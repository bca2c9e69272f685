//! Token file of the HTTP transport. Only its owner may read it. A file with a new token is created if there is none.

use crate::error::CliError;
use belljar_egress::known_secrets;
use belljar_egress::secret::Secret;
use belljar_gateway::bearer::{InvalidTokenError, OneToken};
use belljar_gateway::caller_slot::CallerSlot;
use belljar_trusted::trusted_file::{self, UntrustedFileError};
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// The token can't be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TokenFileError {
    #[error("can't open {}", crate::output::path(path))]
    Open {
        path: PathBuf,
        #[source]
        source: Errno,
    },
    #[error("can't read or write {}", crate::output::path(path))]
    Io {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error(
        "{} is no file of this user's that only they may read and write (mode 600)",
        crate::output::path(path)
    )]
    NotPrivate { path: PathBuf },
    #[error("{} holds no token", crate::output::path(path))]
    NoToken {
        path: PathBuf,
        #[source]
        source: InvalidTokenError,
    },
}

/// A longer file is no token's.
const LARGEST_BYTES: u64 = 8 << 10;

/// Number of random bytes in a new token.
const RANDOM_BYTES: usize = 32;

/// Reads or creates the token file. Returns the check that admits callers with that token to `seat`.
pub(super) fn token(path: &Path, seat: CallerSlot) -> Result<OneToken, CliError> {
    let text = match made(path)? {
        Some(text) => {
            super::tell(&format!("a new token is in {}", crate::output::path(path)));
            text
        }
        None => {
            crate::listen_check::check_token_file(path)?;
            read(path)?
        }
    };
    Secret::parse(text.as_str()).into_iter().for_each(known_secrets::remember);
    let invalid = |source| TokenFileError::NoToken { path: path.to_owned(), source };
    Ok(OneToken::new(text.trim_ascii(), seat).map_err(invalid)?)
}

/// Creates the file with a new token and returns the token; `None` if the file exists already.
fn made(path: &Path) -> Result<Option<String>, TokenFileError> {
    let failed =
        |error: UntrustedFileError| TokenFileError::Io { path: path.to_owned(), source: error.into() };
    let Some(file) = trusted_file::create_new(path).map_err(failed)? else { return Ok(None) };
    let mut random = [0; RANDOM_BYTES];
    let written = getrandom(&mut random, GetRandomFlags::empty())
        .map_err(std::io::Error::from)
        .map(|_| random.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
        .and_then(|text| writeln!(&file, "{text}").and_then(|()| file.sync_all()).map(|()| text));
    written.map(Some).map_err(|source| {
        // A partial token would later be read as a complete one.
        let _ = std::fs::remove_file(path);
        TokenFileError::Io { path: path.to_owned(), source }
    })
}

/// The text of a file, by the very descriptor of which it is known whose it is.
fn read(path: &Path) -> Result<String, TokenFileError> {
    let failed = |source| TokenFileError::Open { path: path.to_owned(), source };
    // Opening a FIFO would block.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = openat(CWD, path, flags, Mode::empty()).map_err(failed)?;
    let stat = fstat(&file).map_err(failed)?;
    let is_private = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
        && stat.st_uid == rustix::process::geteuid().as_raw()
        && stat.st_mode & 0o177 == 0;
    if !is_private {
        return Err(TokenFileError::NotPrivate { path: path.to_owned() });
    }
    let mut text = String::new();
    let read = File::from(file).take(LARGEST_BYTES).read_to_string(&mut text);
    read.map_err(|source| TokenFileError::Io { path: path.to_owned(), source })?;
    Ok(text)
}
