//! Spellings of `.git`.
//!
//! A file planted there runs code at the next git command (hooks, `core.fsmonitor`), and a workspace may be
//! copied to a file system that folds case, drops trailing dots and spaces (NTFS) or ignores invisible
//! characters (HFS+). So every such spelling counts, whatever this machine's file system does.

/// Returns true if a path component may name a git directory on some file system.
pub(super) fn is_spelled_by(component: &[u8]) -> bool {
    // `.git`, `GIT~1`, and `.git` behind ignorable characters all have a `g`; most names end here.
    if !component.iter().any(|byte| byte.eq_ignore_ascii_case(&b'g')) {
        return false;
    }
    // NTFS takes a backslash for a separator.
    component.split(|&byte| byte == b'\\').any(is_git_on_ntfs) || is_git_on_hfs(component)
}

/// `.git` or its short name `git~1`, in any case, then only dots and spaces up to the end or a stream name.
fn is_git_on_ntfs(part: &[u8]) -> bool {
    let tail = [&b".git"[..], b"git~1"].iter().find_map(|stem| {
        let head = part.get(..stem.len())?;
        head.eq_ignore_ascii_case(stem).then(|| &part[stem.len()..])
    });
    let Some(tail) = tail else { return false };
    matches!(tail.iter().find(|&&byte| byte != b'.' && byte != b' '), None | Some(b':'))
}

/// `.git` in any case once the characters that HFS+ ignores are gone.
fn is_git_on_hfs(component: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(component) else { return false };
    let seen =
        text.chars().filter(|character| !is_ignored_by_hfs(*character)).map(|c| c.to_ascii_lowercase());
    seen.eq(".git".chars())
}

fn is_ignored_by_hfs(character: char) -> bool {
    matches!(character,
        '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_spelling_of_the_git_directory_is_recognized() {
        let spellings = [
            ".git",
            ".GIT",
            ".gIt",
            ".git ",
            ".git.",
            ".git . .",
            "git~1",
            "GIT~1",
            "git~1 ",
            ".git:stream",
            ".git::$DATA",
            "x\\.git",
            "x\\.git\\hooks",
            "git~1:x",
            ".g\u{200c}it",
            "\u{feff}.git",
            ".\u{202e}Git",
        ];
        for spelling in spellings {
            assert!(is_spelled_by(spelling.as_bytes()), "{spelling:?}");
        }
    }

    #[test]
    fn neighbours_of_the_git_directory_are_plain_names() {
        for name in
            [".gitignore", ".gitmodules", "git", "git~2", ".git-x", "x.git", ".gi", ".github", "a.git:x"]
        {
            assert!(!is_spelled_by(name.as_bytes()), "{name:?}");
        }
    }
}
