//! Ids of what is worked out: the same whenever it is worked out again, and of nothing else.

use sha2::{Digest, Sha256};
use uuid::{Builder, Uuid};

/// The id of two parts, neither of which has a character U+0000.
pub(super) fn of_joined(parts: [&str; 2]) -> Uuid {
    cut(&Sha256::digest(parts.join("\0")))
}

fn cut(digest: &[u8]) -> Uuid {
    let mut bytes = [0; 16];
    bytes.iter_mut().zip(digest).for_each(|(byte, digit)| *byte = *digit);
    Builder::from_custom_bytes(bytes).into_uuid()
}

/// The id of what these say, in this order.
pub(super) fn of<'p>(parts: impl IntoIterator<Item = &'p str>) -> Uuid {
    let mut hash = Sha256::new();
    for part in parts {
        // With its length, no part can pass for another and the beginning of the next.
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part);
    }
    cut(&hash.finalize())
}
