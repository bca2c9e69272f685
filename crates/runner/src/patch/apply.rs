//! Applies one file's hunks to its bytes.
//!
//! Matching is exact: a hunk may fit elsewhere than its header says, but every byte of its old side must be
//! there. The rules are those of `git apply` with default flags:
//! - the search starts at the header's *new* line, earlier hunks being applied by then, and goes outward, one
//!   line forward before one line back, until the nearest match;
//! - lines that an earlier hunk wrote (its context included) never match again, so hunks can't overlap, but they
//!   may come in any order;
//! - an old side that starts at line 0 or 1 must match at the start of the file;
//! - a hunk that ends in a change, without context after it, must match at the end of the file.
//!
//! Absent: fuzz, `--unidiff-zero`, `--recount`, `-C`, whitespace repair.

mod image;
mod line_index;
mod matching;

use super::hunk::Hunks;
use super::work::{WorkBudget, WorkBudgetExhausted};
use image::Image;

/// Result of applying hunks to a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchedContent {
    /// The new content.
    pub bytes: Vec<u8>,
    /// Place of each hunk, in the order of the diff.
    pub places: Vec<HunkPlace>,
}

/// Place of an applied hunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HunkPlace {
    /// 1-based line of the hunk's header in the diff.
    pub diff_line: u32,
    /// 1-based line at which the header puts it.
    pub expected_line: u32,
    /// 1-based line at which it fits, earlier hunks of the same file being applied.
    pub line: u32,
}

/// Reason why hunks can't be applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// No place in the file holds the hunk's old lines.
    #[error("the hunk at line {diff_line} of the diff (old line {old_start}) matches nowhere in the file")]
    NoMatch {
        /// 1-based line of the hunk's header in the diff.
        diff_line: u32,
        /// The old line it is about.
        old_start: u32,
    },
    /// The file is too large to be patched.
    #[error("the file has more than {max_bytes} bytes")]
    FileTooLarge {
        /// Maximum size of a file, in bytes.
        max_bytes: usize,
    },
    /// The work budget is exceeded.
    #[error(
        "too much work: the hunk at line {diff_line} of the diff is too far from its place, or the patch too large"
    )]
    TooMuchWork {
        /// 1-based line of the hunk's header in the diff.
        diff_line: u32,
    },
}

/// Applies `hunks` to `before`.
pub fn apply(before: &[u8], hunks: Hunks<'_>, budget: &mut WorkBudget) -> Result<PatchedContent, ApplyError> {
    if before.len() > Image::MAX_BYTES {
        return Err(ApplyError::FileTooLarge { max_bytes: Image::MAX_BYTES });
    }
    let mut image = Image::new(before, hunks.len());
    let mut places = Vec::with_capacity(hunks.len());
    for (number, hunk) in hunks.iter().enumerate() {
        let diff_line = hunk.diff_line();
        let too_much = |WorkBudgetExhausted| ApplyError::TooMuchWork { diff_line };
        let fit = image.find(&hunk, budget).map_err(too_much)?;
        let fit = fit.ok_or(ApplyError::NoMatch { diff_line, old_start: hunk.old_start() })?;
        places.push(HunkPlace {
            diff_line,
            expected_line: hunk.expected().map_or(u32::MAX, |line| line as u32 + 1),
            line: fit.current_line as u32 + 1,
        });
        image.replace(fit, number, &hunk, budget).map_err(too_much)?;
    }
    Ok(PatchedContent { bytes: image.into_bytes(hunks), places })
}

// === impl HunkPlace ===

impl HunkPlace {
    /// Returns how many lines further down than expected the hunk fits.
    pub fn offset(&self) -> i64 {
        i64::from(self.line) - i64::from(self.expected_line)
    }
}

#[cfg(test)]
mod tests;
