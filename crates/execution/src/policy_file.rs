//! A policy in a file that is followed while it is in use: changes of the file take effect without a restart.
//!
//! ```text
//! read ─► settled? ─► parsed ─► reported ─► LivePolicy::replace
//!           │ no         │ mistakes
//!           └─ again     └─► reported; the previous policy stays in effect
//! ```
//! A file that is being written must not take effect: a content counts only if two successive checks find it. A file that is
//! replaced by a rename is always complete.

mod follower;

use belljar_contract::text::with_causes;
use belljar_contract::yaml::{self, LARGEST_BYTES, MistakeLog, Mistakes};
use belljar_egress::web::config::WebConfig;
use belljar_egress::web::live::LivePolicy;
use belljar_trusted::named_files;
use belljar_trusted::trusted_file::{self, UntrustedFileError};
use follower::{FilePoller, FileState};
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

/// A policy file.
#[derive(Clone)]
pub struct PolicyFile {
    path: PathBuf,
    read: ReadPolicy,
}

/// Parses a policy file's content.
pub type ReadPolicy = Arc<dyn Fn(&[u8]) -> Result<WebConfig, Mistakes> + Send + Sync>;

/// A policy that was read, and may be followed.
#[derive(Clone)]
pub struct OpenPolicy {
    live: Arc<LivePolicy>,
    /// The first content; `None` without a file.
    first: Option<PolicyChange>,
    /// The file to follow; `None` for input that can be read only once, such as a pipe.
    followed: Option<(PolicyFile, FileState)>,
}

/// Result of a change of the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum PolicyChange {
    /// The new policy is in effect.
    Taken {
        /// The file.
        path: String,
        /// SHA-256 of the content, in lower-case hexadecimal.
        sha256: String,
        /// Number of the policy, from 1.
        generation: u64,
        /// Number of its rules.
        rules: usize,
    },
    /// The new content is refused: the former policy stays in effect.
    Refused {
        /// The file.
        path: String,
        /// SHA-256 of the content; absent if it can't be read.
        #[serde(skip_serializing_if = "Option::is_none")]
        sha256: Option<String>,
        /// Number of the policy that stays in effect.
        generation: u64,
        /// The mistakes.
        why: String,
    },
}

/// Reasons why there is no policy.
#[derive(Debug, thiserror::Error)]
pub enum PolicyFileError {
    /// The file, or one that it names, can't be read, or a sandbox or another user could write it.
    #[error("can't read {}", path.display())]
    Read {
        /// Its path.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// The content is not a policy.
    #[error("{} holds no policy", path.display())]
    Mistakes {
        /// Its path.
        path: PathBuf,
        /// The mistakes.
        #[source]
        source: Mistakes,
    },
}

/// The follower of a file. Dropping it ends the following.
pub struct PolicyFollower {
    // Dropped before the thread is joined: the thread ends when its sender is gone.
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Kinds of the audit records.
const CHANGED: &str = "egress_policy_changed";
const REFUSED: &str = "egress_policy_refused";

/// Interval at which the file is checked.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// Maximum number of characters of the mistakes that are reported.
const LONGEST_WHY: usize = 1_000;

// === impl PolicyFile ===

impl PolicyFile {
    /// Returns a policy file with its parser.
    ///
    /// # Errors
    /// The system's error when a relative path can't be made absolute.
    pub fn new(path: &Path, read: ReadPolicy) -> io::Result<Self> {
        Ok(Self { path: std::path::absolute(path)?, read })
    }

    /// Returns a file that contains only a policy.
    ///
    /// # Errors
    /// See [`Self::new`].
    pub fn of_rules(path: &Path) -> io::Result<Self> {
        let read = |bytes: &[u8]| {
            let mut log = MistakeLog::default();
            let policy = yaml::parse(bytes, &mut log).map(|node| WebConfig::read(&node, &mut log));
            log.finish()?;
            // Reads nothing from an invalid document; its mistakes are in the log.
            Ok(policy.unwrap_or_default())
        };
        Self::new(path, Arc::new(read))
    }

    /// Returns a file whose policy is transformed each time that it is read.
    pub fn then(self, make: impl Fn(WebConfig) -> WebConfig + Send + Sync + 'static) -> Self {
        let read = self.read;
        Self { path: self.path, read: Arc::new(move |bytes| read(bytes).map(&make)) }
    }

    /// Returns its absolute path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the file.
    ///
    /// # Errors
    /// [`PolicyFileError`] when it contains no policy.
    pub fn open(self) -> Result<OpenPolicy, PolicyFileError> {
        let path = || self.path.clone();
        let source = trusted_file::open(&self.path)
            .map_err(|error| PolicyFileError::Read { path: path(), source: error.into() })?;
        // A file without a name may be written by other processes that hold it open, so it isn't followed.
        let is_file = source.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.nlink() > 0);
        let bytes = read_bytes(source).map_err(|source| PolicyFileError::Read { path: path(), source })?;
        let policy = self.parse(&bytes)?;
        let sha256 = digest(&bytes);
        let first = Some(self.taken(&sha256, 1, &policy));
        let followed = is_file.then_some((self, FileState::Holds(sha256)));
        Ok(OpenPolicy { live: Arc::new(LivePolicy::new(policy)), first, followed })
    }

    /// Parses the content. Files that it names are checked, too.
    fn parse(&self, bytes: &[u8]) -> Result<WebConfig, PolicyFileError> {
        let refused = |error: UntrustedFileError| PolicyFileError::Read {
            path: error.path().to_owned(),
            source: io::Error::from(error),
        };
        named_files::check(bytes).map_err(refused)?;
        (self.read)(bytes).map_err(|source| PolicyFileError::Mistakes { path: self.path.clone(), source })
    }

    fn taken(&self, sha256: &str, generation: u64, policy: &WebConfig) -> PolicyChange {
        let (path, rules) = (self.path.display().to_string(), policy.policy.rules().len());
        PolicyChange::Taken { path, sha256: sha256.to_owned(), generation, rules }
    }

    fn refused(&self, sha256: Option<String>, generation: u64, why: &dyn std::error::Error) -> PolicyChange {
        let why = with_causes(why).chars().take(LONGEST_WHY).collect();
        PolicyChange::Refused { path: self.path.display().to_string(), sha256, generation, why }
    }
}

// === impl OpenPolicy ===

impl OpenPolicy {
    /// Returns a policy without rules and without a file.
    pub fn of_nothing() -> Self {
        Self::of(WebConfig::default())
    }

    /// Returns this policy, without a file.
    pub fn of(config: WebConfig) -> Self {
        Self { live: Arc::new(LivePolicy::new(config)), first: None, followed: None }
    }

    /// Returns the policy in effect.
    pub fn live(&self) -> &Arc<LivePolicy> {
        &self.live
    }

    /// Returns the first content, if there is a file.
    pub fn first(&self) -> Option<&PolicyChange> {
        self.first.as_ref()
    }

    /// Follows the file on a thread of its own. `tell` is called with each change before it takes effect, so it must not wait.
    ///
    /// # Errors
    /// The system's error when the thread can't be started.
    pub fn follow(self, tell: impl FnMut(&PolicyChange) + Send + 'static) -> io::Result<PolicyFollower> {
        let Self { live, first: _, followed } = self;
        let Some((file, handled)) = followed else { return Ok(PolicyFollower { stop: None, thread: None }) };
        let mut follower = FilePoller { file, live, handled, unsettled: None, tell };
        let (stop, stopped) = channel();
        let named = std::thread::Builder::new().name("belljar-policy".to_owned());
        let thread = named.spawn(move || {
            while stopped.recv_timeout(LOOK_EVERY) == Err(RecvTimeoutError::Timeout) {
                follower.look();
            }
        })?;
        Ok(PolicyFollower { stop: Some(stop), thread: Some(thread) })
    }
}

// === impl PolicyChange ===

impl PolicyChange {
    /// Returns the kind of the audit record.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Taken { .. } => CHANGED,
            Self::Refused { .. } => REFUSED,
        }
    }
}

impl Drop for PolicyFollower {
    fn drop(&mut self) {
        self.stop.take();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Reads one byte more than the limit, so that the parser can detect a file that is too large.
fn read_bytes(source: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    source.take(LARGEST_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
