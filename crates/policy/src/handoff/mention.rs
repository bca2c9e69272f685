//! Finds names of files and directories in command lines. A path is named if one of its names stands in a text, with characters
//! around it that can't belong to a name. So no shell syntax has to be parsed.

use crate::git::folded_text;
use std::collections::BTreeMap;

/// Extensions that interpreters and shells append to program names.
const ENDINGS: [&str; 38] = [
    "bat", "cjs", "class", "cmd", "com", "cts", "dll", "el", "elc", "exe", "fsx", "groovy", "hs", "jar",
    "java", "jl", "js", "json", "jsx", "kts", "lua", "luac", "mjs", "mts", "node", "php", "pm", "ps1",
    "psm1", "py", "pyc", "pyd", "pyw", "rb", "so", "ts", "tsx", "wasm",
];

/// Command lines of settings, indexed by the names in them.
#[derive(Debug, Clone, Default)]
pub(super) struct Mentions {
    texts: Vec<Mention>,
    /// Positions at which a name may begin: by the run of name characters there, with the number of the text.
    by_run: BTreeMap<String, Vec<(usize, usize)>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Mention {
    /// Folded text.
    text: String,
    /// Name of the setting.
    setting: String,
    /// Directory that the setting applies to, folded; empty for the whole tree.
    below: String,
}

/// Path that is compared with a text.
struct ComparedPath<'p> {
    /// Names of the directories above the tree and of the path.
    names: Vec<&'p str>,
    is_link: bool,
}

// === impl Mentions ===

impl Mentions {
    pub(super) fn add(&mut self, text: &str, setting: &str, below: &str) {
        let text = folded_text(text);
        let modules = modules_as_paths(&text);
        self.add_folded(text, setting, below);
        self.add_folded(modules, setting, below);
    }

    fn add_folded(&mut self, text: String, setting: &str, below: &str) {
        let mention = Mention { text, setting: setting.to_owned(), below: below.to_owned() };
        if self.texts.contains(&mention) {
            return;
        }
        let (number, text) = (self.texts.len(), &mention.text);
        let mut at = 0;
        for run in text.split(|char| !is_of_name(char)) {
            // `git` is the program and not a file of the tree, unless it is part of a path.
            let is_git =
                run == "git" && !text[..at].ends_with('/') && !text[at + run.len()..].starts_with('/');
            if !run.is_empty() && !is_git {
                for behind in std::iter::once(0).chain(behind_options(run)) {
                    let key = run[behind..].trim_end_matches('.').to_owned();
                    self.by_run.entry(key).or_default().push((number, at + behind));
                }
            }
            at += run.len();
            at += text[at..].chars().next().map_or(0, char::len_utf8);
        }
        self.texts.push(mention);
    }

    /// Returns the setting that names a path of the tree, with the name. The path and `place`, the names above the tree, are
    /// folded.
    pub(super) fn of(&self, path: &str, place: &[String], is_link: bool) -> Option<(&str, String)> {
        if self.texts.is_empty() {
            return None;
        }
        let names: Vec<&str> = place.iter().map(String::as_str).chain(path.split('/')).collect();
        let compared = ComparedPath { names, is_link };
        (place.len()..compared.names.len()).find_map(|number| {
            let name = compared.names[number];
            let by_module = compared.module(number).into_iter().flat_map(|module| self.places(module));
            let found = self.places(name).into_iter().chain(by_module).into_iter().find(|&(text, at)| {
                let Mention { text, below, .. } = &self.texts[text];
                let is_below = path
                    .strip_prefix(below.as_str())
                    .is_some_and(|rest| below.is_empty() || rest.is_empty() || rest.starts_with('/'));
                is_below && compared.is_named(number, text, at)
            });
            found.map(|(text, _)| (self.texts[text].setting.as_str(), name.to_owned()))
        })
    }

    /// Returns the positions at which a name may stand.
    fn places(&self, name: &str) -> Vec<(usize, usize)> {
        let run = &name[..name.find(|char| !is_of_name(char)).unwrap_or(name.len())];
        if !run.is_empty() {
            return self.by_run.get(run.trim_end_matches('.')).cloned().unwrap_or_default();
        }
        if name.is_empty() {
            return Vec::new();
        }
        let texts = self.texts.iter().enumerate();
        texts
            .flat_map(|(number, mention)| mention.text.match_indices(name).map(move |(at, _)| (number, at)))
            .collect()
    }
}

// === impl ComparedPath ===

impl ComparedPath<'_> {
    /// Returns true if the name of that index stands at that position of a text, and the names around it are those of the path.
    fn is_named(&self, number: usize, text: &str, at: usize) -> bool {
        let names = [Some(self.names[number]), self.module(number)].into_iter().flatten();
        let is_named = |name| {
            let after = text[at..].strip_prefix(name);
            after.is_some_and(|after| self.agrees_after(number, after))
        };
        names.into_iter().any(is_named) && self.agrees_before(number, &text[..at])
    }

    /// Returns the last name without an extension that interpreters append: `node tools/release` runs `tools/release.js`.
    fn module(&self, number: usize) -> Option<&str> {
        let (module, ending) = self.names[number].rsplit_once('.')?;
        let is_last = number + 1 == self.names.len();
        (is_last && !module.is_empty() && ENDINGS.contains(&ending)).then_some(module)
    }

    fn agrees_before(&self, mut number: usize, mut text: &str) -> bool {
        while let Some(above) = text.strip_suffix('/') {
            let run = &above[above.trim_end_matches(is_of_name).len()..];
            let is_home_of_user = above[..above.len() - run.len()].ends_with('~');
            if is_open(run) || is_home_of_user || number == 0 {
                return true;
            }
            number -= 1;
            let name = self.names[number];
            match above.strip_suffix(name) {
                Some(rest) if run.len() <= name.len() => text = rest,
                _ => return false,
            }
        }
        let run = &text[text.trim_end_matches(is_of_name).len()..];
        run.is_empty() || is_option(run)
    }

    fn agrees_after(&self, mut number: usize, mut text: &str) -> bool {
        loop {
            // Some file systems remove final dots.
            let Some(below) = text.trim_start_matches('.').strip_prefix('/') else {
                return !text.trim_start_matches('.').starts_with(is_of_name);
            };
            let run = &below[..below.find(|char| !is_of_name(char)).unwrap_or(below.len())];
            if is_open(run) {
                return true;
            }
            number += 1;
            let Some(name) = self.names.get(number) else { return self.is_link };
            let module = self.module(number).filter(|module| run.trim_end_matches('.') == *module);
            match below.strip_prefix(name).or_else(|| below.strip_prefix(module?)) {
                Some(rest) => text = rest,
                // The content of a package is run with it.
                None => return *name == "__init__.py",
            }
        }
    }
}

/// Returns true for a character that usually continues a name, including those of variables and placeholders.
fn is_of_name(char: char) -> bool {
    char.is_alphanumeric() || matches!(char, '_' | '-' | '.' | '$' | '%')
}

/// Returns true for one-letter options: an argument follows them, as in `awk -ffmt` and `sed -nfscript`.
fn is_option(run: &str) -> bool {
    run.strip_prefix('-').is_some_and(|letters| {
        !letters.is_empty() && letters.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

/// Returns the positions at which an argument may begin directly after one-letter options.
fn behind_options(run: &str) -> impl Iterator<Item = usize> {
    let ends = run.char_indices().map(|(at, _)| at).filter(|at| *at > 1);
    ends.take_while(|at| is_option(&run[..*at]))
}

/// Replaces dots within words that are no paths by `/`: `python3 -m tools.release` runs `tools/release.py`.
fn modules_as_paths(text: &str) -> String {
    let is_between = |char: char| !is_of_name(char) && char != '/';
    let mut replaced = String::with_capacity(text.len());
    for piece in text.split_inclusive(is_between) {
        let end = piece.chars().next_back().filter(|char| is_between(*char));
        let word = &piece[..piece.len() - end.map_or(0, char::len_utf8)];
        let is_module = !word.contains('/') && word.split('.').all(|part| !part.is_empty());
        replaced.push_str(&if is_module { word.replace('.', "/") } else { word.to_owned() });
        replaced.extend(end);
    }
    replaced
}

/// Returns true for a part of a path with an unknown value: `..`, `$PWD`, or an empty one, as after quotes.
fn is_open(run: &str) -> bool {
    run.contains(['$', '%']) || run.chars().all(|char| char == '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_named(text: &str, path: &str) -> bool {
        let mut mentions = Mentions::default();
        mentions.add(text, "alias.x", "");
        mentions.of(path, &["home".to_owned(), "app".to_owned()], false).is_some()
    }

    #[test]
    fn command_line_mentions_a_path_by_any_of_its_names() {
        for (text, path) in [
            (" deploy", "deploy"),
            (" deploy", "sub/deploy"),
            (" DEPLOY", "deploy"),
            ("cd tools && ./x.sh", "tools/x.sh"),
            ("cd tools && ./x.sh", "tools/other"),
            ("\"$( )/tools/x.sh\"", "tools/x.sh"),
            ("$PWD/tools/x.sh", "tools/x.sh"),
            ("$PWD/tools/x.sh", "sub/tools/x.sh"),
            ("../tools/x.sh", "tools/x.sh"),
            ("../app/x.sh", "x.sh"),
            ("tools/*.sh", "tools/any.sh"),
            ("tools/$x/y", "tools/any/z"),
            ("sh=deploy;", "deploy"),
            ("my tools/x.sh", "my tools/x.sh"),
            ("@args", "args"),
            ("@args", "@args"),
            ("(a)/b", "(a)/b"),
            ("deploy.", "deploy"),
            ("bin/git", "bin/git"),
            ("python3 -m tools.release", "tools/release.py"),
            ("python3 -m tools.release", "tools/release/__main__.py"),
            ("python3 -m tools.release", "tools/__init__.py"),
            ("python3 -m release", "release.py"),
            ("node tools/release", "tools/release.js"),
            ("node ./tools/release", "tools/release.mjs"),
            ("node release", "release.js"),
            ("node release", "release/index.js"),
            ("awk -ffmt", "fmt"),
            ("sed -nfscript", "script"),
            ("sed -ftools/x", "tools/x"),
            ("sh ~me/app/tools/x", "tools/x"),
        ] {
            assert!(is_named(text, path), "{text} {path}");
        }
        for (text, path) in [
            (" deploy", "deploy.sh"),
            (" deploy.sh", "deploy"),
            (" pre-deploy", "deploy"),
            (" --deploy", "deploy"),
            ("-x-deploy", "deploy"),
            ("python3 -m tools.release", "tools/other.py"),
            ("python3 -m tools.release", "other/release.py"),
            ("node tools/release", "tools/release.md"),
            ("node tools/release", "tools/release.js/x"),
            ("awk -ffmt", "fm"),
            ("$deploy %deploy", "deploy"),
            ("tools/x.sh", "tools/y.sh"),
            ("tools/x.sh", "other/x.sh"),
            ("tools/a/x.sh", "tools/a/y.sh"),
            ("tools/a/x.sh", "b/a/x.sh"),
            ("origin/main", "src/main/a.java"),
            ("origin/main", "origin"),
            ("xargs git log", "git"),
            ("", "a"),
        ] {
            assert!(!is_named(text, path), "{text} {path}");
        }
    }

    #[test]
    fn mention_applies_to_its_directory_and_to_links_on_the_path() {
        let mut mentions = Mentions::default();
        mentions.add("deploy tools/x.sh", "alias.x", "sub");
        for (path, is_link, is_named) in [
            ("sub/deploy", false, true),
            ("sub/a/deploy", false, true),
            ("deploy", false, false),
            ("sub2/deploy", false, false),
            ("sub/tools", true, true),
            ("sub/tools", false, false),
        ] {
            assert_eq!(mentions.of(path, &[], is_link).is_some(), is_named, "{path}");
        }
    }
}
