//! Applies a frozen change set as far as it does not conflict with what became of its source meanwhile.
//!
//! ```text
//! change set ─► no conflict ────────────────► written
//!            └► conflict ─► overwritten, if its path is named
//!                        ├► merged, if that is asked for and the base of the run is known
//!                        └► left out, with everything that can't be written without it
//! ```
//! The change set must be frozen: no sandbox may still write to its layer.

use super::apply::{ApplyError, note_parents, note_way};
use super::baseline::Baseline;
use super::carried::{self, rebased};
use super::changes::{ChangeSet, PathChange, PathState, same_content};
use super::expected::Expectations;
use super::foreign_changes::TouchedPaths;
use super::handoff::{self, LinkTargets, ReviewOutcome};
use super::merge::{MergeBudget, MergeOutcome, MergedContent, merge};
use super::transfer::{TransferOwner, TransferRoute};
use belljar_files::directory::{Directory, DirectoryError, Name};
use belljar_policy::handoff::ApprovedPaths;
use rustix::fs::{FileType, Stat};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Maximum number of names in a directory that is removed.
const MOST_NAMES: usize = 1_000_000;

/// A change set, and where it is applied.
#[derive(Debug)]
pub struct Application<'a> {
    /// The changes.
    pub set: &'a ChangeSet,
    /// The layer or copy that holds them.
    pub copy: &'a Directory,
    /// The directory that is written to.
    pub target: &'a Directory,
    /// The tree that the run began with, if there is one apart from the target.
    pub base: Option<&'a Directory>,
    /// An empty directory of the host's own, for merged files until they are written.
    pub scratch: &'a Directory,
}

/// Choices of a person for applying changes.
#[derive(Debug, Clone, Default)]
pub struct ApplyOptions {
    /// The paths that may gain trust.
    pub trust: ApprovedPaths,
    /// Conflicting paths, and all below them, that are written over what is in the target.
    pub overwritten: Vec<PathBuf>,
    /// Way in which conflicting text files are merged.
    pub merge: MergeMode,
}

/// Way in which conflicting text files are merged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MergeMode {
    /// Conflicting text files are not merged.
    #[default]
    Off,
    /// Files are merged if both sides changed different lines.
    Clean,
    /// All files are merged; lines that both sides changed get conflict markers.
    Markers,
}

/// Changes that were written, and those that were not.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ApplyOutcome {
    /// Paths that are now what the run made of them.
    pub written: Vec<PathBuf>,
    /// Paths that were merged.
    pub merged: Vec<PathBuf>,
    /// Paths that were merged with conflict markers.
    pub marked: Vec<PathBuf>,
    /// Paths that conflict and were left as they are in the target.
    pub conflicts: Vec<PathBuf>,
}

/// Relation of a path of the change set to the target.
enum PathStatus {
    /// The target is what the run began with.
    Free(PathChange),
    /// The target is already what the run made of it.
    Done,
    /// An interrupted attempt has merged the file.
    Merged(MergedContent),
    /// Something else has changed the target.
    Conflict(Option<Stat>),
}

/// A merged file, ready to be written.
struct MergedFile {
    changed: PathChange,
    content: MergedContent,
}

/// The change set, sorted by what is done with each path.
#[derive(Default)]
struct ApplyPlan {
    /// Changes that are written, relative to the target.
    writes: BTreeMap<PathBuf, PathChange>,
    done: Vec<PathBuf>,
    /// Files that an interrupted attempt has merged.
    merged: BTreeMap<PathBuf, MergedContent>,
    merges: BTreeMap<PathBuf, MergedFile>,
    conflicts: BTreeSet<PathBuf>,
    /// State of the target when this was decided.
    expectations: Expectations,
}

/// Changes that are decided on and reviewed.
pub struct PreparedApplication<'a> {
    application: &'a Application<'a>,
    plan: ApplyPlan,
    /// Changes that are written, relative to the target.
    set: ChangeSet,
    links: LinkTargets,
}

// === impl PreparedApplication ===

impl PreparedApplication<'_> {
    /// Writes what was decided on.
    ///
    /// # Errors
    /// [`ApplyError::Write`]: what was written up to then is found to be so the next time.
    pub fn write(self, baseline: &mut Baseline) -> Result<ApplyOutcome, ApplyError> {
        let Self { application, mut plan, set, links } = self;
        let writes: Vec<_> = plan.writes.iter().map(|(path, changed)| (path.as_path(), *changed)).collect();
        let copy = (application.copy, Some(&links));
        let mut left_alone = application.carry(copy, &writes, (&plan.expectations, baseline))?;
        let merges: Vec<_> =
            plan.merges.iter().map(|(path, merged)| (path.as_path(), merged.changed)).collect();
        let scratch = (application.scratch, None);
        left_alone.extend(application.carry(scratch, &merges, (&plan.expectations, baseline))?);
        plan.leave_alone(left_alone);
        note_parents(&set, application.target, baseline)?;
        baseline.set_merging(std::iter::empty());
        Ok(plan.outcome())
    }
}

// === impl Application ===

impl Application<'_> {
    /// Decides what is written, and reviews it. Nothing is written. What is noted in `baseline` is needed after an attempt that was
    /// interrupted, so the caller stores it before it calls [`PreparedApplication::write`].
    ///
    /// # Errors
    /// [`ApplyError::Handoff`] if a path gains trust that `wishes` does not name.
    pub fn prepare(
        &self,
        wishes: &ApplyOptions,
        baseline: &mut Baseline,
    ) -> Result<PreparedApplication<'_>, ApplyError> {
        let mut plan = self.plan(wishes, baseline)?;
        plan.leave_out_dependents();
        plan.carry_modes(self.target)?;
        // As it is relative to the target, which may not be what the run began with.
        let set = plan.set();
        let ReviewOutcome { findings, links } = handoff::review(&set, self.copy, self.target)?;
        let findings = wishes.trust.without(findings);
        if !findings.is_empty() {
            return Err(ApplyError::Handoff { findings });
        }
        note_way(&set, self.target, baseline)?;
        let merges = plan.merges.iter().map(|(path, merged)| (path.as_path(), merged.content));
        baseline.set_merging(merges);
        Ok(PreparedApplication { application: self, plan, set, links })
    }

    /// Decides for each path what is done with it. Nothing is written.
    ///
    /// # Errors
    /// [`ApplyError`] if something can't be read.
    fn plan(&self, wishes: &ApplyOptions, baseline: &Baseline) -> Result<ApplyPlan, ApplyError> {
        let mut plan = ApplyPlan::default();
        let mut touched = TouchedPaths::in_target((self.target, self.base), baseline);
        let mut budget = MergeBudget::default();
        for (path, changed) in self.set.iter() {
            // Before the comparison: a later write is not part of what was compared.
            let now = self.target.stat(path)?;
            plan.expectations.note(path, now.as_ref());
            match self.standing((path, changed), now, (baseline, &mut touched))? {
                PathStatus::Done => plan.done.push(path.to_owned()),
                PathStatus::Merged(content) => drop(plan.merged.insert(path.to_owned(), content)),
                PathStatus::Free(changed) => {
                    plan.writes.insert(path.to_owned(), changed);
                }
                PathStatus::Conflict(now) => {
                    let is_named = wishes.overwritten.iter().any(|named| path.starts_with(named));
                    let is_overwritten = is_named && self.has_place_for(path)?;
                    let merged = match wishes.merge {
                        MergeMode::Off => None,
                        mode => self.merged(path, (changed, now.as_ref()), (mode, &mut budget))?,
                    };
                    match (is_overwritten.then(|| over(changed, now.as_ref())).flatten(), merged) {
                        (Some(changed), _) => drop(plan.writes.insert(path.to_owned(), changed)),
                        (None, Some(merged)) => drop(plan.merges.insert(path.to_owned(), merged)),
                        (None, None) => drop(plan.conflicts.insert(path.to_owned())),
                    }
                }
            }
        }
        Ok(plan)
    }

    fn standing(
        &self,
        (path, changed): (&Path, &PathChange),
        now: Option<Stat>,
        (baseline, touched): (&Baseline, &mut TouchedPaths<'_>),
    ) -> Result<PathStatus, DirectoryError> {
        let state = now.as_ref().map(PathState::of);
        if state.is_none() && changed.after.is_some() && !self.has_place_for(path)? {
            return Ok(PathStatus::Conflict(None));
        }
        let Some(base) = self.base else {
            let is_touched = touched.is_touched((path, changed), now.as_ref())?;
            return Ok(if is_touched { PathStatus::Conflict(now) } else { PathStatus::Free(*changed) });
        };
        if let (Some(noted), true) = (baseline.merging(path), is_regular(state))
            && noted.is_in(self.target.open_file(path)?)
        {
            return Ok(PathStatus::Merged(noted));
        }
        let after = changed.after.map(|after| rebased(changed.before, after, state));
        let changed = &PathChange { after, ..*changed };
        let has_same_mode = state.map(|state| state.mode) == after.map(|after| after.mode);
        if has_same_mode && is_same((self.copy, changed.after), (self.target, state), path)? {
            return Ok(PathStatus::Done);
        }
        if removes_directory(changed) && is_directory(state) && self.has_other_names(path)? {
            return Ok(PathStatus::Conflict(now));
        }
        // Equal files in another directory are not those that the run began with.
        let is_unchanged = is_same((base, changed.before), (self.target, state), path)?;
        match is_unchanged && !touched.is_touched_unseen((path, changed), now.as_ref())? {
            true => Ok(PathStatus::Free(PathChange { before: state, ..*changed })),
            false => Ok(PathStatus::Conflict(now)),
        }
    }

    /// Returns true if a directory of the target, which is to be removed, has a name that the run never saw.
    fn has_other_names(&self, path: &Path) -> Result<bool, DirectoryError> {
        let names = self.target.open(path)?.names(MOST_NAMES)?;
        let is_known =
            |name: &Name| self.set.get(&path.join(OsStr::from_bytes(name.name.as_bytes()))).is_some();
        Ok(!names.iter().all(is_known))
    }

    /// Returns true if the directory that a path is created in is there, or is created with it.
    fn has_place_for(&self, path: &Path) -> Result<bool, DirectoryError> {
        let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) else {
            return Ok(true);
        };
        let is_made = self.set.get(parent).is_some_and(|changed| is_directory(changed.after));
        Ok(is_made || is_directory(self.target.stat(parent)?.as_ref().map(PathState::of)))
    }

    /// Merges a file, if all three of its versions are regular files and the base is known.
    fn merged(
        &self,
        path: &Path,
        (changed, now): (&PathChange, Option<&Stat>),
        (mode, budget): (MergeMode, &mut MergeBudget),
    ) -> Result<Option<MergedFile>, ApplyError> {
        let is_file = |state: &PathState| is_regular(Some(*state));
        let now = now.map(PathState::of).filter(is_file);
        let (Some(base), Some(now), Some(after), Some(_)) =
            (self.base, now, changed.after.filter(is_file), changed.before.filter(is_file))
        else {
            return Ok(None);
        };
        let failed = |source| ApplyError::Write { path: path.to_owned(), source };
        let versions = [base.open_file(path)?, self.target.open_file(path)?, self.copy.open_own_file(path)?];
        let (content, has_markers) = match merge(versions, budget).map_err(failed)? {
            MergeOutcome::Clean(content) => (content, false),
            MergeOutcome::Marked(content) if mode == MergeMode::Markers => (content, true),
            MergeOutcome::Marked(_) | MergeOutcome::Impossible => return Ok(None),
        };
        let mut file = create_below(self.scratch, path).map_err(failed)?;
        file.write_all(&content).map_err(failed)?;
        let after = rebased(changed.before, after, Some(now));
        let changed = PathChange { before: Some(now), after: Some(after), same_content: false };
        Ok(Some(MergedFile { changed, content: MergedContent::of(&content, has_markers) }))
    }

    fn carry(
        &self,
        (from, links): (&Directory, Option<&LinkTargets>),
        changes: &[(&Path, PathChange)],
        (expectations, baseline): (&Expectations, &mut Baseline),
    ) -> Result<BTreeSet<PathBuf>, ApplyError> {
        let temporary = baseline.temporary().to_owned();
        let (open, to, expected) = (Directory::open_own_file as _, self.target, Some(expectations));
        let route = TransferRoute {
            from,
            links,
            open,
            to,
            owner: TransferOwner::AsBefore,
            temporary: &temporary,
            expected,
        };
        let mut put = |path: &Path, left: &Stat| {
            baseline.note(path, left);
            belljar_failpoint::reached("kept.file_applied");
        };
        Ok(route.carry(changes, &mut put)?)
    }
}

/// A change relative to what is in the target now. A directory is overwritten only by a change of that directory.
fn over(changed: &PathChange, now: Option<&Stat>) -> Option<PathChange> {
    let before = now.map(PathState::of);
    let is_other_directory = is_directory(before) && !is_directory(changed.before);
    let is_nothing = before.is_none() && changed.after.is_none();
    (!is_other_directory && !is_nothing).then_some(PathChange { before, same_content: false, ..*changed })
}

fn is_regular(state: Option<PathState>) -> bool {
    state.is_some_and(|state| state.kind == FileType::RegularFile)
}

fn is_directory(state: Option<PathState>) -> bool {
    state.is_some_and(|state| state.kind == FileType::Directory)
}

/// Returns true if a path is the same in two trees, apart from its permission bits.
fn is_same(
    (one, one_is): (&Directory, Option<PathState>),
    (other, other_is): (&Directory, Option<PathState>),
    path: &Path,
) -> Result<bool, DirectoryError> {
    match (one_is, other_is) {
        (None, None) => Ok(true),
        (Some(one_is), Some(other_is)) if one_is.kind == other_is.kind => match one_is.kind {
            FileType::Directory => Ok(true),
            FileType::RegularFile if one_is.size != other_is.size => Ok(false),
            // Of the two the second is opened as the host's own layer is; no permission of a target is in root's way.
            kind => same_content(other, one, path, kind),
        },
        _ => Ok(false),
    }
}

/// Creates a file in an own directory, with the directories on the way.
fn create_below(directory: &Directory, path: &Path) -> std::io::Result<File> {
    let mut at = directory.try_clone()?;
    let name = path.file_name().ok_or(rustix::io::Errno::INVAL)?;
    for component in path.parent().into_iter().flat_map(Path::components) {
        at = at.make(Path::new(component.as_os_str()), 0o700)?;
    }
    let flags = rustix::fs::OFlags::WRONLY | rustix::fs::OFlags::CREATE | rustix::fs::OFlags::EXCL;
    let flags = flags | rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::CLOEXEC;
    Ok(rustix::fs::openat(&at, name, flags, rustix::fs::Mode::from_raw_mode(0o600)).map(File::from)?)
}

// === impl ApplyPlan ===

impl ApplyPlan {
    /// Leaves out what can't be written without a path that conflicts: what is below it, and a directory that would have
    /// to be removed with it in it.
    fn leave_out_dependents(&mut self) {
        loop {
            let is_out = |path: &Path| self.conflicts.contains(path);
            let is_below = |path: &Path| path.ancestors().skip(1).any(is_out);
            let dependents: Vec<PathBuf> = self
                .writes
                .iter()
                .filter(|(path, changed)| {
                    is_below(path) || (removes_directory(changed) && self.holds_conflict(path))
                })
                .map(|(path, _)| path.clone())
                .collect();
            if dependents.is_empty() {
                return;
            }
            for path in dependents {
                self.writes.remove(&path);
                self.conflicts.insert(path);
            }
        }
    }

    /// Replaces the permissions that were read from the run's base by those that the target has now, but for the executable bit.
    fn carry_modes(&mut self, target: &Directory) -> Result<(), DirectoryError> {
        let paths: Vec<PathBuf> = self.writes.keys().cloned().collect();
        carried::carry(&mut self.writes, target)?;
        self.done.extend(paths.into_iter().filter(|path| !self.writes.contains_key(path)));
        Ok(())
    }

    /// Counts what was changed after this was decided as conflicting.
    fn leave_alone(&mut self, paths: BTreeSet<PathBuf>) {
        for path in &paths {
            self.writes.remove(path);
            self.merges.remove(path);
        }
        self.conflicts.extend(paths);
    }

    /// Returns true if a path below this one conflicts.
    fn holds_conflict(&self, path: &Path) -> bool {
        let below = self.conflicts.range(path.to_owned()..);
        below.take_while(|other| other.starts_with(path)).any(|other| other != path)
    }

    /// Returns everything that is written.
    fn set(&self) -> ChangeSet {
        let writes = self.writes.iter().map(|(path, changed)| (path.as_path(), *changed));
        let merges = self.merges.iter().map(|(path, merged)| (path.as_path(), merged.changed));
        ChangeSet::of(writes.chain(merges))
    }

    fn outcome(self) -> ApplyOutcome {
        let mut applied =
            ApplyOutcome { conflicts: self.conflicts.into_iter().collect(), ..ApplyOutcome::default() };
        applied.written = self.writes.into_keys().chain(self.done).collect();
        applied.written.sort();
        let merges = self.merges.into_iter().map(|(path, merged)| (path, merged.content));
        for (path, content) in merges.chain(self.merged) {
            match content.has_markers {
                true => applied.marked.push(path),
                false => applied.merged.push(path),
            }
        }
        applied.marked.sort();
        applied.merged.sort();
        applied
    }
}

fn removes_directory(changed: &PathChange) -> bool {
    is_directory(changed.before) && !is_directory(changed.after)
}

#[cfg(test)]
mod tests;
