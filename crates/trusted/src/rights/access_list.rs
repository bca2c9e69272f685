//! Users and groups that an access control list lets write (`acl(5)`). With such a list, the group's permission bits are
//! its mask.

use std::path::Path;

/// The attribute's head, and one entry of it: a tag, permissions, and the number of a user or group, all little-endian.
const HEAD: usize = 4;
const ENTRY: usize = 8;

/// The tags of named users and groups.
const NAMED: [u16; 2] = [0x02, 0x08];
const WRITE: u16 = 2;

/// Size of the buffer, in bytes: more than an attribute can hold.
const LONGEST: usize = 64 << 10;

/// Returns true if the list names a user or group that may write. A list that can't be read counts as such.
pub(super) fn lets_others_write(path: &Path) -> bool {
    let mut list = vec![0; LONGEST];
    match rustix::fs::getxattr(path, c"system.posix_acl_access", &mut list[..]) {
        Ok(length) => names_a_writer(list.get(..length).unwrap_or_default()),
        Err(rustix::io::Errno::NODATA | rustix::io::Errno::OPNOTSUPP) => false,
        Err(_) => true,
    }
}

fn names_a_writer(list: &[u8]) -> bool {
    let entries = list.get(HEAD..).unwrap_or_default().chunks_exact(ENTRY);
    entries
        .map(|entry| [[entry[0], entry[1]], [entry[2], entry[3]]].map(u16::from_le_bytes))
        .any(|[tag, permissions]| NAMED.contains(&tag) && permissions & WRITE != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn acl_writer_is_found_but_not_readers_or_the_owner() {
        let entry = |tag: u16, permissions: u16| {
            [&tag.to_le_bytes()[..], &permissions.to_le_bytes(), &1000_u32.to_le_bytes()].concat()
        };
        let list = |entries: &[Vec<u8>]| [&[2, 0, 0, 0][..], &entries.concat()].concat();
        let usual = [entry(0x01, 6), entry(0x04, 6), entry(0x10, 6), entry(0x20, 4)];
        assert!(!names_a_writer(&list(&usual)));
        for (tag, permissions, expected) in [(0x02, 6, true), (0x08, 2, true), (0x02, 4, false)] {
            let named = [&usual[..], &[entry(tag, permissions)]].concat();
            assert_eq!(names_a_writer(&list(&named)), expected, "{tag} {permissions}");
        }
        assert!(!names_a_writer(&[]));
    }
}
