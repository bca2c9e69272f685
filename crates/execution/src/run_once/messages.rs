//! The messages of an agent, as a file in its workspace (`docs/contracts/agents.md#a6.1`).
//!
//! The file is written into the copy before anything runs; the source directory is only read. Symbolic links are not
//! followed, as the directory may have been written by an attacker.

use belljar_confine::plan::Identity;
use belljar_files::directory::{Directory, DirectoryError};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fchown, openat, unlinkat};
use rustix::io::Errno;
use rustix::process::{Gid, Uid};
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// The file, relative to the workspace.
pub const MESSAGES: &str = ".cogni/messages.json";

/// Reasons why the messages can't be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteMessagesError {
    /// Another kind of file is in the way.
    #[error("the workspace has something else than a {expected} at {}", path.display())]
    InTheWay {
        /// Its path.
        path: PathBuf,
        /// The expected kind.
        expected: &'static str,
    },
    /// The directory can't be read or made.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// The file can't be written.
    #[error("can't write the messages")]
    Write {
        /// The cause.
        #[source]
        source: std::io::Error,
    },
}

const FOLDER: &str = ".cogni";
const FILE: &str = "messages.json";

/// Writes the messages into the workspace copy.
pub(super) fn place(
    messages: &[u8],
    (source, changed): (&Directory, &Directory),
    owner: Identity,
) -> Result<(), WriteMessagesError> {
    let folder = look(source, FOLDER, FileType::Directory, "directory")?;
    look(source, MESSAGES, FileType::RegularFile, "file")?;
    // The folder keeps the mode that it has in the workspace: another one would be a change.
    let mode = folder.map_or(0o755, |stat| stat.st_mode & 0o777);
    let folder = changed.make(Path::new(FOLDER), 0o700)?;
    // A copied folder may have a mode that excludes even its owner.
    folder.set_mode(0o700)?;
    write(&folder, messages, owner).map_err(|source| WriteMessagesError::Write { source })?;
    give(&folder, owner).map_err(|errno| WriteMessagesError::Write { source: errno.into() })?;
    Ok(folder.set_mode(mode)?)
}

fn look(
    source: &Directory,
    path: &str,
    kind: FileType,
    expected: &'static str,
) -> Result<Option<Stat>, WriteMessagesError> {
    let found = source.stat(Path::new(path))?;
    match found {
        Some(stat) if FileType::from_raw_mode(stat.st_mode) != kind => {
            Err(WriteMessagesError::InTheWay { path: path.into(), expected })
        }
        found => Ok(found),
    }
}

fn write(folder: &Directory, messages: &[u8], owner: Identity) -> std::io::Result<()> {
    match unlinkat(folder, FILE, AtFlags::empty()) {
        // A full copy contains the source's file, if there was one.
        Ok(()) | Err(Errno::NOENT) => {}
        Err(errno) => return Err(errno.into()),
    }
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(folder, FILE, flags, Mode::from_raw_mode(0o600))?;
    rustix::fs::fchmod(&file, Mode::from_raw_mode(0o644))?;
    give(&file, owner)?;
    File::from(file).write_all(messages)
}

fn give(file: impl rustix::fd::AsFd, owner: Identity) -> Result<(), Errno> {
    match rustix::process::geteuid().is_root() {
        true => fchown(file, Some(Uid::from_raw(owner.host_uid)), Some(Gid::from_raw(owner.host_gid))),
        false => Ok(()),
    }
}

/// Returns true if the file is unchanged, or was deleted without a replacement. Otherwise the agent has changed it.
pub(super) fn is_untouched(messages: &[u8], changed: &Directory) -> Result<bool, DirectoryError> {
    let kind = |path: &str| {
        let found = changed.stat(Path::new(path))?;
        Ok::<_, DirectoryError>(found.map(|stat| FileType::from_raw_mode(stat.st_mode)))
    };
    if kind(FOLDER)? != Some(FileType::Directory) {
        return Ok(false);
    }
    match kind(MESSAGES)? {
        None | Some(FileType::CharacterDevice) => Ok(true),
        Some(FileType::RegularFile) => {
            let mut found = Vec::new();
            let file = changed.open_own_file(Path::new(MESSAGES))?;
            let read = file.take(messages.len() as u64 + 1).read_to_end(&mut found);
            Ok(read.is_ok() && found == messages)
        }
        Some(_) => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    struct OverlayFixture {
        folder: tempfile::TempDir,
    }

    impl OverlayFixture {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            std::fs::create_dir(folder.path().join("source")).unwrap();
            std::fs::create_dir(folder.path().join("upper")).unwrap();
            Self { folder }
        }

        fn at(&self, path: &str) -> PathBuf {
            self.folder.path().join(path)
        }

        fn place(&self) -> Result<(), WriteMessagesError> {
            let open = |name: &str| Directory::open_host(&self.at(name)).unwrap();
            let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
            let owner = Identity { inside_uid: 1000, inside_gid: 1000, host_uid: uid, host_gid: gid };
            place(b"[]", (&open("source"), &open("upper")), owner)
        }

        fn is_untouched(&self) -> bool {
            is_untouched(b"[]", &Directory::open_host(&self.at("upper")).unwrap()).unwrap()
        }
    }

    #[test]
    fn messages_are_written_to_the_upper_layer_only() {
        let layers = OverlayFixture::new();
        std::fs::create_dir(layers.at("source/.cogni")).unwrap();
        std::fs::set_permissions(layers.at("source/.cogni"), PermissionsExt::from_mode(0o750)).unwrap();
        layers.place().unwrap();
        assert_eq!(std::fs::read(layers.at("upper/.cogni/messages.json")).unwrap(), b"[]");
        let mode = layers.at("upper/.cogni").metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o750);
        assert_eq!(std::fs::read_dir(layers.at("source/.cogni")).unwrap().count(), 0);
        assert!(layers.is_untouched());
    }

    #[test]
    fn messages_are_not_written_through_links_or_files() {
        let link: fn(&OverlayFixture) =
            |layers| symlink(layers.at("outside"), layers.at("source/.cogni")).unwrap();
        let file: fn(&OverlayFixture) = |layers| std::fs::write(layers.at("source/.cogni"), "").unwrap();
        let inner: fn(&OverlayFixture) = |layers| {
            std::fs::create_dir(layers.at("source/.cogni")).unwrap();
            symlink(layers.at("outside/x"), layers.at("source/.cogni/messages.json")).unwrap();
        };
        for in_the_way in [link, file, inner] {
            let layers = OverlayFixture::new();
            std::fs::create_dir(layers.at("outside")).unwrap();
            in_the_way(&layers);
            assert!(matches!(layers.place(), Err(WriteMessagesError::InTheWay { .. })));
            assert_eq!(std::fs::read_dir(layers.at("outside")).unwrap().count(), 0);
        }
    }

    type LayerChange = fn(&OverlayFixture);

    #[test]
    fn messages_changed_by_the_agent_count_as_changes() {
        let changes: [(LayerChange, bool); 5] = [
            (|layers| std::fs::write(layers.at("upper/.cogni/messages.json"), "[ ]").unwrap(), false),
            (|layers| std::fs::write(layers.at("upper/.cogni/messages.json"), "[]\n").unwrap(), false),
            (|layers| std::fs::remove_file(layers.at("upper/.cogni/messages.json")).unwrap(), true),
            (|layers| std::fs::remove_dir_all(layers.at("upper/.cogni")).unwrap(), false),
            (
                |layers| {
                    std::fs::remove_file(layers.at("upper/.cogni/messages.json")).unwrap();
                    symlink("/etc/passwd", layers.at("upper/.cogni/messages.json")).unwrap();
                },
                false,
            ),
        ];
        for (change, is_untouched) in changes {
            let layers = OverlayFixture::new();
            layers.place().unwrap();
            change(&layers);
            assert_eq!(layers.is_untouched(), is_untouched);
        }
    }
}
