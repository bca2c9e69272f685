//! Names that are safe to look up under a workspace root.

mod git_directory;
pub(super) mod quoted;

use std::fmt;
use std::sync::Arc;

use super::refusal::{Excerpt, Refusal};

/// A path below the workspace root, proven harmless by its text: relative, UTF-8, no empty, `.` or `..`
/// component, nothing that any file system takes for `.git`, and no control character but tabs and line breaks, which git writes
/// in quotes and [`Display`](fmt::Display) shows escaped.
///
/// Cloning is free. What a name can't promise is that no component is a symlink: that is for the [`FileTree`](super::FileTree) to find out.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RelativeName(Arc<str>);

/// Control characters that names of files have on occasion.
const IN_QUOTES: [u8; 3] = *b"\t\n\r";

// === impl RelativeName ===

impl RelativeName {
    /// Longest name Linux takes in one call (`PATH_MAX` less its NUL).
    pub const MAX_BYTES: usize = 4095;
    const MAX_COMPONENT_BYTES: usize = 255;

    /// Checks a name as it would be looked up, after stripping.
    pub fn new(name: &[u8]) -> Result<Self, Refusal> {
        refuse_hostile(name)?;
        if let Some(defect) = defect(name) {
            return Err(Refusal::UnsafeName { name: Excerpt::of(name), defect });
        }
        if name.split(|&byte| byte == b'/').any(git_directory::is_spelled_by) {
            return Err(Refusal::GitDirectory { name: Excerpt::of(name) });
        }
        match str::from_utf8(name) {
            Ok(text) => Ok(Self(text.into())),
            Err(_) => Err(Refusal::UnsafeName { name: Excerpt::of(name), defect: "is not UTF-8" }),
        }
    }

    /// The name as text, components separated by `/`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The directory that holds it; `None` for what is in the root.
    pub fn parent(&self) -> Option<Self> {
        let end = self.0.rfind('/')?;
        Some(Self(self.0[..end].into()))
    }

    /// The entry `child` in this directory, or `None` if `child` isn't a safe component.
    pub fn join(&self, child: &[u8]) -> Option<Self> {
        let joined = [self.0.as_bytes(), child].join(&b'/');
        Self::new(&joined).ok()
    }
}

impl fmt::Display for RelativeName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            match character.is_control() {
                true => write!(out, "{}", character.escape_default())?,
                false => fmt::Write::write_char(out, character)?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for RelativeName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, out)
    }
}

/// Refuses a name that is absolute, or has a `..` or a NUL; also for names before stripping, where git would just cut
/// the offending part off. Such a name is an attack or a mistake.
pub(super) fn refuse_hostile(name: &[u8]) -> Result<(), Refusal> {
    if memchr::memchr(0, name).is_some() {
        return Err(Refusal::UnsafeName { name: Excerpt::of(name), defect: "has a NUL" });
    }
    let escapes = name.first() == Some(&b'/')
        || (memchr::memmem::find(name, b"..").is_some()
            && name.split(|&byte| byte == b'/').any(|part| part == b".."));
    if escapes { Err(Refusal::Escapes { name: Excerpt::of(name) }) } else { Ok(()) }
}

fn defect(name: &[u8]) -> Option<&'static str> {
    if name.is_empty() {
        return Some("is empty");
    }
    if name.len() > RelativeName::MAX_BYTES {
        return Some("is longer than 4095 bytes");
    }
    if name.iter().any(|byte| byte.is_ascii_control() && !IN_QUOTES.contains(byte)) {
        return Some("has a control character");
    }
    name.split(|&byte| byte == b'/').find_map(|part| match part {
        b"" => Some("has an empty component"),
        b"." => Some("has a `.` component"),
        _ if part.len() > RelativeName::MAX_COMPONENT_BYTES => Some("has a component longer than 255 bytes"),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_names_are_kept_byte_for_byte() {
        for name in [
            "x",
            "a/b c/ä",
            "..a",
            "a../b",
            "-rf",
            "a\\b",
            ".gitignore",
            "COM1",
            "\u{202e}x",
            "a\tb",
            "a\nb/\r",
        ] {
            assert_eq!(RelativeName::new(name.as_bytes()).unwrap().as_str(), name);
        }
    }

    #[test]
    fn control_characters_of_a_name_are_shown_escaped() {
        assert_eq!(RelativeName::new("ä\tb\n".as_bytes()).unwrap().to_string(), "ä\\tb\\n");
    }

    #[test]
    fn names_that_escape_the_workspace_are_reported_as_escapes() {
        for name in ["/x", "..", "../x", "a/../x", "a/..", "/"] {
            let refused = RelativeName::new(name.as_bytes()).unwrap_err();
            assert!(refused.to_string().contains("path escapes workspace"), "{name}: {refused}");
        }
    }

    #[test]
    fn names_that_cannot_be_looked_up_or_reported_are_refused() {
        let long = [b'x'; 4096];
        let long_component = [b'x'; 256];
        let names: [&[u8]; 10] =
            [b"", b"a//b", b"a/", b"./a", b"a/.", b"a\0b", b"a\x7f", b"\xff", &long, &long_component];
        for name in names {
            let refused = RelativeName::new(name).unwrap_err();
            assert!(matches!(refused, Refusal::UnsafeName { .. }), "{name:?}: {refused}");
        }
    }

    #[test]
    fn parents_end_at_the_root() {
        let name = RelativeName::new(b"a/b/c").unwrap();
        let parent = name.parent().unwrap();
        assert_eq!(parent.as_str(), "a/b");
        assert_eq!(parent.parent().unwrap().parent(), None);
    }
}
