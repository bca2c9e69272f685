//! The syntax of Git's files of settings, and of the variables that hold some.

use belljar_policy::handoff::GitSetting;
use std::iter::Peekable;
use std::str::Chars;

/// The settings of a file. What Git wouldn't read is passed over.
pub(super) fn parse(text: &str) -> Vec<GitSetting> {
    let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
    let (mut settings, mut section) = (Vec::new(), (String::new(), String::new()));
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.peek().copied() {
        match char {
            '[' => section = header(&mut chars),
            '#' | ';' => while chars.next_if(|char| *char != '\n').is_some() {},
            char if char.is_whitespace() => drop(chars.next()),
            _ => {
                let mut key = String::new();
                while let Some(char) = chars.next_if(|char| !matches!(char, '=' | '\n' | '#' | ';')) {
                    key.push(char);
                }
                let value = chars.next_if_eq(&'=').map(|_| value(&mut chars)).unwrap_or_default();
                let (section, subsection) = section.clone();
                let key = key.trim().to_ascii_lowercase();
                settings.push(GitSetting { section, subsection, key, value });
            }
        }
    }
    settings
}

/// A section and its subsection: `[a "b"]`, or `[a.b]`.
fn header(chars: &mut Peekable<Chars<'_>>) -> (String, String) {
    let (mut section, mut subsection) = (String::new(), String::new());
    let mut is_quoted = false;
    chars.next();
    while let Some(char) = chars.next_if(|char| *char != '\n') {
        match char {
            '"' => is_quoted = !is_quoted,
            '\\' if is_quoted => subsection.extend(chars.next_if(|char| *char != '\n')),
            char if is_quoted => subsection.push(char),
            ']' => break,
            char => section.push(char),
        }
    }
    let section = section.trim().to_ascii_lowercase();
    match section.split_once('.') {
        Some((section, rest)) if subsection.is_empty() => (section.to_owned(), rest.to_owned()),
        _ => (section, subsection),
    }
}

/// A value up to the end of its line, without quotes, escapes and comment.
fn value(chars: &mut Peekable<Chars<'_>>) -> String {
    let (mut value, mut is_quoted, mut end) = (String::new(), false, 0);
    while let Some(char) = chars.next() {
        match char {
            '\n' => break,
            '#' | ';' if !is_quoted => {
                while chars.next_if(|char| *char != '\n').is_some() {}
                continue;
            }
            '"' => is_quoted = !is_quoted,
            '\\' => match chars.next() {
                None | Some('\n') => {}
                Some('n') => value.push('\n'),
                Some('t') => value.push('\t'),
                Some('b') => value.push('\u{8}'),
                Some(other) => value.push(other),
            },
            char if char.is_whitespace() && !is_quoted => {
                if !value.is_empty() {
                    value.push(char);
                }
                continue;
            }
            char => value.push(char),
        }
        end = value.len();
    }
    value.truncate(end);
    value
}

/// A setting by its whole name, as `remote.origin.url`.
pub(super) fn named(name: &str, value: &str) -> Option<GitSetting> {
    let (section, rest) = name.split_once('.')?;
    let (subsection, key) = rest.rsplit_once('.').unwrap_or(("", rest));
    let [section, key] = [section, key].map(str::to_ascii_lowercase);
    Some(GitSetting { section, subsection: subsection.to_owned(), key, value: value.to_owned() })
}

/// Settings as `git -c` hands them on: `'a.b'='c'`, or `'a.b=c'`, with blanks between them.
pub(super) fn parameters(text: &str) -> Vec<GitSetting> {
    let (mut words, mut is_quoted) = (vec![String::new()], false);
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        let Some(word) = words.last_mut() else { break };
        match char {
            '\'' => is_quoted = !is_quoted,
            '\\' if !is_quoted => word.extend(chars.next()),
            char if char.is_whitespace() && !is_quoted => words.push(String::new()),
            char => word.push(char),
        }
    }
    words
        .iter()
        .filter_map(|word| word.split_once('='))
        .filter_map(|(name, value)| named(name, value))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(settings: &[GitSetting]) -> Vec<String> {
        settings.iter().map(|setting| format!("{}={}", setting.name(), setting.value)).collect()
    }

    #[test]
    fn values_are_as_git_reads_them() {
        let text = "\u{feff}[core] hooksPath = hk ; comment\r\n\teditor = \"sh \\\"a#b\\\"\" # c\n  Bare\n\
                    [alias]\n x = !sh a\\\n b\\\\c  \n# y = z\n[includeIf \"gitdir:a/]\\\"\"]\npath=\"d;h\"\n[a.b]c=\n[d \"E\"]\nf=g \" h \"";
        assert_eq!(
            read(&parse(text)),
            [
                "core.hookspath=hk",
                "core.editor=sh \"a#b\"",
                "core.bare=",
                "alias.x=!sh a b\\c",
                "includeif.gitdir:a/]\".path=d;h",
                "a.b.c=",
                "d.E.f=g  h ",
            ]
        );
    }

    #[test]
    fn values_are_those_that_git_itself_lists() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config");
        let text = "[a]\n b = c\\td\\\n  e \"f # g\" ; h\n[x \"Y.z\\\\\"] k = \"l\\\"\"m  \n[n]\no=p;q\n";
        std::fs::write(&file, text).unwrap();
        let mut command = std::process::Command::new("git");
        let ran = command.args(["config", "--list", "-z", "--file"]).arg(&file).output().unwrap();
        assert!(ran.status.success(), "{ran:?}");
        let listed = String::from_utf8(ran.stdout).unwrap();
        let listed: Vec<String> =
            listed.split_terminator('\0').map(|setting| setting.replacen('\n', "=", 1)).collect();
        assert_eq!(read(&parse(text)), listed);
    }

    #[test]
    fn parameters_have_two_forms() {
        let text = "'core.hooksPath=a b' 'alias.x'='!sh '\\''y'\\''' 'z'";
        assert_eq!(read(&parameters(text)), ["core.hookspath=a b", "alias.x=!sh 'y'"]);
    }
}
