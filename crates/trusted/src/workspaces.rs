//! Texts that name a directory which a sandbox writes: arguments and variables of programs of the host's.

use crate::in_use::{self, InUseEntry};
use crate::mentioned_paths::{Variables, paths_in, spellings};
use crate::trusted_file::{self, UntrustedFileError};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The directories that sandboxes write, by all the paths that are known of each.
pub(crate) struct Workspaces(Vec<PathBuf>);

// === impl Workspaces ===

impl Workspaces {
    /// Returns the workspaces in use at this moment.
    pub(crate) fn now() -> Self {
        let names = |InUseEntry { path, .. }: InUseEntry| {
            let real = path.canonicalize().ok().filter(|real| *real != path);
            std::iter::once(path).chain(real)
        };
        Self(in_use::writable().into_iter().flat_map(names).collect())
    }

    /// Refuses an argument that names a workspace, however a shell or a program may split it.
    pub(crate) fn refuse(&self, argument: &OsStr) -> Result<(), UntrustedFileError> {
        match self.named_in(argument) {
            Some(workspace) => Err(UntrustedFileError::Workspace {
                path: PathBuf::from(argument),
                workspace: workspace.to_owned(),
            }),
            None => Ok(()),
        }
    }

    /// Returns true if a text names one of the workspaces, by any path.
    pub(crate) fn are_named_in(&self, text: &OsStr) -> bool {
        let is_written =
            |path: &PathBuf| trusted_file::look_at(path).is_err_and(|error| error.is_of_sandbox());
        !self.0.is_empty()
            && (self.named_in(text).is_some() || paths_in(text, &Variables::default()).iter().any(is_written))
    }

    fn named_in(&self, text: &OsStr) -> Option<&Path> {
        if self.0.is_empty() {
            return None;
        }
        let spellings = spellings(text.as_bytes());
        let is_named = |workspace: &&PathBuf| spellings.iter().any(|text| holds(text, workspace));
        self.0.iter().find(is_named).map(PathBuf::as_path)
    }
}

/// Returns true if a path occurs in a text, and not as the beginning of a longer name.
fn holds(text: &[u8], path: &Path) -> bool {
    let path = path.as_os_str().as_bytes();
    let is_of_name = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | 0x80..);
    let is_there =
        |(at, part): (usize, &[u8])| part == path && !text.get(at + path.len()).is_some_and(is_of_name);
    path.len() > 1 && text.windows(path.len()).enumerate().any(is_there)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workspace_is_recognised_in_every_spelling_but_not_by_longer_names() {
        let workspaces = Workspaces(vec!["/home/me/a b".into(), "/w".into()]);
        let is_named = |text: &str| workspaces.named_in(OsStr::new(text)).is_some();
        for text in [
            "/w",
            "-f/w/p.awk",
            "-K/w/curlrc",
            ". ${CONF:-/w/p}",
            "{/w/p,}",
            ". \\/w/p",
            "file://localhost/w/p",
            "@/w",
            "-javaagent:/w",
            "|/w/x",
            "[/w]",
            ". \"/home/me/a b/p\"",
            ". /home/me/a\\ b/p",
            "file:///home/me/a%20b/p",
        ] {
            assert!(is_named(text), "{text}");
        }
        for text in ["/w2", "/w-x/p", "/home/me/a", "w/p", "", "/home/me/a bc"] {
            assert!(!is_named(text), "{text}");
        }
        assert!(!Workspaces(Vec::new()).are_named_in(OsStr::new("/w")));
    }
}
