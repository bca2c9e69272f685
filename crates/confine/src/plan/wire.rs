//! Plans and requests on their way to another process: bytes, with the descriptors beside them.
//!
//! A descriptor is written as its place in a list that travels with the bytes as `SCM_RIGHTS`.

use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::cell::RefCell;

thread_local! {
    /// The list of the plan that this thread is writing or reading.
    static DESCRIPTORS: RefCell<Vec<Option<OwnedFd>>> = const { RefCell::new(Vec::new()) };
}

/// Writes a value down.
pub(crate) fn encode(value: &impl Serialize) -> Result<(Vec<u8>, Vec<OwnedFd>), Errno> {
    DESCRIPTORS.take();
    let bytes = postcard::to_stdvec(value).map_err(|_| Errno::BADMSG);
    let descriptors = DESCRIPTORS.take().into_iter().flatten().collect();
    Ok((bytes?, descriptors))
}

/// Reads a value.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8], descriptors: Vec<OwnedFd>) -> Result<T, Errno> {
    DESCRIPTORS.replace(descriptors.into_iter().map(Some).collect());
    let value = postcard::from_bytes(bytes).map_err(|_| Errno::BADMSG);
    DESCRIPTORS.take();
    value
}

fn put(descriptor: &OwnedFd) -> Option<usize> {
    let copy = rustix::io::fcntl_dupfd_cloexec(descriptor.as_fd(), 3).ok()?;
    DESCRIPTORS.with_borrow_mut(|descriptors| {
        descriptors.push(Some(copy));
        Some(descriptors.len() - 1)
    })
}

fn take(index: usize) -> Option<OwnedFd> {
    DESCRIPTORS.with_borrow_mut(|descriptors| descriptors.get_mut(index)?.take())
}

/// Serialisation of one descriptor.
pub(crate) mod descriptor {
    use super::{Deserialize, Deserializer, OwnedFd, Serialize, Serializer, put, take};
    use serde::{de, ser};

    pub(crate) fn serialize<S: Serializer>(descriptor: &OwnedFd, serializer: S) -> Result<S::Ok, S::Error> {
        let index = put(descriptor).ok_or_else(|| ser::Error::custom("no descriptor left"))?;
        index.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<OwnedFd, D::Error> {
        let index = usize::deserialize(deserializer)?;
        take(index).ok_or_else(|| de::Error::custom("no such descriptor"))
    }
}

/// Three descriptors.
pub(crate) mod descriptors {
    use super::{Deserialize, Deserializer, OwnedFd, Serialize, Serializer, put, take};
    use serde::{de, ser};

    pub(crate) fn serialize<S: Serializer>(
        descriptors: &[OwnedFd; 3],
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let [Some(a), Some(b), Some(c)] = descriptors.each_ref().map(put) else {
            return Err(ser::Error::custom("no descriptor left"));
        };
        [a, b, c].serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<[OwnedFd; 3], D::Error> {
        match <[usize; 3]>::deserialize(deserializer)?.map(take) {
            [Some(a), Some(b), Some(c)] => Ok([a, b, c]),
            _ => Err(de::Error::custom("no such descriptor")),
        }
    }
}

/// An error number.
pub(crate) mod errno {
    use super::{Deserialize, Deserializer, Errno, Serialize, Serializer};

    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    pub(crate) fn serialize<S: Serializer>(errno: &Errno, serializer: S) -> Result<S::Ok, S::Error> {
        errno.raw_os_error().serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Errno, D::Error> {
        i32::deserialize(deserializer).map(Errno::from_raw_os_error)
    }
}
