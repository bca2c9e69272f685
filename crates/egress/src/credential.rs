//! Sources of secrets, which are read again when a secret may have changed.

mod command;
mod config;

pub(crate) use config::read_source;

use crate::known_secrets;
use crate::leak_scan::SecretForms;
use crate::secret::{Secret, SecretError};
use belljar_contract::yaml::{MistakeLog, Node};
use belljar_trusted::trusted_file;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// Source of a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretSource {
    /// Environment variable of this process.
    Variable(String),
    /// File, read again when it was replaced or written to. Each time, it must be out of reach of sandboxes.
    File(PathBuf),
    /// Output of a program. The program runs again after a while, and when an upstream rejects the secret.
    Command(Vec<OsString>),
}

/// Secret that may change while it is used.
pub struct Credential {
    source: SecretSource,
    known: Mutex<Option<CachedSecret>>,
    /// Held while a program runs. Its value is the time of the program's last failure.
    asking: tokio::sync::Mutex<Option<Instant>>,
}

struct CachedSecret {
    injected: Arc<InjectedSecret>,
    learned_at: Instant,
    looked_at: Instant,
    /// For a file: its identity, and the time and size of the last write.
    mark: Option<FileStamp>,
}

/// Secret, with all forms in which it must not come back.
pub(crate) struct InjectedSecret {
    pub(crate) secret: Secret,
    pub(crate) forms: SecretForms,
}

type FileStamp = (u64, u64, i64, i64, u64);

/// Reason why there is no secret. The text is for the operator of the host.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    /// The environment variable is not set.
    #[error("the variable {name} is not set")]
    Unset {
        /// Name of the variable.
        name: String,
    },
    /// The file can't be read.
    #[error("can't read {}", path.display())]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Reason.
        #[source]
        source: io::Error,
    },
    /// The program can't be run, or failed.
    #[error("the command {} returned no secret", program.display())]
    Command {
        /// The program.
        program: OsString,
        /// Reason.
        #[source]
        source: io::Error,
    },
    /// The program failed a moment ago and isn't run again yet.
    #[error("the command failed a moment ago, and is run again later")]
    Lately,
    /// The task that ran the program was interrupted.
    #[error("the command was interrupted")]
    Interrupted,
    /// The source has no valid secret.
    #[error("{origin} returns no valid credential")]
    Invalid {
        /// Source of the text.
        origin: String,
        /// Reason.
        #[source]
        source: SecretError,
    },
}

/// Maximum age of a program's output; and the minimum time before the program runs again because an upstream rejects the
/// secret: a sandbox may be able to cause such rejections.
const COMMAND_TIME: Duration = Duration::from_secs(300);
const COMMAND_PAUSE: Duration = Duration::from_secs(30);

/// Time during which a failed program isn't run again.
const FAILURE_PAUSE: Duration = Duration::from_secs(5);

/// Minimum time between checks whether a file has changed: there may be ten thousand calls a second.
const FILE_PAUSE: Duration = Duration::from_millis(100);

/// Maximum size of a secret file in bytes.
const LARGEST_FILE: u64 = 64 << 10;

/// Compares the sources.
impl PartialEq for Credential {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

impl std::fmt::Debug for Credential {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credential").field("source", &self.source).finish_non_exhaustive()
    }
}

// === impl InjectedSecret ===

impl InjectedSecret {
    pub(crate) fn of(secret: Secret) -> Self {
        Self { forms: SecretForms::of(Some(&secret)), secret }
    }
}

// === impl Credential ===

impl Credential {
    /// Creates a credential. The source is read when the secret is first needed.
    pub fn new(source: SecretSource) -> Self {
        Self { source, known: Mutex::new(None), asking: tokio::sync::Mutex::default() }
    }

    /// Reads a source from the configuration: one of `env`, `file` and `command`.
    pub fn read_from(node: &Node, log: &mut MistakeLog) -> Option<Arc<Self>> {
        read_source(node, log).map(|source| Arc::new(Self::new(source)))
    }

    /// Returns the password for a login that another library makes: at a database, whose protocol this crate doesn't speak.
    ///
    /// # Errors
    /// [`CredentialError`].
    pub async fn password(self: &Arc<Self>) -> Result<Zeroizing<String>, CredentialError> {
        let injected = self.get_beside().await?;
        // A secret is visible ASCII.
        Ok(Zeroizing::new(String::from_utf8_lossy(injected.secret.expose()).into_owned()))
    }

    /// Checks that the secret can be obtained.
    ///
    /// # Errors
    /// [`CredentialError`], if it can't.
    pub fn check(&self) -> Result<(), CredentialError> {
        self.get().map(drop)
    }

    /// Returns the current secret without blocking other tasks while a program runs.
    pub(crate) async fn get_beside(self: &Arc<Self>) -> Result<Arc<InjectedSecret>, CredentialError> {
        if !self.takes_time() {
            return self.get();
        }
        // One task runs the program; the others wait without a thread each.
        let mut failed = self.asking.lock().await;
        if !self.takes_time() {
            return self.get();
        }
        if failed.is_some_and(|failed| failed.elapsed() < FAILURE_PAUSE) {
            return Err(CredentialError::Lately);
        }
        let credential = Arc::clone(self);
        let asked = tokio::task::spawn_blocking(move || credential.get());
        let asked = asked.await.unwrap_or(Err(CredentialError::Interrupted));
        *failed = asked.is_err().then(Instant::now);
        asked
    }

    /// Returns the current secret.
    ///
    /// # Errors
    /// [`CredentialError`].
    pub(crate) fn get(&self) -> Result<Arc<InjectedSecret>, CredentialError> {
        let mut known = self.known();
        if let Some(known) = known.as_ref().filter(|known| known.looked_at.elapsed() < FILE_PAUSE) {
            return Ok(Arc::clone(&known.injected));
        }
        let file = match &self.source {
            SecretSource::File(path) => Some(open(path)?),
            SecretSource::Variable(_) | SecretSource::Command(_) => None,
        };
        let mark = file.as_ref().map(|(_, mark)| *mark);
        if let Some(known) = known.as_mut().filter(|known| self.is_fresh(known, mark)) {
            known.looked_at = Instant::now();
            return Ok(Arc::clone(&known.injected));
        }
        let secret = self.read(file)?;
        let injected = Arc::new(InjectedSecret::of(secret));
        known_secrets::follow(&injected);
        let now = Instant::now();
        *known =
            Some(CachedSecret { injected: Arc::clone(&injected), learned_at: now, looked_at: now, mark });
        Ok(injected)
    }

    /// Returns true if getting the secret requires a program to run.
    pub(crate) fn takes_time(&self) -> bool {
        // The task that holds the lock may be waiting for the program.
        let is_known = || match self.known.try_lock() {
            Ok(known) => known.as_ref().is_some_and(|known| self.is_fresh(known, None)),
            Err(_) => false,
        };
        matches!(self.source, SecretSource::Command(_)) && !is_known()
    }

    fn known(&self) -> MutexGuard<'_, Option<CachedSecret>> {
        // No panic can leave the value half changed.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets the secret, because an upstream rejects it. A secret that a program has just printed is kept: there is no newer
    /// one.
    pub fn forget(&self) {
        let is_new = |known: &CachedSecret| known.learned_at.elapsed() < COMMAND_PAUSE;
        let mut known = self.known();
        if !(matches!(self.source, SecretSource::Command(_)) && known.as_ref().is_some_and(is_new)) {
            known.take();
        }
    }

    fn is_fresh(&self, known: &CachedSecret, mark: Option<FileStamp>) -> bool {
        match self.source {
            SecretSource::Variable(_) => true,
            SecretSource::File(_) => known.mark == mark,
            SecretSource::Command(_) => known.learned_at.elapsed() < COMMAND_TIME,
        }
    }

    fn read(&self, file: Option<(File, FileStamp)>) -> Result<Secret, CredentialError> {
        let (text, origin) = match &self.source {
            SecretSource::Variable(name) => {
                let text =
                    std::env::var_os(name).ok_or_else(|| CredentialError::Unset { name: name.clone() })?;
                (Zeroizing::new(text.into_encoded_bytes()), format!("the variable {name}"))
            }
            SecretSource::File(path) => {
                let failed = |source| CredentialError::Read { path: path.clone(), source };
                let (file, _) = file.ok_or(io::ErrorKind::NotFound.into()).map_err(failed)?;
                (read_text(file).map_err(failed)?, path.display().to_string())
            }
            SecretSource::Command(argv) => {
                let program = argv.first().cloned().unwrap_or_default();
                let failed = |source| CredentialError::Command { program: program.clone(), source };
                (command::ask(argv).map_err(failed)?, format!("the command {}", program.display()))
            }
        };
        Secret::parse(text.as_slice()).map_err(|source| CredentialError::Invalid { origin, source })
    }
}

/// Opens the file and checks it each time: a sandbox may have put it there since.
fn open(path: &Path) -> Result<(File, FileStamp), CredentialError> {
    let failed = |source| CredentialError::Read { path: path.to_owned(), source };
    let file = trusted_file::open(path).map_err(|error| failed(error.into()))?;
    let found = file.metadata().map_err(failed)?;
    match found.is_file() {
        true => Ok((file, (found.dev(), found.ino(), found.mtime(), found.mtime_nsec(), found.len()))),
        false => Err(failed(io::Error::other("not a regular file"))),
    }
}

fn read_text(file: File) -> io::Result<Zeroizing<Vec<u8>>> {
    // The buffer has room for everything, and for reading past the end: growing would leave a copy of the secret in freed
    // memory.
    let room = file.metadata()?.len().min(LARGEST_FILE) + 64;
    let mut text = Zeroizing::new(Vec::with_capacity(usize::try_from(room).unwrap_or_default()));
    file.take(LARGEST_FILE).read_to_end(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(credential: &Credential) -> String {
        String::from_utf8(credential.get().map(|injected| injected.secret.expose().to_vec()).unwrap())
            .unwrap()
    }

    #[test]
    fn credential_command_runs_once_for_concurrent_calls_and_backs_off_after_failure() {
        let folder = tempfile::tempdir().unwrap();
        let asked = folder.path().join("asked");
        let script = format!("echo x >> {}; sleep 0.2; exit 1", asked.display());
        let argv = ["/bin/sh", "-c", &script].map(OsString::from).into();
        let credential = Arc::new(Credential::new(SecretSource::Command(argv)));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let both = runtime.block_on(async {
            let (first, second) = tokio::join!(credential.get_beside(), credential.get_beside());
            // `takes_time` does not wait for the lock.
            (first.is_err(), matches!(second, Err(CredentialError::Lately)), credential.takes_time())
        });
        assert_eq!(both, (true, true, true));
        assert_eq!(std::fs::read_to_string(asked).unwrap(), "x\n");
    }

    #[test]
    fn credential_file_is_reread_after_a_change() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "sk-first-key\n").unwrap();
        let credential = Credential::new(SecretSource::File(path.clone()));
        assert_eq!(text(&credential), "sk-first-key");
        std::fs::write(folder.path().join("new"), "sk-second-key\n").unwrap();
        std::fs::rename(folder.path().join("new"), &path).unwrap();
        let later = || std::thread::sleep(FILE_PAUSE);
        later();
        assert_eq!(text(&credential), "sk-second-key");
        std::fs::remove_file(&path).unwrap();
        later();
        assert!(matches!(credential.get(), Err(CredentialError::Read { .. })));
        rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        assert!(matches!(credential.get(), Err(CredentialError::Read { .. })), "the pipe has no writer");
    }

    #[test]
    fn credential_command_runs_again_after_the_upstream_rejects_its_output() {
        let folder = tempfile::tempdir().unwrap();
        let script = "cd \"$0\" && echo x >> runs && printf 'sk-key-number-%s' $(wc -l < runs)";
        let argv = ["sh", "-c", script].map(OsString::from);
        let argv = argv.into_iter().chain([folder.path().into()]).collect();
        let credential = Credential::new(SecretSource::Command(argv));
        assert_eq!(
            (text(&credential), text(&credential)),
            ("sk-key-number-1".into(), "sk-key-number-1".into())
        );
        credential.forget();
        assert_eq!(text(&credential), "sk-key-number-1", "asked again at once, it would say the same");
        credential.known().as_mut().unwrap().learned_at -= COMMAND_PAUSE;
        assert_eq!(text(&credential), "sk-key-number-1");
        credential.forget();
        assert_eq!(text(&credential), "sk-key-number-2");
        let failing = Credential::new(SecretSource::Command(vec!["false".into()]));
        assert!(matches!(failing.get(), Err(CredentialError::Command { .. })));
    }
}
