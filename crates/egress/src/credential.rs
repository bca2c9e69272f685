//! Where a secret comes from, and comes from again when it has changed.

mod command;
mod config;

pub(crate) use config::read_source;

use crate::echo::Forms;
use crate::known;
use crate::secret::{Secret, SecretError};
use belljar_contract::yaml::{Log, Node};
use belljar_trusted::trusted_file;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use zeroize::Zeroizing;

/// Where a secret comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A variable of this process.
    Variable(String),
    /// A file, read again when it is another one or has been written to. Each time, it must be out of reach of sandboxes.
    File(PathBuf),
    /// What a program prints, run again after a while, and when an upstream takes it no more.
    Command(Vec<OsString>),
}

/// A secret that may change while it is used.
pub struct Credential {
    source: Source,
    known: Mutex<Option<Known>>,
    /// Held by the one who has a program asked, and when that was last in vain.
    asking: tokio::sync::Mutex<Option<Instant>>,
}

struct Known {
    injected: Arc<Injected>,
    learned_at: Instant,
    looked_at: Instant,
    /// Of a file: which one, and when and how it was last written to.
    mark: Option<Mark>,
}

/// A secret, and every way in which it must not come back.
pub(crate) struct Injected {
    pub(crate) secret: Secret,
    pub(crate) forms: Forms,
}

type Mark = (u64, u64, i64, i64, u64);

/// Why there is no secret. What it says is for the host.
#[derive(Debug, thiserror::Error)]
pub enum CredentialError {
    /// No such variable.
    #[error("the variable {name} is not set")]
    Unset {
        /// Its name.
        name: String,
    },
    /// The file can't be read.
    #[error("can't read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The program can't be run, or says that it has none.
    #[error("the command {} gave none", program.display())]
    Command {
        /// The program.
        program: OsString,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A moment ago it was asked for in vain.
    #[error("it was asked for in vain a moment ago")]
    Lately,
    /// Nobody was there to ask for it.
    #[error("nobody has asked for it")]
    Interrupted,
    /// What was found is no secret.
    #[error("what {origin} gives is no credential")]
    Invalid {
        /// Where it was found.
        origin: String,
        /// Why.
        #[source]
        source: SecretError,
    },
}

/// How long what a command has printed is used; and how soon it is asked again at the earliest, when an upstream takes that
/// no more: whoever is in a sandbox may be able to bring that about.
const COMMAND_TIME: Duration = Duration::from_secs(300);
const COMMAND_PAUSE: Duration = Duration::from_secs(30);

/// So long a program that has failed isn't asked again.
const FAILURE_PAUSE: Duration = Duration::from_secs(5);

/// So long nobody looks whether a file is another one: calls come by the ten thousand a second.
const FILE_PAUSE: Duration = Duration::from_millis(100);

/// Nothing larger is a secret.
const LARGEST_FILE: u64 = 64 << 10;

/// By where they come from.
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

// === impl Injected ===

impl Injected {
    pub(crate) fn of(secret: Secret) -> Self {
        Self { forms: Forms::of(Some(&secret)), secret }
    }
}

// === impl Credential ===

impl Credential {
    /// One from a source that is asked when the secret is first needed.
    pub fn new(source: Source) -> Self {
        Self { source, known: Mutex::new(None), asking: tokio::sync::Mutex::default() }
    }

    /// Reads where one comes from: one of `env`, `file` and `command`.
    pub fn read_from(node: &Node, log: &mut Log) -> Option<Arc<Self>> {
        read_source(node, log).map(|source| Arc::new(Self::new(source)))
    }

    /// The password of a login that others make: at a database, whose protocol isn't spoken here.
    ///
    /// # Errors
    /// [`CredentialError`].
    pub async fn password(self: &Arc<Self>) -> Result<Zeroizing<String>, CredentialError> {
        let injected = self.get_beside().await?;
        // A secret is visible ASCII.
        Ok(Zeroizing::new(String::from_utf8_lossy(injected.secret.expose()).into_owned()))
    }

    /// Whether there is one.
    ///
    /// # Errors
    /// [`CredentialError`] when there is none.
    pub fn check(&self) -> Result<(), CredentialError> {
        self.get().map(drop)
    }

    /// The same, without holding anybody else up while a program is asked.
    pub(crate) async fn get_beside(self: &Arc<Self>) -> Result<Arc<Injected>, CredentialError> {
        if !self.takes_time() {
            return self.get();
        }
        // One asks, and the others wait without a thread each.
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

    /// The secret as it is now.
    ///
    /// # Errors
    /// [`CredentialError`].
    pub(crate) fn get(&self) -> Result<Arc<Injected>, CredentialError> {
        let mut known = self.known();
        if let Some(known) = known.as_ref().filter(|known| known.looked_at.elapsed() < FILE_PAUSE) {
            return Ok(Arc::clone(&known.injected));
        }
        let file = match &self.source {
            Source::File(path) => Some(open(path)?),
            Source::Variable(_) | Source::Command(_) => None,
        };
        let mark = file.as_ref().map(|(_, mark)| *mark);
        if let Some(known) = known.as_mut().filter(|known| self.is_fresh(known, mark)) {
            known.looked_at = Instant::now();
            return Ok(Arc::clone(&known.injected));
        }
        let secret = self.read(file)?;
        let injected = Arc::new(Injected::of(secret));
        known::follow(&injected);
        let now = Instant::now();
        *known = Some(Known { injected: Arc::clone(&injected), learned_at: now, looked_at: now, mark });
        Ok(injected)
    }

    /// Whether somebody else has to be waited for: a program that runs.
    pub(crate) fn takes_time(&self) -> bool {
        // Whoever holds it may be waiting for the program.
        let is_known = || match self.known.try_lock() {
            Ok(known) => known.as_ref().is_some_and(|known| self.is_fresh(known, None)),
            Err(_) => false,
        };
        matches!(self.source, Source::Command(_)) && !is_known()
    }

    fn known(&self) -> MutexGuard<'_, Option<Known>> {
        // Nothing in there is ever half done.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets it: an upstream takes it no more. What a command has just given is the best that there is, all the same.
    pub fn forget(&self) {
        let is_new = |known: &Known| known.learned_at.elapsed() < COMMAND_PAUSE;
        let mut known = self.known();
        if !(matches!(self.source, Source::Command(_)) && known.as_ref().is_some_and(is_new)) {
            known.take();
        }
    }

    fn is_fresh(&self, known: &Known, mark: Option<Mark>) -> bool {
        match self.source {
            Source::Variable(_) => true,
            Source::File(_) => known.mark == mark,
            Source::Command(_) => known.learned_at.elapsed() < COMMAND_TIME,
        }
    }

    fn read(&self, file: Option<(File, Mark)>) -> Result<Secret, CredentialError> {
        let (text, origin) = match &self.source {
            Source::Variable(name) => {
                let text =
                    std::env::var_os(name).ok_or_else(|| CredentialError::Unset { name: name.clone() })?;
                (Zeroizing::new(text.into_encoded_bytes()), format!("the variable {name}"))
            }
            Source::File(path) => {
                let failed = |source| CredentialError::Read { path: path.clone(), source };
                let (file, _) = file.ok_or(io::ErrorKind::NotFound.into()).map_err(failed)?;
                (read_text(file).map_err(failed)?, path.display().to_string())
            }
            Source::Command(argv) => {
                let program = argv.first().cloned().unwrap_or_default();
                let failed = |source| CredentialError::Command { program: program.clone(), source };
                (command::ask(argv).map_err(failed)?, format!("the command {}", program.display()))
            }
        };
        Secret::parse(text.as_slice()).map_err(|source| CredentialError::Invalid { origin, source })
    }
}

/// Opens the file, which is checked each time: a sandbox may have put it there since.
fn open(path: &Path) -> Result<(File, Mark), CredentialError> {
    let failed = |source| CredentialError::Read { path: path.to_owned(), source };
    let file = trusted_file::open(path).map_err(|error| failed(error.into()))?;
    let found = file.metadata().map_err(failed)?;
    match found.is_file() {
        true => Ok((file, (found.dev(), found.ino(), found.mtime(), found.mtime_nsec(), found.len()))),
        false => Err(failed(io::Error::other("not a regular file"))),
    }
}

fn read_text(file: File) -> io::Result<Zeroizing<Vec<u8>>> {
    // With room for all of it, and for the look behind its end: what grows leaves its old self behind.
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
    fn a_program_is_asked_by_one_at_a_time_and_not_at_once_again_when_it_fails() {
        let folder = tempfile::tempdir().unwrap();
        let asked = folder.path().join("asked");
        let script = format!("echo x >> {}; sleep 0.2; exit 1", asked.display());
        let argv = ["/bin/sh", "-c", &script].map(OsString::from).into();
        let credential = Arc::new(Credential::new(Source::Command(argv)));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let both = runtime.block_on(async {
            let (first, second) = tokio::join!(credential.get_beside(), credential.get_beside());
            // Whoever only looks waits for nobody.
            (first.is_err(), matches!(second, Err(CredentialError::Lately)), credential.takes_time())
        });
        assert_eq!(both, (true, true, true));
        assert_eq!(std::fs::read_to_string(asked).unwrap(), "x\n");
    }

    #[test]
    fn a_file_that_changes_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        std::fs::write(&path, "sk-first-key\n").unwrap();
        let credential = Credential::new(Source::File(path.clone()));
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
        assert!(matches!(credential.get(), Err(CredentialError::Read { .. })), "nobody writes to it");
    }

    #[test]
    fn a_command_is_run_again_when_what_it_gave_is_taken_no_more() {
        let folder = tempfile::tempdir().unwrap();
        let script = "cd \"$0\" && echo x >> runs && printf 'sk-key-number-%s' $(wc -l < runs)";
        let argv = ["sh", "-c", script].map(OsString::from);
        let argv = argv.into_iter().chain([folder.path().into()]).collect();
        let credential = Credential::new(Source::Command(argv));
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
        let failing = Credential::new(Source::Command(vec!["false".into()]));
        assert!(matches!(failing.get(), Err(CredentialError::Command { .. })));
    }
}
