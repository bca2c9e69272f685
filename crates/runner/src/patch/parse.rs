//! Reads a diff into file sections and hunks, without looking at any file.
//!
//! Text that belongs to no section (a commit message, a mail signature) is skipped as git skips it. Absent:
//! ed scripts, context diffs (git takes them for such text), and repair of any kind.

mod cursor;
mod field;
mod git_header;
mod hunks;
mod plain_header;
mod timestamp;

use std::ops::Range;

use super::hunk::{HunkRecord, Hunks};
use super::limits::Limits;
use super::mode::FileMode;
use super::name::RelativeName;
use super::refusal::{Excerpt, Refusal};
use cursor::Cursor;
use field::RawName;
pub(super) use field::is_space;

/// A whole diff, read but not yet matched against any file.
#[derive(Debug)]
pub struct Patch<'a> {
    diff: &'a [u8],
    files: Vec<FileDiff>,
    hunks: Vec<HunkRecord>,
}

/// A file section of a diff.
#[derive(Debug)]
pub struct FileDiff {
    /// 1-based line where the section begins.
    pub line: u32,
    /// Change that the header announces.
    pub claim: Claim,
    /// The file to read and the one to write.
    pub names: Names,
    /// Old mode according to the header; git only warns if the file has another one.
    pub old_mode: Option<FileMode>,
    /// The mode the file shall have; `None` keeps the old file's.
    pub new_mode: Option<FileMode>,
    hunks: Range<u32>,
}

/// The files of a section: one that is read, one that is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Names {
    /// No file is read: [`Claim::Create`].
    New(RelativeName),
    /// No file is written: [`Claim::Delete`].
    Old(RelativeName),
    /// Both, often the same. Some headers name a new file even for [`Claim::Delete`].
    Both {
        /// The file to read.
        old: RelativeName,
        /// The file to write.
        new: RelativeName,
    },
}

/// Change that a file section announces.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// The file must not exist.
    Create,
    /// The hunks must leave nothing.
    Delete,
    /// The old file goes, the new one must not exist.
    Rename,
    /// The old file stays, the new one must not exist.
    Copy,
    /// The old file is replaced; a git header may give the result another name without calling it a rename.
    Edit,
    /// A plain diff that only adds lines, in one hunk: creates the file if it doesn't exist.
    EditOrCreate,
}

/// Reason why a diff can't be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// The syntax is wrong; git would not read it either.
    #[error("line {line}: found {found}; accepted: {accepted}")]
    Malformed {
        /// 1-based line in the diff.
        line: u32,
        /// The offending text.
        found: Excerpt,
        /// Texts that are accepted there.
        accepted: &'static str,
    },
    /// The diff is well-formed, but requests a forbidden change.
    #[error("line {line}: {reason}")]
    Refused {
        /// 1-based line in the diff.
        line: u32,
        /// Reason of the refusal.
        reason: Refusal,
    },
    /// The diff exceeds a limit.
    #[error("line {line}: the diff has more than {max} {what}")]
    TooLarge {
        /// 1-based line in the diff.
        line: u32,
        /// Name of the counted thing.
        what: &'static str,
        /// The limit.
        max: usize,
    },
    /// The diff has no file section.
    #[error(
        "no file section found in {lines} lines; accepted: `diff --git a/x b/x`, or `--- a/x` and `+++ b/x` before `@@`"
    )]
    Empty {
        /// Number of lines that were searched.
        lines: u32,
    },
}

/// Reads `diff` within the default [`Limits`].
pub fn parse(diff: &[u8]) -> Result<Patch<'_>, ParseError> {
    parse_within(diff, &Limits::default())
}

/// Reads `diff` within the given limits.
pub fn parse_within<'a>(diff: &'a [u8], limits: &Limits) -> Result<Patch<'a>, ParseError> {
    let max = limits.diff_bytes.min(u32::MAX as usize);
    if diff.len() > max {
        return Err(ParseError::TooLarge { line: 1, what: "bytes", max });
    }
    let mut parser = Parser {
        cursor: Cursor::new(diff),
        limits: *limits,
        strip: None,
        leftover: None,
        patch: Patch { diff, files: Vec::new(), hunks: Vec::new() },
    };
    while let Some(header) = parser.next_header()? {
        parser.section(header)?;
    }
    if parser.patch.files.is_empty() {
        return Err(ParseError::Empty { lines: parser.cursor.line_number() - 1 });
    }
    Ok(parser.patch)
}

/// A section's header, with the claim that its hunks may still soften.
struct Header {
    line: u32,
    claim: Claim,
    names: Names,
    old_mode: Option<FileMode>,
    new_mode: Option<FileMode>,
}

struct Parser<'a> {
    cursor: Cursor<'a>,
    limits: Limits,
    /// Number of leading components to strip, once a plain header without any slash has determined it.
    strip: Option<usize>,
    /// The name of a `diff --git` line that turned out to be text. Git forgets to forget it.
    leftover: Option<RawName<'a>>,
    patch: Patch<'a>,
}

// === impl Patch ===

impl Patch<'_> {
    /// The file sections in the order of the diff.
    pub fn files(&self) -> &[FileDiff] {
        &self.files
    }

    /// The hunks of one of this patch's sections.
    pub fn hunks<'s>(&'s self, file: &FileDiff) -> Hunks<'s> {
        let range = file.hunks.start as usize..file.hunks.end as usize;
        Hunks::new(self.diff, &self.hunks[range])
    }
}

// === impl Names ===

impl Names {
    /// The file to read.
    pub fn source(&self) -> Option<&RelativeName> {
        match self {
            Self::New(_) => None,
            Self::Old(old) | Self::Both { old, .. } => Some(old),
        }
    }

    /// The file to write.
    pub fn target(&self) -> Option<&RelativeName> {
        match self {
            Self::Old(_) => None,
            Self::New(new) | Self::Both { new, .. } => Some(new),
        }
    }

    /// The file to read, or else the one to write.
    pub fn first(&self) -> &RelativeName {
        match self {
            Self::New(name) | Self::Old(name) | Self::Both { old: name, .. } => name,
        }
    }
}

// === impl ParseError ===

impl ParseError {
    /// Returns true if the diff was refused by policy, rather than for its syntax.
    pub fn is_policy(&self) -> bool {
        matches!(self, Self::Refused { .. })
    }
}

// === impl Parser ===

impl Parser<'_> {
    /// Git looks for a header only in lines of this length, and only if that many bytes follow.
    const SHORTEST_LINE: usize = 6;
    /// `@@ -1 +1 @@` and its newline are 12 bytes, but git wants 14 behind `+++`.
    const SHORTEST_HUNK: usize = 14;

    /// Skips to the next section and reads its header; `None` at the end of the diff.
    fn next_header(&mut self) -> Result<Option<Header>, ParseError> {
        while let Some(line) = self.cursor.peek() {
            if line.len() >= Self::SHORTEST_LINE {
                self.check_stray(line)?;
                if self.cursor.rest().len() < line.len() + Self::SHORTEST_LINE {
                    return Ok(None);
                }
                if line.starts_with(b"diff --git ") {
                    if let Some(header) = self.git_header()? {
                        return Ok(Some(header));
                    }
                } else if line.starts_with(b"--- ")
                    && let Some(header) = self.plain_header(line)?
                {
                    return Ok(Some(header));
                }
            }
            self.cursor.step_over(line);
        }
        Ok(None)
    }

    /// Refuses what must not lie outside a section, where git would skip over it.
    fn check_stray(&self, line: &[u8]) -> Result<(), ParseError> {
        // A hunk here belongs to a section that got lost, so skipping it would apply half a patch.
        if line.starts_with(b"@@ -") && hunks::HunkHeader::read(line).is_some() {
            return Err(self.malformed(line, "a hunk only after a file header"));
        }
        // `diff -r` mentions binary files without a header. Git skips the note, and with it the change.
        let is_note = line.starts_with(b"Binary files ") && line.ends_with(b" differ\n");
        if is_note || line == b"GIT binary patch\n" {
            return Err(self.refused(Refusal::Binary));
        }
        Ok(())
    }

    fn section(&mut self, mut header: Header) -> Result<(), ParseError> {
        self.leftover = None;
        if self.patch.files.len() == self.limits.files {
            let max = self.limits.files;
            return Err(ParseError::TooLarge { line: header.line, what: "files", max });
        }
        let first = self.patch.hunks.len();
        let totals = self.hunks(header.claim)?;
        let count = self.patch.hunks.len() - first;
        if count == 0 {
            self.check_bare(&header)?;
        }
        if header.claim == Claim::EditOrCreate && (totals.has_old_lines || count > 1) {
            header.claim = Claim::Edit;
        }
        self.patch.files.push(FileDiff {
            line: header.line,
            claim: header.claim,
            names: header.names,
            old_mode: header.old_mode,
            new_mode: header.new_mode,
            hunks: offset(first)..offset(first + count),
        });
        Ok(())
    }

    /// Checks that a header without hunks announces a change by itself.
    fn check_bare(&self, header: &Header) -> Result<(), ParseError> {
        let line = self.cursor.peek().unwrap_or_default();
        let is_note = (line.starts_with(b"Binary files ") || line.starts_with(b"Files "))
            && line.ends_with(b" differ\n");
        if is_note || line == b"GIT binary patch\n" {
            return Err(self.refused(Refusal::Binary));
        }
        let changes_mode = matches!((header.old_mode, header.new_mode), (Some(old), Some(new)) if old != new);
        // A plain header is enough for git, though what it takes for one is a hunk's first four bytes.
        if header.claim == Claim::Edit && !changes_mode {
            return Err(self.malformed(line, "a hunk (`@@ -1 +1 @@`), or a header that creates, deletes, renames, copies or changes the mode"));
        }
        Ok(())
    }

    fn malformed(&self, found: &[u8], accepted: &'static str) -> ParseError {
        ParseError::Malformed { line: self.cursor.line_number(), found: Excerpt::of(found), accepted }
    }

    fn refused(&self, reason: Refusal) -> ParseError {
        ParseError::Refused { line: self.cursor.line_number(), reason }
    }
}

/// An offset that fits because the diff's size was checked to.
fn offset(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests;
