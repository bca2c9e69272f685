//! Positions of the data in a sparse file. A program may leave a file with holes the size of a disk: nothing on the host
//! reads a hole.

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;

/// Number of bytes compared at once.
const PIECE: u64 = 64 << 10;

/// Returns the next data at or behind `at`, up to `size`. `None` if nothing but a hole is left. The position of the file
/// changes.
///
/// # Errors
/// The kernel's error.
pub(super) fn next(file: &File, at: u64, size: u64) -> io::Result<Option<Range<u64>>> {
    let data = match seek(file, SeekFrom::Data(at)) {
        Ok(data) if data < size => data,
        Ok(_) | Err(Errno::NXIO) => return Ok(None),
        Err(errno) => return Err(errno.into()),
    };
    // Another process may write on meanwhile: what counts is the size when this began.
    let hole = seek(file, SeekFrom::Hole(data))?.min(size);
    Ok(Some(data..hole))
}

/// Returns true if two files have the same content. Bytes are read only where one of the two has data.
///
/// # Errors
/// The error of reading, also where a file became shorter meanwhile.
pub(super) fn are_same(one: &File, other: &File) -> io::Result<bool> {
    let size = one.metadata()?.len();
    if other.metadata()?.len() != size {
        return Ok(false);
    }
    let piece = usize::try_from(PIECE).unwrap_or(usize::MAX);
    let (mut of_one, mut of_other) = (vec![0; piece], vec![0; piece]);
    let mut at = 0;
    loop {
        let data = match (next(one, at, size)?, next(other, at, size)?) {
            (None, None) => return Ok(true),
            (Some(data), None) | (None, Some(data)) => data,
            (Some(one), Some(other)) if one.start <= other.start => one,
            (_, Some(other)) => other,
        };
        at = data.start;
        while at < data.end {
            let length = usize::try_from((data.end - at).min(PIECE)).unwrap_or(piece);
            let (Some(of_one), Some(of_other)) = (of_one.get_mut(..length), of_other.get_mut(..length))
            else {
                return Ok(false);
            };
            one.read_exact_at(of_one, at)?;
            other.read_exact_at(of_other, at)?;
            if of_one != of_other {
                return Ok(false);
            }
            at += length as u64;
        }
        // An empty extent is met where a file is cut off meanwhile.
        at = at.max(data.start + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sparse(size: u64, data: &[(u64, &[u8])]) -> File {
        let file = tempfile::tempfile().unwrap();
        file.set_len(size).unwrap();
        data.iter().for_each(|(at, bytes)| file.write_all_at(bytes, *at).unwrap());
        file
    }

    #[test]
    fn files_of_nothing_but_holes_are_compared_without_being_read() {
        // Read byte by byte, each comparison would take an hour.
        let size = 8 << 40;
        let deep = size - 100_000;
        for (one, other, is_same) in [
            (sparse(size, &[]), sparse(size, &[]), true),
            (sparse(size, &[]), sparse(size + 1, &[]), false),
            (sparse(size, &[(deep, b"x")]), sparse(size, &[(deep, b"x")]), true),
            (sparse(size, &[(deep, b"x")]), sparse(size, &[(deep, b"y")]), false),
            (sparse(size, &[(deep, b"x")]), sparse(size, &[]), false),
            (sparse(size, &[]), sparse(size, &[(deep, b"x")]), false),
            // Zeros that are written are what a hole is read as.
            (sparse(size, &[(deep, b"\0")]), sparse(size, &[]), true),
            (sparse(size, &[(0, b"x"), (deep, b"x")]), sparse(size, &[(0, b"x"), (deep, b"y")]), false),
        ] {
            assert_eq!(are_same(&one, &other).unwrap(), is_same);
        }
    }

    #[test]
    fn every_byte_of_data_is_compared() {
        let content: Vec<u8> = (0..200_000_u32).map(|at| (at % 251) as u8).collect();
        let one = sparse(content.len() as u64, &[(0, &content)]);
        assert!(are_same(&one, &sparse(content.len() as u64, &[(0, &content)])).unwrap());
        for at in [0, 65_535, 65_536, 199_999] {
            let mut changed = content.clone();
            changed[at] ^= 1;
            assert!(!are_same(&one, &sparse(changed.len() as u64, &[(0, &changed)])).unwrap(), "{at}");
        }
    }
}
