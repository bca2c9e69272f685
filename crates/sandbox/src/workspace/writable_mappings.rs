//! Files that programs of the host have mapped to write to them (`mmap` with `MAP_SHARED`).
//!
//! A write through a mapping changes a time of the file only where it makes a clean page dirty. A page that was dirty
//! already when a run began, and every page on tmpfs, is written without a trace. And once a file is replaced, writes
//! through an old mapping go to the old file.

use belljar_confine::listing::numbers_in;
use belljar_files::directory::Directory;
use rustix::fs::{AtFlags, Stat, StatxFlags, fstat, major, minor, statx};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader};

/// Mapped files of one file system. They are looked for at the first query.
#[derive(Debug)]
pub(super) struct MappedFiles<'a> {
    target: &'a Directory,
    inodes: Option<BTreeSet<u64>>,
}

// === impl MappedFiles ===

impl<'a> MappedFiles<'a> {
    pub(super) fn in_target(target: &'a Directory) -> Self {
        Self { target, inodes: None }
    }

    /// Returns true if a program has mapped a file to write to it. Those of other users are seen by root alone.
    pub(super) fn has(&mut self, file: &Stat) -> bool {
        let target = self.target;
        self.inodes.get_or_insert_with(|| inodes_on(&device_of(target))).contains(&file.st_ino)
    }
}

/// The device of a file system, as lists of mappings name it. Btrfs reports another one for each of its subvolumes.
fn device_of(directory: &Directory) -> (u32, u32) {
    let by_mount = || {
        let stat = statx(directory, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID).ok()?;
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").ok()?;
        let line = mounts
            .lines()
            .find(|line| line.split(' ').next().and_then(|id| id.parse().ok()) == Some(stat.stx_mnt_id))?;
        let (major, minor) = line.split(' ').nth(2)?.split_once(':')?;
        Some((major.parse().ok()?, minor.parse().ok()?))
    };
    by_mount()
        .or_else(|| fstat(directory).ok().map(|stat| (major(stat.st_dev), minor(stat.st_dev))))
        .unwrap_or_default()
}

fn inodes_on((major, minor): &(u32, u32)) -> BTreeSet<u64> {
    let device = format!("{major:02x}:{minor:02x}");
    let processes = numbers_in("/proc").unwrap_or_default().into_iter();
    let maps = processes.filter_map(|process| File::open(format!("/proc/{process}/maps")).ok());
    maps.flat_map(|maps| inodes_in(BufReader::new(maps), &device)).collect()
}

/// The inodes on a device that a list of mappings has as shared and writable.
fn inodes_in(maps: impl BufRead, device: &str) -> Vec<u64> {
    let inode = |line: &[u8]| {
        let line = String::from_utf8_lossy(line).into_owned();
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (rights, _, on, inode) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        let is_written = rights.as_bytes().get(1) == Some(&b'w') && rights.as_bytes().get(3) == Some(&b's');
        if is_written && on == device { inode.parse().ok() } else { None }
    };
    maps.split(b'\n').map_while(Result::ok).filter_map(|line| inode(&line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_and_writable_mappings_of_a_device_count_and_no_others() {
        let maps = "\
7f0000000000-7f0000001000 rw-s 00000000 08:01 11                         /db ä
7f0000001000-7f0000002000 rw-p 00000000 08:01 12                         /private
7f0000002000-7f0000003000 r--s 00000000 08:01 13                         /read
7f0000003000-7f0000004000 rw-s 00000000 08:02 14                         /elsewhere
7ffd00000000-7ffd00001000 rw-p 00000000 00:00 0                          [stack]
";
        assert_eq!(inodes_in(maps.as_bytes(), "08:01"), [11]);
    }
}
