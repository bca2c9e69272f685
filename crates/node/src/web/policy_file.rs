//! A policy in a file, followed while it is in use: what the file says counts, as soon as it says it.
//!
//! ```text
//! read ─► settled? ─► parsed ─► told ─► LivePolicy::replace
//!           │ no         │ mistakes
//!           └─ again     └─► told; the former one goes on to count
//! ```
//! A file that is being written is not taken for what it will be: only what is the same at two looks counts. Whoever replaces it
//! by a rename is never seen half done.

mod follower;

use belljar_contract::yaml::{self, LARGEST_BYTES, Log, Mistakes};
use belljar_egress::web::config::WebConfig;
use belljar_egress::web::live::LivePolicy;
use belljar_trusted::named;
use belljar_trusted::trusted_file::{self, UntrustedFileError};
use follower::{Follower, Look};
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Where a policy stands.
#[derive(Clone)]
pub struct PolicyFile {
    path: PathBuf,
    read: ReadPolicy,
}

/// Makes a policy of what a file holds.
pub type ReadPolicy = Arc<dyn Fn(&[u8]) -> Result<WebConfig, Mistakes> + Send + Sync>;

/// A policy that was read, and may be followed.
#[derive(Clone)]
pub struct OpenPolicy {
    live: Arc<LivePolicy>,
    /// Nothing where there is no file.
    first: Option<Change>,
    /// Nothing for what can be read once, such as a pipe.
    followed: Option<(PolicyFile, Look)>,
}

/// What becomes of what a file says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Change {
    /// It counts from now on.
    Taken {
        /// The file.
        path: String,
        /// The SHA-256 of what it holds, in lower-case hexadecimal.
        sha256: String,
        /// Which policy it is, counted from 1.
        generation: u64,
        /// How many rules it has.
        rules: usize,
    },
    /// It doesn't: the former policy goes on to count.
    Refused {
        /// The file.
        path: String,
        /// The SHA-256 of what it holds; absent where it can't be read.
        #[serde(skip_serializing_if = "Option::is_none")]
        sha256: Option<String>,
        /// The policy that goes on to count.
        generation: u64,
        /// What is wrong with it.
        why: String,
    },
}

/// There is no policy.
#[derive(Debug, thiserror::Error)]
pub enum PolicyFileError {
    /// The file, or one that it names, can't be read, or isn't out of reach of sandboxes and other users.
    #[error("can't read {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It holds no policy.
    #[error("{} holds no policy", path.display())]
    Mistakes {
        /// Which.
        path: PathBuf,
        /// All that is wrong.
        #[source]
        source: Mistakes,
    },
}

/// Follows a file for as long as it lives.
pub struct Following {
    // Before the thread: without it, that one ends.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The kinds under which changes stand in the audit.
const CHANGED: &str = "egress_policy_changed";
const REFUSED: &str = "egress_policy_refused";

/// How often a file is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// As much of what is wrong is told.
const LONGEST_WHY: usize = 1_000;

// === impl PolicyFile ===

impl PolicyFile {
    /// A file, and how it is read.
    ///
    /// # Errors
    /// The system's, where it can't be told which file a relative path means.
    pub fn new(path: &Path, read: ReadPolicy) -> io::Result<Self> {
        Ok(Self { path: std::path::absolute(path)?, read })
    }

    /// A file that is a policy and nothing else.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn of_rules(path: &Path) -> io::Result<Self> {
        let read = |bytes: &[u8]| {
            let mut log = Log::default();
            let policy = yaml::parse(bytes, &mut log).map(|node| WebConfig::read(&node, &mut log));
            log.finish()?;
            // Nothing is read of a document that is none, and that has been noted.
            Ok(policy.unwrap_or_default())
        };
        Self::new(path, Arc::new(read))
    }

    /// The same, of which another policy is made each time that it is read.
    pub fn then(self, make: impl Fn(WebConfig) -> WebConfig + Send + Sync + 'static) -> Self {
        let read = self.read;
        Self { path: self.path, read: Arc::new(move |bytes| read(bytes).map(&make)) }
    }

    /// Where it is, whatever the working directory is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads it.
    ///
    /// # Errors
    /// [`PolicyFileError`] when it holds no policy.
    pub fn open(self) -> Result<OpenPolicy, PolicyFileError> {
        let path = || self.path.clone();
        let source = trusted_file::open(&self.path)
            .map_err(|error| PolicyFileError::Read { path: path(), source: error.into() })?;
        // One without a name may be written by other processes that hold it open.
        let is_file = source.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.nlink() > 0);
        let bytes = read_bytes(source).map_err(|source| PolicyFileError::Read { path: path(), source })?;
        let policy = self.parse(&bytes)?;
        let sha256 = digest(&bytes);
        let first = Some(self.taken(&sha256, 1, &policy));
        let followed = is_file.then_some((self, Look::Holds(sha256)));
        Ok(OpenPolicy { live: Arc::new(LivePolicy::new(policy)), first, followed })
    }

    /// Makes a policy of what the file holds. What that names is checked, too.
    fn parse(&self, bytes: &[u8]) -> Result<WebConfig, PolicyFileError> {
        let refused = |error: UntrustedFileError| PolicyFileError::Read {
            path: error.path().to_owned(),
            source: io::Error::from(error),
        };
        named::check(bytes).map_err(refused)?;
        (self.read)(bytes).map_err(|source| PolicyFileError::Mistakes { path: self.path.clone(), source })
    }

    fn taken(&self, sha256: &str, generation: u64, policy: &WebConfig) -> Change {
        let (path, rules) = (self.path.display().to_string(), policy.policy.rules().len());
        Change::Taken { path, sha256: sha256.to_owned(), generation, rules }
    }

    fn refused(&self, sha256: Option<String>, generation: u64, why: &dyn std::error::Error) -> Change {
        let why = crate::chain(why).chars().take(LONGEST_WHY).collect();
        Change::Refused { path: self.path.display().to_string(), sha256, generation, why }
    }
}

// === impl OpenPolicy ===

impl OpenPolicy {
    /// No rules, and no file where there could be any.
    pub fn of_nothing() -> Self {
        Self::of(WebConfig::default())
    }

    /// This policy, which no file changes.
    pub fn of(config: WebConfig) -> Self {
        Self { live: Arc::new(LivePolicy::new(config)), first: None, followed: None }
    }

    /// What counts.
    pub fn live(&self) -> &Arc<LivePolicy> {
        &self.live
    }

    /// What it says first, if there is a file.
    pub fn first(&self) -> Option<&Change> {
        self.first.as_ref()
    }

    /// Follows it, and tells what becomes of what it says: before that counts, so whoever is told doesn't wait for anything. It has
    /// a thread.
    ///
    /// # Errors
    /// The system's, when there can be no more threads.
    pub fn follow(self, tell: impl FnMut(&Change) + Send + 'static) -> io::Result<Following> {
        let Self { live, first: _, followed } = self;
        let Some((file, handled)) = followed else { return Ok(Following { stop: None, thread: None }) };
        let mut follower = Follower { file, live, handled, unsettled: None, tell };
        let (stop, stopped) = channel();
        let named = std::thread::Builder::new().name("belljar-policy".to_owned());
        let thread = named.spawn(move || {
            while stopped.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
                follower.look();
            }
        })?;
        Ok(Following { stop: Some(stop), thread: Some(thread) })
    }
}

// === impl Change ===

impl Change {
    /// The kind under which it stands in the audit.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Taken { .. } => CHANGED,
            Self::Refused { .. } => REFUSED,
        }
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A byte more than may be is enough to see that there is too much.
fn read_bytes(source: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(LARGEST_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
