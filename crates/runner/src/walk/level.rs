//! The sorted names of one directory, close together in memory.

use super::WalkOptions;
use belljar_contract::result::output::EntryKind;
use rustix::fs::{AtFlags, FileType};
use std::ffi::CString;
use std::ops::Range;
use std::os::fd::OwnedFd;

/// Entries of a directory, sorted by the bytes of their names.
pub(super) struct DirectoryListing {
    /// The length of the path of the directory itself.
    pub(super) path_length: usize,
    text: Vec<u8>,
    names: Vec<NamePosition>,
    next: usize,
    /// Number of directories that were announced.
    announced: usize,
    /// Position at which more are announced.
    announce_at: usize,
    room: usize,
    /// First name that was left out for lack of memory; later ones are left out, too.
    ceiling: Option<Vec<u8>>,
}

/// An entry of a directory.
pub(super) struct ListedEntry<'l> {
    pub(super) name: &'l [u8],
    pub(super) kind: EntryKind,
    pub(super) target: Option<&'l [u8]>,
    pub(super) size_bytes: Option<u64>,
}

/// Position of a name in the text. Behind it, the text has what else is known: the target of a link, or the size of a
/// file in eight bytes. Neither is ever as long as 64 KiB.
#[derive(Clone, Copy)]
struct NamePosition {
    start: u32,
    length: u16,
    extra_length: u16,
    kind: EntryKind,
}

// === impl DirectoryListing ===

impl DirectoryListing {
    pub(super) fn new(path_length: usize, room: usize) -> Self {
        Self {
            path_length,
            text: Vec::new(),
            names: Vec::new(),
            next: 0,
            announced: 0,
            announce_at: 0,
            room,
            ceiling: None,
        }
    }

    /// Returns the memory that the names take, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.text.len() + self.names.len() * size_of::<NamePosition>()
    }

    /// Returns true if the names take more memory than they may.
    pub(super) fn is_overfull(&self) -> bool {
        self.bytes() > self.room
    }

    /// Returns true if names were left out.
    pub(super) fn is_cut(&self) -> bool {
        self.ceiling.is_some()
    }

    /// The next entry in order.
    pub(super) fn next(&mut self) -> Option<ListedEntry<'_>> {
        let name = *self.names.get(self.next)?;
        self.next += 1;
        let extra = Some(&self.text[name.extra()]).filter(|extra| !extra.is_empty());
        let size_of = |extra: &[u8]| extra.try_into().ok().map(u64::from_le_bytes);
        Some(ListedEntry {
            name: &self.text[name.text()],
            kind: name.kind,
            target: extra.filter(|_| name.kind == EntryKind::Symlink),
            size_bytes: extra.filter(|_| name.kind == EntryKind::File).and_then(size_of),
        })
    }

    /// Announces the next directories in groups: the next group once half of the last one is passed.
    pub(super) fn announce(&mut self, mut announce: impl FnMut(&[u8])) {
        const AT_A_TIME: usize = 64;
        if self.next < self.announce_at {
            return;
        }
        self.announce_at = usize::MAX;
        let start = self.announced.max(self.next);
        let rest = (start..).zip(&self.names[start..]);
        let directories = rest.filter(|(_, name)| name.kind == EntryKind::Directory);
        for (number, (at, name)) in directories.take(AT_A_TIME).enumerate() {
            announce(&self.text[name.text()]);
            self.announced = at + 1;
            if number == AT_A_TIME / 2 {
                self.announce_at = at + 1;
            }
        }
    }

    pub(super) fn add(&mut self, name: &[u8], file_type: FileType, directory: &OwnedFd, route: WalkOptions) {
        if self.ceiling.as_deref().is_some_and(|ceiling| name >= ceiling) {
            return;
        }
        let kind = kind_of(file_type, name, directory);
        let extra = match kind {
            EntryKind::Symlink if route.targets => {
                let target = rustix::fs::readlinkat(directory, name, Vec::new());
                target.map(CString::into_bytes).unwrap_or_default()
            }
            EntryKind::File if route.sizes => measure(name, directory).map(Vec::from).unwrap_or_default(),
            _ => Vec::new(),
        };
        let (Ok(start), Ok(length), Ok(extra_length)) =
            (u32::try_from(self.text.len()), u16::try_from(name.len()), u16::try_from(extra.len()))
        else {
            return;
        };
        self.text.extend_from_slice(name);
        self.text.extend_from_slice(&extra);
        self.names.push(NamePosition { start, length, extra_length, kind });
    }

    pub(super) fn sort(&mut self) {
        let text = &self.text;
        self.names.sort_unstable_by(|a, b| text[a.text()].cmp(&text[b.text()]));
    }

    /// Drops the latter half of the names, and from now on all that would come after the first of them.
    pub(super) fn cut(&mut self) {
        self.sort();
        let kept = self.names.len() / 2;
        self.ceiling = self.names.get(kept).map(|name| self.text[name.text()].to_vec());
        self.names.truncate(kept);
        let mut text = Vec::with_capacity(self.text.len() / 2);
        for name in &mut self.names {
            let start = u32::try_from(text.len()).unwrap_or(u32::MAX);
            text.extend_from_slice(&self.text[name.text()]);
            text.extend_from_slice(&self.text[name.extra()]);
            name.start = start;
        }
        self.text = text;
    }
}

fn kind_of(file_type: FileType, name: &[u8], directory: &OwnedFd) -> EntryKind {
    match file_type {
        FileType::RegularFile => EntryKind::File,
        FileType::Directory => EntryKind::Directory,
        FileType::Symlink => EntryKind::Symlink,
        // Some file systems don't report the type of an entry in the directory.
        FileType::Unknown => {
            let found = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW);
            match found.map(|stat| FileType::from_raw_mode(stat.st_mode)) {
                Ok(FileType::Unknown) | Err(_) => EntryKind::Other,
                Ok(known) => kind_of(known, name, directory),
            }
        }
        _ => EntryKind::Other,
    }
}

fn measure(name: &[u8], directory: &OwnedFd) -> Option<[u8; 8]> {
    let found = rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    u64::try_from(found.st_size).ok().map(u64::to_le_bytes)
}

// === impl NamePosition ===

impl NamePosition {
    fn text(self) -> Range<usize> {
        let start = self.start as usize;
        start..start + usize::from(self.length)
    }

    fn extra(self) -> Range<usize> {
        let start = self.text().end;
        start..start + usize::from(self.extra_length)
    }
}
