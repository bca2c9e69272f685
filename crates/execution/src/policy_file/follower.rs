//! Polls a policy file: a content counts if two successive checks find it.

use super::{PolicyChange, PolicyFile, PolicyFileError, digest, read_bytes};
use belljar_egress::web::live::LivePolicy;
use belljar_trusted::trusted_file;
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::sync::Arc;

/// State of a file at a check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum FileState {
    Holds(String),
    Unreadable(io::ErrorKind),
}

/// Polls a file.
pub(super) struct FilePoller<T> {
    pub(super) file: PolicyFile,
    pub(super) live: Arc<LivePolicy>,
    pub(super) handled: FileState,
    /// State at the last check, if it was new.
    pub(super) unsettled: Option<FileState>,
    pub(super) tell: T,
}

// === impl FilePoller ===

impl<T: FnMut(&PolicyChange)> FilePoller<T> {
    pub(super) fn look(&mut self) {
        let read = open_regular(&self.file.path).and_then(read_bytes);
        let look = match &read {
            Ok(bytes) => FileState::Holds(digest(bytes)),
            Err(error) => FileState::Unreadable(error.kind()),
        };
        if look == self.handled {
            self.unsettled = None;
        } else if self.unsettled.as_ref() == Some(&look) {
            self.unsettled = None;
            self.handled = look;
            self.handle(read);
        } else {
            self.unsettled = Some(look);
        }
    }

    fn handle(&mut self, read: io::Result<Vec<u8>>) {
        let current = self.live.current();
        let (bytes, sha256) = match read {
            Ok(bytes) => {
                let sha256 = digest(&bytes);
                (bytes, sha256)
            }
            Err(error) => return (self.tell)(&self.file.refused(None, current.number, &error)),
        };
        match self.file.parse(&bytes) {
            Ok(config) if config == current.config => {}
            Ok(policy) => {
                (self.tell)(&self.file.taken(&sha256, current.number + 1, &policy));
                self.live.replace(policy);
            }
            Err(PolicyFileError::Mistakes { source, .. }) => {
                (self.tell)(&self.file.refused(Some(sha256), current.number, &source));
            }
            Err(error) => {
                (self.tell)(&self.file.refused(Some(sha256), current.number, &error));
            }
        }
    }
}

/// Opens a regular file only: opening a pipe could block the follower.
fn open_regular(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    // Write permissions may have changed since the file was first read, and a sandbox may have written it meanwhile.
    let found = trusted_file::check(path)?;
    let by = format!("/proc/self/fd/{}", found.as_raw_fd());
    let file = File::from(rustix::fs::open(by, flags, Mode::empty())?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no file any more")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::fs;
    use std::path::PathBuf;
    use std::rc::Rc;

    /// A file whose checks the test triggers.
    struct FollowedFile {
        folder: tempfile::TempDir,
        follower: FilePoller<ChangeCallback>,
        told: Rc<RefCell<Vec<PolicyChange>>>,
    }

    type ChangeCallback = Box<dyn FnMut(&PolicyChange)>;

    const ONE: &str = "rules: [{host: a.example}]";
    const TWO: &str = "rules: [{host: a.example}, {host: b.example}]";

    impl FollowedFile {
        fn begin() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("policy.yaml");
            fs::write(&path, ONE).unwrap();
            let opened = PolicyFile::of_rules(&path).unwrap().open().unwrap();
            let (file, handled) = opened.followed.unwrap();
            let told = Rc::<RefCell<Vec<PolicyChange>>>::default();
            let hears = Rc::clone(&told);
            let tell: ChangeCallback = Box::new(move |change| hears.borrow_mut().push(change.clone()));
            Self {
                folder,
                follower: FilePoller { file, live: opened.live, handled, unsettled: None, tell },
                told,
            }
        }

        fn write(&self, text: &str) {
            fs::write(self.path(), text).unwrap();
        }

        fn path(&self) -> PathBuf {
            self.folder.path().join("policy.yaml")
        }

        /// Returns the policy's number, its number of rules, and the number of reports, after the given number of checks.
        fn after(&mut self, looks: usize) -> (u64, usize, usize) {
            (0..looks).for_each(|_| self.follower.look());
            let current = self.follower.live.current();
            (current.number, current.config.policy.rules().len(), self.told.borrow().len())
        }
    }

    #[test]
    fn policy_file_is_loaded_after_two_equal_polls() {
        let mut followed = FollowedFile::begin();
        assert_eq!(followed.after(3), (1, 1, 0));
        // Each part of this file would be a valid policy, too.
        followed.write("rules: []");
        assert_eq!(followed.after(1), (1, 1, 0));
        followed.write(TWO);
        assert_eq!(followed.after(1), (1, 1, 0));
        assert_eq!(followed.after(1), (2, 2, 1));
        assert_eq!(followed.after(3), (2, 2, 1));
        // An atomic replacement: another file is renamed to the path.
        let next = followed.folder.path().join("next");
        fs::write(&next, "rules: []").unwrap();
        fs::rename(next, followed.path()).unwrap();
        assert_eq!(followed.after(2), (3, 0, 2));
        // An equal policy in another spelling.
        followed.write("# nothing\nrules: []");
        assert_eq!(followed.after(2), (3, 0, 2));
    }

    #[test]
    fn invalid_or_missing_policy_file_is_reported_once_and_ignored() {
        let mut followed = FollowedFile::begin();
        followed.write("rules: [{hots: a.example}]");
        assert_eq!(followed.after(4), (1, 1, 1));
        fs::remove_file(followed.path()).unwrap();
        assert_eq!(followed.after(4), (1, 1, 2));
        // The follower doesn't block on a pipe.
        rustix::fs::mknodat(
            rustix::fs::CWD,
            followed.path(),
            rustix::fs::FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        assert_eq!(followed.after(4), (1, 1, 3));
        let refused = |change: &PolicyChange| match change {
            PolicyChange::Refused { generation: 1, why, sha256, .. } => (why.clone(), sha256.is_some()),
            other => panic!("{other:?}"),
        };
        let told: Vec<_> = followed.told.borrow().iter().map(refused).collect();
        assert!(told[0].1 && told[0].0.contains("hots"), "{told:?}");
        assert!(!told[1].1 && !told[2].1, "{told:?}");
        // Control.
        fs::remove_file(followed.path()).unwrap();
        followed.write(TWO);
        assert_eq!(followed.after(2), (2, 2, 4));
    }

    #[test]
    fn policy_from_a_pipe_is_read_once_and_not_followed() {
        let (read, write) = rustix::pipe::pipe().unwrap();
        rustix::io::write(&write, ONE.as_bytes()).unwrap();
        drop(write);
        let path = format!("/proc/self/fd/{}", read.as_raw_fd());
        let opened = PolicyFile::of_rules(Path::new(&path)).unwrap().open().unwrap();
        assert_eq!(opened.live().current().config.policy.rules().len(), 1);
        assert!(opened.follow(|_| panic!("nothing becomes of it")).unwrap().thread.is_none());
    }
}
