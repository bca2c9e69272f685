//! Whose commits are, by the settings of the host's user.

use super::commit::Author;
use super::environment::HostEnv;
use super::runner::{Git, GitError};
use std::path::Path;

/// Who the user is for git; nobody if it isn't said.
///
/// # Errors
/// [`GitError`] when its settings can't be read.
pub fn author(env: &HostEnv) -> Result<Option<Author>, GitError> {
    let settings = Git::in_directory(Path::new("/"), env, &|| false).settings()?;
    let (Some(name), Some(email)) = (settings.name, settings.email) else { return Ok(None) };
    // A name that can't be in a commit is nobody's.
    Ok(Author::parse(&format!("{name} <{email}>")).ok())
}
