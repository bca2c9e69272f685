//! Review of a change set for paths that gain trust in the tree that it is applied to (`policy::handoff`), also through
//! what Git writes there from its data.

mod git_content;
mod index;
mod links;
mod obeyed;
mod objects;
mod outside;
mod place;
mod references;
mod settings;

use super::changes::{ChangeSet, PathChange, PathState, lines};
use belljar_files::directory::{Directory, DirectoryError};
use belljar_policy::git::is_dot_git;
use belljar_policy::handoff::{
    self as policy, ChangeEntryKind, ChangedPath, Finding, TreeContext, TrustKind,
};
use belljar_policy::untrusted;
use git_content::GitReviewInput;
use links::ReviewContext;
use objects::ObjectCheck;
use rustix::fs::FileType;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CString;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Result of a review.
#[derive(Debug)]
pub struct ReviewOutcome {
    /// Paths that need an approval.
    pub findings: Vec<Finding>,
    /// Targets of the links that were looked at: another program may have changed them since.
    pub(super) links: LinkTargets,
}

/// Targets of links, by their paths.
pub(super) type LinkTargets = BTreeMap<PathBuf, CString>;

/// Looks at a change set by its names, by the links of the target that lead to them, and by what the host obeys at the moment.
///
/// # Errors
/// [`DirectoryError`] for a path that can't be looked at.
pub fn review(
    set: &ChangeSet,
    copy: &Directory,
    target: &Directory,
) -> Result<ReviewOutcome, DirectoryError> {
    let links = links_of(set, copy)?;
    let Some((first, _)) = set.iter().next() else {
        return Ok(ReviewOutcome { findings: Vec::new(), links });
    };
    let surroundings = links::find(target, set, &links)?;
    let mut findings: Vec<Finding> = match &surroundings {
        None => vec![about_links(
            first,
            "the directory has too many names to find the symlinks that lead to the changed files".into(),
        )],
        Some(ReviewContext { context, .. }) => {
            unresolved(context, set).map(|reason| about_links(first, reason)).into_iter().collect()
        }
    };
    let ReviewContext { mut context, repositories, ways } = surroundings.unwrap_or_default();
    links::note_programs(&mut context, (set, &links), target)?;
    note_beside(&mut context, set, target)?;
    if let Some((path, is_in_repository)) = place::of(target) {
        context.set_place(&path.to_string_lossy(), is_in_repository);
        if let Some(reason) = settings::note((&path, target), (&repositories, &ways), &mut context) {
            let path = untrusted::name(first);
            findings.push(Finding { path, kind: TrustKind::Git, reason: reason.into() });
        }
    }
    let mut objects = ObjectCheck::new();
    let directories = directories_alone(set);
    for (path, changed) in set.iter() {
        let is_alone = directories.contains(path);
        // The previous entry is described well enough by its kind; its link target doesn't count any more.
        let before = changed.before.map(|before| entry(before, String::new(), is_alone));
        let says = links.get(path).map(|says| says.to_string_lossy().into_owned());
        let after = changed.after.map(|after| entry(after, says.unwrap_or_default(), is_alone));
        let is_new_file = before.is_none() && matches!(after, Some(ChangeEntryKind::File { .. }));
        let is_new_git_object = is_new_file && objects.holds(copy, path);
        let is_compiled = is_compiled(changed, copy, path);
        let matched = path.to_string_lossy();
        let touched = ChangedPath { path: &matched, before, after, is_new_git_object, is_compiled };
        let mut found = policy::review_in_tree([touched], &context);
        // The rules read replacement characters for what is not UTF-8. For a person, different paths must look different.
        let named = untrusted::name(path);
        found
            .iter_mut()
            .filter(|finding| finding.path == matched)
            .for_each(|finding| finding.path.clone_from(&named));
        if is_alone && changed.as_shown().is_empty() {
            // As it is listed, and so that an approval of all that is in it covers it.
            let own = found.iter_mut().filter(|finding| finding.path == named);
            own.for_each(|finding| finding.path.push('/'));
        }
        found.into_iter().for_each(|finding| finding.add_to(&mut findings));
    }
    let (context, objects) = (&context, &objects.into_found());
    findings.extend(git_content::find(&GitReviewInput { set, copy, target, context, objects })?);
    findings.extend(obeyed::find(set, target)?);
    Ok(ReviewOutcome { findings, links })
}

/// The directories that are made or removed by themselves: those that have a line of their own, and each that is removed from the tree's
/// repository, as Git needs some of them even if they are empty.
fn directories_alone(set: &ChangeSet) -> BTreeSet<&Path> {
    let listed = lines(set.iter()).into_iter().filter(|line| line.is_directory).map(|line| line.path);
    let is_removed = |(path, changed): &(&Path, &PathChange)| {
        let is_in_repository = path.iter().next().and_then(|first| first.to_str()).is_some_and(is_dot_git);
        is_in_repository && changed.after.is_none() && changed.makes_or_removes_directory()
    };
    listed.chain(set.iter().filter(is_removed).map(|(path, _)| path)).collect()
}

/// Adds the files of the tree by which new ones of the change count. A path through a link leads to another one, which is added by its own.
fn note_beside(context: &mut TreeContext, set: &ChangeSet, target: &Directory) -> Result<(), DirectoryError> {
    for (path, _) in set.iter().filter(|(_, changed)| changed.after.is_some()) {
        for other in context.counting_beside(&path.to_string_lossy()) {
            let stat = target.stat(Path::new(&other))?;
            if stat.is_some_and(|stat| FileType::from_raw_mode(stat.st_mode) != FileType::Directory) {
                context.add_file(&other);
            }
        }
    }
    Ok(())
}

/// Returns true for a new content that is compiled, whatever the name and the permissions of the file are.
fn is_compiled(changed: &PathChange, copy: &Directory, path: &Path) -> bool {
    let is_file = |state: PathState| state.kind == FileType::RegularFile;
    if changed.same_content || !changed.after.is_some_and(is_file) {
        return false;
    }
    let mut begin = Vec::new();
    let read =
        copy.open_own_file(path).map(|file| file.take(policy::TELLING_BYTES as u64).read_to_end(&mut begin));
    matches!(read, Ok(Ok(_))) && policy::is_compiled(&begin)
}

/// The links that a change set brings, with what they say.
fn links_of(set: &ChangeSet, copy: &Directory) -> Result<LinkTargets, DirectoryError> {
    let is_link = |after: PathState| after.kind == FileType::Symlink;
    let links = set.iter().filter(|(_, changed)| changed.after.is_some_and(is_link));
    links.map(|(path, _)| Ok((path.to_owned(), copy.read_link(path)?))).collect()
}

/// Returns why it can't be determined what leads to the changes, if it can't.
fn unresolved(context: &TreeContext, set: &ChangeSet) -> Option<String> {
    // Those that are changed have findings of their own.
    let link = context.unresolved().find(|link| set.get(Path::new(link)).is_none())?;
    Some(format!("the target of symlink {link} cannot be determined; it may be a changed file"))
}

fn about_links(path: &Path, reason: String) -> Finding {
    let path = untrusted::name(path);
    Finding { path, kind: TrustKind::Link, reason: reason.into() }
}

fn entry(state: PathState, target: String, is_alone: bool) -> ChangeEntryKind {
    match state.kind {
        FileType::Directory if is_alone => ChangeEntryKind::Directory,
        FileType::RegularFile => ChangeEntryKind::File { is_executable: state.mode & 0o111 != 0 },
        FileType::Symlink => ChangeEntryKind::Link { target },
        _ => ChangeEntryKind::Other,
    }
}

#[cfg(test)]
mod directories_tests;
#[cfg(test)]
mod tests;
