//! Files that settings of Git name in a tree: the directory that `core.hooksPath` names holds hooks, whatever it is called,
//! and an alias runs scripts.

mod environment;
mod hooks;
mod syntax;

use super::links::{HostPathLinks, ResolvedHostPath};
use belljar_files::directory::Directory;
use belljar_policy::handoff::{GitSetting, TreeContext};
use belljar_trusted::accounts;
use environment::Variables;
use std::collections::BTreeSet;
use std::io::{ErrorKind, Read};
use std::path::{Component, Path, PathBuf};

/// The settings of Git that count in a tree, followed from file to file.
struct GitSettings<'a> {
    place: &'a Path,
    tree: &'a Directory,
    ways: &'a HostPathLinks,
    home: Option<PathBuf>,
    context: &'a mut TreeContext,
    /// Files still to be read.
    pending: Vec<SettingsFile>,
    seen: BTreeSet<SettingsFile>,
    /// Reason why the named files can't be determined, if they can't.
    untold: Option<String>,
}

/// A file with settings.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct SettingsFile {
    file: PathBuf,
    /// The work trees that relative paths in it may begin at.
    worktrees: Vec<PathBuf>,
    /// The directory of the tree that it counts for; empty for the whole tree.
    below: PathBuf,
}

/// Maximum number of files with settings.
const MOST_FILES: usize = 10_000;

/// Maximum length of a file with settings.
const LONGEST_FILE: u64 = 1 << 20;

/// Notes the files that settings name in a tree, which is at a place; `repositories` are the directories in it that have a
/// `.git`. Returns the reason if that can't be determined.
pub(super) fn note(
    (place, tree): (&Path, &Directory),
    (repositories, ways): (&[PathBuf], &HostPathLinks),
    context: &mut TreeContext,
) -> Option<String> {
    let variables: Variables<'_> = &|name| std::env::var_os(name);
    let home = variables("HOME").map(|home| place.join(home));
    let (pending, seen) = (Vec::new(), BTreeSet::new());
    let settings = GitSettings { place, tree, ways, home, context, pending, seen, untold: None };
    settings.read(repositories, variables)
}

// === impl GitSettings ===

impl GitSettings<'_> {
    /// Reads the settings of the repositories that the tree is in and of those in it, of the user, of the system and of the
    /// environment.
    fn read(mut self, repositories: &[PathBuf], variables: Variables<'_>) -> Option<String> {
        let place = self.place;
        let mut worktrees = vec![place.to_owned()];
        let above = place.ancestors().map(|directory| (directory.to_owned(), PathBuf::new()));
        let within = repositories.iter().map(|below| (place.join(below), below.clone()));
        for (directory, below) in above.chain(within) {
            let places = git_directories(&directory);
            for git in &places {
                for file in ["config", "config.worktree"].map(|name| git.join(name)) {
                    let worktrees = vec![directory.clone()];
                    self.pending.push(SettingsFile { file, worktrees, below: below.clone() });
                }
                self.note_file(&git.join("info/attributes"));
                self.note_hooks(&git.join("hooks"));
            }
            if !places.is_empty() && !worktrees.contains(&directory) {
                worktrees.push(directory);
            }
        }
        let source = |file| SettingsFile { file, worktrees: worktrees.clone(), below: PathBuf::new() };
        // Git may be started at the top of each.
        let places = |file: PathBuf| worktrees.iter().map(move |worktree| worktree.join(&file));
        self.pending.extend(environment::files(variables).into_iter().flat_map(places).map(source));
        environment::attributes(variables)
            .into_iter()
            .flat_map(places)
            .for_each(|file| drop(self.note_file(&file)));
        let source = source(PathBuf::new());
        environment::settings(variables).iter().for_each(|setting| self.note_setting(setting, &source));
        self.follow()
    }

    fn follow(mut self) -> Option<String> {
        while let Some(source) = self.pending.pop() {
            if !self.seen.insert(source.clone()) {
                continue;
            }
            if self.seen.len() > MOST_FILES {
                return Some(format!("git has more than {MOST_FILES} files of settings for it"));
            }
            self.note_file(&source.file);
            let text = read_file(&source.file).unwrap_or_default();
            if text.len() as u64 > LONGEST_FILE {
                let file = source.file.display();
                return Some(format!(
                    "the file {file} of settings of git is longer than {LONGEST_FILE} bytes"
                ));
            }
            syntax::parse(&text).iter().for_each(|setting| self.note_setting(setting, &source));
        }
        self.untold
    }

    fn note_setting(&mut self, setting: &GitSetting, source: &SettingsFile) {
        self.context.add_setting(setting, &source.below.to_string_lossy());
        let is_include = setting.section.starts_with("include") && setting.key == "path";
        for word in setting.paths() {
            for path in self.places(&word, source) {
                self.note_path(&path);
                if is_include {
                    self.pending.push(SettingsFile { file: path, ..source.clone() });
                }
            }
        }
        // An empty one is no directory.
        if let Some(below) = hooks::below(setting).filter(|_| !setting.value.is_empty()) {
            for path in self.places(&setting.value, source) {
                self.note_hooks(&path.join(below));
            }
        }
    }

    /// Notes what a setting may name: of a path that can't be followed, such as one below `/proc`, where it leads now.
    fn note_path(&mut self, path: &Path) {
        let way = self.follow_path(path);
        let now = path.canonicalize().ok().filter(|_| way.is_unknown);
        for path in [Some(normal(path)), now].into_iter().flatten() {
            if let Ok(within) = path.strip_prefix(self.place) {
                self.note_within(within);
            }
        }
    }

    /// Notes a file that Git reads.
    fn note_file(&mut self, path: &Path) -> ResolvedHostPath {
        let way = self.follow_path(path);
        let is_closed = || path.metadata().is_err_and(|error| error.kind() == ErrorKind::PermissionDenied);
        // Git can't read files that the user can't read.
        if way.is_unknown && !is_closed() {
            self.untold.get_or_insert_with(|| {
                format!("git reads {}, and its target cannot be determined", path.display())
            });
        }
        way
    }

    /// Notes where a path leads in the tree.
    fn follow_path(&mut self, path: &Path) -> ResolvedHostPath {
        let way = self.ways.follow(self.tree, path);
        way.ends.iter().for_each(|within| self.note_within(within));
        way.passed.iter().for_each(|link| self.context.add_way_to_named(&link.to_string_lossy()));
        way
    }

    fn note_within(&mut self, within: &Path) {
        // A word that names the whole tree mostly names it as a place (`cd ~/app`).
        if !within.as_os_str().is_empty() {
            self.context.add_named(&within.to_string_lossy());
        }
    }

    /// Returns the places that a path of a setting may lead to.
    fn places(&self, word: &str, source: &SettingsFile) -> Vec<PathBuf> {
        let home = match word.strip_prefix('~').and_then(|rest| rest.split_once('/')) {
            Some(("", below)) => self.home.clone().map(|home| (home, below)),
            Some((name, below)) => accounts::named(name).map(|account| (account.home, below)),
            None => None,
        };
        match home {
            Some((home, below)) => vec![home.join(below)],
            None => {
                let bases = source.worktrees.iter().map(PathBuf::as_path).chain(source.file.parent());
                bases.map(|base| base.join(word)).collect()
            }
        }
    }
}

/// The directories with the settings of the repository that a directory is the work tree of: its `.git`, or where that file leads,
/// and the one that it shares its settings with. None if it is none.
fn git_directories(directory: &Path) -> Vec<PathBuf> {
    let git = directory.join(".git");
    let Ok(kind) = git.metadata() else { return Vec::new() };
    let git = match kind.is_dir() {
        true => git,
        false => {
            let text = read_file(&git).unwrap_or_default();
            let Some(leads_to) = text.trim().strip_prefix("gitdir:") else { return Vec::new() };
            directory.join(leads_to.trim())
        }
    };
    let shared = read_file(&git.join("commondir")).map(|shared| git.join(shared.trim()));
    [Some(git), shared].into_iter().flatten().collect()
}

/// A path without `.` and `..`, by its text.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => drop(normal.pop()),
            Component::CurDir => {}
            component => normal.push(component),
        }
    }
    normal
}

/// Reads a regular file, without waiting for anything, up to one byte more than the maximum.
fn read_file(path: &Path) -> Option<String> {
    let directory = Directory::open_host(path.parent()?).ok()?;
    let opened = directory.open_file(Path::new(path.file_name()?)).ok();
    // The user's own settings may be a link.
    let file = match opened {
        Some(file) => file,
        None => {
            let real = path.canonicalize().ok()?;
            Directory::open_host(real.parent()?).ok()?.open_file(Path::new(real.file_name()?)).ok()?
        }
    };
    let mut bytes = Vec::new();
    file.take(LONGEST_FILE + 1).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests;
