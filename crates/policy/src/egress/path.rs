//! Paths of requests, as rules name them: all below a place, by whole parts.

use std::fmt;

/// `/simple/`: the place itself, and everything below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathPrefix(String);

// === impl PathPrefix ===

impl PathPrefix {
    /// Reads one: a plain path that begins with a slash.
    pub fn parse(text: &str) -> Option<Self> {
        let is_good = text.starts_with('/') && is_plain(text) && !text.contains(['?', '#', '*']);
        is_good.then(|| Self(text.to_owned()))
    }

    /// Whether a plain path is there, or below.
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

/// Whether everybody reads it as the same path: nothing in it goes up, stays, or stands for a slash or a dot, and nothing is
/// encoded twice.
pub(super) fn is_plain(path: &str) -> bool {
    let path = path.split(['?', '#']).next().unwrap_or_default();
    let is_odd = |byte: u8| byte <= b' ' || byte >= 0x7f || matches!(byte, b'\\' | b';');
    if !path.starts_with('/') || path.bytes().any(is_odd) || path.contains("//") {
        return false;
    }
    let escapes = path.match_indices('%').map(|(at, _)| path.get(at + 1..at + 3).unwrap_or_default());
    for escape in escapes {
        match u8::from_str_radix(escape, 16) {
            Ok(byte)
                if escape.bytes().all(|byte| byte.is_ascii_hexdigit()) && !b"/\\.%;\0".contains(&byte) => {}
            _ => return false,
        }
    }
    path.split('/').all(|part| part != "." && part != "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_holds_itself_and_what_is_below_by_whole_parts() {
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
        for bad in ["", "simple", "/a/../b", "/a//b", "/a%2fb", "/a?b", "/a*", "/a b", "/a;b"] {
            assert_eq!(PathPrefix::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_could_be_read_as_another_path_is_not_plain() {
        for plain in
            ["/", "/a/b.c", "/a%20b", "/%C3%A4", "/a?x=../y", "/.well-known/x", "/a..b", "/@scope%40x/y"]
        {
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
        ] {
            assert!(!is_plain(odd), "{odd}");
        }
    }
}
