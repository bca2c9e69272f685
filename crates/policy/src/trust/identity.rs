//! Ids of computed values: deterministic, and unique to their input.

use sha2::{Digest, Sha256};
use uuid::{Builder, Uuid};

/// Returns the id of two parts, neither of which contains U+0000.
pub(super) fn of_joined(parts: [&str; 2]) -> Uuid {
    cut(&Sha256::digest(parts.join("\0")))
}

fn cut(digest: &[u8]) -> Uuid {
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(digest).for_each(|(byte, digit)| *byte = *digit);
    Builder::from_custom_bytes(bytes).into_uuid()
}

/// Returns the id of these parts in this order.
pub(super) fn of<'p>(parts: impl IntoIterator<Item = &'p str>) -> Uuid {
    let mut hash = Sha256::new();
    for part in parts {
        // With the length of each part, different splits give different ids.
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part);
    }
    cut(&hash.finalize())
}
