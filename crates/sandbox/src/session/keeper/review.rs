//! Reviews of what a session changed, and commits.
//!
//! ```text
//! diff                 keeper: pause ─► freeze ─► resume ─► show, digest
//! commit --reviewed D  keeper: pause ─► freeze ─► digest is D? ─► write what was frozen ─► resume
//! commit (a person)    keeper: pause ─► freeze ─► resume ─► show, digest ─► the person approves ─► write what was frozen
//! ```
//! Everything in the sandbox stands still while its changes are frozen. That makes the frozen state one state of affairs; it is no
//! wall, as a program may have found a way to go on. What is shown, hashed and written is the frozen copy alone, in a folder that no
//! sandbox can reach.

use super::super::interrupted::CommitRecord;
use super::super::protocol::{
    CommitOutcome, KeeperRequestMessage, KeeperResponse, Refusal, Review, document, receive, send,
};
use super::super::{COMMIT, interrupted};
use super::checkpoint::{CheckpointError, PausedSandboxes, answer_of, named, read};
use super::command::RunningCommand;
use super::keeper_workspace::{CommitBaseline, SessionWorkspace};
use super::sandboxes::LiveSandboxes;
use super::{Keeper, lock};
use crate::workspace::apply::{self, ApplyError};
use crate::workspace::changes::ChangeSet;
use crate::workspace::diff;
use crate::workspace::digest::ReviewDigest;
use crate::workspace::drift::SourceDrift;
use crate::workspace::frozen::{FrozenChanges, freeze};
use crate::workspace::handoff;
use crate::workspace::live_workspace::CopyLayers;
use crate::workspace::relaxed_permissions::RelaxedPermissions;
use belljar_files::directory::{Directory, DirectoryError};
use belljar_policy::handoff::{ApprovedPaths, Finding};
use rustix::fd::{AsFd, OwnedFd};
use std::collections::BTreeSet;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

/// The folder of a session's frozen states, in its run's folder.
const REVIEWS: &str = "reviews";

/// A frozen state, and the folder with its content, which goes with it.
struct FrozenReview {
    folder: ReviewFolder,
    frozen: FrozenChanges,
    /// Number of commits at that time.
    commits: u64,
}

/// A folder that only the host's user can enter. Dropping it removes it.
struct ReviewFolder {
    path: PathBuf,
    is_left: bool,
}

// === impl Keeper ===

impl Keeper {
    /// Returns the changes of the session, as one frozen state, with its digest.
    pub(super) fn changes(&self) -> Result<Review, CheckpointError> {
        let measure = lock(&self.measure);
        let (standing, ground) = (self.standing()?, self.ground());
        let (_, layers) = ground.copy(&standing)?;
        let still = PausedSandboxes::bring_about(&standing)?;
        let review = self.freeze(&measure, layers)?;
        drop(still);
        review.told(layers, &measure)
    }

    /// Freezes what the session changed and writes it; if it was reviewed, only if that is what was reviewed.
    pub(super) fn commit(
        &self,
        trust: &ApprovedPaths,
        reviewed: Option<ReviewDigest>,
        unshown: bool,
    ) -> Result<CommitOutcome, CheckpointError> {
        let mut measure = lock(&self.measure);
        let (standing, ground) = (self.standing()?, self.ground());
        let (_, layers) = ground.copy(&standing)?;
        let still = PausedSandboxes::bring_about(&standing)?;
        let review = self.freeze(&measure, layers)?;
        drop(still);
        let digest = review.frozen.digest();
        if reviewed.is_some_and(|reviewed| reviewed != digest) {
            return Err(Refusal::Stale { digest: digest.to_string() }.into());
        }
        if reviewed.is_some() && !unshown {
            let frozen = &review.frozen;
            let paths = diff::unshown(frozen.set(), &layers.source, frozen.tree())?;
            Refusal::of_unshown(&paths)?;
        }
        self.write(review, trust, (&mut *measure, &standing, &*ground))
    }

    /// Serves a person who reviews: shows the changes, and writes that very state after the approval.
    pub(super) fn review(&self, caller: &OwnedFd) {
        let _running = RunningCommand::begin(&self.activity);
        let begun = self.begin_review();
        let told =
            begun.and_then(|(review, told)| Ok((review, document(&told).map_err(CheckpointError::Note)?)));
        let review = match told {
            Ok((review, document)) => {
                let _ = send(caller.as_fd(), &KeeperResponse::Document, &[document]);
                review
            }
            Err(error) => {
                let _ = send(caller.as_fd(), &answer_of(error), &[]);
                return;
            }
        };
        // A caller that hangs up has not approved.
        let Ok(Some((KeeperRequestMessage::Write { trusted }, _))) = receive::<KeeperRequestMessage>(caller)
        else {
            return;
        };
        self.tell(caller, || {
            let mut measure = lock(&self.measure);
            let (standing, ground) = (self.standing()?, self.ground());
            if review.commits != self.commits.load(Ordering::Acquire) {
                return Err(Refusal::Overtaken.into());
            }
            self.write(review, &trusted.into(), (&mut *measure, &standing, &*ground))
        });
    }

    fn begin_review(&self) -> Result<(FrozenReview, Review), CheckpointError> {
        let measure = lock(&self.measure);
        let (standing, ground) = (self.standing()?, self.ground());
        let (_, layers) = ground.copy(&standing)?;
        let still = PausedSandboxes::bring_about(&standing)?;
        let review = self.freeze(&measure, layers)?;
        drop(still);
        let told = review.told(layers, &measure)?;
        Ok((review, told))
    }

    /// Copies the changes to where no sandbox gets. The caller has everything stand still meanwhile.
    fn freeze(&self, measure: &CommitBaseline, layers: &CopyLayers) -> Result<FrozenReview, CheckpointError> {
        let folder = ReviewFolder::make(&self.state.run_folder(&self.id)).map_err(CheckpointError::Note)?;
        let mut opened = RelaxedPermissions::in_tree(&layers.upper);
        let set = measure.read(layers, &mut opened)?;
        let tree = Directory::open_host(&folder.path)?;
        let frozen = freeze(set, (&layers.source, &layers.upper), tree)?;
        Ok(FrozenReview { folder, frozen, commits: self.commits.load(Ordering::Acquire) })
    }

    /// Writes a frozen state into the directory that was copied.
    fn write(
        &self,
        mut review: FrozenReview,
        trust: &ApprovedPaths,
        (measure, standing, ground): (&mut CommitBaseline, &LiveSandboxes<'_>, &SessionWorkspace),
    ) -> Result<CommitOutcome, CheckpointError> {
        let (_, layers) = ground.copy(standing)?;
        let frozen = &review.frozen;
        let set = frozen.set();
        let mut changes = diff::listed(set.iter());
        // Compared with the source before this commit itself changes it.
        SourceDrift::find(&layers.source, &measure.baseline)?.add_to(&mut changes);
        let committed = CommitOutcome { changes, digest: frozen.digest().to_string() };
        if set.is_empty() {
            return Ok(committed);
        }
        let findings = trust.without(findings(frozen, layers)?);
        if !findings.is_empty() {
            return Err(ApplyError::Handoff { findings }.into());
        }
        let _still = PausedSandboxes::bring_about(standing)?;
        apply::check(set, &layers.source, &mut measure.baseline)?;
        // Should this process be killed on the way, what is written here is enough to finish.
        let note = self.state.run_folder(&self.id).join(COMMIT);
        let sandboxes = standing.iter().map(|sandbox| sandbox.id().clone()).collect();
        let record = CommitRecord {
            session: self.session.clone(),
            workspace: ground.choice.clone(),
            baseline: measure.baseline.clone(),
            sandboxes,
            agreed: interrupted::ApprovedState::new(frozen, &review.folder.path, trust),
        };
        interrupted::note(&note, &record).map_err(CheckpointError::Note)?;
        let retained = self.state.retain(&self.id)?;
        review.folder.is_left = true;
        let applied = apply::commit(set, frozen.tree(), &layers.source, &mut measure.baseline, trust);
        drop(retained);
        let _ = std::fs::remove_file(note);
        review.folder.is_left = false;
        // All but what another program changed meanwhile is written.
        let overtaken = match applied {
            Err(error @ ApplyError::Overtaken { .. }) => Some(error),
            applied => applied.map(|()| None)?,
        };
        self.commits.fetch_add(1, Ordering::AcqRel);
        renew(measure, layers, set)?;
        self.renew_record(measure);
        overtaken.map_or(Ok(committed), |error| Err(error.into()))
    }
}

/// The paths that gain trust, by their names or because the host obeys them.
fn findings(frozen: &FrozenChanges, layers: &CopyLayers) -> Result<Vec<Finding>, DirectoryError> {
    Ok(handoff::review(frozen.set(), frozen.tree(), &layers.source)?.findings)
}

/// Takes what is the same in both now as unchanged. What a program has changed since it was frozen is not among it.
fn renew(measure: &mut CommitBaseline, layers: &CopyLayers, set: &ChangeSet) -> Result<(), CheckpointError> {
    if measure.imprint.is_none() {
        return Ok(());
    }
    let left = read(measure, layers)?.carried(&layers.source)?;
    let left: BTreeSet<&Path> = left.iter().map(|(path, _)| path).collect();
    let written = set.iter().map(|(path, _)| path).filter(|path| !left.contains(path));
    Ok(measure.renew(layers, written)?)
}

// === impl FrozenReview ===

impl FrozenReview {
    fn told(&self, layers: &CopyLayers, measure: &CommitBaseline) -> Result<Review, CheckpointError> {
        let mut changes = self.frozen.rendered(&layers.source)?;
        SourceDrift::find(&layers.source, &measure.baseline)?.add_to(&mut changes);
        let findings = findings(&self.frozen, layers)?;
        let asking = named(&findings);
        let further = findings.len() - asking.len();
        Ok(Review { changes, digest: self.frozen.digest().to_string(), asking, further })
    }
}

// === impl ReviewFolder ===

impl ReviewFolder {
    fn make(run: &Path) -> std::io::Result<Self> {
        let reviews = run.join(REVIEWS);
        std::fs::DirBuilder::new().mode(0o700).recursive(true).create(&reviews)?;
        let path = reviews.join(uuid::Uuid::new_v4().to_string());
        std::fs::DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self { path, is_left: false })
    }
}

impl Drop for ReviewFolder {
    fn drop(&mut self) {
        if !self.is_left {
            // Entries that can't be removed now are removed with the run's folder.
            let _ = Directory::open_host(&self.path).and_then(|folder| folder.clear());
            let _ = std::fs::remove_dir(&self.path);
        }
    }
}
