//! Drift: changes in the source of a copy that others than the run have made since the copy was made.
//!
//! A copy that is an overlay on its source is no snapshot. A later change of the source shows in it, so a person must see
//! that before changes are applied.

use super::baseline::Baseline;
use super::changes::{PathState, same_content};
use belljar_contract::result::WorkspaceChanges;
use belljar_files::directory::{Directory, DirectoryError, Name};
use belljar_policy::untrusted;
use rustix::fs::{AtFlags, FileType, Stat, statat};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The paths of a source that were changed since a copy of it was made.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct SourceDrift {
    /// The paths, sorted. For a directory: a name in it was added or removed, or it was replaced.
    pub paths: Vec<(PathBuf, bool)>,
    /// True if there are more paths, or the source was too large to look at all of it.
    pub is_cut: bool,
}

/// Maximum number of names that are looked at.
const MOST_NAMES: usize = 200_000;

/// Maximum number of paths that are listed.
const MOST_PATHS: usize = 200;

/// The history of a repository changes with each commit in the source and is not the content of the workspace.
const LEFT_OUT: &[u8] = b".git";

// === impl SourceDrift ===

impl SourceDrift {
    /// Looks for changes by their times: a file's inode, and a directory's list of names, are newer than the copy, and
    /// no commit of this copy has left them so.
    ///
    /// # Errors
    /// [`DirectoryError`] if the source itself can't be read. What is below and can't be read is passed over.
    pub fn find(source: &Directory, baseline: &Baseline) -> Result<Self, DirectoryError> {
        Self::find_beside(source, baseline, None)
    }

    /// Looks for changes as [`Self::find`]. If a commit of `layer` was interrupted, what it has written is none.
    ///
    /// # Errors
    /// [`DirectoryError`] as from [`Self::find`].
    pub(crate) fn find_beside(
        source: &Directory,
        baseline: &Baseline,
        layer: Option<&Directory>,
    ) -> Result<Self, DirectoryError> {
        let mut drift = Self::default();
        let layer = layer.filter(|_| baseline.is_interrupted());
        let is_own = |path: &Path| layer.is_some_and(|layer| is_same(path, (source, layer)));
        let mut names_left = MOST_NAMES;
        let mut pending = vec![PathBuf::new()];
        drift.note_directory(Path::new(""), &source.stat_itself()?, baseline);
        while let Some(below) = pending.pop() {
            let opened = match below.as_os_str().is_empty() {
                true => source.try_clone(),
                false => source.open(&below),
            };
            let Ok(directory) = opened else { continue };
            let Ok(names) = directory.names(names_left) else {
                drift.is_cut = true;
                continue;
            };
            names_left -= names.len();
            let is_looked_at = |name: &&Name| {
                name.name.as_bytes() != LEFT_OUT && name.name.as_bytes() != baseline.temporary().as_bytes()
            };
            for name in names.iter().filter(is_looked_at) {
                pending.extend(drift.note((&directory, &below), name, (baseline, &is_own)));
            }
        }
        drift.paths.sort();
        Ok(drift)
    }

    /// Notes a name if it was changed. Returns its path if it is a directory to be looked at.
    fn note(
        &mut self,
        (directory, below): (&Directory, &Path),
        Name { name, kind }: &Name,
        (baseline, is_own): (&Baseline, &dyn Fn(&Path) -> bool),
    ) -> Option<PathBuf> {
        let stat = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        let path = below.join(OsStr::from_bytes(name.as_bytes()));
        match kind {
            FileType::Directory => {
                self.note_directory(&path, &stat, baseline);
                Some(path)
            }
            _ => {
                if baseline.is_touched(&path, &stat) && !is_own(&path) {
                    self.add(path, false);
                }
                None
            }
        }
    }

    /// A directory's own inode is changed by its permissions, too; only its names count, and whether it is another one.
    fn note_directory(&mut self, path: &Path, stat: &Stat, baseline: &Baseline) {
        let is_replaced = baseline.is_same_directory(path, stat) == Some(false);
        if is_replaced || (baseline.is_list_touched(path, stat) && !baseline.is_writing(path)) {
            self.add(path.to_owned(), true);
        }
    }

    fn add(&mut self, path: PathBuf, is_directory: bool) {
        match self.paths.len() < MOST_PATHS {
            true => self.paths.push((path, is_directory)),
            false => self.is_cut = true,
        }
    }

    /// Returns the paths as text; a directory ends with a slash.
    pub fn listed(&self) -> Vec<String> {
        let line = |(path, is_directory): &(PathBuf, bool)| match (is_directory, path.as_os_str().is_empty())
        {
            (true, true) => "./".to_owned(),
            (true, false) => format!("{}/", untrusted::name(path)),
            (false, _) => untrusted::name(path),
        };
        self.paths.iter().map(line).collect()
    }

    /// Adds the paths to what is reported of a change set.
    pub fn add_to(&self, changes: &mut WorkspaceChanges) {
        changes.changed_in_source = self.listed();
    }
}

/// Returns true if a file or link of a source is as a layer has it.
fn is_same(path: &Path, (source, layer): (&Directory, &Directory)) -> bool {
    let state = |tree: &Directory| tree.stat(path).ok().flatten().map(|stat| PathState::of(&stat));
    match (state(source), state(layer)) {
        (Some(now), Some(run)) if (now.kind, now.size) == (run.kind, run.size) => {
            same_content(source, layer, path, now.kind).unwrap_or(false)
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn written_added_and_removed_names_are_found_and_nothing_else_is() {
        let place = tempfile::tempdir().unwrap();
        for name in ["kept", "written", "folder/gone", "untouched/file", ".git/index"] {
            let path = place.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "one\n").unwrap();
        }
        let source = Directory::open_host(place.path()).unwrap();
        let mut baseline = Baseline::now();
        assert_eq!(SourceDrift::find(&source, &baseline).unwrap(), SourceDrift::default());
        fs::write(place.path().join("written"), "two\n").unwrap();
        fs::write(place.path().join(".git/index"), "two\n").unwrap();
        fs::remove_file(place.path().join("folder/gone")).unwrap();
        fs::write(place.path().join("added"), "").unwrap();
        assert_eq!(
            SourceDrift::find(&source, &baseline).unwrap().listed(),
            ["./", "added", "folder/", "written"]
        );
        // Changes by a commit of the copy itself are no drift.
        for name in ["written", "added", "folder"] {
            baseline.note(Path::new(name), &source.stat(Path::new(name)).unwrap().unwrap());
        }
        baseline.note(Path::new(""), &source.stat_itself().unwrap());
        assert_eq!(SourceDrift::find(&source, &baseline).unwrap().listed(), Vec::<String>::new());
    }

    #[test]
    fn what_an_interrupted_commit_wrote_is_not_listed() {
        let (place, run) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let write = |tree: &tempfile::TempDir, name: &str, content: &str| {
            let path = tree.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        };
        ["written", "both", "person", "folder/file"].iter().for_each(|name| write(&place, name, "old"));
        ["written", "both", "folder/new"].iter().for_each(|name| write(&run, name, "run"));
        let open = |tree: &tempfile::TempDir| Directory::open_host(tree.path()).unwrap();
        let (source, layer) = (open(&place), open(&run));
        let mut baseline = Baseline::now();
        assert_eq!(SourceDrift::find(&source, &baseline).unwrap(), SourceDrift::default());
        let find =
            |baseline: &Baseline| SourceDrift::find_beside(&source, baseline, Some(&layer)).unwrap().listed();
        let whole = baseline.clone();
        baseline.add_writing(["", "folder"].map(Path::new).into_iter());
        let temporary = format!("folder/{}", baseline.temporary());
        ["written", "folder/new", &temporary].iter().for_each(|name| write(&place, name, "run"));
        ["both", "person"].iter().for_each(|name| write(&place, name, "person"));
        assert_eq!(find(&baseline), ["both", "person"]);
        // The control: nothing was interrupted.
        assert_eq!(find(&whole), ["both", "folder/", "folder/new", "person", "written"]);
    }
}
