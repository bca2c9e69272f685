//! Ids of what is worked out: the same whenever it is worked out again, and of nothing else.

use sha2::{Digest, Sha256};
use uuid::{Builder, Uuid};

/// The id of what these say, in this order.
pub(super) fn of<'p>(parts: impl IntoIterator<Item = &'p str>) -> Uuid {
    let mut hash = Sha256::new();
    for part in parts {
        // With its length, no part can pass for another and the beginning of the next.
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part);
    }
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&hash.finalize()[..16]);
    Builder::from_custom_bytes(bytes).into_uuid()
}
