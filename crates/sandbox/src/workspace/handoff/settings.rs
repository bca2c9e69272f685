//! What settings of Git name in a tree: the directory that `core.hooksPath` names holds hooks, whatever it is called.

use crate::directory::Directory;
use belljar_policy::handoff::TreeContext;
use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

/// The settings of Git that count in a tree, followed from file to file.
struct Settings<'a> {
    place: &'a Path,
    /// Files still to be read, each with the work tree that relative paths in it may begin at.
    pending: Vec<(PathBuf, PathBuf)>,
    seen: BTreeSet<PathBuf>,
    named: BTreeSet<PathBuf>,
}

/// Maximum number of files with settings.
const MOST_FILES: usize = 100;

/// Maximum length of a file with settings.
const LONGEST_FILE: u64 = 1 << 20;

/// Sections that name no files of a tree, or only addresses and branches.
const WITHOUT_FILES: [&str; 8] =
    ["branch", "remote", "user", "color", "safe", "url", "submodule", "maintenance"];

/// Notes what settings name in the tree that is at a place.
pub(super) fn note(place: &Path, context: &mut TreeContext) {
    for path in Settings::of(place).read() {
        context.add_named(&path.to_string_lossy());
    }
}

// === impl Settings ===

impl<'a> Settings<'a> {
    /// Those of the repositories that the tree is in, of the user and of the system.
    fn of(place: &'a Path) -> Self {
        let (mut pending, mut worktree) = (Vec::new(), place);
        for directory in place.ancestors() {
            let git = directory.join(".git");
            let Ok(kind) = git.symlink_metadata() else { continue };
            let places = if kind.is_dir() { vec![git] } else { linked(directory) };
            let files = places.iter().flat_map(|git| [git.join("config"), git.join("config.worktree")]);
            pending.extend(files.map(|file| (file, directory.to_owned())));
            worktree = directory;
        }
        pending.extend(of_user().into_iter().map(|file| (file, worktree.to_owned())));
        Self { place, pending, seen: BTreeSet::new(), named: BTreeSet::new() }
    }

    /// The paths that they name in the tree.
    fn read(mut self) -> BTreeSet<PathBuf> {
        while let Some((file, worktree)) = self.pending.pop() {
            if self.seen.len() < MOST_FILES && self.seen.insert(file.clone()) {
                let text = read_file(&file).unwrap_or_default();
                self.note_file(&file, &worktree, &text);
            }
        }
        self.named
    }

    fn note_file(&mut self, file: &Path, worktree: &Path, text: &str) {
        let joined = text.replace("\\\n", " ");
        let mut section = String::new();
        for line in joined.lines().map(str::trim) {
            let setting = match line.strip_prefix('[').and_then(|line| line.split_once(']')) {
                Some((header, rest)) => {
                    let name = header.split([' ', '\t', '.', '"']).next().unwrap_or_default();
                    section = name.to_ascii_lowercase();
                    rest
                }
                None => line,
            };
            let Some((key, value)) = setting.split_once('=') else { continue };
            if WITHOUT_FILES.contains(&section.as_str()) {
                continue;
            }
            let key = key.trim().to_ascii_lowercase();
            for word in words(&key, value) {
                for path in paths(&word, &[worktree, file.parent().unwrap_or(worktree)]) {
                    if key == "path" && section.starts_with("include") {
                        self.pending.push((path.clone(), worktree.to_owned()));
                    }
                    self.note_path(&path);
                }
            }
        }
    }

    fn note_path(&mut self, path: &Path) {
        let above = path.parent().and_then(|above| above.canonicalize().ok());
        let real = above.zip(path.file_name()).map(|(above, name)| above.join(name));
        for path in [Some(path.to_owned()), real, path.canonicalize().ok()].into_iter().flatten() {
            match path.strip_prefix(self.place) {
                Ok(within) if !within.as_os_str().is_empty() => drop(self.named.insert(within.to_owned())),
                _ => {}
            }
        }
    }
}

/// The repository that a file `.git` leads to, and the one that it shares its settings with.
fn linked(directory: &Path) -> Vec<PathBuf> {
    let Some(text) = read_file(&directory.join(".git")) else { return Vec::new() };
    let Some(git) = text.trim().strip_prefix("gitdir:") else { return Vec::new() };
    let git = directory.join(git.trim());
    let shared = read_file(&git.join("commondir")).map(|shared| git.join(shared.trim()));
    [Some(git), shared].into_iter().flatten().collect()
}

/// The settings of the user and of the system.
fn of_user() -> Vec<PathBuf> {
    let from = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = from("HOME");
    let config = from("XDG_CONFIG_HOME").or_else(|| home.as_ref().map(|home| home.join(".config")));
    let global = from("GIT_CONFIG_GLOBAL").map_or_else(
        || {
            [home.map(|home| home.join(".gitconfig")), config.map(|config| config.join("git/config"))]
                .to_vec()
        },
        |global| vec![Some(global)],
    );
    let system = from("GIT_CONFIG_SYSTEM").unwrap_or_else(|| PathBuf::from("/etc/gitconfig"));
    global.into_iter().flatten().chain([system]).collect()
}

/// What of a value may be a path: all of it, and what stands between the characters that a shell takes it apart by.
fn words(key: &str, value: &str) -> BTreeSet<String> {
    const BETWEEN: &[char] =
        &[' ', '\t', '"', '\'', '=', ';', ':', ',', '!', '(', ')', '&', '|', '<', '>', '`', '#'];
    let is_named = ["path", "file", "dir", "template"].iter().any(|end| key.ends_with(end));
    let whole = value.split(['#', ';']).next().unwrap_or_default().trim().trim_matches('"').to_owned();
    let parts = value.split(BETWEEN).map(str::to_owned);
    parts
        .chain([whole])
        .filter(|word| !matches!(word.as_str(), "" | "true" | "false" | "." | ".."))
        // A name alone is a program of the search path, or a word.
        .filter(|word| is_named || word.contains(['/', '.']))
        .collect()
}

/// Where a path may lead.
fn paths(word: &str, bases: &[&Path]) -> Vec<PathBuf> {
    match (word.strip_prefix("~/"), std::env::var_os("HOME")) {
        (Some(below), Some(home)) => vec![normal(&Path::new(&home).join(below))],
        _ => bases.iter().map(|base| normal(&base.join(word))).collect(),
    }
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

/// Reads a regular file, without waiting for anything.
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
    file.take(LONGEST_FILE).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}
