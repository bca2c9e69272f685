//! Status of each anchor, in `<state>/audit-anchors/`: a small file for each, written by every process that delivers.
//!
//! It is for people and monitoring. An attacker who can change the log can change it, too, so it proves nothing. It is
//! trusted for deliveries only as far as the log itself goes.

use super::AnchorSettings;
use super::note::Checkpoint;
use crate::audit::chain::Position;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::DirBuilder;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Status of an anchor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnchorStatus {
    /// Target that checkpoints are delivered to, for example `file:/mnt/other/audit.notes`.
    pub target: String,
    /// True if records are acknowledged only with a checkpoint there.
    pub is_required: bool,
    /// True if it is a file on the log's file system, and so lost with the same disk.
    pub is_on_same_file_system: bool,
    /// The last checkpoint that it has accepted.
    pub delivered: Option<DeliveredCheckpoint>,
    /// Present failure; `None` while deliveries succeed.
    pub failing: Option<AnchorFailure>,
}

/// A checkpoint that was accepted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeliveredCheckpoint {
    /// The hash of the log's first record.
    pub log: String,
    /// The last record that it covers.
    pub sequence: u64,
    /// The hash of that record.
    pub hash: String,
    /// Time of the signature.
    pub time: String,
}

/// A failure that lasts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnchorFailure {
    /// Time of the first failed delivery.
    pub since: String,
    /// Why the last one failed.
    pub error: String,
}

/// The file of one anchor's status.
#[derive(Debug)]
pub(super) struct StatusFile {
    path: PathBuf,
    pub(super) known: AnchorStatus,
}

const FOLDER: &str = "audit-anchors";

/// Returns the statuses of all anchors that the log in this folder has ever had.
pub fn statuses(audit_folder: &Path) -> Vec<AnchorStatus> {
    let Ok(entries) = std::fs::read_dir(folder_beside(audit_folder)) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let paths = paths.filter(|path| path.extension().is_some_and(|extension| extension == "json"));
    let mut found: Vec<AnchorStatus> = paths.filter_map(|path| read(&path)).collect();
    found.sort_by(|one, other| one.target.cmp(&other.target));
    found
}

fn folder_beside(audit_folder: &Path) -> PathBuf {
    audit_folder.with_file_name(FOLDER)
}

fn read(path: &Path) -> Option<AnchorStatus> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

// === impl DeliveredCheckpoint ===

impl DeliveredCheckpoint {
    /// Returns false if that log, which ends at `end`, can't hold the record that was delivered.
    pub(in crate::audit) fn agrees_with(&self, log: &str, end: Position) -> bool {
        let is_within = self.sequence < end.sequence
            || (self.sequence == end.sequence && self.hash == end.hash.to_string());
        self.log == log && is_within
    }
}

// === impl StatusFile ===

impl StatusFile {
    pub(super) fn open(audit_folder: &Path, settings: &AnchorSettings) -> Self {
        let target = settings.target.to_string();
        let digest: [u8; 32] = Sha256::digest(&target).into();
        let name: String = digest[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        let path = folder_beside(audit_folder).join(format!("{name}.json"));
        let is_on_same_file_system = match &settings.target {
            super::AnchorTarget::File(file) => is_on_same(file, audit_folder),
            super::AnchorTarget::Syslog(_) | super::AnchorTarget::Bucket(_) => false,
        };
        let earlier = read(&path).filter(|status| status.target == target);
        let (delivered, failing) = earlier.map_or((None, None), |status| (status.delivered, status.failing));
        let known = AnchorStatus {
            target,
            is_required: settings.is_required,
            is_on_same_file_system,
            delivered,
            failing,
        };
        Self { path, known }
    }

    /// Returns the sequence number up to which that log, which ends at `end`, is delivered; 0 if the status contradicts
    /// the log. A status that names an earlier record than the end delays a checkpoint by one interval at most.
    pub(super) fn delivered_to(&self, log: &str, end: Position) -> u64 {
        let delivered = self.known.delivered.as_ref();
        delivered
            .filter(|delivered| delivered.agrees_with(log, end))
            .map_or(0, |delivered| delivered.sequence)
    }

    /// Notes a delivery, and returns the failure that it ends.
    pub(super) fn succeeded(&mut self, checkpoint: &Checkpoint) -> Option<AnchorFailure> {
        let Checkpoint { log, sequence, hash, time, .. } = checkpoint;
        let delivered = DeliveredCheckpoint {
            log: log.to_string(),
            sequence: *sequence,
            hash: hash.to_string(),
            time: time.clone(),
        };
        self.known.delivered = Some(delivered);
        let ended = self.known.failing.take();
        self.save();
        ended
    }

    /// Notes a failure, and returns whether it is the first of a row.
    pub(super) fn failed(&mut self, error: String) -> bool {
        let is_first = self.known.failing.is_none();
        let now = || format!("{:.6}", jiff::Timestamp::now());
        let since = self.known.failing.take().map_or_else(now, |failing| failing.since);
        self.known.failing = Some(AnchorFailure { since, error });
        self.save();
        is_first
    }

    /// Saves the status. A failure is ignored: only people read it, nothing depends on it.
    fn save(&self) {
        let _ = self.try_save();
    }

    fn try_save(&self) -> std::io::Result<()> {
        if let Some(folder) = self.path.parent() {
            match DirBuilder::new().mode(0o700).create(folder) {
                Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
                _ => {}
            }
        }
        let thread = rustix::thread::gettid().as_raw_nonzero();
        let partial = self.path.with_extension(format!("partial-{}-{thread}", std::process::id()));
        let text = serde_json::to_vec_pretty(&self.known)?;
        let mut options = std::fs::File::options();
        let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&partial)?;
        file.write_all(&text)?;
        std::fs::rename(&partial, &self.path)
    }
}

fn is_on_same(file: &Path, audit_folder: &Path) -> bool {
    let device = |path: &Path| path.metadata().map(|metadata| metadata.dev()).ok();
    let of_file = device(file).or_else(|| device(file.parent()?));
    of_file.is_some() && of_file == device(audit_folder)
}
