//! Three-way merge of a text file: what a run made of it and what the source has become meanwhile, on what both began with.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};
use std::fs::File;
use std::io::Read;
use std::time::{Duration, Instant};

/// Larger files are not merged.
const LARGEST_BYTES: u64 = 8 << 20;

/// Files with more lines than this are not merged.
const MOST_LINES: usize = 200_000;

/// Maximum time of all comparisons of one apply that estimate what merges cost.
const LONGEST_ESTIMATE: Duration = Duration::from_secs(10);

/// Maximum cost of all merges of one apply: for each of a file's two sides, its lines and those of the base, times the lines that differ.
const MOST_WORK: u64 = 2_000_000_000;

/// Maximum number of lines that differ between the base and one side.
const MOST_CHANGED_LINES: u64 = 20_000;

/// Remaining cost that the merges of one apply may have. The library that merges has no limit of its own, and a program in
/// a sandbox writes one side.
#[derive(Debug)]
pub(super) struct MergeBudget {
    time: Duration,
    work: u64,
}

/// Result of a merge.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum MergeOutcome {
    /// Both sides changed different lines, or the same lines to the same text.
    Clean(Vec<u8>),
    /// Both sides changed the same lines; the text has conflict markers as git writes them.
    Marked(Vec<u8>),
    /// One of the three is no text or too large, or the merge would take too long.
    Impossible,
}

/// The content of a merged file. It is noted before it is written: after an interrupted attempt a file that has it is merged already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MergedContent {
    sha256: [u8; 32],
    pub(super) has_markers: bool,
}

// === impl MergedContent ===

impl MergedContent {
    pub(super) fn of(content: &[u8], has_markers: bool) -> Self {
        Self { sha256: Sha256::digest(content).into(), has_markers }
    }

    /// Returns true if a file has it.
    pub(super) fn is_in(&self, file: File) -> bool {
        let mut content = Vec::new();
        let read = file.take(3 * LARGEST_BYTES).read_to_end(&mut content);
        read.is_ok() && Self::of(&content, self.has_markers) == *self
    }
}

// === impl MergeBudget ===

impl Default for MergeBudget {
    fn default() -> Self {
        Self { time: LONGEST_ESTIMATE, work: MOST_WORK }
    }
}

impl MergeBudget {
    /// Takes the cost of a merge from the budget. Returns false, and takes no work, if there is not enough left.
    fn allows(&mut self, base: &[u8], sides: [&[u8]; 2]) -> bool {
        let lines = |text: &'_ [u8]| text.split_inclusive(|byte| *byte == b'\n').count();
        if sides.iter().chain([&base]).any(|text| lines(text) > MOST_LINES) {
            return false;
        }
        let mut work = 0;
        for side in sides {
            let Some(cost) = self.cost(base, side) else { return false };
            work += cost;
        }
        self.work.checked_sub(work).map(|left| self.work = left).is_some()
    }

    /// Returns the cost of comparing a side with the base. A rough comparison finds no fewer changed lines than there are.
    fn cost(&mut self, base: &[u8], side: &[u8]) -> Option<u64> {
        let lines = |text| <[u8]>::split_inclusive(text, |byte| *byte == b'\n').collect::<Vec<_>>();
        let (base, side) = (lines(base), lines(side));
        let begun = Instant::now();
        let deadline = Some(begun + self.time);
        let compared = capture_diff_slices_deadline(Algorithm::Myers, &base, &side, deadline);
        self.time = self.time.saturating_sub(begun.elapsed());
        let changed = compared.iter().map(changed_lines).sum::<usize>() as u64;
        (changed <= MOST_CHANGED_LINES).then(|| (base.len() + side.len()) as u64 * (changed + 1))
    }
}

fn changed_lines(part: &DiffOp) -> usize {
    match part {
        DiffOp::Equal { .. } => 0,
        _ => part.old_range().len() + part.new_range().len(),
    }
}

/// Merges three versions of a file.
///
/// # Errors
/// The error of reading.
pub(super) fn merge(
    [base, source, run]: [File; 3],
    budget: &mut MergeBudget,
) -> std::io::Result<MergeOutcome> {
    let (Some(base), Some(source), Some(run)) = (text(base)?, text(source)?, text(run)?) else {
        return Ok(MergeOutcome::Impossible);
    };
    if !budget.allows(&base, [&source, &run]) {
        return Ok(MergeOutcome::Impossible);
    }
    Ok(match diffy::merge_bytes(&base, &source, &run) {
        Ok(merged) => MergeOutcome::Clean(merged),
        Err(marked) => MergeOutcome::Marked(marked),
    })
}

/// The content of a file if it is text of a size that is merged.
fn text(file: File) -> std::io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    file.take(LARGEST_BYTES + 1).read_to_end(&mut bytes)?;
    let is_text = bytes.len() as u64 <= LARGEST_BYTES && !bytes.contains(&0);
    Ok(is_text.then_some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, Write};

    fn merged(versions: [&[u8]; 3]) -> MergeOutcome {
        merged_within(&mut MergeBudget::default(), versions)
    }

    fn merged_within(budget: &mut MergeBudget, versions: [&[u8]; 3]) -> MergeOutcome {
        let versions = versions.map(|version| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(version).unwrap();
            file.rewind().unwrap();
            file
        });
        merge(versions, budget).unwrap()
    }

    #[test]
    fn different_lines_are_merged_and_the_same_lines_are_marked() {
        let base = b"one\ntwo\nthree\nfour\nfive\n";
        let clean = merged([base, b"ONE\ntwo\nthree\nfour\nfive\n", b"one\ntwo\nthree\nfour\nFIVE\n"]);
        assert_eq!(clean, MergeOutcome::Clean(b"ONE\ntwo\nthree\nfour\nFIVE\n".to_vec()));
        let MergeOutcome::Marked(marked) = merged([b"one\n", b"source\n", b"run\n"]) else {
            panic!("no markers")
        };
        let marked = String::from_utf8(marked).unwrap();
        assert!(
            marked.contains("<<<<<<<") && marked.contains("source\n") && marked.contains("run\n"),
            "{marked}"
        );
        assert_eq!(merged([b"a\0", b"b\0", b"c\0"]), MergeOutcome::Impossible);
    }
    /// A text whose lines another number makes others.
    fn text_of(lines: usize, number: usize) -> Vec<u8> {
        (0..lines).flat_map(|line| format!("{}\n", line * 10 + number).into_bytes()).collect()
    }

    #[test]
    fn merge_that_would_take_too_long_is_none() {
        let clean = |budget: &mut MergeBudget, lines: usize, run: &[u8]| {
            let base = text_of(lines, 0);
            let source = [b"person\n", &base[..]].concat();
            matches!(merged_within(budget, [&base, &source, run]), MergeOutcome::Clean(_))
        };
        let appended = |lines: usize| [&text_of(lines, 0)[..], b"run\n"].concat();
        // Every line is another one: hours of work for the library. The time bounds the estimate alone.
        let mut hurried = MergeBudget { time: Duration::from_millis(50), work: u64::MAX };
        assert!(!clean(&mut hurried, 60_000, &text_of(60_000, 1)));
        assert!(!clean(&mut MergeBudget::default(), MOST_LINES + 1, &appended(MOST_LINES + 1)));
        // All merges of an apply together: the control is the first of them.
        let mut budget = MergeBudget { work: 10_000, ..MergeBudget::default() };
        assert!(clean(&mut budget, 1_000, &appended(1_000)));
        assert!(!clean(&mut budget, 1_000, &appended(1_000)));
        assert!(clean(&mut budget, 10, &appended(10)), "what is refused costs nothing");
        assert!(clean(&mut MergeBudget::default(), 60_000, &appended(60_000)));
    }
}
