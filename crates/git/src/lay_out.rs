//! Lays out the host's clone for a sandbox: files and history, without user settings. The origin is configured only on
//! request.
//!
//! The checkout uses no setting of the host, so that nothing in the repository can run a program: no hook, filter or
//! submodule.

use super::base::{BaseError, HostClone, REFERENCE};
use super::environment::HostEnv;
use super::runner::Git;
use belljar_policy::git::Remote;
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The whole configuration of the workspace's repository. An agent needs a name to commit; this one identifies no person.
const SETTINGS: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n\
     [user]\n\tname = agent\n\temail = agent@sandbox.invalid\n";

/// Attributes without conversion of line ends, encodings or `$Id$`. Filters have no settings here, so none runs.
const ATTRIBUTES: &str = "* -text !eol !working-tree-encoding -ident\n";

/// Temporary reference of the copied commit.
const COPIED: &str = "refs/belljar/fetched";

/// Directory, branch and remote of a clone that is laid out.
#[derive(Debug, Clone, Copy)]
pub struct WorkspaceLayout<'l> {
    /// The directory, which is empty.
    pub directory: &'l Path,
    /// The new branch.
    pub branch: &'l str,
    /// URL of the remote `origin`; `None` for no remote.
    pub origin: Option<&'l Remote>,
}

/// Lays the clone out in an empty directory.
///
/// # Errors
/// [`BaseError`]; the directory's content is then unusable.
pub fn lay_out(
    base: &mut HostClone,
    layout: &WorkspaceLayout<'_>,
    env: &HostEnv,
    is_canceled: &dyn Fn() -> bool,
) -> Result<(), BaseError> {
    let WorkspaceLayout { directory, branch, origin } = *layout;
    let keep = |source| BaseError::Keep { path: directory.to_owned(), source };
    std::fs::set_permissions(directory, Permissions::from_mode(0o700)).map_err(keep)?;
    let git = Git::in_directory(directory, env, is_canceled);
    git.run(&["init", "--quiet", "--template=", "--object-format=sha1"])?;
    let (from, wanted) = (base.repository(), format!("+{REFERENCE}:{COPIED}"));
    let copy =
        ["-c", "protocol.allow=never", "-c", "protocol.file.allow=always", "fetch", "--quiet", "--no-tags"];
    let copy = copy.map(std::ffi::OsStr::new).into_iter();
    let rest = ["--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance", "--"];
    let rest = rest.map(std::ffi::OsStr::new).into_iter();
    let shallow = base.is_shallow().then(|| std::ffi::OsStr::new("--update-shallow"));
    let arguments: Vec<_> =
        copy.chain(shallow).chain(rest).chain([from.as_os_str(), wanted.as_ref()]).collect();
    git.run(&arguments)?;
    let branch = format!("refs/heads/{branch}");
    git.run(&["update-ref", &branch, COPIED])?;
    git.run(&["update-ref", "-d", COPIED])?;
    git.run(&["symbolic-ref", "HEAD", &branch])?;
    write_attributes(&directory.join(".git/info")).map_err(keep)?;
    git.run(&["read-tree", "--reset", "-u", "--no-recurse-submodules", "HEAD"])?;
    settle(&directory.join(".git"), origin).map_err(keep)?;
    base.laid_out_at(directory)
}

/// Turns conversions off, so that files are laid out and committed as they are in the repository: with conversions, a push would change
/// files that the sandbox has not touched. These attributes override those of the tree.
fn write_attributes(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    File::create_new(folder.join("attributes"))?.write_all(ATTRIBUTES.as_bytes())
}

/// Writes the configuration anew. Other files that name the clone's origin are removed.
fn settle(folder: &Path, origin: Option<&Remote>) -> io::Result<()> {
    for name in ["FETCH_HEAD", "ORIG_HEAD", "config", "config.worktree"] {
        match std::fs::remove_file(folder.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    // An address contains neither quotes nor backslashes, and no password.
    let origin =
        origin.map(|remote| format!("[remote \"origin\"]\n\turl = \"{remote}\"\n")).unwrap_or_default();
    File::create_new(folder.join("config"))?.write_all([SETTINGS, &origin].concat().as_bytes())
}
