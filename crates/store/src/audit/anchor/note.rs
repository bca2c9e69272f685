//! A checkpoint for other places: a signed note in the form of C2SP `tlog-checkpoint`.
//!
//! ```text
//! belljar-audit/<SHA-256 of the log's first record, 64 hexadecimal digits>
//! <sequence of the last record>
//! <hash of the last record, base64>
//! time <when it was signed, RFC 3339>
//! key <public key, 64 hexadecimal digits>
//!
//! — belljar-audit/<…> <base64 of 4 bytes of key id and the Ed25519 signature>
//! ```
//!
//! The hash is that of a hash chain, not of a Merkle tree: it stands for all records before it, and only the log itself
//! proves that.

use super::super::chain::Position;
use super::super::hash::Hash;
use super::super::key::{PublicKey, SIGNATURE, SecretKey};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use sha2::{Digest, Sha256};
use std::fmt;
use std::sync::Arc;

/// Prefix of every first line.
pub(super) const ORIGIN: &str = "belljar-audit/";

/// Prefix of a signature's line.
pub(super) const SIGNATURE_LINE: &str = "\u{2014} ";

/// The lines of a note, with its signature.
pub(super) const LINES: usize = 7;

/// The algorithm of the signature, as signed notes number them: Ed25519.
const ED25519: u8 = 1;

/// Number of bytes of the key's id that precede a signature.
const KEY_ID: usize = 4;

/// The head of a log at one moment, as a note states it. The signature was checked when it was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    /// The hash of the log's first record, which tells logs apart.
    pub log: Hash,
    /// The last record that it covers.
    pub sequence: u64,
    /// The hash of that record.
    pub hash: Hash,
    /// Time of the signature (RFC 3339, UTC).
    pub time: String,
    /// The key that signed it.
    pub key: PublicKey,
}

/// Signs notes for one log.
#[derive(Clone)]
pub(in crate::audit) struct Signer {
    pub(in crate::audit) log: Hash,
    pub(in crate::audit) key: Arc<SecretKey>,
}

// === impl Checkpoint ===

impl Checkpoint {
    fn origin(&self) -> String {
        format!("{ORIGIN}{}", self.log)
    }

    /// The text that is signed.
    fn body(&self) -> String {
        let Self { sequence, hash, time, key, .. } = self;
        format!(
            "{}\n{sequence}\n{}\ntime {time}\nkey {key}\n",
            self.origin(),
            STANDARD.encode(hash.as_bytes())
        )
    }

    /// Reads a note that is exactly as it would be written, with a right signature of the key that it names. Whether
    /// that is the key of some log is for the caller to compare.
    pub(super) fn parse(note: &str) -> Option<Self> {
        let mut lines = note.lines();
        let log = Hash::parse(lines.next()?.strip_prefix(ORIGIN)?).ok()?;
        let sequence = lines.next()?.parse().ok()?;
        let hash = STANDARD.decode(lines.next()?).ok()?.try_into().ok().map(Hash::from_array)?;
        let time = lines.next()?.strip_prefix("time ")?.to_owned();
        let key = PublicKey::parse(lines.next()?.strip_prefix("key ")?).ok()?;
        let checkpoint = Self { log, sequence, hash, time, key };
        let signature = lines.nth(1)?.rsplit_once(' ')?.1;
        let bytes: [u8; KEY_ID + SIGNATURE] = STANDARD.decode(signature).ok()?.try_into().ok()?;
        let body = checkpoint.body();
        let is_as_written = format!("{body}\n{SIGNATURE_LINE}{} {signature}\n", checkpoint.origin()) == note;
        let (id, signature) = bytes.split_at(KEY_ID);
        let is_signed = id == key_id(&checkpoint.origin(), &key)
            && signature.try_into().is_ok_and(|signature| key.signed(body.as_bytes(), signature));
        (is_as_written && is_signed).then_some(checkpoint)
    }
}

/// The id of a key, as signed notes define it.
fn key_id(name: &str, key: &PublicKey) -> [u8; KEY_ID] {
    let mut hash = Sha256::new();
    hash.update(name);
    hash.update([b'\n', ED25519]);
    hash.update(key.as_bytes());
    let digest: [u8; 32] = hash.finalize().into();
    [digest[0], digest[1], digest[2], digest[3]]
}

// === impl Signer ===

impl Signer {
    /// Signs the head of the log at a position.
    pub(super) fn note(&self, at: Position) -> (Checkpoint, String) {
        let key = self.key.public();
        let time = format!("{:.6}", Timestamp::now());
        let checkpoint = Checkpoint { log: self.log, sequence: at.sequence, hash: at.hash, time, key };
        let (body, origin) = (checkpoint.body(), checkpoint.origin());
        let mut bytes = key_id(&origin, &key).to_vec();
        bytes.extend_from_slice(&self.key.signature(body.as_bytes()));
        let note = format!("{body}\n{SIGNATURE_LINE}{origin} {}\n", STANDARD.encode(bytes));
        (checkpoint, note)
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Signer").field("log", &self.log).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn signed() -> (Checkpoint, String) {
        let key = Arc::new(SecretKey::new(Path::new(".")).unwrap());
        let at = Position { sequence: 42, hash: Hash::of(b"head") };
        Signer { log: Hash::of(b"first"), key }.note(at)
    }

    #[test]
    fn checkpoint_note_round_trips_and_rejects_any_changed_byte() {
        let (checkpoint, note) = signed();
        assert_eq!(note.lines().count(), LINES);
        assert_eq!(Checkpoint::parse(&note), Some(checkpoint));
        for at in 0..note.len() {
            let mut bytes = note.clone().into_bytes();
            bytes[at] ^= 1;
            let changed = String::from_utf8_lossy(&bytes);
            assert_eq!(Checkpoint::parse(&changed), None, "byte {at}");
        }
        assert_eq!(Checkpoint::parse(&note[..note.len() - 1]), None);
    }

    #[test]
    fn note_signed_by_a_key_it_does_not_name_is_rejected() {
        let ((_, note), (other, _)) = (signed(), signed());
        let named = note.lines().nth(4).unwrap().to_owned();
        assert_eq!(Checkpoint::parse(&note.replace(&named, &format!("key {}", other.key))), None);
    }
}
