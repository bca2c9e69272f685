//! An archive for the kernel to unpack at boot: `cpio` in its "new ASCII" format.

/// An archive under construction. Every entry belongs to root.
#[derive(Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    entries: u32,
}

const DIRECTORY: u32 = 0o040_755;
const LINK: u32 = 0o120_777;
const FILE: u32 = 0o100_000;

/// The name of the last entry.
const LAST: &str = "TRAILER!!!";

// === impl Archive ===

impl Archive {
    /// Adds a directory. Its parents must have been added.
    pub fn directory(&mut self, path: &str) {
        self.entry(path, DIRECTORY, &[]);
    }

    /// Adds a file.
    pub fn file(&mut self, path: &str, permissions: u32, content: &[u8]) {
        self.entry(path, FILE | permissions, content);
    }

    /// Adds a symbolic link.
    pub fn link(&mut self, path: &str, target: &str) {
        self.entry(path, LINK, target.as_bytes());
    }

    /// Returns the complete archive.
    pub fn finish(mut self) -> Vec<u8> {
        self.entry(LAST, 0, &[]);
        self.bytes
    }

    fn entry(&mut self, path: &str, mode: u32, content: &[u8]) {
        // Entries with the same inode number are hard links of one file.
        self.entries += 1;
        let links = 1;
        let [user, group, modified, major, minor, special_major, special_minor, sum] = [0_usize; 8];
        let fields = [
            self.entries as usize,
            mode as usize,
            user,
            group,
            links,
            modified,
            content.len(),
            major,
            minor,
            special_major,
            special_minor,
            path.len() + 1,
            sum,
        ];
        self.bytes.extend(b"070701");
        for field in fields {
            self.bytes.extend(format!("{field:08x}").bytes());
        }
        self.bytes.extend(path.bytes());
        self.bytes.push(0);
        self.pad();
        self.bytes.extend(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    #[test]
    fn busybox_unpacks_the_archive() {
        let Some(busybox) = crate::guest::busybox() else {
            return belljar_testkit::skip::skip("busybox_unpacks_the_archive", "there is no busybox here");
        };
        let mut archive = Archive::default();
        archive.directory("below");
        archive.file("below/file", 0o640, b"content");
        archive.link("link", "below/file");
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(busybox);
        command.args(["cpio", "-i"]).current_dir(folder.path()).stdin(Stdio::piped()).stderr(Stdio::null());
        let mut unpacking = command.spawn().unwrap();
        unpacking.stdin.take().unwrap().write_all(&archive.finish()).unwrap();
        assert!(unpacking.wait().unwrap().success());
        assert_eq!(std::fs::read_to_string(folder.path().join("link")).unwrap(), "content");
    }
}
