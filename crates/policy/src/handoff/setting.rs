//! Paths, command lines and other values of Git settings.

mod known;

use known::{HARMLESS, HARMLESS_SECTIONS, PATH_KEYS, PATHS};
use std::collections::BTreeSet;

/// Git setting. Section and key are in lower case.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitSetting {
    /// `remote` of `remote.origin.url`.
    pub section: String,
    /// `origin` of `remote.origin.url`; empty if there is none.
    pub subsection: String,
    /// `url` of `remote.origin.url`.
    pub key: String,
    /// Value as Git reads it: without quotes, escapes and comments.
    pub value: String,
}

/// Kind of a value.
enum Value<'s> {
    /// Names neither a file nor a program.
    Harmless,
    /// URL, which may be a path.
    Address(&'s str),
    /// Path: Git expands only `~/` and `~NAME/` in it.
    Path,
    /// Path or command line of an unknown setting.
    PathOrCommand,
    /// Command line, or a value that may be one.
    Command,
}

/// Programs whose arguments are no programs, unless one of [`RUNS`] is among them.
const QUIET: [&str; 6] = ["git", "git-lfs", "gh", "glab", "gcloud", "aws"];

/// Arguments by which Git runs an argument, or obeys the content of a directory. Long ones may be abbreviated.
const RUNS: [&str; 25] = [
    "-c",
    "-x",
    "-O",
    "run",
    "foreach",
    "filter-branch",
    "remote-ext",
    "--access-hook",
    "--browser",
    "--cc-cmd",
    "--config",
    "--config-env",
    "--exec",
    "--exec-path",
    "--extcmd",
    "--git-dir",
    "--header-cmd",
    "--httpd",
    "--open-files-in-pager",
    "--receive-pack",
    "--sendmail-cmd",
    "--smtp-server",
    "--template",
    "--to-cmd",
    "--upload-pack",
];

/// Minimum length of an abbreviated long argument: git takes `--up` for `--upload-pack`.
const SHORTEST_ARGUMENT: usize = "--up".len();

/// Words that may stand before a program's name.
const BEFORE_PROGRAM: [&str; 17] = [
    "!", "{", "}", "then", "do", "else", "elif", "if", "while", "until", "exec", "command", "env", "time",
    "nohup", "sudo", "xargs",
];

/// Characters by which a shell splits a command line into simple commands.
const BETWEEN_COMMANDS: [char; 7] = [';', '|', '&', '(', ')', '`', '\n'];

const QUOTES: [char; 2] = ['"', '\''];

// === impl GitSetting ===

impl GitSetting {
    /// Returns the name of the setting, such as `remote.origin.url`.
    pub fn name(&self) -> String {
        let parts = [&self.section, &self.subsection, &self.key].into_iter().filter(|part| !part.is_empty());
        parts.map(String::as_str).collect::<Vec<_>>().join(".")
    }

    /// Returns the parts of the value that may be paths: relative to a work tree or to the file of the setting, absolute, or
    /// below the home directory (`~/`).
    pub fn paths(&self) -> BTreeSet<String> {
        let is_path = |word: &String| !matches!(word.as_str(), "" | "." | "..");
        match self.kind() {
            Value::Harmless => BTreeSet::new(),
            Value::Address(address) => {
                local_path(address).into_iter().map(str::to_owned).filter(is_path).collect()
            }
            Value::Path => BTreeSet::from([self.value.clone()]).into_iter().filter(is_path).collect(),
            Value::PathOrCommand => {
                words_of(&self.value).chain([self.value.clone()]).filter(is_path).collect()
            }
            Value::Command => words_of(&self.value).filter(is_path).collect(),
        }
    }

    /// Returns the texts that a shell may take for files of a tree; everything else in them is blank. Empty if the value is no
    /// command line.
    pub(super) fn commands(&self) -> BTreeSet<String> {
        let command = match self.kind() {
            Value::Harmless | Value::Path => return BTreeSet::new(),
            Value::Address(address) => match helper_arguments(address) {
                Some(arguments) => arguments.to_owned(),
                None => return BTreeSet::new(),
            },
            Value::PathOrCommand | Value::Command => self.command_line(),
        };
        let command = with_tilde(&command);
        let command =
            QUOTES.iter().fold(command, |text, quote| text.replace(&format!("sh -c {quote}"), "sh -c ("));
        let unquoted = command.replace(['"', '\'', '\\'], "");
        [command, unquoted].iter().map(|command| files_of(command)).collect()
    }

    fn command_line(&self) -> String {
        let value = self.value.trim();
        let is_of_git = match (self.section.as_str(), self.key.as_str()) {
            ("alias", _) => true,
            ("credential", "helper") => !value.starts_with('/'),
            _ => false,
        };
        match value.strip_prefix('!') {
            Some(command) => command.to_owned(),
            None if is_of_git => format!("git {value}"),
            None => value.to_owned(),
        }
    }

    fn kind(&self) -> Value<'_> {
        let (section, key) = (self.section.as_str(), self.key.as_str());
        match (section, key) {
            // The subsection is the replacement.
            ("url", _) => return Value::Address(&self.subsection),
            ("remote" | "submodule" | "lfs", "url" | "pushurl" | "lfsurl")
            | ("branch", "remote" | "pushremote")
            | ("remote", "pushdefault" | "proxy")
            | ("http", "proxy") => return Value::Address(&self.value),
            ("branch", _) => return Value::Harmless,
            ("gc", key) if key != "recentobjectshook" => return Value::Harmless,
            ("alias", _) => return Value::Command,
            _ => {}
        }
        let is_in = |list: &[(&str, &[&str])]| {
            list.iter().any(|(known, keys)| *known == section && keys.contains(&key))
        };
        if is_in(PATHS) {
            return Value::Path;
        }
        if is_in(HARMLESS) || HARMLESS_SECTIONS.contains(&section) {
            return Value::Harmless;
        }
        match PATH_KEYS.iter().any(|end| key.ends_with(end)) {
            true => Value::PathOrCommand,
            false if is_plain(&self.value) => Value::Harmless,
            false => Value::Command,
        }
    }
}

/// Returns true for a boolean or a number.
fn is_plain(value: &str) -> bool {
    let value = value.trim().to_ascii_lowercase();
    let number = value.strip_prefix('-').unwrap_or(&value);
    let number = number.strip_suffix(['k', 'm', 'g', '%']).unwrap_or(number);
    matches!(value.as_str(), "" | "true" | "false" | "yes" | "no" | "on" | "off")
        || (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns the words of a command line that may be paths. A name alone is a program of the search path, or a plain word.
fn words_of(value: &str) -> impl Iterator<Item = String> {
    let is_between = |char: char| char.is_whitespace() || r#""'=;:,!()&|<>`#"#.contains(char);
    let texts = [value.to_owned(), with_tilde(value), with_tilde(&value.replace(QUOTES, ""))];
    let words = move |text: String| text.split(is_between).map(str::to_owned).collect::<Vec<_>>();
    let words = texts.into_iter().flat_map(words).chain([value.to_owned()]);
    words.filter(|word| word.contains(['/', '.']))
}

/// Replaces `$HOME/`, `${HOME}/` and `${HOME…}/` by `~/`.
fn with_tilde(text: &str) -> String {
    let mut parts = text.split("$");
    let mut replaced = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let in_braces = part.strip_prefix("{HOME").and_then(|rest| rest.split_once('}'));
        let is_other =
            |rest: &str| rest.starts_with(|char: char| char.is_ascii_alphanumeric() || char == '_');
        let below = match in_braces {
            Some((rest, _)) if is_other(rest) => None,
            Some((_, below)) => Some(below),
            None => part.strip_prefix("HOME"),
        };
        match below.filter(|below| below.starts_with('/')) {
            Some(below) => replaced.extend(["~", below]),
            None => replaced.extend(["$", part]),
        }
    }
    replaced
}

/// Returns what follows the name of a helper in a URL (`ext::sh tools/x.sh %S`).
fn helper_arguments(address: &str) -> Option<&str> {
    let (helper, arguments) = address.split_once("::")?;
    helper.bytes().all(|byte| byte.is_ascii_alphanumeric()).then_some(arguments)
}

/// Returns the path of a URL, unless it is on a server.
fn local_path(address: &str) -> Option<&str> {
    let address = helper_arguments(address).unwrap_or(address);
    if let Some(path) = address.strip_prefix("file://") {
        return Some(path);
    }
    let before_path = address.split('/').next().unwrap_or_default();
    (!before_path.contains(':')).then_some(address)
}

/// Returns a command line in which everything except files of a tree is blank: programs of the search path, absolute paths, and
/// arguments of programs that run none of them. The caller handles absolute paths separately.
fn files_of(command: &str) -> String {
    let (mut kept, mut before) = (String::new(), None);
    // For each enclosing command (`a $(b) c`): true if its arguments are left out.
    let (mut outer, mut is_quiet) = (Vec::new(), false);
    for piece in command.split_inclusive(BETWEEN_COMMANDS) {
        let end = piece.chars().next_back().filter(|end| BETWEEN_COMMANDS.contains(end));
        let text = &piece[..piece.len() - end.map_or(0, char::len_utf8)];
        let is_closed = before == Some(')') || (before == Some('`') && kept.matches('`').count() % 2 == 0);
        let is_continued = is_closed && !text.trim_start().starts_with('{');
        if is_continued {
            is_quiet = outer.pop().unwrap_or(false) && !runs_argument(text);
            let text = if is_quiet { "" } else { text };
            kept.push_str(&without_absolute(text, true));
        } else {
            if matches!(before, Some('(' | '`')) {
                outer.push(is_quiet);
            }
            let command = without_program(text);
            is_quiet = command.is_none();
            kept.push_str(&without_absolute(&command.unwrap_or_default(), false));
        }
        kept.extend(end);
        before = end;
    }
    kept
}

/// Returns a simple command without its program from the search path. Returns `None` if that program doesn't run any of its
/// arguments.
fn without_program(text: &str) -> Option<String> {
    let (mut begin, mut is_after_option) = (0, false);
    let mut assigned = String::new();
    let (program, at) = loop {
        let rest = &text[begin..];
        let at = begin + rest.len() - rest.trim_start().len();
        let Some(word) = text[at..].split_whitespace().next() else { break ("", text.len()) };
        if word.contains('=') && word.contains(QUOTES) {
            return Some(text.to_owned());
        }
        let is_option = is_after_option && word.starts_with('-');
        if word.contains('=') && !is_option {
            assigned.push_str(word);
            assigned.push(' ');
        } else if !BEFORE_PROGRAM.contains(&word) && !is_option {
            break (word, at);
        }
        is_after_option = is_option || matches!(word, "xargs" | "env" | "sudo");
        begin = at + word.len();
    };
    let name = program.rsplit('/').next().unwrap_or(program);
    let arguments = &text[at + program.len()..];
    // A program below a variable may be a file of the tree.
    let is_quiet = QUIET.contains(&name) && !program.contains('$');
    if is_quiet && assigned.is_empty() && !runs_argument(arguments) {
        return None;
    }
    // The subcommand of such a program is no file, either.
    let does = arguments.split_whitespace().next().filter(|word| is_quiet && !word.starts_with('-'));
    let arguments = arguments.trim_start().strip_prefix(does.unwrap_or_default()).unwrap_or(arguments);
    let program = if program.contains('/') { program } else { "" };
    Some(format!("{assigned}{program} {arguments}"))
}

fn runs_argument(arguments: &str) -> bool {
    arguments.split_whitespace().any(|word| {
        let option = word.trim_matches(QUOTES).split('=').next().unwrap_or_default();
        let is_shortened = option.starts_with("--") && option.len() >= SHORTEST_ARGUMENT;
        let is_run = |argument: &&str| is_shortened && argument.starts_with(option);
        RUNS.contains(&option) || option.starts_with("-O") || RUNS.iter().any(is_run)
    })
}

/// Blanks absolute paths and paths below the home directory. `is_continued` is true if the text begins within a word.
fn without_absolute(text: &str, is_continued: bool) -> String {
    let begins_word = |before: &str| match before.chars().next_back() {
        None => !is_continued,
        Some(char) => char.is_whitespace() || "=:,<>!".contains(char),
    };
    let (mut kept, mut rest) = (String::new(), text);
    while let Some(char) = rest.chars().next() {
        let before = &text[..text.len() - rest.len()];
        let is_root = (rest.starts_with('/') || rest.starts_with("~/"))
            && (begins_word(before) || before.strip_suffix(QUOTES).is_some_and(begins_word));
        let is_end = |char: char| char.is_whitespace() || "\"':,<>".contains(char);
        let word = rest.split(is_end).next().unwrap_or_default();
        if is_root && !word.contains(['$', '*', '?', '[', '{']) {
            kept.push(' ');
            rest = &rest[word.len()..];
        } else {
            kept.push(char);
            rest = &rest[char.len_utf8()..];
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(name: &str, value: &str) -> GitSetting {
        let (section, rest) = name.split_once('.').unwrap();
        let (subsection, key) = rest.rsplit_once('.').unwrap_or(("", rest));
        let [section, subsection, key, value] = [section, subsection, key, value].map(str::to_owned);
        GitSetting { section, subsection, key, value }
    }

    #[test]
    fn command_line_words_that_may_be_tree_files_are_kept() {
        for (name, value, kept) in [
            ("alias.x", "!sh deploy", "deploy"),
            ("alias.x", "!sh \"$(git rev-parse --show-toplevel)/tools/x.sh\"", "/tools/x.sh"),
            ("alias.x", "!sh \"$(git rev-parse --show-toplevel)\"/tools/x.sh", "/tools/x.sh"),
            ("alias.x", "!`git rev-parse --show-toplevel`/tools/x.sh", "/tools/x.sh"),
            ("alias.x", "!sh $PWD/tools/x.sh", "$PWD/tools/x.sh"),
            ("alias.x", "!cd tools && sh ./x.sh", "tools"),
            ("alias.x", "!git submodule foreach 'sh deploy'", "deploy"),
            ("alias.x", "rebase -x 'sh deploy'", "deploy"),
            ("alias.x", "!git -c \"core.pager=sh deploy\" log", "deploy"),
            ("alias.x", "!sh -c 'sh deploy'", "deploy"),
            ("alias.x", "!GIT_EDITOR='sh deploy' git commit", "deploy"),
            ("alias.x", "!sh $(echo -e) deploy", "deploy"),
            ("alias.x", "!sh `echo -e` deploy", "deploy"),
            ("alias.x", "!f(){ sh deploy; }; f", "deploy"),
            ("alias.x", "!x=deploy git log; sh $x", "deploy"),
            ("alias.x", "!sh my\\ tools/x", "my tools/x"),
            ("core.fsmonitor", "sh watch", "watch"),
            ("core.editor", "/bin/sh ed", "ed"),
            ("remote.o.uploadpack", "sh deploy", "deploy"),
            ("remote.o.url", "ext::sh deploy %S", "deploy"),
            ("url.ext::sh deploy.insteadof", "x", "deploy"),
            ("submodule.a.update", "!sh deploy", "deploy"),
            ("credential.helper", "!sh deploy", "deploy"),
            ("other.tool", "sh deploy", "deploy"),
            ("tool.runfile", "sh deploy", "deploy"),
            ("pager.cat-file", "sh deploy", "deploy"),
            ("alias.x", "!git --exec-path=deploy foo", "deploy"),
            ("alias.x", "!git send-email --to-cmd=deploy x", "deploy"),
            ("alias.x", "fetch --upl=deploy x", "deploy"),
            ("alias.x", "!$PWD/tools/gh pr list", "$PWD/tools/gh"),
        ] {
            let commands = setting(name, value).commands();
            assert!(commands.iter().any(|command| command.contains(kept)), "{name} {value} {commands:?}");
        }
    }

    #[test]
    fn command_line_words_that_are_no_tree_files_are_dropped() {
        for (name, value) in [
            ("alias.co", "checkout"),
            ("alias.m", "checkout main"),
            ("alias.up", "!git checkout main && git pull origin main"),
            ("alias.pick", "cherry-pick -x"),
            ("alias.gone", "!git fetch -p; git branch -vv | xargs -r git branch -d"),
            ("alias.x", "!sh -c 'git checkout main'"),
            ("alias.x", "!git log $(git merge-base main HEAD) -- src"),
            ("alias.x", "!f() { git checkout main; }; f"),
            ("alias.root", "!pwd"),
            ("core.pager", "less"),
            ("core.editor", "/usr/bin/vim"),
            ("credential.helper", "store"),
            ("credential.https://github.com.helper", "!/usr/bin/gh auth git-credential"),
            ("filter.lfs.clean", "git-lfs clean -- %f"),
            ("alias.x", "!$HOME/bin/x"),
            ("alias.x", "!~/bin/x '/usr/lib/y'"),
            ("remote.origin.url", "https://github.com/me/src.git"),
            ("remote.origin.url", "git@github.com:me/src.git"),
            ("remote.origin.url", "ssh://git@host/me/src.git"),
            ("remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"),
            ("branch.main.merge", "refs/heads/main"),
            ("user.name", "Jane Main"),
            ("core.autocrlf", "input"),
            ("init.defaultbranch", "main"),
            ("url.https://github.com/.insteadof", "git@github.com:"),
            ("color.diff.meta", "yellow bold"),
            ("gc.pruneexpire", "2 weeks ago"),
        ] {
            for command in setting(name, value).commands() {
                let words = command
                    .replace("sh -c", "")
                    .replace("-c (", "")
                    .replace("-x", "")
                    .replace(QUOTES, "")
                    .replace(BETWEEN_COMMANDS, " ");
                assert_eq!(words.trim(), "", "{name} {value} {command:?}");
            }
        }
    }

    #[test]
    fn setting_paths_are_parsed_as_git_does() {
        let paths = |name: &str, value: &str| setting(name, value).paths().into_iter().collect::<Vec<_>>();
        for path in ["hk", "m", "1", "on", "a#b", "dev;hooks", "a\\b", "my hooks/x"] {
            assert_eq!(paths("core.hookspath", path), [path]);
        }
        assert_eq!(paths("alias.x", "!sh tools/x.sh"), ["!sh tools/x.sh", "tools/x.sh"]);
        for text in ["$HOME/x", "${HOME}/x", "\"$HOME\"/x", "\"${HOME}/x\"", "${HOME%/}/x", "~/x"] {
            assert!(paths("alias.x", &format!("!sh {text}")).contains(&"~/x".to_owned()), "{text}");
        }
        for text in ["$HOMES/x", "${HOMES}/x", "$HOME", "HOME/x"] {
            assert!(!paths("alias.x", &format!("!sh {text}")).contains(&"~/x".to_owned()), "{text}");
        }
        assert_eq!(paths("gitflow.path.hooks", "tools/hooks"), ["tools/hooks"]);
        assert_eq!(paths("tool.runfile", "sh deploy"), ["sh deploy"]);
        assert_eq!(paths("remote.o.url", "../other"), ["../other"]);
        assert_eq!(paths("remote.o.url", "file:///srv/other"), ["/srv/other"]);
        for (name, value) in [
            ("alias.co", "checkout"),
            ("credential.helper", "store"),
            ("core.autocrlf", "input"),
            ("remote.o.url", "https://github.com/me/src.git"),
            ("remote.o.url", "me@host:src"),
            ("remote.o.url", "."),
            ("user.email", "a@b.example"),
            ("core.bare", "false"),
            ("core.bigfilethreshold", "512m"),
        ] {
            assert_eq!(paths(name, value), [""; 0], "{name} {value}");
        }
    }
}
