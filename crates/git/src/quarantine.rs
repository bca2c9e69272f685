//! Object directory of a push, apart from the host's own clone, so that sandboxes can't make the clone grow.
//!
//! The objects exist only during one push, and are removed with it however it ends. They aren't needed afterwards: the server
//! has what was pushed, and a repeated push makes the same objects.

use super::base::HostClone;
use super::environment::HostEnv;
use super::runner::Git;
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// An object directory for one push. Its owner also holds the lock of pushes.
#[derive(Debug)]
pub(super) struct Quarantine {
    repository: PathBuf,
    objects: PathBuf,
}

/// Name of the directory, in the clone's folder.
const OBJECTS: &str = "made";

// === impl Quarantine ===

impl Quarantine {
    /// Makes an empty one. Leftovers of a push that was killed are removed.
    pub(super) fn make(base: &HostClone) -> io::Result<Self> {
        let objects = base.folder().join(OBJECTS);
        remove(&objects)?;
        DirBuilder::new().mode(0o700).create(&objects)?;
        Ok(Self { repository: base.repository(), objects })
    }

    /// Returns git for the clone, with new objects in this directory.
    pub(super) fn git<'g>(&self, env: &'g HostEnv, is_canceled: &'g dyn Fn() -> bool) -> Git<'g> {
        Git::quarantined(&self.repository, &self.objects, env, is_canceled)
    }
}

impl Drop for Quarantine {
    fn drop(&mut self) {
        // If it can't be removed now, the next push removes it.
        let _ = remove(&self.objects);
    }
}

/// Removes the directory. Git has made its content, so it isn't deeply nested.
fn remove(objects: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(objects) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Quotes a path for git's list of alternate object directories, which colons separate.
pub(super) fn alternate(objects: &Path) -> OsString {
    let mut quoted = vec![b'"'];
    for byte in objects.as_os_str().as_bytes() {
        if matches!(byte, b'"' | b'\\') {
            quoted.push(b'\\');
        }
        quoted.push(*byte);
    }
    quoted.push(b'"');
    OsString::from_vec(quoted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quarantine_takes_new_objects_and_reads_old_ones_for_any_path() {
        for name in ["plain", "a:b", "\"quoted\"", "back\\slash"] {
            let top = tempfile::tempdir().unwrap();
            let folder = top.path().join(name);
            let (repository, objects) = (folder.join("repository.git"), folder.join(OBJECTS));
            std::fs::create_dir_all(&objects).unwrap();
            let env = HostEnv::of_process();
            let init = Git::in_directory(&folder, &env, &|| false);
            init.run(&["init", "--quiet", "--bare", "--template=", "repository.git"]).unwrap();
            let (direct, apart) = (
                Git::bare(&repository, &env, &|| false),
                Git::quarantined(&repository, &objects, &env, &|| false),
            );
            let make = |git: &Git<'_>, content: &[u8]| {
                let made = git.feed(&["hash-object", "-w", "--stdin"], |to| to.write_all(content)).unwrap();
                String::from_utf8(made).unwrap().trim().to_owned()
            };
            let reads = |git: &Git<'_>, object: &str| git.run(&["cat-file", "-e", object]).is_ok();
            let (kept, made) = (make(&direct, b"kept"), make(&apart, b"made"));
            assert!(reads(&apart, &kept) && reads(&apart, &made), "{name}");
            assert!(reads(&direct, &kept) && !reads(&direct, &made), "{name}");
        }
    }
}
