//! The author of commits, from the git settings of the host's user.

use super::commit::Author;
use super::environment::HostEnv;
use super::runner::{Git, GitError};
use std::path::Path;

/// Returns the user's name and email in git's settings; `None` if either is missing.
fn author(env: &HostEnv) -> Result<Option<Author>, GitError> {
    let settings = Git::in_directory(Path::new("/"), env, &|| false).settings()?;
    let (Some(name), Some(email)) = (settings.name, settings.email) else { return Ok(None) };
    // A name that a commit can't contain counts as missing.
    Ok(Author::parse(&format!("{name} <{email}>")).ok())
}

/// Returns the user in git's settings, or `belljar` if there is none.
///
/// # Errors
/// [`GitError`] when the settings can't be read.
pub fn author_or_default(env: &HostEnv) -> Result<Author, GitError> {
    Ok(author(env)?.unwrap_or_default())
}
