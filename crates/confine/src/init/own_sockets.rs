//! Check that a local socket in a directory of the host is the sandbox's own.
//!
//! A path in such a directory may lead to a socket of the host, of another sandbox, or of this one. The kernel lists the
//! sockets that listen in the network namespace of this process, with the file that each is bound to (`NETLINK_SOCK_DIAG`,
//! sock_diag(7)). It identifies a file by its device and the low 32 bits of its inode number. So this holds only where
//! inode numbers are no longer than that: elsewhere a sandbox could make a socket whose number ends like that of one of the
//! host's.
//!
//! No race leads elsewhere. The file is open (`O_PATH`), so its number belongs to no other file, however names are moved meanwhile; a
//! socket is bound to a file that its `bind` has made, and to no other ever. So if a socket of this namespace listens at that number, it
//! is the one at that file, and no other will be.

use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Stat, StatFs, fstatfs, major, minor};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with,
};

/// The file that a socket is bound to, as the kernel identifies it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct SocketFile {
    inode: u32,
    device: u32,
}

/// Lengths, in bytes: of the header of a netlink message, of a request, of a socket's entry before its attributes, and of
/// an attribute's header.
const HEADER: usize = 16;
const ASKED: usize = 24;
const TOLD: usize = 16;
const ATTRIBUTE: usize = 4;

/// `SOCK_DIAG_BY_FAMILY`, as a request and as its answer.
const BY_FAMILY: u16 = 20;
/// `NLMSG_DONE`
const DONE: u16 = 3;
/// `NLM_F_REQUEST | NLM_F_DUMP`
const ALL: u16 = 0x301;
/// `UDIAG_SHOW_VFS`, and the attribute that it brings.
const SHOW_FILE: u32 = 2;
const FILE: u16 = 1;
/// `TCP_LISTEN`, which is the state of local sockets, too.
const LISTENS: u32 = 10;

/// Maximum size of one datagram of a list from the kernel, in bytes.
const ROOM: usize = 64 << 10;

/// Lists that the kernel makes while sockets come and go may miss some.
const LOOKS: usize = 3;

/// Checks that a socket of this network namespace listens at a file that is open.
///
/// # Errors
/// [`Errno::CONNREFUSED`] if none does, as for a file that a listener has left behind; [`Errno::ACCESS`] where that can't be known.
pub(super) fn check(file: impl AsFd, stat: &Stat) -> Result<(), Errno> {
    let bound = SocketFile::of(stat).ok_or(Errno::ACCESS)?;
    if !fstatfs(file).is_ok_and(|found| has_short_numbers(&found)) {
        return Err(Errno::ACCESS);
    }
    for _ in 0..LOOKS {
        if listeners().map_err(|_| Errno::ACCESS)?.contains(&bound) {
            return Ok(());
        }
    }
    Err(Errno::CONNREFUSED)
}

/// Returns true if no inode number of a file system is longer than 32 bits.
fn has_short_numbers(found: &StatFs) -> bool {
    const EXT: u64 = 0xef53;
    const F2FS: u64 = 0xf2f5_2010;
    const XFS: u64 = 0x5846_5342;
    /// Minimum size of an inode in XFS. An inode number there is its position, in units of its size; allocation groups are
    /// counted as if their sizes were powers of two.
    const SMALLEST_INODE: u64 = 256;
    // The type is a number of 32 bits, whatever the field's.
    match found.f_type as u64 & u64::from(u32::MAX) {
        EXT | F2FS => true,
        XFS => {
            let bytes = found.f_blocks.saturating_mul(u64::try_from(found.f_bsize).unwrap_or(u64::MAX));
            bytes / SMALLEST_INODE * 2 <= u64::from(u32::MAX)
        }
        _ => false,
    }
}

/// Returns the files at which sockets of this network namespace listen.
fn listeners() -> Result<Vec<SocketFile>, Errno> {
    let kernel: OwnedFd = socket_with(
        AddressFamily::NETLINK,
        SocketType::DGRAM,
        SocketFlags::CLOEXEC,
        Some(netlink::SOCK_DIAG),
    )?;
    send(&kernel, &request(), SendFlags::empty())?;
    let (mut all, mut room) = (Vec::new(), vec![0; ROOM]);
    loop {
        // The kernel has the next part of the list ready before it hands out one.
        let (_, length) = recv(&kernel, &mut room[..], RecvFlags::DONTWAIT | RecvFlags::TRUNC)?;
        let part = room.get(..length).ok_or(Errno::MSGSIZE)?;
        if !read(part, &mut all)? {
            return Ok(all);
        }
    }
}

fn request() -> Vec<u8> {
    let length = (HEADER + ASKED) as u32;
    let mut bytes = Vec::with_capacity(HEADER + ASKED);
    bytes.extend(length.to_ne_bytes());
    bytes.extend(BY_FAMILY.to_ne_bytes());
    bytes.extend(ALL.to_ne_bytes());
    // The kernel fills in the sender; answers have no number of their own here.
    bytes.extend([0; 8]);
    bytes.extend([libc::AF_UNIX as u8, 0, 0, 0]);
    bytes.extend((1_u32 << LISTENS).to_ne_bytes());
    bytes.extend(0_u32.to_ne_bytes());
    bytes.extend(SHOW_FILE.to_ne_bytes());
    bytes.extend([0; 8]);
    bytes
}

/// Reads one part of the list. False if it is the last.
fn read(mut part: &[u8], all: &mut Vec<SocketFile>) -> Result<bool, Errno> {
    while !part.is_empty() {
        let length = number(part, 0).and_then(|length| usize::try_from(length).ok()).ok_or(Errno::BADMSG)?;
        let message = part.get(..length).filter(|message| message.len() >= HEADER).ok_or(Errno::BADMSG)?;
        match short(message, 4) {
            Some(BY_FAMILY) => all.extend(file_of(message.get(HEADER + TOLD..).unwrap_or_default())),
            Some(DONE) => return Ok(false),
            // The kernel doesn't support the query.
            _ => return Err(Errno::OPNOTSUPP),
        }
        part = part.get(aligned(length)..).unwrap_or_default();
    }
    Ok(true)
}

/// The file that is among the attributes of a socket.
fn file_of(mut attributes: &[u8]) -> Option<SocketFile> {
    loop {
        let length = usize::from(short(attributes, 0)?);
        let content = attributes.get(ATTRIBUTE..length)?;
        if short(attributes, 2)? == FILE {
            return Some(SocketFile { inode: number(content, 0)?, device: number(content, 4)? });
        }
        attributes = attributes.get(aligned(length)..)?;
    }
}

fn number(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn short(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// Messages and attributes begin at multiples of four.
const fn aligned(length: usize) -> usize {
    length.next_multiple_of(4)
}

// === impl SocketFile ===

impl SocketFile {
    /// `None` for a number that the kernel would cut.
    fn of(stat: &Stat) -> Option<Self> {
        /// The kernel's encoding of a device here differs from the one for programs.
        const MINOR_BITS: u32 = 20;
        let device = (major(stat.st_dev) << MINOR_BITS) | minor(stat.st_dev);
        Some(Self { inode: u32::try_from(stat.st_ino).ok()?, device })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, Mode, OFlags, fstat, openat, unlink};
    use std::os::unix::net::UnixListener;
    use std::path::{Path, PathBuf};

    fn place(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("belljar-own-sockets-{}-{name}", std::process::id()))
    }

    fn checked(path: &Path) -> Result<(), Errno> {
        let file = openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
        check(&file, &fstat(&file).unwrap())
    }

    #[test]
    fn own_listener_is_recognised_by_its_socket_file_only() {
        let (path, other) = (place("one"), place("other"));
        let listener = UnixListener::bind(&path).unwrap();
        let gone = UnixListener::bind(&other).unwrap();
        drop(gone);
        let file = openat(CWD, &path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).unwrap();
        let (known, gone) = match fstatfs(&file).is_ok_and(|found| has_short_numbers(&found)) {
            true => (Ok(()), Err(Errno::CONNREFUSED)),
            false => (Err(Errno::ACCESS), Err(Errno::ACCESS)),
        };
        assert_eq!((checked(&path), checked(&other)), (known, gone));
        drop(listener);
        assert_eq!(checked(&path), gone);
        unlink(&path).unwrap();
        unlink(&other).unwrap();
    }

    #[test]
    fn unix_socket_list_is_parsed_in_the_kernels_format() {
        let message = |kind: u16, rest: &[u8]| {
            let length = (HEADER + rest.len()) as u32;
            let mut bytes = [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), &[0; 10], rest].concat();
            bytes.resize(aligned(bytes.len()), 0);
            bytes
        };
        let named = [&6_u16.to_ne_bytes()[..], &0_u16.to_ne_bytes(), b"ab", &[0, 0]].concat();
        let file =
            [&12_u16.to_ne_bytes()[..], &FILE.to_ne_bytes(), &7_u32.to_ne_bytes(), &9_u32.to_ne_bytes()]
                .concat();
        let told = [0; TOLD];
        let part = [
            message(BY_FAMILY, &[&told[..], &named, &file].concat()),
            message(BY_FAMILY, &[&told[..], &named].concat()),
        ];
        let mut all = Vec::new();
        assert_eq!(read(&part.concat(), &mut all), Ok(true));
        assert_eq!(all, [SocketFile { inode: 7, device: 9 }]);
        assert_eq!(read(&message(DONE, &[0; 4]), &mut all), Ok(false));
        assert_eq!(read(&message(2, &[0; 4]), &mut all), Err(Errno::OPNOTSUPP));
        assert_eq!(read(&[9, 0, 0], &mut all), Err(Errno::BADMSG));
    }
}
