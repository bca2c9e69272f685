//! File names in header lines: where they end, and what is stripped off.

use std::borrow::Cow;

use crate::patch::name::quoted::{NotQuoted, unquote};
use crate::patch::name::refuse_hostile;
use crate::patch::refusal::{Excerpt, Refusal};

/// A name as it would be looked up, not yet checked; borrowed unless quotes or slashes had to be taken out.
pub(super) type RawName<'a> = Cow<'a, [u8]>;

/// Far more than any name may have, stripped components included, but not so much that a copy would matter.
const MAX_BYTES: usize = 64 << 10;

/// End of an unquoted name. A carriage return always ends it, so that a diff with CRLF headers works.
#[derive(Debug, Clone, Copy)]
pub(super) enum NameEnd {
    /// At the end of the line (`rename from`, whose names may hold tabs).
    Line,
    /// At a tab, which sets a time stamp or nothing off (`---`, `+++`).
    Tab,
    /// At this offset, whatever precedes it.
    At(usize),
}

/// Takes the name from a header line, `text` being what follows the keyword.
///
/// `strip` leading components go. `shorter` is the name the line above gave: it stands if this one only appends
/// something to it, like `.orig`, or if nothing is left after stripping. `None` if there is no name.
pub(super) fn name<'a>(
    text: &'a [u8],
    strip: usize,
    end: NameEnd,
    shorter: Option<&[u8]>,
) -> Result<Option<RawName<'a>>, Refusal> {
    match unquote(text) {
        Ok((whole, _)) => {
            refuse_hostile(&whole)?;
            // Git ignores `shorter` here, and reads a quoted name that is too short to strip as if unquoted.
            if let Some(stripped) = strip_components(&whole, strip) {
                return Ok(Some(Cow::Owned(squash_slashes(stripped).into_owned())));
            }
        }
        // Git looks for the closing quote in the lines below.
        Err(NotQuoted::Open) => {
            return Err(Refusal::UnsafeName { name: Excerpt::of(text), defect: "has no closing quote" });
        }
        Err(NotQuoted::Malformed) => {}
    }
    let whole = unquoted(text, end);
    refuse_hostile(whole)?;
    if whole.len() > MAX_BYTES {
        return Err(Refusal::UnsafeName { name: Excerpt::of(whole), defect: "is far too long" });
    }
    let stripped = strip_components(whole, strip).filter(|name| !name.is_empty());
    Ok(match (stripped, shorter) {
        (Some(name), Some(shorter)) if name.len() > shorter.len() && name.starts_with(shorter) => {
            Some(Cow::Owned(shorter.to_vec()))
        }
        (Some(name), _) => Some(squash_slashes(name)),
        (None, shorter) => shorter.map(|shorter| Cow::Owned(shorter.to_vec())),
    })
}

/// Returns the rest of `name` after `count` components; `None` if it hasn't that many slashes.
pub(super) fn strip_components(name: &[u8], count: usize) -> Option<&[u8]> {
    (0..count).try_fold(name, |rest, _| Some(&rest[memchr::memchr(b'/', rest)? + 1..]))
}

/// Returns true if the name is `/dev/null`, which stands for no file.
pub(super) fn is_dev_null(text: &[u8]) -> bool {
    text.strip_prefix(b"/dev/null").and_then(<[u8]>::first).is_some_and(|&next| is_space(next))
}

/// White space as git's parser knows it, without form feed and vertical tab.
pub(in crate::patch) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

fn unquoted(text: &[u8], end: NameEnd) -> &[u8] {
    let end = match end {
        NameEnd::At(end) => Some(end),
        NameEnd::Line => memchr::memchr2(b'\n', b'\r', text),
        NameEnd::Tab => memchr::memchr3(b'\n', b'\r', b'\t', text),
    };
    &text[..end.unwrap_or(text.len())]
}

fn squash_slashes(name: &[u8]) -> Cow<'_, [u8]> {
    if memchr::memmem::find(name, b"//").is_none() {
        return Cow::Borrowed(name);
    }
    let mut squashed = name.to_vec();
    squashed.dedup_by(|next, previous| *next == b'/' && *previous == b'/');
    Cow::Owned(squashed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, strip: usize, end: NameEnd, shorter: Option<&str>) -> Option<String> {
        let name = name(text.as_bytes(), strip, end, shorter.map(str::as_bytes)).unwrap();
        name.map(|name| String::from_utf8(name.into_owned()).unwrap())
    }

    #[test]
    fn one_component_is_stripped() {
        assert_eq!(read("a/d/x y\n", 1, NameEnd::Tab, None).as_deref(), Some("d/x y"));
        assert_eq!(read("x\n", 1, NameEnd::Tab, None), None);
        assert_eq!(read("a/\n", 1, NameEnd::Tab, None), None);
    }

    #[test]
    fn a_tab_ends_some_names_and_a_carriage_return_all() {
        assert_eq!(read("a/x\ty\n", 1, NameEnd::Tab, None).as_deref(), Some("x"));
        assert_eq!(read("x\ty\n", 0, NameEnd::Line, None).as_deref(), Some("x\ty"));
        assert_eq!(read("x\ry\n", 0, NameEnd::Line, None).as_deref(), Some("x"));
    }

    #[test]
    fn text_after_a_quoted_name_is_ignored() {
        assert_eq!(read("\"a/\\303\\244\"junk\n", 1, NameEnd::Tab, None).as_deref(), Some("ä"));
    }

    #[test]
    fn bad_quoting_makes_the_quotes_part_of_the_name() {
        assert_eq!(read("\"a/x\\q\"\n", 1, NameEnd::Tab, None).as_deref(), Some("x\\q\""));
    }

    #[test]
    fn shorter_of_two_name_variations_is_used() {
        assert_eq!(read("b/x.orig\n", 1, NameEnd::Tab, Some("x")).as_deref(), Some("x"));
        assert_eq!(read("b/x\n", 1, NameEnd::Tab, Some("x.orig")).as_deref(), Some("x"));
        assert_eq!(read("b/y\n", 1, NameEnd::Tab, Some("x")).as_deref(), Some("y"));
        assert_eq!(read("b\n", 1, NameEnd::Tab, Some("x")).as_deref(), Some("x"));
    }

    #[test]
    fn runs_of_slashes_count_once_after_stripping() {
        assert_eq!(read("a/d///x\n", 1, NameEnd::Tab, None).as_deref(), Some("d/x"));
        assert_eq!(read("a//x\n", 1, NameEnd::Tab, None).as_deref(), Some("/x"));
    }

    #[test]
    fn names_that_escape_before_stripping_are_refused() {
        for text in ["/etc/x\n", "../x\n", "a/../../x\n", "\"../x\"\n", "\"/x/y\"\n"] {
            let refused = name(text.as_bytes(), 1, NameEnd::Tab, None);
            assert!(matches!(refused, Err(Refusal::Escapes { .. })), "{text:?}: {refused:?}");
        }
    }
}
