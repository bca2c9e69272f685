//! Files that the command line or a configuration names and that are read whole, such as jobs, messages and tokens.
//!
//! A sandbox may have replaced such a file by something else: a pipe without a writer, whose opening blocks, or a link to a
//! terminal. Anything but a regular file is refused and never waited for, unless the caller has passed it by a descriptor.

use rustix::fs::{CWD, FileType, Mode, OFlags, fcntl_getfl, fcntl_setfl, fstat, openat};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The device that has nothing in it (`/dev/null`): its numbers are the same on every Linux.
const NULL: (u32, u32) = (1, 3);

/// Opens a file for reading.
///
/// # Errors
/// The system's, and `InvalidInput` for what isn't a regular file.
pub fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let opened = openat(CWD, path, flags, Mode::empty())?;
    let stat = fstat(&opened)?;
    let device = (rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev));
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {}
        FileType::CharacterDevice if device == NULL => {}
        FileType::Fifo | FileType::CharacterDevice if is_passed(path) => {}
        FileType::Directory => return Err(rustix::io::Errno::ISDIR.into()),
        _ => return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    }
    // Only opening it must not wait.
    fcntl_setfl(&opened, fcntl_getfl(&opened)?.difference(OFlags::NONBLOCK))?;
    Ok(File::from(opened))
}

/// Reads a file of at most that many bytes. Of a longer file one byte more is returned, so that the caller can detect it.
///
/// # Errors
/// The errors of [`open`], and the system's.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns true if a path means a descriptor of this process, such as `/dev/fd/63`, which a shell makes of `<(…)`. A link
/// of another name that leads to a descriptor doesn't count: a sandbox could have made it.
fn is_passed(path: &Path) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let Some(text) = path.to_str() else { return false };
    text == "/dev/stdin"
        || ["/dev/fd/", "/proc/self/fd/"].iter().any(|place| text.strip_prefix(place).is_some_and(is_number))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::pipe::pipe;
    use std::io::Write;
    use std::os::fd::AsRawFd;

    #[test]
    fn pipes_and_terminals_in_place_of_a_file_are_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        rustix::fs::mkfifoat(CWD, path("pipe"), Mode::RUSR | Mode::WUSR).unwrap();
        std::os::unix::fs::symlink(path("pipe"), path("link")).unwrap();
        std::os::unix::fs::symlink("/dev/zero", path("zero")).unwrap();
        let _listener = std::os::unix::net::UnixListener::bind(path("socket")).unwrap();
        for name in ["pipe", "link", "zero", "socket", "."] {
            assert!(read(&path(name), 16).is_err(), "{name}");
        }
        assert!(read(Path::new("/dev/zero"), 16).is_err());
        // Controls: regular files, also by a link, and nothing at all.
        std::fs::write(path("file"), "content").unwrap();
        std::os::unix::fs::symlink(path("file"), path("alias")).unwrap();
        assert_eq!(read(&path("file"), 16).unwrap(), b"content");
        assert_eq!(read(&path("alias"), 16).unwrap(), b"content");
        assert_eq!(read(Path::new("/dev/null"), 16).unwrap(), b"");
    }

    #[test]
    fn oversized_input_is_read_only_just_past_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("long"), [b'a'; 64]).unwrap();
        assert_eq!(read(&folder.path().join("long"), 16).unwrap().len(), 17);
    }

    #[test]
    fn pipe_passed_as_descriptor_is_read_to_its_end() {
        let (ours, theirs) = pipe().unwrap();
        let writer = std::thread::spawn(move || File::from(theirs).write_all(b"late").unwrap());
        let path = format!("/proc/self/fd/{}", ours.as_raw_fd());
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert!(open(&link).is_err());
        assert_eq!(read(Path::new(&path), 16).unwrap(), b"late");
        writer.join().unwrap();
    }
}
