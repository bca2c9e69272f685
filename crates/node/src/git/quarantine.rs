//! Where the objects of a push are: apart from those of the host's own clone, which never grows by what sandboxes leave.
//!
//! They are there for as long as one push is, and go with it however it ends. Nobody needs them afterwards: what has gone out is at the
//! server, and the same again makes the same.

use super::base::Base;
use super::environment::HostEnv;
use super::runner::Git;
use std::ffi::OsString;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

/// An object directory for one push. Whoever holds it holds the lock of pushes, too.
#[derive(Debug)]
pub(super) struct Quarantine {
    repository: PathBuf,
    objects: PathBuf,
}

/// What it is called in the folder of the host's own clone.
const OBJECTS: &str = "made";

// === impl Quarantine ===

impl Quarantine {
    /// An empty one. What a push has left that was killed goes.
    pub(super) fn make(base: &Base) -> io::Result<Self> {
        let objects = base.folder().join(OBJECTS);
        remove(&objects)?;
        DirBuilder::new().mode(0o700).create(&objects)?;
        Ok(Self { repository: base.repository(), objects })
    }

    /// Git for the clone, which makes its objects here.
    pub(super) fn git<'g>(&self, env: &'g HostEnv, is_canceled: &'g dyn Fn() -> bool) -> Git<'g> {
        Git::quarantined(&self.repository, &self.objects, env, is_canceled)
    }
}

impl Drop for Quarantine {
    fn drop(&mut self) {
        // What stays goes with the next push.
        let _ = remove(&self.objects);
    }
}

/// Git has made all that is there, so it isn't deep.
fn remove(objects: &Path) -> io::Result<()> {
    match std::fs::remove_dir_all(objects) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// As git reads one directory where it may be told several, which a colon would part.
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
    fn what_git_makes_is_in_quarantine_and_what_it_has_is_read_whatever_the_path_is() {
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
