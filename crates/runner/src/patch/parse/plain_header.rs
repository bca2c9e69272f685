//! Headers of plain diffs: `--- old` and `+++ new`, nothing else.

use super::field::{self, NameEnd, RawName};
use super::{Claim, Header, Names, ParseError, Parser, timestamp};
use crate::patch::name::RelativeName;
use crate::patch::refusal::Refusal;

// === impl Parser ===

impl Parser<'_> {
    /// Reads the header whose first line is `old_line`; `None` if it isn't one, since no hunk follows.
    pub(super) fn plain_header(&mut self, old_line: &[u8]) -> Result<Option<Header>, ParseError> {
        let mut ahead = self.cursor.clone();
        ahead.step_over(old_line);
        let Some(new_line) = ahead.peek().filter(|line| line.starts_with(b"+++ ")) else { return Ok(None) };
        if self.cursor.rest().len() < new_line.len() + Self::SHORTEST_HUNK {
            return Ok(None);
        }
        ahead.step_over(new_line);
        if !ahead.rest().starts_with(b"@@ -") {
            return Ok(None);
        }
        let (old, new) = (&old_line[4..], &new_line[4..]);
        self.guess_strip(new).map_err(|reason| self.refused(reason))?;
        let (claim, name) = self.plain_names(old, new).map_err(|reason| self.refused(reason))?;
        let Some(name) = name else {
            return Err(self.malformed(
                old_line,
                "a name below one directory (`--- a/x`), or two names without any (`--- x`)",
            ));
        };
        let name = RelativeName::new(&name).map_err(|reason| self.refused(reason))?;
        let (claim, names) = match (claim, &self.leftover) {
            (Claim::Create, None) => (claim, Names::New(name)),
            (Claim::Delete, None) => (claim, Names::Old(name)),
            (_, None) => (claim, Names::Both { old: name.clone(), new: name }),
            // Git aborts on a created file with an old name.
            (Claim::Create, Some(_)) => {
                return Err(
                    self.malformed(old_line, "a file to create only without a lone `diff --git` line above")
                );
            }
            (Claim::Delete, Some(leftover)) => {
                let new = RelativeName::new(leftover).map_err(|reason| self.refused(reason))?;
                (claim, Names::Both { old: name, new })
            }
            (_, Some(_)) => (Claim::Edit, Names::Both { old: name.clone(), new: name }),
        };
        let line = self.cursor.line_number();
        self.cursor = ahead;
        Ok(Some(Header { line, claim, names, old_mode: None, new_mode: None }))
    }

    /// Names without a slash can't lose a component: the first such header settles that nothing is stripped,
    /// from here to the end of the diff, in git headers too.
    fn guess_strip(&mut self, new: &[u8]) -> Result<(), Refusal> {
        // Git asks the new name alone, and forgets the guess if that is `/dev/null`.
        if self.strip.is_none() && !field::is_dev_null(new) {
            let name = plain_name(new, 0, None)?;
            if name.is_some_and(|name| !name.contains(&b'/')) {
                self.strip = Some(0);
            }
        }
        Ok(())
    }

    fn plain_names<'a>(&self, old: &'a [u8], new: &'a [u8]) -> Result<(Claim, Option<RawName<'a>>), Refusal> {
        let strip = self.strip();
        if field::is_dev_null(old) {
            return Ok((Claim::Create, plain_name(new, strip, None)?));
        }
        let old_name = plain_name(old, strip, None)?;
        if field::is_dev_null(new) {
            return Ok((Claim::Delete, old_name));
        }
        let name = plain_name(new, strip, old_name.as_deref())?;
        let claim = if timestamp::is_epoch(old) {
            Claim::Create
        } else if timestamp::is_epoch(new) {
            Claim::Delete
        } else {
            Claim::EditOrCreate
        };
        Ok((claim, name))
    }

    pub(super) fn strip(&self) -> usize {
        self.strip.unwrap_or(1)
    }
}

fn plain_name<'a>(
    text: &'a [u8],
    strip: usize,
    shorter: Option<&[u8]>,
) -> Result<Option<RawName<'a>>, Refusal> {
    let line = text.strip_suffix(b"\n").unwrap_or(text);
    let end = match timestamp::len(line) {
        0 => NameEnd::Tab,
        stamp => NameEnd::At(line.len() - stamp),
    };
    field::name(text, strip, end, shorter)
}
