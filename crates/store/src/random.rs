//! Unpredictable random bytes.

use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

pub(crate) fn random<const BYTES: usize>() -> Result<[u8; BYTES], Errno> {
    let mut bytes = [0; BYTES];
    let mut filled = 0;
    while filled < BYTES {
        filled += getrandom(&mut bytes[filled..], GetRandomFlags::empty())?;
    }
    Ok(bytes)
}
