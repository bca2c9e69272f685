//! Names in a tree that a sandbox has written, before git gets to see any of them.
//!
//! A file system that folds case, takes short names or passes over characters makes `.git` of many a name. None of them ever
//! gets into a tree, whatever file system this host has: who checks it out has another one.

use unicode_normalization::UnicodeNormalization;

/// A path in a tree, safe for whoever checks it out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreePath(String);

/// Why a name can't be in a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTreePath {
    /// It is empty, absolute, or goes up.
    #[error("it is no path that leads down")]
    Shape,
    /// It has line ends or other control characters in it.
    #[error("it has control characters in it")]
    Control,
    /// Its bytes are no UTF-8.
    #[error("its bytes are no UTF-8")]
    Encoding,
    /// It is too long, or too deep.
    #[error("it is longer than 4096 bytes, or deeper than 128 directories")]
    TooLong,
    /// Some file system takes a part of it for `.git`.
    #[error("some file system takes a part of it for `.git`")]
    DotGit,
}

const LONGEST: usize = 4096;
const DEEPEST: usize = 128;

// === impl TreePath ===

impl TreePath {
    /// Reads one, relative and with `/` between its parts.
    ///
    /// # Errors
    /// [`InvalidTreePath`] says what is wrong with it.
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

    /// The path.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Whether some file system takes that name for `.git`: by case, by a short name, by characters that it passes over, by what it
/// drops at the end, by a stream.
pub fn is_dot_git(name: &str) -> bool {
    // There a backslash stands between directories.
    name.split('\\').any(|part| {
        let folded = folded(part);
        folded == ".git" || folded.strip_prefix("git~").is_some_and(is_number)
    })
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A name as the least particular of file systems reads it: without case, without forms of characters, without what some pass
/// over or drop at the end.
pub fn folded(name: &str) -> String {
    let name = name.split(':').next().unwrap_or_default();
    folded_text(name).trim_end_matches(['.', ' ']).to_owned()
}

/// A text that names may be in, with its letters as [`folded`] has them.
pub(crate) fn folded_text(text: &str) -> String {
    let kept: String = text.chars().filter(|char| !is_passed_over(*char)).collect();
    kept.nfkc().flat_map(char::to_lowercase).nfkc().collect()
}

/// HFS+ passes over these, and no eye sees them.
fn is_passed_over(char: char) -> bool {
    matches!(char,
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{206f}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn no_spelling_of_dot_git_is_in_a_tree() {
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
            ".gıt",
        ];
        for name in spellings {
            let refused = match name {
                // A dotless i is a letter of its own everywhere.
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
    fn what_leads_up_or_breaks_lines_is_no_path_and_what_looks_alike_is_one() {
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

    proptest! {
        #[test]
        fn case_and_characters_that_are_passed_over_hide_nothing(
            cases in proptest::collection::vec(any::<bool>(), 4),
            passed_over in proptest::collection::vec(0_usize..5, 0..4),
            end in "[. ]{0,3}",
        ) {
            let characters = ['\u{200c}', '\u{200d}', '\u{202e}', '\u{206f}', '\u{feff}'];
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
