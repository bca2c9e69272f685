//! Directories of hooks on the host: a link in one of them may lead into the tree.

use super::GitSettings;
use belljar_policy::handoff::GitSetting;
use belljar_trusted::in_use::FileIdentity;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Maximum number of names in one directory of hooks, with all below it.
const MOST_NAMES: usize = 10_000;

/// Returns the directory of hooks, relative to the path that a setting names, if it names one.
pub(super) fn below(setting: &GitSetting) -> Option<&'static str> {
    match (setting.section.as_str(), setting.key.as_str()) {
        ("core", "hookspath") => Some(""),
        // New repositories have them from there.
        ("init", "templatedir") => Some("hooks"),
        _ => None,
    }
}

// === impl GitSettings ===

impl GitSettings<'_> {
    /// Notes where a directory of hooks leads, and each link in it: also further down, where programs that start hooks by directory look.
    pub(super) fn note_hooks(&mut self, hooks: &Path) {
        if self.note_hook(hooks) {
            return;
        }
        let (mut pending, mut names_left) = (vec![hooks.to_owned()], MOST_NAMES);
        let mut seen = BTreeSet::new();
        while let Some(directory) = pending.pop() {
            let identity = rustix::fs::stat(&directory).map(|stat| FileIdentity::of(&stat));
            let Ok(names) = std::fs::read_dir(&directory) else { continue };
            if !identity.is_ok_and(|identity| seen.insert(identity)) {
                continue;
            }
            for name in names.filter_map(Result::ok) {
                let Some(left) = names_left.checked_sub(1) else {
                    let hooks = hooks.display();
                    self.untold.get_or_insert_with(|| {
                        format!("the directory {hooks} of hooks has more than {MOST_NAMES} names")
                    });
                    return;
                };
                names_left = left;
                self.note_hook_entry(name.path(), &mut pending);
            }
        }
    }

    fn note_hook_entry(&mut self, path: PathBuf, pending: &mut Vec<PathBuf>) {
        let Ok(kind) = path.symlink_metadata().map(|metadata| metadata.file_type()) else { return };
        let leads_in = match kind.is_symlink() {
            true => self.note_hook(&path),
            // The tree itself may be in a directory of hooks.
            false => kind.is_dir() && !self.ways.follow(self.tree, &path).ends.is_empty(),
        };
        if !leads_in && path.is_dir() {
            pending.push(path);
        }
    }

    /// Notes where a hook or a directory of hooks leads. Returns true if it is in the tree, where links have names of their own.
    fn note_hook(&mut self, path: &Path) -> bool {
        let way = self.note_file(path);
        if way.ends.contains(Path::new("")) {
            self.context.add_named("");
        }
        !way.ends.is_empty()
    }
}
