//! Communication of a push with a git server.

use crate::base::is_object_id;
use crate::runner::{Git, GitError};
use belljar_egress::git::PinnedRemote;
use belljar_policy::git::BranchName;
use std::collections::BTreeMap;

/// State of a remote.
pub(super) struct RemoteRefs {
    /// Full name of its default branch.
    pub(super) default: Option<String>,
    /// The requested branches that exist, by their full names, with their commits.
    pub(super) branches: BTreeMap<String, String>,
}

/// Returns a remote's default branch, and those of the requested references that exist.
pub(super) fn look(
    git: &Git<'_>,
    pinned: &PinnedRemote,
    references: &[String],
) -> Result<RemoteRefs, GitError> {
    let url = pinned.remote().to_string();
    let ask = ["ls-remote", "--quiet", "--symref", "--", &url, "HEAD"];
    let asked: Vec<&str> = ask.into_iter().chain(references.iter().map(String::as_str)).collect();
    let said = git.reach(pinned, &asked)?;
    let said = String::from_utf8_lossy(&said);
    let unreadable = || GitError::Unreadable { step: "ls-remote".to_owned() };
    let mut found = RemoteRefs { default: None, branches: BTreeMap::new() };
    for line in said.lines() {
        let (what, name) = line.split_once('\t').ok_or_else(unreadable)?;
        let is_asked_for = || references.iter().any(|reference| reference == name);
        match what.strip_prefix("ref: ") {
            Some(default) if name == "HEAD" => found.default = Some(default.to_owned()),
            // Patterns also match references that only end in the requested name.
            None if !is_asked_for() => {}
            None if is_object_id(what) => {
                found.branches.insert(name.to_owned(), what.to_owned());
            }
            None => return Err(unreadable()),
            Some(_) => {}
        }
    }
    Ok(found)
}

/// Pushes the commit to a branch that must not exist: `--force-with-lease` with an empty expected value makes the server
/// check that.
pub(super) fn send(
    git: &Git<'_>,
    pinned: &PinnedRemote,
    (branch, commit): (&BranchName, &str),
) -> Result<(), GitError> {
    let (url, reference) = (pinned.remote().to_string(), branch.reference());
    let lease = format!("--force-with-lease={reference}:");
    let refspec = format!("{commit}:{reference}");
    let push = [
        "push",
        "--porcelain",
        "--quiet",
        "--no-verify",
        "--no-follow-tags",
        "--no-signed",
        "--recurse-submodules=no",
        "--atomic",
        &lease,
        "--",
        &url,
        &refspec,
    ];
    git.reach(pinned, &push).map(|_| ())
}
