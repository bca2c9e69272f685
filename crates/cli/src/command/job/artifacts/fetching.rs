//! Files that a job has left, written into a directory and nowhere else.
//!
//! Their names come from inside a sandbox, and their content comes over the network. A name leads only down, each
//! directory is opened in the one before and through no link, and a file gets its name only once its digest is verified.
//! All of them are fetched into a folder of the state directory first, and reviewed there as every change of a sandbox is.

use crate::client::{BodyRead, Client, NodeRequest, PATIENCE};
use crate::error::CliError;
use crate::sandbox_args::given_place;
use crate::state;
use belljar_confine::plan::Identity;
use belljar_contract::id::JobId;
use belljar_contract::path::WORKSPACE;
use belljar_contract::result::Artifact;
use belljar_files::directory::{Directory, DirectoryError};
use belljar_files::host_path::HostPath;
use belljar_policy::handoff::ApprovedPaths;
use belljar_sandbox::artifact::ARTIFACTS;
use belljar_sandbox::state::RunFolder;
use belljar_sandbox::workspace::apply::ApplyError;
use belljar_sandbox::workspace::changes::ChangeSet;
use belljar_sandbox::workspace::handoff;
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, openat, renameat, renameat_with, unlinkat};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use uuid::Uuid;

/// Why a file of a job is not here.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ArtifactError {
    /// Its name leads elsewhere.
    #[error("its path leads out of the destination directory")]
    Outside,
    /// The node gave no valid SHA-256 to request the artifact by.
    #[error("it has no digest")]
    NoDigest,
    /// Something has its name here.
    #[error("there is a file of that name")]
    Exists,
    /// Another file of the job has its name here, or the name of a directory on the way.
    #[error("another artifact of the job goes to the same place; all others were fetched")]
    SamePlace,
    /// The received content has another digest than the job's artifact.
    #[error("the received content differs from what the job has left: its SHA-256 is {found}")]
    OtherContent { found: String },
    /// More came than the job has left.
    #[error("more came than its {size_bytes} bytes")]
    TooMuch { size_bytes: u64 },
    /// There is no place for it.
    #[error("its directory can't be created")]
    Place(#[source] DirectoryError),
    /// It can't be written.
    #[error("it can't be written")]
    Write(#[source] std::io::Error),
}

/// A file, and where it goes.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ArtifactDownload<'a> {
    artifact: &'a Artifact,
    /// Below the destination; each is the name of one thing.
    names: Vec<&'a str>,
}

/// Where they go.
pub(super) struct DownloadDirectory {
    directory: Directory,
    replaces: bool,
}

/// Where they are until they were reviewed. Dropping it removes them.
pub(super) struct ReviewStage {
    files: DownloadDirectory,
    _folder: RunFolder,
}

/// A file that has no name of its own yet. Dropping it removes it.
struct UnnamedDownload<'d> {
    parent: &'d Directory,
    name: String,
    file: File,
}

// === impl ArtifactDownload ===

impl<'a> ArtifactDownload<'a> {
    pub(super) fn of(artifact: &'a Artifact) -> Result<Self, CliError> {
        let refuse = |source| refused(artifact, source);
        let path = artifact.path.as_str();
        // From the workspace, a folder of that name. The job may have left a folder of that name itself (`apart`).
        let below = path.strip_prefix(ARTIFACTS).and_then(|rest| rest.strip_prefix('/'));
        let below = below.or_else(|| {
            path.strip_prefix(WORKSPACE)
                .filter(|rest| rest.starts_with('/'))
                .and_then(|_| path.strip_prefix('/'))
        });
        let names: Vec<&str> = below.unwrap_or(path).split('/').collect();
        let is_name = |name: &&str| !matches!(*name, "" | "." | "..") && !name.contains('\0');
        if !names.iter().all(is_name) {
            return Err(refuse(ArtifactError::Outside));
        }
        let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        if artifact.sha256.len() != 64 || !artifact.sha256.bytes().all(is_digit) {
            return Err(refuse(ArtifactError::NoDigest));
        }
        Ok(Self { artifact, names })
    }

    /// Separates those that have a place of their own from those whose place one before them takes, as a file or as a directory.
    pub(super) fn apart(all: Vec<Self>) -> (Vec<Self>, Vec<Self>) {
        let mut taken: BTreeSet<PathBuf> = BTreeSet::new();
        all.into_iter().partition(|wanted| {
            let path = wanted.path();
            let is_below = path.ancestors().any(|above| taken.contains(above));
            let is_above = taken.range(path.clone()..).next().is_some_and(|next| next.starts_with(&path));
            let is_free = !is_below && !is_above;
            is_free && taken.insert(path)
        })
    }

    /// Why it is left out.
    pub(super) fn left_out(&self) -> CliError {
        refused(self.artifact, ArtifactError::SamePlace)
    }

    /// The file, as the job tells of it.
    pub(super) fn artifact(&self) -> &'a Artifact {
        self.artifact
    }

    /// Below the destination.
    pub(super) fn path(&self) -> PathBuf {
        self.names.iter().collect()
    }
}

// === impl DownloadDirectory ===

impl DownloadDirectory {
    /// Opens the directory, and makes it if there is none.
    pub(super) fn open(path: &Path, replaces: bool) -> Result<Self, CliError> {
        let (found, missing) = given_place(path)?;
        let mut directory = Directory::open_meant(&HostPath::of_opened(found.real, &found.opened)?)?;
        for name in missing.components() {
            directory = directory.make(name.as_ref(), 0o777)?;
        }
        Ok(Self { directory, replaces })
    }

    /// Refuses what would take the place of something else.
    pub(super) fn must_be_free(&self, wanted: &ArtifactDownload<'_>) -> Result<(), CliError> {
        let found = self.directory.stat(&wanted.path());
        let found = found.map_err(|source| refused(wanted.artifact, ArtifactError::Place(source)))?;
        match found.is_some() && !self.replaces {
            true => Err(refused(wanted.artifact, ArtifactError::Exists)),
            false => Ok(()),
        }
    }

    /// Reviews what is to come here, as what a sandbox changes is reviewed before it is applied.
    ///
    /// # Errors
    /// [`ApplyError::Handoff`] if some of it takes a yes.
    pub(super) fn review(&self, stage: &ReviewStage, trust: &ApprovedPaths) -> Result<(), CliError> {
        let (staged, here) = (&stage.files.directory, &self.directory);
        let set = ChangeSet::read(here, staged)?;
        let findings = trust.without(handoff::review(&set, staged, here)?.findings);
        match findings.is_empty() {
            true => Ok(()),
            false => Err(ApplyError::Handoff { findings }.into()),
        }
    }

    /// Takes one from where it was reviewed.
    pub(super) fn take(&self, stage: &ReviewStage, wanted: &ArtifactDownload<'_>) -> Result<(), CliError> {
        let refuse = |source| refused(wanted.artifact, source);
        let staged = stage.files.directory.open_file(&wanted.path());
        let mut staged = staged.map_err(|source| refuse(ArtifactError::Place(source)))?;
        self.write(wanted, |file| {
            std::io::copy(&mut staged, file).map_err(|source| refuse(ArtifactError::Write(source)))?;
            Ok(())
        })
    }

    /// Makes one with its directories, and gives it its name when its content is written.
    fn write(
        &self,
        ArtifactDownload { artifact, names }: &ArtifactDownload<'_>,
        fill: impl FnOnce(&mut File) -> Result<(), CliError>,
    ) -> Result<(), CliError> {
        let refuse = |source| refused(artifact, source);
        let Some((name, folders)) = names.split_last() else { return Err(refuse(ArtifactError::Outside)) };
        let parent = self.make(folders).map_err(|source| refuse(ArtifactError::Place(source)))?;
        let mut draft =
            UnnamedDownload::begin(&parent).map_err(|errno| refuse(ArtifactError::Write(errno.into())))?;
        fill(&mut draft.file)?;
        draft.finish(name, self.replaces).map_err(refuse)
    }

    /// The directory behind these names, made where there is none.
    fn make(&self, names: &[&str]) -> Result<Directory, DirectoryError> {
        let mut directory = self.directory.try_clone()?;
        for name in names {
            directory = directory.make(Path::new(name), 0o777)?;
        }
        Ok(directory)
    }
}

// === impl ReviewStage ===

impl ReviewStage {
    pub(super) fn new() -> Result<Self, CliError> {
        let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let owner = Identity { inside_uid: uid, inside_gid: gid, host_uid: uid, host_gid: gid };
        let folder = state::open().begin_run(owner)?;
        let directory = Directory::open_meant(&folder.make("fetched", owner)?)?;
        Ok(Self { files: DownloadDirectory { directory, replaces: false }, _folder: folder })
    }

    /// Fetches one.
    pub(super) fn fetch(
        &self,
        client: &Client,
        job: &JobId,
        wanted: &ArtifactDownload<'_>,
    ) -> Result<(), CliError> {
        self.files.write(wanted, |file| receive(client, job, wanted.artifact, file))
    }
}

// === impl UnnamedDownload ===

impl<'d> UnnamedDownload<'d> {
    fn begin(parent: &'d Directory) -> Result<Self, Errno> {
        let name = format!(".belljar-{}", Uuid::new_v4());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(parent, name.as_str(), flags, Mode::from_raw_mode(0o666))?;
        Ok(Self { parent, name, file: File::from(file) })
    }

    /// Gives it its name.
    fn finish(&self, name: &str, replaces: bool) -> Result<(), ArtifactError> {
        let renamed = match replaces {
            true => renameat(self.parent, self.name.as_str(), self.parent, name),
            false => {
                renameat_with(self.parent, self.name.as_str(), self.parent, name, RenameFlags::NOREPLACE)
            }
        };
        renamed.map_err(|errno| match errno {
            Errno::EXIST => ArtifactError::Exists,
            errno => ArtifactError::Write(errno.into()),
        })
    }
}

impl Drop for UnnamedDownload<'_> {
    fn drop(&mut self) {
        // One that has its name is not there under this one any more.
        let _ = unlinkat(self.parent, self.name.as_str(), AtFlags::empty());
    }
}

/// Writes into a file what comes for an artifact, which must be what it is.
fn receive(client: &Client, job: &JobId, artifact: &Artifact, file: &mut File) -> Result<(), CliError> {
    let refuse = |source| refused(artifact, source);
    let path = format!("/jobs/{job}/artifacts/{}", artifact.sha256);
    let mut answer = client.ask(&NodeRequest { path: &path, ..NodeRequest::default() })?;
    let (mut digest, mut left) = (Sha256::new(), artifact.size_bytes);
    loop {
        let bytes = match answer.next(PATIENCE)? {
            BodyRead::Bytes(bytes) => bytes,
            BodyRead::Nothing => continue,
            BodyRead::End => break,
        };
        let Some(rest) = left.checked_sub(bytes.len() as u64) else {
            return Err(refuse(ArtifactError::TooMuch { size_bytes: artifact.size_bytes }));
        };
        left = rest;
        digest.update(&bytes);
        file.write_all(&bytes).map_err(|source| refuse(ArtifactError::Write(source)))?;
    }
    let found: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    match found == artifact.sha256 {
        true => Ok(()),
        false => Err(refuse(ArtifactError::OtherContent { found })),
    }
}

fn refused(artifact: &Artifact, source: ArtifactError) -> CliError {
    CliError::Artifact { path: artifact.path.clone(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn artifact(path: &str) -> Artifact {
        Artifact { path: path.to_owned(), sha256: "0".repeat(64), size_bytes: 0 }
    }

    #[test]
    fn artifact_path_that_leaves_the_destination_is_refused() {
        let path = |path: &str| ArtifactDownload::of(&artifact(path)).ok().map(|wanted| wanted.path());
        assert_eq!(path("/job/artifacts/a/b"), Some("a/b".into()));
        assert_eq!(path("/workspace/a"), Some("workspace/a".into()));
        assert_eq!(path("a"), Some("a".into()));
        for bad in [
            "/etc/passwd",
            "/job/artifacts/../../../etc/passwd",
            "/job/artifacts//etc/passwd",
            "/job/artifacts/",
            "/job/artifacts",
            "/job/artifactsx",
            "/workspace/..",
            "/workspacex/a",
            "..",
            "a/../b",
            "./a",
            "a/",
            "a\0b",
            "",
        ] {
            assert_eq!(path(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn artifact_with_a_destination_already_taken_is_left_out() {
        let paths = [
            "/workspace/x",
            "/job/artifacts/workspace/x",
            "/job/artifacts/workspace",
            "/job/artifacts/workspace/x/y",
            // The controls: beside it, and of a name that only begins alike.
            "/job/artifacts/workspace/y",
            "/job/artifacts/workspace-2",
            "x",
        ];
        let artifacts = paths.map(artifact);
        let wanted = artifacts.iter().map(|artifact| ArtifactDownload::of(artifact).unwrap()).collect();
        let (apart, left_out) = ArtifactDownload::apart(wanted);
        let names = |all: &[ArtifactDownload<'_>]| {
            all.iter().map(|one| one.artifact.path.clone()).collect::<Vec<_>>()
        };
        assert_eq!(names(&left_out), paths[1..4]);
        assert_eq!(names(&apart), [&paths[..1], &paths[4..]].concat());
    }

    #[test]
    fn artifact_with_an_invalid_digest_is_refused() {
        for digest in ["", "..", &"A".repeat(64), &"0".repeat(63), &format!("{}/..", "0".repeat(61))] {
            let bad = Artifact { sha256: digest.to_owned(), ..artifact("a") };
            assert!(ArtifactDownload::of(&bad).is_err(), "{digest}");
        }
    }
}
