//! Path prefixes in rules. They match whole segments.

use std::fmt;

/// `/simple/`: the place itself, and everything below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPrefix(String);

// === impl PathPrefix ===

impl PathPrefix {
    /// Parses a prefix: a plain path that begins with a slash.
    pub fn parse(text: &str) -> Option<Self> {
        let is_good = text.starts_with('/') && is_plain(text) && !text.contains(['?', '#', '*']);
        is_good.then(|| Self(text.to_owned()))
    }

    /// Returns true if a plain path is the place or below it.
    pub fn holds(&self, path: &str) -> bool {
        let path = path.split(['?', '#']).next().unwrap_or_default();
        let place = self.0.trim_end_matches('/');
        path.strip_prefix(place).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl fmt::Display for PathPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns true if git servers would receive or announce a push at that path. The query and all encodings are checked, too.
pub(super) fn receives_pushes(path: &str) -> bool {
    let said = decoded(path);
    has(&said, b"git-receive-pack")
}

/// Returns true if git servers would serve a fetch at that path: by git's protocol, or as files that clients read without it.
pub(super) fn serves_fetches(path: &str) -> bool {
    let said = decoded(path);
    let is_of_files = has(&said, b"/info/refs") && !has(&said, b"git-receive-pack");
    has(&said, b"git-upload-pack") || has(&said, b"git-upload-archive") || is_of_files
}

fn has(said: &[u8], wanted: &[u8]) -> bool {
    said.windows(wanted.len()).any(|part| part == wanted)
}

/// Decodes a path, in lower case.
fn decoded(path: &str) -> Vec<u8> {
    let mut said = Vec::with_capacity(path.len());
    let mut rest = path.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let code = behind.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        let byte = code.filter(|_| *first == b'%').and_then(|code| u8::from_str_radix(code, 16).ok());
        said.push(byte.unwrap_or(*first).to_ascii_lowercase());
        rest = if byte.is_some() { behind.get(2..).unwrap_or_default() } else { behind };
    }
    said
}

/// Returns true if all servers interpret the path alike: no segment goes up or stays, no character stands for a slash or a dot,
/// and nothing is encoded twice.
pub(super) fn is_plain(path: &str) -> bool {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let is_odd = |byte: u8| byte <= b' ' || byte >= 0x7f || matches!(byte, b'\\' | b';');
    if !path.starts_with('/') || path.bytes().any(is_odd) || path.contains("//") {
        return false;
    }
    // Decoded path: some servers decode it before they interpret it.
    let (mut said, mut rest) = (Vec::with_capacity(path.len()), path.as_bytes());
    while let Some((first, behind)) = rest.split_first() {
        if *first != b'%' {
            said.push(*first);
            rest = behind;
            continue;
        }
        let code = behind.get(..2).filter(|code| code.iter().all(u8::is_ascii_hexdigit));
        let byte = code.and_then(|code| u8::from_str_radix(std::str::from_utf8(code).ok()?, 16).ok());
        match byte {
            Some(byte) if !byte.is_ascii_control() && !b"/\\.%;".contains(&byte) => said.push(byte),
            _ => return false,
        }
        rest = behind.get(2..).unwrap_or_default();
    }
    let Ok(said) = std::str::from_utf8(&said) else { return false };
    !said.chars().any(is_ambiguous) && !said.split('/').any(is_of_dots)
}

/// Returns true if some servers take a segment for one that goes up or stays: it consists of dots and white space (which
/// Windows removes), up to a `?`, `#` or `:` that could end it after a second decoding.
fn is_of_dots(part: &str) -> bool {
    let name = part.split(['?', '#', ':']).next().unwrap_or_default();
    name.contains('.') && name.chars().all(|letter| letter == '.' || letter.is_whitespace())
}

/// Returns true if a character beyond ASCII is normalized to a delimiter or to nothing (NFKC, best fit of code pages).
fn is_ambiguous(letter: char) -> bool {
    if letter.is_ascii() {
        return false;
    }
    let is_delimiter = matches!(letter,
        // Full stops, also in sequences and after digits.
        '\u{2024}'..='\u{2026}' | '\u{2488}'..='\u{249b}' | '\u{3002}' | '\u{fe12}' | '\u{fe19}' | '\u{fe30}'
        | '\u{fe52}' | '\u{ff0e}' | '\u{ff61}' | '\u{1f100}'
        // Slashes, and characters that contain one.
        | '\u{2044}' | '\u{2100}' | '\u{2101}' | '\u{2105}' | '\u{2106}' | '\u{2215}' | '\u{29f8}' | '\u{ff0f}'
        // Backslashes, also those of Japanese and Korean code pages.
        | '\u{a5}' | '\u{20a9}' | '\u{2216}' | '\u{29f5}' | '\u{29f9}' | '\u{fe68}' | '\u{ff3c}' | '\u{ffe5}' | '\u{ffe6}'
        // Percent and number signs, semicolons and question marks.
        | '\u{37e}' | '\u{fe14}' | '\u{fe16}' | '\u{fe54}' | '\u{fe56}' | '\u{fe5f}' | '\u{fe6a}' | '\u{ff03}'
        | '\u{ff05}' | '\u{ff1b}' | '\u{ff1f}' | '\u{203d}' | '\u{2047}'..='\u{2049}');
    let is_ignored = matches!(letter,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}');
    is_delimiter || is_ignored || letter.is_control()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_prefix_matches_itself_and_whole_segments_below() {
        let simple = PathPrefix::parse("/simple/").unwrap();
        for (path, is_there) in [
            ("/simple/", true),
            ("/simple", true),
            ("/simple/six/?a=/b", true),
            ("/simpler", false),
            ("/", false),
            ("/a/simple/", false),
        ] {
            assert_eq!(simple.holds(path), is_there, "{path}");
        }
        assert!(PathPrefix::parse("/").unwrap().holds("/anything"));
        assert_eq!(simple.to_string(), "/simple/");
        for bad in ["", "simple", "/a/../b", "/a//b", "/a%2fb", "/a?b", "/a*", "/a b", "/a;b"] {
            assert_eq!(PathPrefix::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn git_push_path_is_recognised_in_every_spelling() {
        for path in [
            "/a/b.git/git-receive-pack",
            "/a/b.git/git-receive-pack/",
            "/a/b/info/refs?service=git-receive-pack",
            "/a/b/GIT-RECEIVE-PACK",
            "/a/git%2Dreceive%2dpack",
            "/%67it-receive-pac%6B?x",
        ] {
            assert!(receives_pushes(path), "{path}");
        }
        for path in [
            "/a/b.git/git-upload-pack",
            "/a/b/info/refs?service=git-upload-pack",
            "/git-receive",
            "/%",
            "/%6",
            "/%zz",
        ] {
            assert!(!receives_pushes(path), "{path}");
        }
    }

    #[test]
    fn git_fetch_path_is_recognised_in_every_spelling() {
        for path in [
            "/a/b.git/git-upload-pack",
            "/a/b.git/info/refs?service=git-upload-pack",
            "/a/b.git/info/refs",
            "/a/b/INFO/refs?x",
            "/a/git%2Dupload%2dpack",
            "/a/git-upload-archive",
        ] {
            assert!(serves_fetches(path), "{path}");
        }
        for path in
            ["/a/b.git/git-receive-pack", "/a/b/info/refs?service=git-receive-pack", "/git-upload", "/info"]
        {
            assert!(!serves_fetches(path), "{path}");
        }
    }

    #[test]
    fn ambiguous_url_path_is_not_plain() {
        for plain in [
            "/",
            "/a/b.c",
            "/a%20b",
            "/%C3%A4",
            "/a?x=../y",
            "/.well-known/x",
            "/a..b",
            "/@scope%40x/y",
            "/..a/.%20b/c..",
            "/a%23b/c%3fd/e:f",
            "/%E6%97%A5%E6%9C%AC/%E2%80%99",
        ] {
            assert!(is_plain(plain), "{plain}");
        }
        for odd in [
            "",
            "a",
            "*",
            "/a/../b",
            "/a/./b",
            "/..",
            "/.",
            "//a",
            "/a//",
            "/a%2Fb",
            "/a%5cb",
            "/%2e%2e/b",
            "/a%2",
            "/a%",
            "/a%zz",
            "/a%252e",
            "/a%00",
            "/a\\b",
            "/a b",
            "/a\u{7f}",
            "/ä",
            "/a;x=1",
            "/a%+f",
            "/a%0d%0ab",
            "/a%7f",
            "/%c0%ae%c0%ae/b",
            "/a%ff",
            "/a/%ef%bc%8e%ef%bc%8e/b",
            "/a/%E2%80%A5/b",
            "/a/%E2%80%A4%E2%80%A4/b",
            "/a%E2%81%84b",
            "/a%ef%bc%8fb",
            "/a%ef%bc%bcb",
            "/a/.%E2%80%8B./b",
            "/a%C2%85b",
            "/a/...",
            "/a/..../b",
            "/a/..%20/b",
            "/a/%20../b",
            "/a/.%20./b",
            "/a/..%23/b",
            "/a/..%3fx/b",
            "/a/..:x/b",
            "/a/.%C2%A0/b",
        ] {
            assert!(!is_plain(odd), "{odd}");
        }
    }
}
