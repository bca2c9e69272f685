//! The loader that a program names: the one segment of an ELF file that matters here.
//!
//! The file may come from an attacker: a malformed file is read as naming no loader. Then the kernel, which reads it again,
//! starts it without one or not at all.

use rustix::fd::OwnedFd;
use rustix::io::{Errno, pread};

/// Offsets and lengths, in bytes, of the fields in the 64-bit and in the 32-bit format.
struct ElfLayout {
    word: usize,
    table: usize,
    entry_size: usize,
    count: usize,
    file_offset: usize,
    file_size: usize,
    smallest_entry: usize,
}

const WIDE: ElfLayout = ElfLayout {
    word: 8,
    table: 32,
    entry_size: 54,
    count: 56,
    file_offset: 8,
    file_size: 32,
    smallest_entry: 56,
};
const NARROW: ElfLayout = ElfLayout {
    word: 4,
    table: 28,
    entry_size: 42,
    count: 44,
    file_offset: 4,
    file_size: 16,
    smallest_entry: 32,
};

const HEADER_BYTES: usize = 64;

/// The kind of segment that holds the loader's path.
const LOADER: u64 = 3;

/// The kernel takes no longer path, and no larger table.
const LONGEST_PATH_BYTES: u64 = 4096;
const LARGEST_TABLE_BYTES: usize = 65_536;

/// Returns the path of the loader that a file names; `None` if it names none.
pub(super) fn interpreter(file: &OwnedFd) -> Result<Option<Vec<u8>>, Errno> {
    let header = read(file, 0, HEADER_BYTES)?;
    let Some(layout) = layout(&header) else { return Ok(None) };
    let number = |place: usize, length: usize| number(&header, place, length);
    let (table, size, count) =
        (number(layout.table, layout.word), number(layout.entry_size, 2), number(layout.count, 2));
    let (Some(table), Some(size), Some(count)) = (table, size, count) else { return Ok(None) };
    let (Ok(size), Ok(count)) = (usize::try_from(size), usize::try_from(count)) else { return Ok(None) };
    if size < layout.smallest_entry || size.saturating_mul(count) > LARGEST_TABLE_BYTES {
        return Ok(None);
    }
    let entries = read(file, table, size * count)?;
    match entries.chunks_exact(size).find_map(|entry| place_of_path(entry, &layout)) {
        Some((offset, length)) => {
            let mut path = read(file, offset, length)?;
            path.truncate(path.iter().position(|byte| *byte == 0).unwrap_or(path.len()));
            Ok(Some(path))
        }
        None => Ok(None),
    }
}

/// Returns the layout of a file of this machine's byte order, if it is an ELF file at all.
fn layout(header: &[u8]) -> Option<ElfLayout> {
    match header.get(..6)? {
        [0x7f, b'E', b'L', b'F', 2, 1] => Some(WIDE),
        [0x7f, b'E', b'L', b'F', 1, 1] => Some(NARROW),
        _ => None,
    }
}

/// Returns the offset and length of the loader's path, if this segment holds it.
fn place_of_path(entry: &[u8], layout: &ElfLayout) -> Option<(u64, usize)> {
    if number(entry, 0, 4)? != LOADER {
        return None;
    }
    let length = number(entry, layout.file_size, layout.word)?.min(LONGEST_PATH_BYTES);
    Some((number(entry, layout.file_offset, layout.word)?, usize::try_from(length).ok()?))
}

/// Reads a little-endian number of that many bytes.
fn number(bytes: &[u8], place: usize, length: usize) -> Option<u64> {
    let bytes = bytes.get(place..place.checked_add(length)?)?;
    Some(bytes.iter().rev().fold(0, |number, byte| (number << 8) | u64::from(*byte)))
}

/// Reads up to `length` bytes, or as many as there are.
fn read(file: &OwnedFd, offset: u64, length: usize) -> Result<Vec<u8>, Errno> {
    let mut bytes = vec![0; length];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        let at = offset.saturating_add(filled as u64);
        match pread(file, rest, at) {
            Ok(0) => break,
            Ok(more) => filled += more,
            Err(Errno::INTR) => {}
            // A place that no file can have.
            Err(Errno::INVAL | Errno::OVERFLOW) => break,
            Err(errno) => return Err(errno),
        }
    }
    bytes.truncate(filled);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Write;

    fn of(bytes: &[u8]) -> Option<Vec<u8>> {
        let path = std::env::temp_dir().join(format!("belljar-elf-{}", std::process::id()));
        File::create(&path).unwrap().write_all(bytes).unwrap();
        let found = interpreter(&File::open(&path).unwrap().into()).unwrap();
        std::fs::remove_file(&path).unwrap();
        found
    }

    #[test]
    fn elf_program_names_its_loader_and_broken_elf_names_none() {
        let sh = std::fs::read(std::fs::canonicalize("/bin/sh").unwrap()).unwrap();
        let loader = of(&sh).unwrap();
        assert!(String::from_utf8(loader).unwrap().starts_with("/lib"));
        for cut in [0, 3, 20, 40, 63, 64, 80, 200] {
            let found = of(&sh[..cut]);
            assert!(found.is_none_or(|path| path.is_empty()), "cut at {cut}");
        }
        for place in [32..40, 54..58] {
            let mut broken = sh.clone();
            broken[place.clone()].fill(0xff);
            assert_eq!(of(&broken), None, "{place:?}");
        }
        assert_eq!(of(b"no program"), None);
    }
}
