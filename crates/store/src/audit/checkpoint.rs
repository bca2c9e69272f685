//! Checkpoints: records whose event is a signature over everything before them.

use super::chain::Position;
use super::event::push_head;
use super::hash::Hash;
use super::key::{PublicKey, SecretKey};
use super::record::{self, Record};
use jiff::Timestamp;
use std::io::Write;

pub(super) const KIND: &str = "checkpoint";

const EVENT: (&str, &str) = ("{\"signature\":\"", "\"}");

/// Adds a checkpoint to a text and gives the position after it.
pub(super) fn push(text: &mut Vec<u8>, key: &SecretKey, before: Position) -> Position {
    let sequence = before.sequence + 1;
    let now = Timestamp::now();
    let mut body = Vec::with_capacity(256);
    push_head(&mut body, now, KIND, None);
    body.extend_from_slice(EVENT.0.as_bytes());
    key.sign(&message(sequence, &format!("{now:.6}"), &before.hash), &mut body);
    body.extend_from_slice(EVENT.1.as_bytes());
    Position { sequence, hash: record::push(text, sequence, &body, &before.hash) }
}

/// Returns true if the record is a checkpoint that this key has signed.
pub(super) fn is_genuine(record: &Record<'_>, key: &PublicKey) -> bool {
    let signature = record.event.strip_prefix(EVENT.0).and_then(|rest| rest.strip_suffix(EVENT.1));
    let signed = message(record.sequence, record.time, &record.previous);
    record.kind == KIND
        && record.run.is_none()
        && signature.is_some_and(|digits| key.has_signed(&signed, digits.as_bytes()))
}

/// Returns the signed message. It determines all other fields of a checkpoint's line.
fn message(sequence: u64, time: &str, previous: &Hash) -> Vec<u8> {
    let mut message = Vec::with_capacity(160);
    // Writing to a vector can't fail.
    let _ = write!(message, "belljar audit checkpoint 1\n{sequence}\n{time}\n{previous}\n");
    message
}
