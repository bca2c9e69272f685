//! A workspace that the host clones (`spec/2` invariant 6): the sandbox gets the files and their history, and nothing
//! that could get them.
//!
//! The host's git fetches with the host's credentials, and writes no remote, no address and no setting of the host's into
//! the clone. What is then checked out is laid out without any of the host's settings, so that nothing in the
//! repository, hooks, filters and submodules included, has anything run.

mod git;
mod origin;

pub use git::GitError;
pub use origin::{Origin, OriginError};

use belljar_contract::id::RunId;
use git::{Git, Trust};
use std::fs::{File, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Why there is no clone.
#[derive(Debug, thiserror::Error)]
pub enum CloneError {
    /// Git can't do its part.
    #[error("can't clone the repository")]
    Git(#[from] GitError),
    /// The clone can't be put in order.
    #[error("can't put the clone in order")]
    Arrange {
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

/// All the settings of a clone. An agent that commits needs a name; it is nobody's.
const SETTINGS: &str = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n\
     [user]\n\tname = agent\n\temail = agent@sandbox.invalid\n";

/// Where what was fetched is, for a moment.
const FETCHED: &str = "refs/belljar/fetched";

/// Clones into an empty directory, and puts the run's branch on top of what was asked for.
///
/// # Errors
/// [`CloneError`]; what is in the directory then is of no use.
pub fn clone(
    origin: &Origin,
    directory: &Path,
    run_id: &RunId,
    is_canceled: &dyn Fn() -> bool,
) -> Result<(), CloneError> {
    let arrange = |source| CloneError::Arrange { source };
    std::fs::set_permissions(directory, Permissions::from_mode(0o700)).map_err(arrange)?;
    let git = Git::find(directory, is_canceled)?;
    git.run(Trust::Nothing, &["init", "--quiet", "--template=", "--object-format=sha1"])?;
    let wanted = format!("+{}:{FETCHED}", origin.reference());
    let fetch = [
        "fetch",
        "--quiet",
        "--no-tags",
        "--no-write-fetch-head",
        "--no-recurse-submodules",
        "--no-auto-maintenance",
    ];
    let allowed = origin.settings();
    let arguments: Vec<&str> =
        allowed.iter().map(String::as_str).chain(fetch).chain(["--", origin.url(), &wanted]).collect();
    git.run(Trust::Host, &arguments)?;
    let branch = format!("refs/heads/sandbox/{run_id}");
    let commit = format!("{FETCHED}^{{commit}}");
    git.run(Trust::Nothing, &["update-ref", &branch, &commit])?;
    git.run(Trust::Nothing, &["update-ref", "-d", FETCHED])?;
    git.run(Trust::Nothing, &["symbolic-ref", "HEAD", &branch])?;
    git.run(Trust::Nothing, &["read-tree", "--reset", "-u", "--no-recurse-submodules", "HEAD"])?;
    settle(&directory.join(".git")).map_err(arrange)
}

/// Writes the settings anew. What else says where the clone is from is removed, should there be any.
fn settle(folder: &Path) -> std::io::Result<()> {
    for name in ["FETCH_HEAD", "ORIG_HEAD", "config", "config.worktree"] {
        match std::fs::remove_file(folder.join(name)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
    }
    File::create_new(folder.join("config"))?.write_all(SETTINGS.as_bytes())
}
