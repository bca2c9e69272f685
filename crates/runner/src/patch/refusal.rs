//! Refusals by policy of patches that a patch tool might accept.

use std::fmt;

/// A reason to refuse a patch that is about safety, not about whether it fits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Absolute, or with a `..` component, even one that stripping would have removed.
    #[error("path escapes workspace: {name}")]
    Escapes {
        /// The name as the diff has it.
        name: Excerpt,
    },
    /// `.git` or one of the spellings that some file system takes for it.
    #[error("path is in a git directory: {name}")]
    GitDirectory {
        /// The name as the diff has it.
        name: Excerpt,
    },
    /// A name that can't be reported without loss, or that a file system would read differently.
    #[error("name {defect}: {name}")]
    UnsafeName {
        /// The name as the diff has it.
        name: Excerpt,
        /// Defect of the name.
        defect: &'static str,
    },
    /// A binary patch in any form, or the note that two binary files differ.
    #[error("binary patch")]
    Binary,
    /// Symlinks (120000), submodules (160000), setuid and other special bits.
    #[error("mode {mode:06o} is not a plain file's; 100644 and 100755 are")]
    Mode {
        /// The mode as the diff has it.
        mode: u32,
    },
    /// The path, or one of its parents, is a symlink.
    #[error("path is, or passes through, a symlink")]
    Symlink,
    /// The file to patch is a directory. Git would take it for a submodule, and do nothing.
    #[error("path is a directory")]
    Directory,
    /// The path is a device, FIFO, socket or the like.
    #[error("path is a special file")]
    SpecialFile,
}

/// A short, printable piece of hostile input for an error message.
#[derive(Clone, PartialEq, Eq)]
pub struct Excerpt(Box<str>);

// === impl Excerpt ===

impl Excerpt {
    const MAX_CHARS: usize = 80;

    /// Quotes `bytes` without their line end, cut to 80 characters.
    pub fn of(bytes: &[u8]) -> Self {
        let line = bytes.strip_suffix(b"\n").unwrap_or(bytes);
        // Four bytes make at most one character, so the rest can't reach the excerpt.
        let head = &line[..line.len().min(Self::MAX_CHARS * 4)];
        let text = String::from_utf8_lossy(head);
        let cut: String = text.chars().take(Self::MAX_CHARS).collect();
        let dots = if cut.len() < line.len() && text.chars().count() > Self::MAX_CHARS { "..." } else { "" };
        Self(format!("\"{}{dots}\"", cut.escape_debug()).into())
    }

    /// The quoted text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Excerpt {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl fmt::Debug for Excerpt {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_short_and_printable() {
        assert_eq!(Excerpt::of(b"a\x1b[31m\xff\n").as_str(), "\"a\\u{1b}[31m\u{fffd}\"");
        let long = Excerpt::of(&[b'x'; 10_000]);
        assert_eq!(long.as_str().len(), 80 + "\"...\"".len());
    }
}
