//! What a push says to a server of git, and hears of it.

use crate::git::base::is_object_id;
use crate::git::runner::{Git, GitError};
use belljar_egress::git::Pinned;
use belljar_policy::git::BranchName;
use std::collections::BTreeMap;

/// What is at a remote.
pub(super) struct Found {
    /// Its default branch, by its whole name.
    pub(super) default: Option<String>,
    /// The branches that were asked for, as far as they are there, by their whole names.
    pub(super) branches: BTreeMap<String, String>,
}

/// What is at the remote: its default branch, and those that are asked for.
pub(super) fn look(git: &Git<'_>, pinned: &Pinned, references: &[String]) -> Result<Found, GitError> {
    let url = pinned.remote().to_string();
    let ask = ["ls-remote", "--quiet", "--symref", "--", &url, "HEAD"];
    let asked: Vec<&str> = ask.into_iter().chain(references.iter().map(String::as_str)).collect();
    let said = git.reach(pinned, &asked)?;
    let said = String::from_utf8_lossy(&said);
    let unreadable = || GitError::Unreadable { step: "ls-remote".to_owned() };
    let mut found = Found { default: None, branches: BTreeMap::new() };
    for line in said.lines() {
        let (what, name) = line.split_once('\t').ok_or_else(unreadable)?;
        let is_asked_for = || references.iter().any(|reference| reference == name);
        match what.strip_prefix("ref: ") {
            Some(default) if name == "HEAD" => found.default = Some(default.to_owned()),
            // Others end in what was asked for.
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

/// Sends it, for a branch that isn't there: the lease expects nothing, and the server is told so.
pub(super) fn send(
    git: &Git<'_>,
    pinned: &Pinned,
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
