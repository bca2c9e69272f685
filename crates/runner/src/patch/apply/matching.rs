//! Comparison of a hunk's old side with a piece of the file.
//!
//! One quirk of git's is not imitated: where a file without a newline at its end got white space appended by a hunk, an
//! old line that ends in that white space matches across the seam. We find no match then.

use crate::patch::hunk::Hunk;
use crate::patch::parse::is_space;
use crate::patch::work::steps_for_bytes;

/// A hunk's old side was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Match {
    /// Bytes of the old side.
    pub(super) old_len: usize,
    /// Bytes of the file's lines that it stands for; more than `old_len` if an inner line lacks its newline in
    /// the hunk only.
    pub(super) lines_len: usize,
}

/// A hunk's old side is something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Mismatch {
    /// Steps that the comparison cost.
    pub(super) steps: usize,
}

/// Compares the old side of `hunk` with what `text` starts with; lines past its end must not be matched.
pub(super) fn compare(hunk: &Hunk<'_>, text: &[u8]) -> Result<Match, Mismatch> {
    if hunk.has_whole_lines() { compare_whole_lines(hunk, text) } else { compare_open_lines(hunk, text) }
}

/// Compares bytes: if every old line ends in a newline, equal bytes are equal lines.
fn compare_whole_lines(hunk: &Hunk<'_>, text: &[u8]) -> Result<Match, Mismatch> {
    let mut len = 0;
    for (line, old) in hunk.old_texts().enumerate() {
        if text.get(len..len + old.len()) != Some(old) {
            return Err(Mismatch { steps: 1 + line + steps_for_bytes(len + old.len()) });
        }
        len += old.len();
    }
    Ok(Match { old_len: len, lines_len: len })
}

/// An old line without its newline also matches a line that has one, and then the whole line is replaced: git
/// compares lines without their white space first, and then as many bytes as the old side has. So what was said
/// to be the file's last line may be an inner one, whose newline gets lost. Strange, but it's what git does.
fn compare_open_lines(hunk: &Hunk<'_>, text: &[u8]) -> Result<Match, Mismatch> {
    let (mut old_len, mut lines_len) = (0, 0);
    for (number, old) in hunk.old_texts().enumerate() {
        let rest = &text[lines_len..];
        let line = &rest[..memchr::memchr(b'\n', rest).map_or(rest.len(), |end| end + 1)];
        let is_equal = !line.is_empty()
            && text.get(old_len..).is_some_and(|bytes| bytes.starts_with(old))
            && without_space(line).eq(without_space(old));
        if !is_equal {
            return Err(Mismatch { steps: 1 + number + steps_for_bytes(lines_len + line.len() + old.len()) });
        }
        old_len += old.len();
        lines_len += line.len();
    }
    Ok(Match { old_len, lines_len })
}

fn without_space(line: &[u8]) -> impl Iterator<Item = u8> + '_ {
    line.iter().copied().filter(|&byte| !is_space(byte))
}
