//! The folder of a log. It is created at once, with its key and its first record, so that any missing file is detected.
//!
//! ```text
//! <state>/audit/key              the secret key
//!              /public-key       for checking signatures
//!              /lock             held while a batch is written
//!              /head             the log's length
//!              /00000001.jsonl   the records, in segments
//!              /torn/            rests of batches after crashes
//! ```

use super::chain::Position;
use super::checkpoint;
use super::error::{AuditError, Fault};
use super::event::Event;
use super::head::{CheckpointMark, Head};
use super::key::{PublicKey, SecretKey};
use super::record;
use super::segment;
use super::torn::TORN;
use rustix::fs::{Mode, OFlags};
use serde_json::json;
use std::fs::{DirBuilder, File};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The folder.
#[derive(Debug, Clone)]
pub(super) struct LogFolder {
    path: PathBuf,
}

/// The lock on a log, held until this is dropped.
#[derive(Debug)]
pub(super) struct LogLock {
    lock: Arc<File>,
}

pub(super) const KEY: &str = "key";
pub(super) const PUBLIC_KEY: &str = "public-key";
pub(super) const LOCK: &str = "lock";
pub(super) const HEAD: &str = "head";

/// Upper bound for the size of the small files, in bytes.
const SMALL: u64 = 4096;

// === impl LogLock ===

impl Drop for LogLock {
    fn drop(&mut self) {
        // If unlocking fails, closing the descriptor unlocks it.
        let _ = self.lock.unlock();
    }
}

// === impl LogFolder ===

impl LogFolder {
    /// The folder of a log that exists.
    pub(super) fn of_log(path: &Path) -> Result<Self, AuditError> {
        let metadata = std::fs::metadata(path).map_err(|error| AuditError::io("open", path, error))?;
        match metadata.is_dir() {
            true => Ok(Self { path: path.to_owned() }),
            false => Err(AuditError::io("open", path, ErrorKind::NotADirectory.into())),
        }
    }

    /// The folder of a log, which is made if there is none.
    pub(super) fn open_or_create(path: &Path) -> Result<Self, AuditError> {
        if !path.join(KEY).exists() && is_missing_or_empty(path) {
            create(path)?;
        }
        let folder = Self::of_log(path)?;
        folder.must_be_closed_to_others("")?;
        folder.must_be_closed_to_others(KEY)?;
        Ok(folder)
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    fn must_be_closed_to_others(&self, name: &str) -> Result<(), AuditError> {
        let path = if name.is_empty() { self.path.clone() } else { self.path.join(name) };
        let metadata = std::fs::symlink_metadata(&path).map_err(|error| self.cant("open", name, error))?;
        match metadata.mode() & 0o077 {
            0 => Ok(()),
            _ => Err(AuditError::Exposed { path }),
        }
    }

    /// Opens a file of the log to read and write. A missing file is damage.
    pub(super) fn open_to_write(&self, name: &str) -> Result<File, AuditError> {
        self.open(name, OFlags::RDWR)
    }

    pub(super) fn open_to_read(&self, name: &str) -> Result<File, AuditError> {
        self.open(name, OFlags::RDONLY)
    }

    /// Makes a file that must not be there yet.
    pub(super) fn create(&self, name: &str) -> Result<File, AuditError> {
        self.open(name, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)
    }

    fn open(&self, name: &str, flags: OFlags) -> Result<File, AuditError> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let opened = rustix::fs::open(self.path.join(name), flags, Mode::from_raw_mode(0o600));
        let file = File::from(opened.map_err(|errno| self.cant("open", name, errno.into()))?);
        match file.metadata() {
            Ok(metadata) if metadata.is_file() => Ok(file),
            _ => Err(AuditError::damaged(name, None, Fault::Foreign)),
        }
    }

    /// The error for a file of the log; one that is not there is damage.
    fn cant(&self, action: &'static str, name: &str, error: std::io::Error) -> AuditError {
        match error.kind() {
            ErrorKind::NotFound => AuditError::damaged(name, None, Fault::Missing),
            _ => AuditError::io(action, &self.path.join(name), error),
        }
    }

    /// Returns the content of a small file; one byte more than allowed if it is too large.
    pub(super) fn read_small(&self, name: &str) -> Result<Vec<u8>, AuditError> {
        let mut content = Vec::new();
        let read = self.open_to_read(name)?.take(SMALL).read_to_end(&mut content);
        read.map_err(|error| self.cant("read", name, error))?;
        Ok(content)
    }

    pub(super) fn public_key(&self) -> Result<PublicKey, AuditError> {
        let content = self.read_small(PUBLIC_KEY)?;
        let text = std::str::from_utf8(&content).ok().and_then(|text| text.strip_suffix('\n'));
        text.and_then(|text| PublicKey::parse(text).ok())
            .ok_or_else(|| AuditError::damaged(PUBLIC_KEY, None, Fault::Altered))
    }

    /// The secret key, which belongs to the public one.
    pub(super) fn secret_key(&self) -> Result<SecretKey, AuditError> {
        let public = self.public_key()?;
        let secret = SecretKey::parse(&self.read_small(KEY)?).filter(|secret| secret.public() == public);
        secret.ok_or_else(|| AuditError::damaged(KEY, None, Fault::OtherKey))
    }

    /// The file that is locked while a batch is written.
    pub(super) fn lock_file(&self) -> Result<Arc<File>, AuditError> {
        self.open_to_read(LOCK).map(Arc::new)
    }

    /// Waits for the exclusive lock: no other process reads or writes then.
    pub(super) fn lock(&self, lock: &Arc<File>) -> Result<LogLock, AuditError> {
        self.locked(lock, File::lock)
    }

    /// Waits for the shared lock: no process writes then, but others may read.
    pub(super) fn lock_shared(&self, lock: &Arc<File>) -> Result<LogLock, AuditError> {
        self.locked(lock, File::lock_shared)
    }

    fn locked(
        &self,
        lock: &Arc<File>,
        take: fn(&File) -> std::io::Result<()>,
    ) -> Result<LogLock, AuditError> {
        loop {
            match take(lock) {
                Ok(()) => return Ok(LogLock { lock: Arc::clone(lock) }),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(self.cant("lock", LOCK, error)),
            }
        }
    }

    /// The names in it, or in the folder of that name in it; none if there is no such folder.
    pub(super) fn names(&self, below: &str) -> Result<Vec<String>, AuditError> {
        let path = if below.is_empty() { self.path.clone() } else { self.path.join(below) };
        let failed = |error| AuditError::io("list", &path, error);
        let entries = match std::fs::read_dir(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound && !below.is_empty() => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        let mut names = Vec::new();
        for entry in entries {
            names.push(entry.map_err(failed)?.file_name().to_string_lossy().into_owned());
        }
        names.sort_unstable();
        Ok(names)
    }

    /// The number of the last segment. All before it are there.
    pub(super) fn last_segment(&self) -> Result<u64, AuditError> {
        let mut numbers: Vec<u64> = self.names("")?.iter().filter_map(|name| segment::number(name)).collect();
        numbers.sort_unstable();
        let missing = (1..).zip(&numbers).find(|(expected, number)| expected != *number);
        match (missing, numbers.last()) {
            (None, Some(last)) => Ok(*last),
            (missing, _) => {
                let number = missing.map_or(1, |(expected, _)| expected);
                Err(AuditError::damaged(segment::name(number), None, Fault::Missing))
            }
        }
    }

    /// Makes the names in it last.
    pub(super) fn sync(&self) -> Result<(), AuditError> {
        sync_directory(&self.path)
    }
}

pub(super) fn sync_directory(path: &Path) -> Result<(), AuditError> {
    let synced = File::open(path).and_then(|directory| directory.sync_all());
    synced.map_err(|error| AuditError::io("write", path, error))
}

fn is_missing_or_empty(path: &Path) -> bool {
    match std::fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_none(),
        Err(error) => error.kind() == ErrorKind::NotFound,
    }
}

/// Creates a whole log beside `path` and moves it there, unless another process was faster.
fn create(path: &Path) -> Result<(), AuditError> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let cant_make = |path: &Path| {
        let path = path.to_owned();
        move |error| AuditError::io("make", &path, error)
    };
    std::fs::create_dir_all(parent).map_err(cant_make(parent))?;
    let thread = rustix::thread::gettid().as_raw_nonzero();
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let making = parent.join(format!(".{name}-{}-{thread}", std::process::id()));
    // A killed process may have had the same pid.
    let _ = std::fs::remove_dir_all(&making);
    DirBuilder::new().mode(0o700).create(&making).map_err(cant_make(&making))?;
    let made =
        fill(&LogFolder { path: making.clone() }).and_then(|()| match std::fs::rename(&making, path) {
            Err(error) if !is_missing_or_empty(path) => match path.join(KEY).exists() {
                true => Ok(()),
                false => Err(cant_make(path)(error)),
            },
            renamed => renamed.map_err(cant_make(path)),
        });
    // If the folder was moved, there is nothing to remove.
    let _ = std::fs::remove_dir_all(&making);
    made?;
    sync_directory(parent)
}

fn fill(folder: &LogFolder) -> Result<(), AuditError> {
    let key = SecretKey::new(&folder.path)?;
    let public = key.public();
    let created = Event::of_log("created", None, &json!({ "format": 1, "public_key": public.to_string() }));
    let body = created.map(|event| event.body().to_vec()).unwrap_or_default();
    let mut text = Vec::new();
    let hash = record::push(&mut text, 1, &body, &Position::BEGIN.hash);
    let begin = text.len();
    let position = checkpoint::push(&mut text, &key, Position { sequence: 1, hash });
    let line = text[begin..text.len() - 1].to_vec();
    let mark = CheckpointMark { segment: 1, end: text.len() as u64, line, position };
    for (name, content) in [
        (KEY, key.file_content()),
        (PUBLIC_KEY, format!("{public}\n").into_bytes()),
        (LOCK, Vec::new()),
        (HEAD, Head::content_of(&mark)),
        (&segment::name(1), text),
    ] {
        let mut file = folder.create(name)?;
        let written = file.write_all(&content).and_then(|()| file.sync_all());
        written.map_err(|error| AuditError::io("write", &folder.path.join(name), error))?;
    }
    let torn = folder.path.join(TORN);
    DirBuilder::new().mode(0o700).create(&torn).map_err(|error| AuditError::io("make", &torn, error))?;
    folder.sync()
}
