//! Lays a clone of the host's out for a sandbox: files and history, and nobody's settings. Where it is from it knows only if that is
//! wanted.
//!
//! What is checked out is laid out without any of the host's settings, so that nothing in the repository, hooks, filters and
//! submodules included, has anything run.

use super::base::{Base, BaseError, REFERENCE};
use super::environment::HostEnv;
use super::runner::Git;
use belljar_policy::git::Remote;
use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// All the settings of what is laid out. An agent that commits needs a name; it is nobody's.
const SETTINGS: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n\
     [user]\n\tname = agent\n\temail = agent@sandbox.invalid\n";

/// No conversion of line ends, encodings or `$Id$`, and no filter.
const ATTRIBUTES: &str = "* -text !eol !working-tree-encoding -ident !filter\n";

/// Where what was copied is, for a moment.
const COPIED: &str = "refs/belljar/fetched";

/// Lays it out in an empty directory, with a branch of its own, and where it is from if that is named.
///
/// # Errors
/// [`BaseError`]; what is in the directory then is of no use.
pub fn lay_out(
    base: &mut Base,
    (directory, branch, origin): (&Path, &str, Option<&Remote>),
    env: &HostEnv,
    is_canceled: &dyn Fn() -> bool,
) -> Result<(), BaseError> {
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

/// Has files be in the directory as they are in the repository, and be committed as they are: with conversions, a push would change files that
/// nobody has touched. These attributes go before those of the tree.
fn write_attributes(folder: &Path) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    File::create_new(folder.join("attributes"))?.write_all(ATTRIBUTES.as_bytes())
}

/// Writes the settings anew. What else says where the clone is from is removed, should there be any.
fn settle(folder: &Path, origin: Option<&Remote>) -> io::Result<()> {
    for name in ["FETCH_HEAD", "ORIG_HEAD", "config", "config.worktree"] {
        match std::fs::remove_file(folder.join(name)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    // An address has neither quotes nor backslashes in it, and no password.
    let origin =
        origin.map(|remote| format!("[remote \"origin\"]\n\turl = \"{remote}\"\n")).unwrap_or_default();
    File::create_new(folder.join("config"))?.write_all([SETTINGS, &origin].concat().as_bytes())
}
