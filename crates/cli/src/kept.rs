//! The end of a run on a copy: its changes are applied, kept or discarded, and the user is informed.
//!
//! The changes are always moved to the kept ones first. They therefore survive this process, and an apply at the end of a run is
//! the same as `belljar changes apply`.

mod texts;

pub(crate) use texts::{
    conflicts, drift, duration, kept_as, left_out, left_out_lines, listed, not_pushed_kept_as,
    others_kept_as, too_long,
};

use crate::error::{CONFLICT, CliError};
use crate::progress::harmless;
use crate::prompt::{answer, confirmed, is_at_terminal};
use crate::terminal::begin_review;
use crate::trust_review::TrustArguments;
use crate::{state, summary};
use belljar_contract::id::RunId;
use belljar_contract::result::{ChangesState, WorkspaceChanges};
use belljar_sandbox::kept::{
    self, CollectedChangeSet, CollectionReason, FrozenChangeSet, KeptChangeSet, KeptError, SettledRun,
};
use belljar_sandbox::session::{self, Refusal, SessionError};
use belljar_sandbox::state::{RunFolder, StateDirectory};
use belljar_sandbox::workspace::changes::{ChangeSet, ChangesError};
use belljar_sandbox::workspace::digest::ReviewDigest;
use belljar_sandbox::workspace::partial::{ApplyOptions, ApplyOutcome, MergeMode};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Options for the changes at the end of a run.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct RunChangesArguments {
    /// Keep the changes for `belljar changes`, without asking. Without a terminal that is the default
    #[arg(long, conflicts_with = "discard")]
    keep: bool,
    /// Apply the changes to the directory that was copied, if the run succeeds. Changes that conflict are kept
    #[arg(long, requires = "workspace_copy", conflicts_with = "discard")]
    apply: bool,
    /// Delete the changes at the end
    #[arg(long)]
    discard: bool,
    #[command(flatten)]
    pub(crate) trust: TrustArguments,
}

/// End of a run, and what the user is asked then.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RunEnd {
    /// True if the run succeeded. `--apply` doesn't apply the changes of a failed run.
    pub(crate) succeeded: bool,
    /// True if the user may be asked, if there is a terminal.
    pub(crate) asks: bool,
    /// True if the changes are shown before the user is asked.
    pub(crate) shows: bool,
    /// True if `--keep` also keeps the folder of a run without changes.
    pub(crate) keeps_run: bool,
}

/// Outcome for the changes of a run.
#[derive(Debug)]
pub(crate) struct RunChangesOutcome {
    pub(crate) state: ChangesState,
    /// The kept change set, if there still is one.
    pub(crate) kept: Option<KeptChangeSet>,
    /// Paths that were not applied.
    pub(crate) conflicts: Vec<String>,
    /// Paths of the source that something else changed.
    pub(crate) changed_in_source: Vec<String>,
    /// Error that prevented an apply, or that left changes out. The changes are kept.
    pub(crate) failure: Option<CliError>,
}

/// Reviewed changes to apply.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReviewedChanges<'a> {
    pub(crate) frozen: &'a FrozenChangeSet,
    /// All of the changes, or a part of them.
    pub(crate) set: &'a ChangeSet,
    /// The digest of the changes that were reviewed, if one was given.
    pub(crate) digest: Option<ReviewDigest>,
    /// True if files that the review lists without their content are applied, too.
    pub(crate) unshown: bool,
}

/// Approved parts of a review.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct ReviewArguments {
    /// Write the changes only if they have this digest, which `diff` prints
    #[arg(long, value_name = "DIGEST")]
    pub(crate) reviewed: Option<ReviewDigest>,
    /// Also write files that the review lists without showing their content: binary ones, and what is too long for a diff
    #[arg(long, requires = "reviewed")]
    pub(crate) unshown: bool,
}

/// User's decision about changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Choice {
    Apply,
    Keep,
    Discard,
}

// === impl ReviewedChanges ===

impl<'a> ReviewedChanges<'a> {
    /// All of the changes, shown by this process.
    fn all(frozen: &'a FrozenChangeSet) -> Self {
        Self { frozen, set: &frozen.set, digest: None, unshown: true }
    }
}

// === impl RunChangesArguments ===

impl RunChangesArguments {
    /// Returns true if the changes are kept without asking.
    pub(crate) fn keeps(&self) -> bool {
        self.keep
    }

    /// Decides on the changes in the folder of a run in which nothing runs any more.
    ///
    /// # Errors
    /// [`CliError`] if the changes can't be moved to the kept ones; they stay where they are, and are kept the next time
    /// that belljar starts.
    pub(crate) fn settle(&self, folder: RunFolder, end: RunEnd) -> Result<RunChangesOutcome, CliError> {
        let (state, id) = (state::open(), folder.id().clone());
        let settled = match kept::settle(&state, folder, false) {
            // A disk may be too full for a change set to be kept, and not for it to be deleted.
            Err(_) if self.discard => {
                state.adopt(&id).map_or(Ok(()), RunFolder::remove)?;
                return Ok(RunChangesOutcome::of(ChangesState::Discarded, None));
            }
            settled => settled?,
        };
        let kept = match settled {
            SettledRun::Unchanged(mut folder) => {
                if self.keep && end.keeps_run {
                    folder.keep()?;
                    crate::output::errln!("The run is kept in {}", crate::output::path(folder.path()));
                } else {
                    folder.remove()?;
                }
                return Ok(RunChangesOutcome::of(ChangesState::None, None));
            }
            SettledRun::Kept(kept, collected) => {
                tell_collected(&collected);
                *kept
            }
        };
        if self.discard {
            if end.shows {
                begin_review();
                let _ = kept.render().map(|changes| crate::output::err!("{}", summary::changes(&changes)));
            }
            kept.remove()?;
            return Ok(RunChangesOutcome::of(ChangesState::Discarded, None));
        }
        match kept.changes() {
            Ok(frozen) => self.decide(kept, &frozen, end),
            // A missing source directory is a failure only for an apply. Without it the changes can't be computed now.
            Err(error @ KeptError::SourceGone { .. }) if !(self.apply && end.succeeded) => {
                crate::output::errln!("belljar: {}", CliError::from(error).chain());
                Ok(RunChangesOutcome::of(ChangesState::Kept, Some(kept)))
            }
            Err(error) => Ok(RunChangesOutcome {
                failure: Some(error.into()),
                ..RunChangesOutcome::of(ChangesState::Kept, Some(kept))
            }),
        }
    }

    fn decide(
        &self,
        mut kept: KeptChangeSet,
        frozen: &FrozenChangeSet,
        end: RunEnd,
    ) -> Result<RunChangesOutcome, CliError> {
        let choice = match self.choice(&kept, frozen, end) {
            Ok(choice) => choice,
            // The changes are kept by now, and only the fate carries their id.
            Err(error) => {
                return Ok(RunChangesOutcome {
                    failure: Some(error),
                    ..RunChangesOutcome::of(ChangesState::Kept, Some(kept))
                });
            }
        };
        let changed_in_source = frozen.drift.listed();
        let fate = match choice {
            Choice::Keep => RunChangesOutcome::of(ChangesState::Kept, Some(kept)),
            Choice::Discard => {
                kept.remove()?;
                RunChangesOutcome::of(ChangesState::Discarded, None)
            }
            Choice::Apply => {
                match apply(&mut kept, ReviewedChanges::all(frozen), &self.trust, &ApplyOptions::default()) {
                    Ok(applied) => RunChangesOutcome::of_applied(kept, &applied, frozen.left_out())?,
                    Err(error) => RunChangesOutcome {
                        failure: Some(error),
                        ..RunChangesOutcome::of(ChangesState::Kept, Some(kept))
                    },
                }
            }
        };
        // Changes that can't be reported fail the run, as they fail a job.
        let is_told = frozen.left_out().is_empty() || fate.state == ChangesState::Discarded;
        let too_long = || CliError::from(KeptError::Changes(ChangesError::TooLong));
        let failure = fate.failure.or_else(|| (!is_told).then(too_long));
        Ok(RunChangesOutcome { changed_in_source, failure, ..fate })
    }

    /// Shows the changes, and decides what is done with them.
    fn choice(
        &self,
        kept: &KeptChangeSet,
        frozen: &FrozenChangeSet,
        end: RunEnd,
    ) -> Result<Choice, CliError> {
        if end.shows {
            let changes = frozen.render()?;
            begin_review();
            crate::output::err!("{}", summary::changes(&changes));
        }
        crate::output::err!("{}{}", drift(&frozen.drift.listed()), left_out(frozen.left_out()));
        let is_of_host = kept.record().source_path().is_some();
        Ok(match (self.apply, self.keep) {
            (true, _) if end.succeeded => Choice::Apply,
            (false, false) if end.asks && is_of_host => ask(frozen)?,
            _ => Choice::Keep,
        })
    }
}

/// Applies a part of kept changes. If there is a terminal, asks the user about paths that gain trust and about a merge of conflicts.
///
/// Frozen change sets reach the user's directory only through this function, so it checks the digest of the reviewed changes.
pub(crate) fn apply(
    kept: &mut KeptChangeSet,
    ReviewedChanges { frozen, set, digest, unshown }: ReviewedChanges<'_>,
    trust: &TrustArguments,
    wishes: &ApplyOptions,
) -> Result<ApplyOutcome, CliError> {
    if let Some(reviewed) = digest {
        let digest = frozen.digest_of(set)?;
        if reviewed != digest {
            return Err(SessionError::Refused(Refusal::Stale { digest: digest.to_string() }).into());
        }
        if !unshown {
            Refusal::of_unshown(&frozen.unshown(set)?).map_err(SessionError::Refused)?;
        }
    }
    let with = |trust: &belljar_policy::handoff::ApprovedPaths, merge| ApplyOptions {
        trust: trust.clone(),
        merge,
        overwritten: wishes.overwritten.clone(),
    };
    let mut applied = trust.with_yes(|trust| Ok(kept.apply(frozen, set, &with(trust, wishes.merge))?))?;
    let is_offered = !applied.conflicts.is_empty() && frozen.base.is_some() && wishes.merge == MergeMode::Off;
    if is_offered && is_merge_wanted(&applied) {
        let left = frozen.part(&applied.conflicts);
        let merged =
            trust.with_yes(|trust| Ok(kept.apply(frozen, &left, &with(trust, MergeMode::Clean))?))?;
        applied.merged.extend(merged.merged);
        applied.written.extend(merged.written);
        applied.conflicts = merged.conflicts;
    }
    Ok(applied)
}

fn is_merge_wanted(applied: &ApplyOutcome) -> bool {
    if !is_at_terminal() {
        return false;
    }
    begin_review();
    crate::output::err!("{}", conflicts(&listed(&applied.conflicts)));
    confirmed("Merge those that changed in different lines? [y/n] ")
}

/// Asks the user at the terminal what to do; without a terminal the changes are kept.
fn ask(frozen: &FrozenChangeSet) -> Result<Choice, CliError> {
    if !is_at_terminal() {
        return Ok(Choice::Keep);
    }
    let answers: [(&[&str], Choice); 3] = [
        (&["a", "apply"], Choice::Apply),
        (&["k", "keep"], Choice::Keep),
        (&["d", "discard"], Choice::Discard),
    ];
    let question = "Apply the changes, keep them for later, or discard them? [a/k/d] ";
    let choice = answer(question, &answers).unwrap_or(Choice::Keep);
    let is_approved = choice != Choice::Apply || is_unshown_approved(frozen.unshown(&frozen.set)?.len());
    Ok(if is_approved { choice } else { Choice::Keep })
}

/// Asks the user at the terminal about files that were listed but not shown, if there are any.
pub(crate) fn is_unshown_approved(files: usize) -> bool {
    files == 0 || confirmed(&format!("{files} of the listed files are not shown. Write them, too? [y/n] "))
}

// === impl RunChangesOutcome ===

impl RunChangesOutcome {
    pub(crate) fn of(state: ChangesState, kept: Option<KeptChangeSet>) -> Self {
        Self { state, kept, conflicts: Vec::new(), changed_in_source: Vec::new(), failure: None }
    }

    /// Returns the outcome of an apply. Removes the kept change set if no changes are left in it.
    pub(crate) fn of_applied(
        kept: KeptChangeSet,
        applied: &ApplyOutcome,
        left_out: &[PathBuf],
    ) -> Result<Self, CliError> {
        if applied.conflicts.is_empty() && !left_out.is_empty() {
            return Ok(Self::of(ChangesState::Applied, Some(kept)));
        }
        if applied.conflicts.is_empty() {
            kept.remove()?;
            return Ok(Self::of(ChangesState::Applied, None));
        }
        let conflicts = listed(&applied.conflicts);
        Ok(Self { conflicts, ..Self::of(ChangesState::Conflict, Some(kept)) })
    }

    /// Returns the id of the kept change set.
    pub(crate) fn id(&self) -> Option<&RunId> {
        self.kept.as_ref().map(KeptChangeSet::id)
    }

    /// Adds the outcome to the report of the changes.
    pub(crate) fn add_to(&self, changes: &mut WorkspaceChanges) {
        changes.id = self.id().map(RunId::to_string);
        changes.state = Some(self.state);
        changes.conflicts.clone_from(&self.conflicts);
        changes.changed_in_source.clone_from(&self.changed_in_source);
    }

    /// Prints the outcome for the user on standard error.
    pub(crate) fn tell(&self) {
        crate::output::err!("{}", self.text());
    }

    fn text(&self) -> String {
        let mut text = conflicts(&self.conflicts);
        match (self.state, &self.kept) {
            (ChangesState::Conflict, Some(kept)) => {
                let id = kept.id();
                let _ = writeln!(
                    text,
                    "All other changes are applied. Those that conflict are kept as {id}: `belljar changes diff {id}` shows \
                     them, `belljar changes apply {id}` with --merge or --overwrite applies them."
                );
            }
            (ChangesState::Applied, Some(kept)) => text += &others_kept_as(kept),
            (_, Some(kept)) => text += &kept_as(kept),
            (ChangesState::Applied, None) => text += "The changes are applied.\n",
            (ChangesState::Discarded, None) => text += "The changes are discarded.\n",
            (_, None) => {}
        }
        text
    }

    /// Returns the exit code of a run that succeeded itself, or the error to report.
    pub(crate) fn into_exit_code(self) -> Result<u8, CliError> {
        match self {
            Self { failure: Some(error), .. } => Err(error),
            Self { state: ChangesState::Conflict, .. } => Ok(CONFLICT),
            _ => Ok(0),
        }
    }

    /// Reports why the changes could not be applied. Returns the exit code of a run that succeeded itself.
    pub(crate) fn report(&self) -> u8 {
        match (&self.failure, self.state) {
            (Some(error), _) => error.report_code(),
            (None, ChangesState::Conflict) => CONFLICT,
            _ => 0,
        }
    }
}

/// Leaves out of the list what conflicts and so was not applied. The path of a directory ends with a slash there.
pub(crate) fn leave_out_conflicts(changes: &mut WorkspaceChanges, conflicts: &[String]) {
    let conflicts: BTreeSet<&str> = conflicts.iter().map(String::as_str).collect();
    changes.files.retain(|file| !conflicts.contains(file.path.strip_suffix('/').unwrap_or(&file.path)));
}

/// Reports the kept changes that garbage collection removed.
pub(crate) fn tell_collected(collected: &[CollectedChangeSet]) {
    for CollectedChangeSet { id, reason, title, .. } in collected {
        let why = match reason {
            CollectionReason::Age => "they had their age",
            CollectionReason::Size => "all kept changes together were too large, and they were the largest",
        };
        crate::output::errln!("belljar: the kept changes {id} ({}) were removed: {why}", harmless(title));
    }
}

/// The folders that hold changes which can't be listed. Those of an interrupted commit are told with the session.
pub(crate) fn stranded(state: &StateDirectory) -> Vec<PathBuf> {
    let stranded = kept::stranded(state).into_iter();
    stranded.filter(|folder| !session::has_commit(folder)).collect()
}

/// Says which folders hold changes that can't be listed.
pub(crate) fn tell_stranded(folders: &[PathBuf]) {
    for path in folders {
        let path = crate::output::path(path);
        crate::output::errln!(
            "belljar: {path} holds changes that can't be listed (a damaged record, or a full disk)"
        );
    }
}
