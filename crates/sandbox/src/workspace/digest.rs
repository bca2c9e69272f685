//! The digest of a set of changes: a person who reviewed one state of a workspace approves exactly that state.
//!
//! It covers every path of the set: its bytes, and for the old and the new side its type, its permission bits as they are applied, and
//! a hash of the content or of the link's target. It is computed over one canonical encoding, so that equal sets have equal digests,
//! whatever backend the sandbox had and however the changes are stored.

use super::changes::{ChangeSet, PathChange, PathState};
use super::extents;
use belljar_files::directory::{Directory, DirectoryError};
use rustix::fs::FileType;
use rustix::io::Errno;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest, Sha256};
use std::fmt;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::str::FromStr;

/// The digest of a [`ChangeSet`]. It is printed as `sha256:` and 64 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ReviewDigest([u8; 32]);

/// A text that is no digest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no digest of changes: expected `sha256:` and 64 hexadecimal digits, as `belljar session diff` prints them"
)]
pub struct InvalidDigest {
    text: String,
}

/// The first bytes of every encoding. Another encoding gets another text.
const DOMAIN: &[u8] = b"belljar changes 1\n";

const PREFIX: &str = "sha256:";

// === impl ReviewDigest ===

impl ReviewDigest {
    /// Computes the digest of a set whose old content is in `source` and whose new content is in `copy`.
    ///
    /// `copy` must not change meanwhile. Old content that the host can't read counts as unreadable, since no review can show it.
    ///
    /// # Errors
    /// [`DirectoryError`] for new content that can't be read.
    pub fn of(set: &ChangeSet, source: &Directory, copy: &Directory) -> Result<Self, DirectoryError> {
        let mut hash = Sha256::new_with_prefix(DOMAIN);
        for (path, changed) in set.iter() {
            let bytes = path.as_os_str().as_encoded_bytes();
            hash.update(u64::try_from(bytes.len()).unwrap_or(u64::MAX).to_le_bytes());
            hash.update(bytes);
            let before = before(path, changed, source);
            let after = match changed.after {
                // Only the permission bits differ: the content is the source's.
                Some(_) if changed.same_content => before,
                Some(state) => content(copy, path, state, Directory::open_own_file)?,
                None => ABSENT,
            };
            add_side(&mut hash, changed.before, before);
            add_side(&mut hash, changed.after, after);
        }
        Ok(Self(hash.finalize().into()))
    }
}

impl fmt::Display for ReviewDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(PREFIX)?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Serialize for ReviewDigest {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ReviewDigest {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

impl fmt::Debug for ReviewDigest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for ReviewDigest {
    type Err = InvalidDigest;

    fn from_str(text: &str) -> Result<Self, InvalidDigest> {
        let invalid = || InvalidDigest { text: text.to_owned() };
        let digits = text.strip_prefix(PREFIX).ok_or_else(invalid)?;
        if digits.len() != 64 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(invalid());
        }
        let mut bytes = [0; 32];
        for (at, byte) in bytes.iter_mut().enumerate() {
            let pair = digits.get(2 * at..2 * at + 2).ok_or_else(invalid)?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| invalid())?;
        }
        Ok(Self(bytes))
    }
}

/// A hash of content.
type ContentHash = [u8; 32];

/// Content hash of a path without content that a digest could cover: none, a directory, a pipe.
const ABSENT: ContentHash = [0; 32];

/// Content hash of old content that can't be read.
const UNREADABLE: ContentHash = [0xff; 32];

fn before(path: &Path, changed: &PathChange, source: &Directory) -> ContentHash {
    changed
        .before
        .map_or(ABSENT, |state| content(source, path, state, Directory::open_file).unwrap_or(UNREADABLE))
}

fn content(
    directory: &Directory,
    path: &Path,
    state: PathState,
    open: fn(&Directory, &Path) -> Result<File, DirectoryError>,
) -> Result<ContentHash, DirectoryError> {
    match state.kind {
        FileType::RegularFile => hash_of(&mut open(directory, path)?).map_err(|error| DirectoryError {
            path: path.to_owned(),
            source: Errno::from_io_error(&error).unwrap_or(Errno::IO),
        }),
        FileType::Symlink => Ok(Sha256::digest(directory.read_link(path)?.as_bytes()).into()),
        _ => Ok(ABSENT),
    }
}

/// The unit in which content is hashed.
const BLOCK: usize = 4096;

/// A hash over the blocks that are not all zero, with their offsets, and the length. Holes are passed over, so a sparse file costs
/// what it takes on disk; and a hole counts as the zeros that are read from it.
fn hash_of(file: &mut File) -> std::io::Result<ContentHash> {
    let length = file.metadata()?.len();
    let (mut hash, mut piece) = (Sha256::new(), vec![0; 32 * BLOCK]);
    let (mut at, block) = (0, BLOCK as u64);
    while at < length {
        let Some(Range { start: data, end }) = extents::next(file, at, length)? else { break };
        let end = end.next_multiple_of(block).min(length);
        at = at.max(data - data % block);
        while at < end {
            let room = usize::try_from(end - at).unwrap_or(usize::MAX).min(piece.len());
            let Some(room) = piece.get_mut(..room) else { break };
            file.read_exact_at(room, at)?;
            for part in room.chunks(BLOCK) {
                if part.iter().any(|byte| *byte != 0) {
                    hash.update(at.to_le_bytes());
                    hash.update((part.len() as u64).to_le_bytes());
                    hash.update(part);
                }
                at += part.len() as u64;
            }
        }
        at = at.max(end).max(data + 1);
    }
    hash.update(u64::MAX.to_le_bytes());
    hash.update(length.to_le_bytes());
    Ok(hash.finalize().into())
}

fn add_side(hash: &mut Sha256, state: Option<PathState>, content: ContentHash) {
    let (tag, mode) = state.map_or((b'-', 0), |state| (tag(state.kind), state.mode));
    hash.update([tag]);
    hash.update(mode.to_le_bytes());
    hash.update(content);
}

/// Returns one letter for each file type, as `ls` does.
fn tag(kind: FileType) -> u8 {
    match kind {
        FileType::RegularFile => b'f',
        FileType::Directory => b'd',
        FileType::Symlink => b'l',
        FileType::Fifo => b'p',
        FileType::Socket => b's',
        FileType::CharacterDevice => b'c',
        FileType::BlockDevice => b'b',
        _ => b'?',
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use tempfile::TempDir;

    fn digest(source: &TempDir, layer: &TempDir) -> ReviewDigest {
        let open = |place: &TempDir| Directory::open_host(place.path()).unwrap();
        let set = ChangeSet::read(&open(source), &open(layer)).unwrap();
        ReviewDigest::of(&set, &open(source), &open(layer)).unwrap()
    }

    fn pair() -> (TempDir, TempDir) {
        let (source, layer) = (TempDir::new().unwrap(), TempDir::new().unwrap());
        std::fs::write(source.path().join("file"), "old").unwrap();
        std::fs::write(layer.path().join("file"), "new").unwrap();
        (source, layer)
    }

    #[test]
    fn equal_changes_have_equal_digests_and_any_difference_changes_the_digest() {
        let first = pair();
        let known = digest(&first.0, &first.1);
        assert_eq!(known, digest(&pair().0, &first.1));
        type Edit = fn(&TempDir, &TempDir);
        let edits: [Edit; 8] = [
            |_, layer| std::fs::write(layer.path().join("file"), "NEW").unwrap(),
            |source, _| std::fs::write(source.path().join("file"), "OLD").unwrap(),
            |_, layer| {
                std::fs::set_permissions(layer.path().join("file"), PermissionsExt::from_mode(0o755))
                    .unwrap();
            },
            |_, layer| std::fs::write(layer.path().join("another"), "").unwrap(),
            |_, layer| std::fs::create_dir(layer.path().join("folder")).unwrap(),
            |_, layer| symlink("file", layer.path().join("link")).unwrap(),
            |_, layer| symlink("elsewhere", layer.path().join("link")).unwrap(),
            |_, layer| std::fs::rename(layer.path().join("file"), layer.path().join("file2")).unwrap(),
        ];
        let mut seen = vec![known];
        for edit in edits {
            let (source, layer) = pair();
            edit(&source, &layer);
            let found = digest(&source, &layer);
            assert!(!seen.contains(&found), "{found}");
            seen.push(found);
        }
    }

    #[test]
    fn a_sparse_file_costs_what_it_takes_on_disk_and_a_hole_counts_as_zeros() {
        let (source, layer) = pair();
        let write = |place: &TempDir, name: &str, zeros: usize, length: u64| {
            let file = File::create(place.path().join(name)).unwrap();
            file.write_all_at(&vec![0; zeros], 0).unwrap();
            file.write_all_at(b"x", 300_000).unwrap();
            file.set_len(length).unwrap();
        };
        // Read byte by byte, this would take hours.
        write(&layer, "file", 0, 1 << 40);
        let sparse = digest(&source, &layer);
        write(&layer, "file", 200_000, 1 << 40);
        assert_eq!(digest(&source, &layer), sparse, "the same content, written otherwise");
        write(&layer, "file", 0, (1 << 40) + 1);
        assert_ne!(digest(&source, &layer), sparse);
    }

    #[test]
    fn a_digest_is_read_as_it_is_printed_and_nothing_else_is() {
        let (source, layer) = pair();
        let known = digest(&source, &layer);
        assert_eq!(known.to_string().parse(), Ok(known));
        assert_eq!(known.to_string().len(), 71);
        let text = known.to_string();
        for wrong in
            ["", "sha256:", &text[7..], &text[..70], &format!("{text}0"), &text.replace("sha256", "sha1")]
        {
            assert!(wrong.parse::<ReviewDigest>().is_err(), "{wrong}");
        }
        let signed = format!("sha256:{}", "+1".repeat(32));
        assert!(signed.parse::<ReviewDigest>().is_err());
    }
}
