//! Checks paths in a tree that a sandbox has written, before git sees them.
//!
//! A file system that folds case, knows short names or ignores characters takes many names for `.git`. Such a name never gets
//! into a tree, whatever file system this host has: the tree may be checked out on another one.

use unicode_normalization::UnicodeNormalization;

/// Path in a tree that is safe to check out on any file system.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreePath(String);

/// Reason why a name can't be in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTreePath {
    /// The path is empty or absolute, or goes up.
    #[error("it is not a relative path without `..`")]
    Shape,
    /// The path has line ends or other control characters.
    #[error("it contains control characters")]
    Control,
    /// The path is not valid UTF-8.
    #[error("it is not valid UTF-8")]
    Encoding,
    /// The path is too long or too deep.
    #[error("it is longer than 4096 bytes, or deeper than 128 directories")]
    TooLong,
    /// Some file system takes a part of the path for `.git`.
    #[error("on some file systems, a part of it names `.git`")]
    DotGit,
}

const LONGEST: usize = 4096;
const DEEPEST: usize = 128;

// === impl TreePath ===

impl TreePath {
    /// Parses a path, which is relative and has `/` between its parts.
    ///
    /// # Errors
    /// [`InvalidTreePath`], with the reason.
    pub fn parse(bytes: &[u8]) -> Result<Self, InvalidTreePath> {
        if bytes.len() > LONGEST {
            return Err(InvalidTreePath::TooLong);
        }
        let text = str::from_utf8(bytes).map_err(|_| InvalidTreePath::Encoding)?;
        if text.chars().any(char::is_control) {
            return Err(InvalidTreePath::Control);
        }
        let parts = || text.split('/');
        if parts().any(|part| matches!(part, "" | "." | "..")) {
            return Err(InvalidTreePath::Shape);
        }
        if parts().count() > DEEPEST {
            return Err(InvalidTreePath::TooLong);
        }
        match parts().any(is_dot_git) {
            true => Err(InvalidTreePath::DotGit),
            false => Ok(Self(text.to_owned())),
        }
    }

    /// Returns the path.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns true if some file system takes the name for `.git`: by case, by a short name, by ignored characters, by removed
/// final characters, or as a stream.
pub fn is_dot_git(name: &str) -> bool {
    // On such file systems a backslash separates directories.
    name.split('\\').any(|part| {
        let folded = folded(part);
        folded == ".git" || folded.strip_prefix("git~").is_some_and(is_number)
    })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Folds a name as the least strict file systems do: without case and compatibility forms, without ignored characters and
/// without final ones that some remove.
pub fn folded(name: &str) -> String {
    let name = name.split(':').next().unwrap_or_default();
    folded_text(name).trim_end_matches(['.', ' ']).to_owned()
}

/// Folds a text that may contain names, with letters as in [`folded`]. The folding is Unicode's `NFKC_Casefold`, which includes
/// that of HFS+, APFS, and ext4 and f2fs with `casefold`.
pub(crate) fn folded_text(text: &str) -> String {
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let kept: String = text.chars().filter(|char| !is_default_ignorable(*char)).collect();
    // A folded text may have another normal form, which folds differently.
    let once: String = kept.nfkc().flat_map(case_folded).collect();
    once.nfkc().flat_map(case_folded).nfkc().collect()
}

/// Returns a character without case: `ß`, `ẞ` and `SS` become `ss`.
fn case_folded(char: char) -> impl Iterator<Item = char> {
    // Its upper case is that of `i`, although it is another letter.
    let has_own_capital = char != '\u{131}';
    let raised = char.to_lowercase().flat_map(move |char| {
        let capitals = has_own_capital.then(|| char.to_uppercase());
        let itself = (!has_own_capital).then_some(char);
        capitals.into_iter().flatten().chain(itself)
    });
    raised.flat_map(char::to_lowercase)
}

/// Unicode's `Default_Ignorable_Code_Point`: these are invisible, and file systems that fold case ignore them.
fn is_default_ignorable(char: char) -> bool {
    matches!(char,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_spelling_of_dot_git_is_refused_in_a_tree() {
        let spellings = [
            ".git",
            ".GIT",
            ".Git",
            ".giT",
            ".git.",
            ".git ",
            ".git. .",
            "git~1",
            "GIT~1",
            "git~12",
            ".git::$INDEX_ALLOCATION",
            ".git:x",
            ".g\u{200c}it",
            "\u{feff}.git",
            ".gi\u{200d}t",
            ".git\u{206a}",
            ".\u{ff47}it",
            ".g\u{131}t\u{0}",
            "a\\.git",
            ".git\\hooks",
            // Characters that ext4 and f2fs ignore with `casefold`.
            ".g\u{34f}it",
            ".gi\u{115f}t",
            ".git\u{3164}",
            "\u{180e}.git",
            ".gi\u{2065}t",
            ".g\u{e0100}it",
            "g\u{e0041}it~1",
            ".gıt",
        ];
        for name in spellings {
            let refused = match name {
                // A dotless i is a separate letter everywhere.
                ".gıt" => Ok(()),
                name if name.contains('\0') => Err(InvalidTreePath::Control),
                _ => Err(InvalidTreePath::DotGit),
            };
            for path in
                [name.to_owned(), format!("a/{name}"), format!("{name}/config"), format!("a/{name}/b")]
            {
                assert_eq!(TreePath::parse(path.as_bytes()).map(|_| ()), refused, "{path:?}");
            }
        }
    }

    #[test]
    fn parent_and_newline_paths_are_refused_but_lookalikes_are_not() {
        for (bytes, why) in [
            (&b""[..], InvalidTreePath::Shape),
            (b"/a", InvalidTreePath::Shape),
            (b"a/", InvalidTreePath::Shape),
            (b"a//b", InvalidTreePath::Shape),
            (b"..", InvalidTreePath::Shape),
            (b"a/../b", InvalidTreePath::Shape),
            (b"./a", InvalidTreePath::Shape),
            (b"a\nb", InvalidTreePath::Control),
            (b"a\rb", InvalidTreePath::Control),
            (b"a\0b", InvalidTreePath::Control),
            (b"a\x1b[31m", InvalidTreePath::Control),
            (b"a\xff", InvalidTreePath::Encoding),
        ] {
            assert_eq!(TreePath::parse(bytes), Err(why), "{bytes:?}");
        }
        for good in
            [".gitignore", "git", "a.git", ".github/x", "git~", "git~x", "..a", "a b", "é/ü", "\"q\"", "-x"]
        {
            assert_eq!(TreePath::parse(good.as_bytes()).unwrap().as_str(), good);
        }
        assert!(TreePath::parse(&[b'a'; 4096]).is_ok());
        assert_eq!(TreePath::parse(&[b'a'; 4097]), Err(InvalidTreePath::TooLong));
        assert!(TreePath::parse(format!("{}a", "a/".repeat(127)).as_bytes()).is_ok());
        assert_eq!(TreePath::parse("a/".repeat(128).as_bytes()), Err(InvalidTreePath::Shape));
        assert_eq!(
            TreePath::parse(format!("{}a", "a/".repeat(128)).as_bytes()),
            Err(InvalidTreePath::TooLong)
        );
    }

    #[test]
    fn case_folding_follows_unicode_and_is_idempotent() {
        for (name, as_folded) in [
            ("proce\u{df}.json", "process.json"),
            ("PROCE\u{1e9e}.json", "process.json"),
            ("\u{fb03}x", "ffix"),
            ("\u{17f}etup.py", "setup.py"),
            ("\u{3c2}", "\u{3c3}"),
            // Controls: a separate letter, and one with a mark.
            ("makef\u{131}le", "makef\u{131}le"),
            ("MAKEF\u{130}LE", "makefi\u{307}le"),
        ] {
            assert_eq!(folded(name), as_folded, "{name}");
        }
        // All letters with case, and ignored characters.
        for char in ('\0'..='\u{1ffff}').chain('\u{e0000}'..='\u{e0fff}') {
            let once = folded_text(&char.to_string());
            assert_eq!(folded_text(&once), once, "{char:?}");
            let others = [char.to_lowercase().collect::<String>(), char.to_uppercase().collect()];
            // The upper case of the dotless i belongs to another letter.
            let others = others.iter().filter(|_| char != '\u{131}');
            others.for_each(|other| assert_eq!(folded_text(other), once, "{char:?}"));
        }
    }

    proptest! {
        #[test]
        fn case_and_ignorable_characters_do_not_hide_dot_git(
            cases in proptest::collection::vec(any::<bool>(), 4),
            passed_over in proptest::collection::vec(0_usize..8, 0..4),
            end in "[. ]{0,3}",
        ) {
            let characters =
                ['\u{200c}', '\u{200d}', '\u{202e}', '\u{206f}', '\u{feff}', '\u{34f}', '\u{180e}', '\u{e0fff}'];
            let mut name: Vec<char> = ".git".chars().zip(cases)
                .map(|(char, upper)| if upper { char.to_ascii_uppercase() } else { char }).collect();
            for at in passed_over {
                name.insert(at % (name.len() + 1), characters[at]);
            }
            let name: String = name.into_iter().collect::<String>() + &end;
            prop_assert!(is_dot_git(&name));
        }
    }
}
