//! A file while its hunks are being applied: the old text, and which of its lines have been replaced.
//!
//! No text is copied until the end, and no table of lines is made. Lines have two numbers: their *old* one, and the
//! *current* one that counts what hunks above have added and removed.

use super::line_index::LineIndex;
use super::matching::{Match, Mismatch, compare};
use crate::patch::hunk::{DiffSide, Hunk, Hunks};
use crate::patch::work::{WorkBudget, WorkBudgetExhausted};

/// The file.
#[derive(Debug)]
pub(super) struct Image<'t> {
    index: LineIndex<'t>,
    /// In the order of the file. The old lines between them are the *gaps*, of which some may be empty: gap `n`
    /// lies above edit `n`, and the last gap ends with the file.
    edits: Vec<Edit>,
    /// Present number of lines.
    lines: usize,
}

/// Old lines that a hunk has replaced; nothing matches there any more. Packed, since there may be very many.
#[derive(Debug, Clone, Copy)]
struct Edit {
    old_line: u32,
    removed_lines: u32,
    byte: u32,
    removed_bytes: u32,
    current_line: u32,
    added_lines: u32,
    /// Index of the file's hunk.
    hunk: u32,
}

/// Old lines that no hunk has replaced.
#[derive(Debug, Clone, Copy)]
struct Gap {
    first_line: usize,
    end_line: usize,
    first_byte: usize,
    end_byte: usize,
    current_line: usize,
}

/// A line in a gap, or the gap's end.
#[derive(Debug, Clone, Copy)]
struct GapPosition {
    gap: usize,
    old_line: usize,
    byte: usize,
}

/// Place where a hunk fits.
#[derive(Debug, Clone, Copy)]
pub(super) struct HunkFit {
    place: GapPosition,
    lines_len: usize,
    /// Zero-based.
    pub(super) current_line: usize,
}

// === impl Image ===

impl<'t> Image<'t> {
    /// Larger files aren't patched, so that offsets and line numbers fit [`Edit`].
    pub(super) const MAX_BYTES: usize = 1 << 30;

    pub(super) fn new(text: &'t [u8], hunks: usize) -> Self {
        let index = LineIndex::new(text);
        let lines = index.lines();
        Self { index, edits: Vec::with_capacity(hunks), lines }
    }

    /// The place where the hunk fits, if there is one.
    pub(super) fn find(
        &self,
        hunk: &Hunk<'_>,
        budget: &mut WorkBudget,
    ) -> Result<Option<HunkFit>, WorkBudgetExhausted> {
        let count = hunk.line_counts().0;
        let Some(last_start) = self.lines.checked_sub(count) else { return Ok(None) };
        let (at_start, at_end) = (hunk.is_anchored_at_start(), hunk.is_anchored_at_end());
        if !at_start && !at_end {
            return self.search(hunk, count, budget);
        }
        if at_start && at_end && last_start > 0 {
            return Ok(None);
        }
        let place = self.place_of(if at_start { 0 } else { last_start });
        Ok(place.and_then(|place| self.fit(hunk, count, place).ok()))
    }

    /// The nearest fit to the expected line; of two equally near ones the later.
    fn search(
        &self,
        hunk: &Hunk<'_>,
        count: usize,
        budget: &mut WorkBudget,
    ) -> Result<Option<HunkFit>, WorkBudgetExhausted> {
        let expected = hunk.expected().unwrap_or(self.lines).min(self.lines);
        let (mut forward, mut backward) = self.around(expected);
        loop {
            let ahead = forward.map_or(usize::MAX, |place| self.current_line(place) - expected);
            let behind = backward.map_or(usize::MAX, |place| expected - self.current_line(place));
            let goes_forward = ahead <= behind;
            let Some(place) = (if goes_forward { forward } else { backward }) else { return Ok(None) };
            match self.fit(hunk, count, place) {
                Ok(fit) => return Ok(Some(fit)),
                Err(Mismatch { steps }) => budget.spend(steps)?,
            }
            if goes_forward {
                forward = self.next(place);
            } else {
                backward = self.previous(place);
            }
        }
    }

    /// Replaces the old side of a hunk where it fits.
    pub(super) fn replace(
        &mut self,
        fit: HunkFit,
        number: usize,
        hunk: &Hunk<'_>,
        budget: &mut WorkBudget,
    ) -> Result<(), WorkBudgetExhausted> {
        let (removed, added) = hunk.line_counts();
        // In the order of the file there's nothing below; out of order, each hunk pays for the edits it shifts.
        let below = &mut self.edits[fit.place.gap..];
        budget.spend(below.len() / 4)?;
        for edit in below {
            edit.current_line = edit.current_line + added as u32 - removed as u32;
        }
        self.lines = self.lines + added - removed;
        let edit = Edit {
            old_line: fit.place.old_line as u32,
            removed_lines: removed as u32,
            byte: fit.place.byte as u32,
            removed_bytes: fit.lines_len as u32,
            current_line: fit.current_line as u32,
            added_lines: added as u32,
            hunk: number as u32,
        };
        self.edits.insert(fit.place.gap, edit);
        Ok(())
    }

    /// The whole file as it is now.
    pub(super) fn into_bytes(self, hunks: Hunks<'_>) -> Vec<u8> {
        let text = self.index.text();
        // More than enough, which is cheaper than counting: the excess is given back below, untouched.
        let added: usize = self.edits.iter().map(|edit| hunks.get(edit.hunk as usize).max_new_bytes()).sum();
        let mut bytes = Vec::with_capacity(text.len() + added);
        let mut copied = 0;
        for edit in &self.edits {
            bytes.extend_from_slice(&text[copied..edit.byte as usize]);
            for line in hunks.get(edit.hunk as usize).lines().filter(|line| line.side != DiffSide::Old) {
                bytes.extend_from_slice(line.text);
            }
            copied = edit.end_byte();
        }
        bytes.extend_from_slice(&text[copied..]);
        bytes.shrink_to_fit();
        bytes
    }

    fn fit(&self, hunk: &Hunk<'_>, count: usize, place: GapPosition) -> Result<HunkFit, Mismatch> {
        let gap = self.gap(place.gap);
        if gap.end_line - place.old_line < count {
            return Err(Mismatch { steps: 1 });
        }
        let text = &self.index.text()[place.byte..gap.end_byte];
        let Match { old_len, lines_len } = compare(hunk, text)?;
        // Line numbers can't tell at the end: an open old line also matches one that has its newline.
        if hunk.is_anchored_at_end() && old_len != text.len() {
            return Err(Mismatch { steps: 1 });
        }
        Ok(HunkFit { place, lines_len, current_line: self.current_line(place) })
    }

    fn gap(&self, number: usize) -> Gap {
        let (first_line, first_byte, current_line) =
            match number.checked_sub(1).map(|above| &self.edits[above]) {
                Some(edit) => (edit.end_line(), edit.end_byte(), edit.end_current_line()),
                None => (0, 0, 0),
            };
        let (end_line, end_byte) = match self.edits.get(number) {
            Some(edit) => (edit.old_line as usize, edit.byte as usize),
            None => (self.index.lines(), self.index.text().len()),
        };
        Gap { first_line, end_line, first_byte, end_byte, current_line }
    }

    /// The gap that holds a current line, or the one above the edit that does.
    fn gap_at(&self, current_line: usize) -> usize {
        match self.edits.last() {
            Some(last) if current_line < last.end_current_line() => {
                self.edits.partition_point(|edit| edit.end_current_line() <= current_line)
            }
            _ => self.edits.len(),
        }
    }

    /// The place of a current line, or of the end of the file; `None` for a line that a hunk wrote.
    fn place_of(&self, current_line: usize) -> Option<GapPosition> {
        let number = self.gap_at(current_line);
        let gap = self.gap(number);
        let old_line = gap.first_line + (current_line - gap.current_line);
        let is_inside = old_line < gap.end_line || number == self.edits.len();
        is_inside.then(|| GapPosition { gap: number, old_line, byte: self.index.start_of(old_line) })
    }

    /// The first place from a current line on, and the last one before it.
    fn around(&self, current_line: usize) -> (Option<GapPosition>, Option<GapPosition>) {
        if let Some(place) = self.place_of(current_line) {
            return (Some(place), self.previous(place));
        }
        let number = self.gap_at(current_line);
        (Some(self.start_of_gap(number + 1)), Some(self.end_of_gap(number)))
    }

    /// Returns the place one line down; from the end of a gap, it skips an edit to the start of the next gap.
    fn next(&self, place: GapPosition) -> Option<GapPosition> {
        if place.old_line < self.gap(place.gap).end_line {
            return Some(GapPosition {
                old_line: place.old_line + 1,
                byte: self.index.after(place.byte),
                ..place
            });
        }
        (place.gap < self.edits.len()).then(|| self.start_of_gap(place.gap + 1))
    }

    /// Returns the place one line up; from the start of a gap, it skips an edit to the end of the gap above.
    fn previous(&self, place: GapPosition) -> Option<GapPosition> {
        if place.old_line > self.gap(place.gap).first_line {
            return Some(GapPosition {
                old_line: place.old_line - 1,
                byte: self.index.before(place.byte),
                ..place
            });
        }
        place.gap.checked_sub(1).map(|above| self.end_of_gap(above))
    }

    fn start_of_gap(&self, number: usize) -> GapPosition {
        let gap = self.gap(number);
        GapPosition { gap: number, old_line: gap.first_line, byte: gap.first_byte }
    }

    fn end_of_gap(&self, number: usize) -> GapPosition {
        let gap = self.gap(number);
        GapPosition { gap: number, old_line: gap.end_line, byte: gap.end_byte }
    }

    fn current_line(&self, place: GapPosition) -> usize {
        let gap = self.gap(place.gap);
        gap.current_line + (place.old_line - gap.first_line)
    }
}

// === impl Edit ===

impl Edit {
    fn end_line(&self) -> usize {
        (self.old_line + self.removed_lines) as usize
    }

    fn end_byte(&self) -> usize {
        (self.byte + self.removed_bytes) as usize
    }

    fn end_current_line(&self) -> usize {
        (self.current_line + self.added_lines) as usize
    }
}
