//! Git's extended headers: everything from `diff --git` to the first hunk.

mod both_names;

use super::field::{self, NameEnd, RawName};
use super::{Claim, Header, Names, ParseError, Parser};
use crate::patch::mode::FileMode;
use crate::patch::name::RelativeName;
use crate::patch::refusal::{Excerpt, Refusal};

/// Keyword of a header line.
#[derive(Debug, Clone, Copy)]
enum Keyword {
    OldName,
    NewName,
    OldMode,
    NewMode,
    Deleted,
    Created,
    CopyFrom,
    CopyTo,
    RenameFrom,
    RenameTo,
    Similarity,
    Index,
}

const KEYWORDS: [(&[u8], Keyword); 15] = [
    (b"--- ", Keyword::OldName),
    (b"+++ ", Keyword::NewName),
    (b"old mode ", Keyword::OldMode),
    (b"new mode ", Keyword::NewMode),
    (b"deleted file mode ", Keyword::Deleted),
    (b"new file mode ", Keyword::Created),
    (b"copy from ", Keyword::CopyFrom),
    (b"copy to ", Keyword::CopyTo),
    (b"rename old ", Keyword::RenameFrom),
    (b"rename new ", Keyword::RenameTo),
    (b"rename from ", Keyword::RenameFrom),
    (b"rename to ", Keyword::RenameTo),
    (b"similarity index ", Keyword::Similarity),
    (b"dissimilarity index ", Keyword::Similarity),
    (b"index ", Keyword::Index),
];

/// The header lines read so far.
#[derive(Default)]
struct Fields<'a> {
    /// The name that both sides of the `diff --git` line agree on.
    shared: Option<RawName<'a>>,
    old: Option<RawName<'a>>,
    new: Option<RawName<'a>>,
    old_mode: Option<FileMode>,
    new_mode: Option<FileMode>,
    /// Create, delete, rename or copy; two different ones contradict each other.
    claim: Option<Claim>,
    strip: usize,
}

/// Fault of a header line.
enum HeaderLineError {
    Refused(Refusal),
    Malformed(&'static str),
}

// === impl Parser ===

impl<'a> Parser<'a> {
    /// Reads the header whose `diff --git` line is here; `None` if no known line follows, and then git takes
    /// that line for text.
    pub(super) fn git_header(&mut self) -> Result<Option<Header>, ParseError> {
        let start = self.cursor.clone();
        let first = self.cursor.peek_whole().unwrap_or_default();
        let leftover = &self.leftover;
        let mut fields =
            Fields { strip: self.strip(), old: leftover.clone(), new: leftover.clone(), ..Fields::default() };
        let names = &first[b"diff --git ".len().min(first.len())..];
        fields.shared = both_names::shared(names, fields.strip).map_err(|reason| self.refused(reason))?;
        self.cursor.step_over(first);
        let mut is_bare = true;
        while let Some(line) = self.cursor.peek_whole() {
            let Some((word, keyword)) = KEYWORDS.iter().find(|(word, _)| line.starts_with(word)) else {
                break;
            };
            fields.read(*keyword, &line[word.len()..]).map_err(|flaw| match flaw {
                HeaderLineError::Refused(reason) => self.refused(reason),
                HeaderLineError::Malformed(accepted) => self.malformed(line, accepted),
            })?;
            is_bare = false;
            self.cursor.step_over(line);
        }
        let line = start.line_number();
        let shared = fields.shared.clone();
        let header = fields.finish(line, first)?;
        if is_bare {
            self.cursor = start;
            self.leftover = self.leftover.take().or(shared);
            return Ok(None);
        }
        Ok(Some(header))
    }
}

// === impl Fields ===

impl<'a> Fields<'a> {
    fn read(&mut self, keyword: Keyword, text: &'a [u8]) -> Result<(), HeaderLineError> {
        match keyword {
            Keyword::OldName => {
                let is_absent = self.claim == Some(Claim::Create);
                check_name(&mut self.old, text, self.strip, is_absent)?;
            }
            Keyword::NewName => {
                let is_absent = self.claim == Some(Claim::Delete);
                check_name(&mut self.new, text, self.strip, is_absent)?;
            }
            Keyword::OldMode => self.old_mode = Some(mode(text)?),
            Keyword::NewMode => self.new_mode = Some(mode(text)?),
            Keyword::Deleted => {
                self.set_claim(Claim::Delete)?;
                self.old = self.shared.clone();
                self.old_mode = Some(mode(text)?);
            }
            Keyword::Created => {
                self.set_claim(Claim::Create)?;
                self.new = self.shared.clone();
                self.new_mode = Some(mode(text)?);
            }
            Keyword::CopyFrom | Keyword::RenameFrom => {
                self.set_claim(if matches!(keyword, Keyword::CopyFrom) {
                    Claim::Copy
                } else {
                    Claim::Rename
                })?;
                self.old = self.bare_name(text)?;
            }
            Keyword::CopyTo | Keyword::RenameTo => {
                self.set_claim(if matches!(keyword, Keyword::CopyTo) { Claim::Copy } else { Claim::Rename })?;
                self.new = self.bare_name(text)?;
            }
            Keyword::Similarity => {}
            Keyword::Index => {
                if let Some(text) = mode_of_index(text) {
                    self.old_mode = Some(mode(text)?);
                }
            }
        }
        Ok(())
    }

    fn set_claim(&mut self, claim: Claim) -> Result<(), HeaderLineError> {
        if self.claim.is_some_and(|earlier| earlier != claim) {
            return Err(HeaderLineError::Malformed(
                "only one of create, delete, rename and copy for one file",
            ));
        }
        self.claim = Some(claim);
        Ok(())
    }

    /// Names of renames and copies come without the `a/` or `b/`.
    fn bare_name(&self, text: &'a [u8]) -> Result<Option<RawName<'a>>, HeaderLineError> {
        Ok(field::name(text, self.strip.saturating_sub(1), NameEnd::Line, None)?)
    }

    fn finish(self, line: u32, first: &[u8]) -> Result<Header, ParseError> {
        let malformed = |accepted| ParseError::Malformed { line, found: Excerpt::of(first), accepted };
        let claim = self.claim.unwrap_or(Claim::Edit);
        let (old, new) = match (self.old, self.new) {
            (None, None) => (self.shared.clone(), self.shared),
            names => names,
        };
        let checked = |name: Option<RawName<'_>>| match name.map(|name| RelativeName::new(&name)) {
            None => Ok(None),
            Some(Ok(name)) => Ok(Some(name)),
            Some(Err(reason)) => Err(ParseError::Refused { line, reason }),
        };
        let is_same = old == new;
        let old = checked(old)?;
        let new = if is_same { old.clone() } else { checked(new)? };
        let names = match (claim, old, new) {
            // Git aborts on a created file with an old name.
            (Claim::Create, None, Some(new)) => Names::New(new),
            (Claim::Delete, Some(old), None) => Names::Old(old),
            (claim, Some(old), Some(new)) if claim != Claim::Create => Names::Both { old, new },
            _ => {
                return Err(malformed("a header that names the old and the new file (`diff --git a/x b/x`)"));
            }
        };
        Ok(Header { line, claim, names, old_mode: self.old_mode, new_mode: self.new_mode })
    }
}

// === impl HeaderLineError ===

impl From<Refusal> for HeaderLineError {
    fn from(reason: Refusal) -> Self {
        Self::Refused(reason)
    }
}

/// Takes the name of a `---` or `+++` line, or compares it with what an earlier line said.
fn check_name<'a>(
    known: &mut Option<RawName<'a>>,
    text: &'a [u8],
    strip: usize,
    is_absent: bool,
) -> Result<(), HeaderLineError> {
    if is_absent {
        // Git asks for `/dev/null` only as long as no name is known, and refuses any otherwise.
        let agrees = known.is_none() && field::is_dev_null(text);
        return if agrees {
            Ok(())
        } else {
            Err(HeaderLineError::Malformed("`/dev/null` for the side that isn't there"))
        };
    }
    if field::is_dev_null(text) {
        // Git takes this for a file `dev/null` in the workspace.
        let defect = "needs a `new file mode` or `deleted file mode` line above it";
        return Err(HeaderLineError::Refused(Refusal::UnsafeName { name: Excerpt::of(text), defect }));
    }
    let name = field::name(text, strip, NameEnd::Tab, None)?;
    if known.is_none() {
        *known = name;
        return Ok(());
    }
    if *known != name {
        return Err(HeaderLineError::Malformed("the name that the lines above gave"));
    }
    Ok(())
}

fn mode(text: &[u8]) -> Result<FileMode, HeaderLineError> {
    const ACCEPTED: HeaderLineError = HeaderLineError::Malformed("an octal mode, 100644 or 100755");
    let text = text.trim_ascii_start();
    // A sign is read as C's `strtoul` does; what a negative mode would come to is no mode anyway.
    let (sign, digits) = text.split_at(usize::from(matches!(text.first(), Some(b'+' | b'-'))));
    let end = digits.iter().position(|byte| !matches!(byte, b'0'..=b'7')).unwrap_or(digits.len());
    if end == 0 || !digits.get(end).is_some_and(|&next| field::is_space(next)) {
        return Err(ACCEPTED);
    }
    if sign == b"-" {
        return Err(HeaderLineError::Refused(Refusal::Mode { mode: u32::MAX }));
    }
    // Saturating: a number that large is no file's mode, and git would read its lower bits.
    let bits = digits[..end].iter().fold(0u64, |bits, digit| {
        if bits >> 61 == 0 { bits << 3 | u64::from(digit - b'0') } else { u64::MAX }
    });
    Ok(FileMode::from_diff(bits)?)
}

/// The mode behind `index 0123..4567`, if the line has the form that git reads; it ignores others.
fn mode_of_index(text: &[u8]) -> Option<&[u8]> {
    const LONGEST_ID: usize = 40;
    let dots = memchr::memchr(b'.', text)?;
    let new_id = text[dots..].strip_prefix(b"..")?;
    let space = memchr::memchr(b' ', new_id)?;
    (dots <= LONGEST_ID && space <= LONGEST_ID).then(|| &new_id[space + 1..])
}
