//! Contents by digest, and storing one from memory in a folder.

use crate::digest::sha256;
use crate::random::random;
use rustix::fs::{Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, futimens};
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

/// Reference to a content: digest and size.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Content {
    sha256: String,
    size_bytes: u64,
}

/// The text is no digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a SHA-256 in lower-case hexadecimal")]
pub struct ParseDigestError;

// === impl Content ===

impl Content {
    /// Returns the reference to these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self { sha256: sha256(bytes), size_bytes: bytes.len() as u64 }
    }

    /// Reference to a content that is stored already, from its reported digest and size.
    ///
    /// # Errors
    /// [`ParseDigestError`] when the digest is malformed.
    pub fn stored(sha256: &str, size_bytes: u64) -> Result<Self, ParseDigestError> {
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        match sha256.len() == 64 && sha256.bytes().all(is_digit) {
            true => Ok(Self { sha256: sha256.to_owned(), size_bytes }),
            false => Err(ParseDigestError),
        }
    }

    /// Its SHA-256, in lower-case hexadecimal.
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// Size, in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.size_bytes
    }
}

/// Writes a content into a folder. If it exists already, its modification time is renewed, because old contents without
/// references are removed. The content is durable when this returns.
pub(super) fn place(folder: &Path, content: &Content, bytes: &[u8]) -> std::io::Result<()> {
    let path = super::path_in(folder, content.sha256());
    let shelf = path.parent().unwrap_or(folder);
    if !rejuvenate(&path, content)? {
        make_shelf(folder, shelf)?;
        let temporary = folder.join(format!(".incoming-{}", crate::digest::hex(&random::<16>()?)));
        let placed = write(&temporary, bytes).and_then(|()| std::fs::rename(&temporary, &path));
        if placed.is_err() {
            // A leftover temporary file does no harm.
            let _ = std::fs::remove_file(&temporary);
        }
        placed?;
    }
    File::open(shelf)?.sync_all()
}

/// Renews the modification time; returns true if the content exists already.
fn rejuvenate(path: &Path, content: &Content) -> std::io::Result<bool> {
    const NOW: Timestamps = Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT as _ },
        last_modification: Timespec { tv_sec: 0, tv_nsec: UTIME_NOW as _ },
    };
    let flags = (rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK).bits();
    let file = match OpenOptions::new().read(true).custom_flags(flags.cast_signed()).open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        opened => opened?,
    };
    let metadata = file.metadata()?;
    // A file that has lost a part to a disk error is not the content.
    if !metadata.is_file() || metadata.len() != content.size_bytes() {
        return Ok(false);
    }
    futimens(&file, &NOW)?;
    Ok(true)
}

fn make_shelf(folder: &Path, shelf: &Path) -> std::io::Result<()> {
    match DirBuilder::new().mode(0o700).create(shelf) {
        Ok(()) => File::open(folder)?.sync_all(),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
