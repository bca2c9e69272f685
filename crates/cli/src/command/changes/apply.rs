//! `belljar changes apply`.

use super::{find, named, part_of};
use crate::command::printing::print_json;
use crate::error::CliError;
use crate::kept::{
    ReviewArguments, ReviewedChanges, RunChangesOutcome, apply, drift, leave_out_conflicts, left_out, listed,
};
use crate::progress::harmless;
use crate::trust_review::TrustArguments;
use belljar_contract::result::{ChangesState, WorkspaceChanges};
use belljar_sandbox::kept::KeptChangeSet;
use belljar_sandbox::workspace::diff;
use belljar_sandbox::workspace::partial::{self, ApplyOptions, ApplyOutcome};
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
A path conflicts if something else has changed it in the source since the run began. All other changes are applied, those that \
conflict are kept, and the exit code is 5. Changes that were applied are not kept any longer.

Merging needs the files as they were when the run began. They are known for small directories and those on a file system that \
shares blocks between copies.")]
pub(super) struct ApplyArguments {
    /// The change set
    id: String,
    /// Only what is at these paths and below
    paths: Vec<PathBuf>,
    #[command(flatten)]
    review: ReviewArguments,
    #[command(flatten)]
    trust: TrustArguments,
    /// Merge text files that conflict: where both sides changed different lines, or, with `markers`, all of them, with conflict
    /// markers for the same lines
    #[arg(long, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "clean")]
    merge: Option<MergeMode>,
    /// Write the run's version over what conflicts at this path and below
    #[arg(long, value_name = "PATH")]
    overwrite: Vec<PathBuf>,
    /// Print what was applied as JSON
    #[arg(long)]
    json: bool,
}

/// How files that conflict are merged.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum MergeMode {
    /// Only without conflict markers.
    Clean,
    /// With conflict markers where both sides changed the same lines.
    Markers,
}

// === impl ApplyArguments ===

impl ApplyArguments {
    pub(super) fn run(&self) -> Result<ExitCode, CliError> {
        let mut kept = find(&self.id)?;
        let frozen = kept.changes()?;
        let part = part_of(&frozen, &self.paths)?;
        let wishes = ApplyOptions {
            overwritten: named(&frozen, &self.overwrite)?,
            merge: match self.merge {
                None => partial::MergeMode::Off,
                Some(MergeMode::Clean) => partial::MergeMode::Clean,
                Some(MergeMode::Markers) => partial::MergeMode::Markers,
            },
            ..ApplyOptions::default()
        };
        if !self.json {
            crate::output::err!("{}{}", drift(&frozen.drift.listed()), left_out(frozen.left_out()));
        }
        let mut changes = diff::listed(part.iter());
        let ReviewArguments { reviewed: digest, unshown } = self.review;
        let reviewed = ReviewedChanges { frozen: &frozen, set: &part, digest, unshown };
        let applied = apply(&mut kept, reviewed, &self.trust, &wishes)?;
        leave_out_conflicts(&mut changes, &listed(&applied.conflicts));
        let is_part = part.len() < frozen.set.len() || !frozen.left_out().is_empty();
        let fate = self.settle(kept, &applied, is_part)?;
        changes.changed_in_source = frozen.drift.listed();
        self.tell(&fate, &applied, changes)?;
        Ok(ExitCode::from(fate.report()))
    }

    /// A change set of which all is applied is removed.
    fn settle(
        &self,
        kept: KeptChangeSet,
        applied: &ApplyOutcome,
        is_part: bool,
    ) -> Result<RunChangesOutcome, CliError> {
        match applied.conflicts.is_empty() && is_part {
            true => Ok(RunChangesOutcome::of(ChangesState::Applied, Some(kept))),
            false => RunChangesOutcome::of_applied(kept, applied, &[]),
        }
    }

    fn tell(
        &self,
        fate: &RunChangesOutcome,
        applied: &ApplyOutcome,
        mut changes: WorkspaceChanges,
    ) -> Result<(), CliError> {
        if self.json {
            let drift = std::mem::take(&mut changes.changed_in_source);
            fate.add_to(&mut changes);
            changes.changed_in_source = drift;
            let mut document =
                serde_json::to_value(&changes).map_err(|error| CliError::output(error.into()))?;
            document["merged"] = listed(&applied.merged).into();
            document["merged_with_markers"] = listed(&applied.marked).into();
            return print_json(&document);
        }
        if !changes.files.is_empty() {
            crate::output::out!("{}", crate::summary::files(&changes, "applied"));
        }
        for (paths, how) in [(&applied.merged, "merged"), (&applied.marked, "merged with conflict markers")] {
            listed(paths).iter().for_each(|path| crate::output::outln!("  {how}: {}", harmless(path)));
        }
        fate.tell();
        Ok(())
    }
}
