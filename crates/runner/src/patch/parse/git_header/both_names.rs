//! The `diff --git a/x b/x` line, which has no separator that a name couldn't hold.
//!
//! So it yields a name only if both sides agree on it, and git relies on it only where no other line names the
//! file: mode changes, and empty files that come or go.

use std::borrow::Cow;

use crate::patch::name::{quoted::unquote, refuse_hostile};
use crate::patch::parse::field::{RawName, is_space, strip_components};
use crate::patch::refusal::Refusal;

/// The name that both sides give once `strip` components are gone; `line` is what follows `diff --git `.
pub(super) fn shared(line: &[u8], strip: usize) -> Result<Option<RawName<'_>>, Refusal> {
    if line.first() == Some(&b'"') {
        return first_quoted(line, strip);
    }
    let line_end = line.strip_suffix(b"\n").unwrap_or(line);
    let Some(first) = relative(line_end, strip) else { return Ok(None) };
    // A quote in the stripped components doesn't count.
    match memchr::memchr(b'"', first) {
        Some(quote) => second_quoted(line_end, first, quote, strip),
        None => unquoted(line_end, first, strip),
    }
}

/// Parses a line whose first name is quoted. Then the second must be quoted, too: git never matches an unquoted one,
/// because it doesn't remove its newline.
fn first_quoted(line: &[u8], strip: usize) -> Result<Option<RawName<'_>>, Refusal> {
    let Ok((first, rest)) = unquote(line) else { return Ok(None) };
    let Ok((second, _)) = unquote(rest.trim_ascii_start()) else { return Ok(None) };
    refuse_hostile(&first)?;
    refuse_hostile(&second)?;
    let name = relative(&first, strip);
    let agrees = name.is_some() && name == relative(&second, strip);
    Ok(name.filter(|_| agrees).map(|name| Cow::Owned(name.to_vec())))
}

/// `first` is the stripped rest of the line, in which the second name's quote was found.
fn second_quoted<'a>(
    line: &'a [u8],
    first: &'a [u8],
    quote: usize,
    strip: usize,
) -> Result<Option<RawName<'a>>, Refusal> {
    let Ok((second, _)) = unquote(&first[quote..]) else { return Ok(None) };
    refuse_hostile(&second)?;
    let Some(name) = relative(&second, strip) else { return Ok(None) };
    let agrees = name.len() < quote && first.starts_with(name) && is_space(first[name.len()]);
    if agrees {
        refuse_hostile(&line[..line.len() - first.len() + name.len()])?;
    }
    Ok(agrees.then(|| Cow::Owned(name.to_vec())))
}

/// Looks for a blank in the stripped rest of the line that divides it into two names which agree once stripped.
fn unquoted<'a>(line: &'a [u8], rest: &'a [u8], strip: usize) -> Result<Option<RawName<'a>>, Refusal> {
    let mut slash = 0;
    for blank in memchr::memchr2_iter(b' ', b'\t', rest) {
        let mut second_at = blank + 1;
        if strip > 0 {
            // Kept from blank to blank: else a line of blanks would cost its square.
            if slash <= blank {
                let Some(next) = memchr::memchr(b'/', &rest[second_at..]) else { break };
                slash = second_at + next;
            }
            second_at = slash + 1;
        }
        let is_absolute = rest.get(blank + 1) == Some(&b'/');
        let second = &rest[second_at..];
        if !is_absolute && second.len() == blank && rest.starts_with(second) {
            refuse_hostile(&line[..line.len() - rest.len() + blank])?;
            refuse_hostile(&rest[blank + 1..])?;
            return Ok(Some(Cow::Borrowed(second)));
        }
    }
    Ok(None)
}

/// Strips, but knows no name in an absolute path.
fn relative(name: &[u8], strip: usize) -> Option<&[u8]> {
    if name.first() == Some(&b'/') { None } else { strip_components(name, strip) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<String> {
        shared(line.as_bytes(), 1).unwrap().map(|name| String::from_utf8(name.into_owned()).unwrap())
    }

    #[test]
    fn matching_old_and_new_names_yield_the_file_name() {
        for (line, name) in [
            ("a/x b/x\n", "x"),
            ("a/x y b/x y\n", "x y"),
            ("a/x\tb/x\n", "x"),
            ("i/d/x w/d/x\n", "d/x"),
            ("a/x b/x b/x b/x\n", "x b/x"),
            ("\"a/\\303\\244\" \"b/\\303\\244\"\n", "ä"),
            ("a/x \"b/x\"\n", "x"),
        ] {
            assert_eq!(read(line).as_deref(), Some(name), "{line:?}");
        }
    }

    #[test]
    fn other_git_header_lines_yield_no_file_name() {
        for line in [
            "a/x b/y\n",
            "x x\n",
            "/x /x\n",
            "a/x b/x \n",
            "a/x b/x\r\n",
            "\"a/x\" b/x\n",
            "a/x \"b/y\"\n",
            "a/x\n",
            "\n",
        ] {
            assert_eq!(read(line), None, "{line:?}");
        }
    }

    #[test]
    fn a_long_line_of_blanks_is_read_in_linear_time() {
        let line = format!("a/{}\n", " ".repeat(8 << 20));
        assert_eq!(read(&line), None);
    }
}
