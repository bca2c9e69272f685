//! Changed paths that the host obeys, recognised by identity, whatever their names are.

use crate::workspace::changes::{ChangeSet, PathChange};
use belljar_files::directory::{Directory, DirectoryError};
use belljar_policy::handoff::{Finding, TrustKind};
use belljar_policy::untrusted;
use belljar_trusted::in_use::{self, FileIdentity, InUseEntry, UseKind};
use rustix::fs::FileType;
use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// The changed paths that the processes of this state directory obey at the moment, or would obey if there was something.
///
/// # Errors
/// [`DirectoryError`] for a path that can't be looked at.
pub(super) fn find(set: &ChangeSet, target: &Directory) -> Result<Vec<Finding>, DirectoryError> {
    let mut obeyed = TrustedHostFiles { by_identity: BTreeMap::new(), target, directories: HashMap::new() };
    for InUseEntry { used, identity, .. } in in_use::obeyed() {
        obeyed.by_identity.entry(identity).or_default().push(used);
    }
    if obeyed.by_identity.is_empty() {
        return Ok(Vec::new());
    }
    let mut findings = Vec::new();
    for (path, changed) in set.iter() {
        if let Some(reason) = obeyed.reason(path, changed)? {
            let path = untrusted::name(path);
            findings.push(Finding { path, kind: TrustKind::Belljar, reason: reason.into() });
        }
    }
    Ok(findings)
}

struct TrustedHostFiles<'a> {
    by_identity: BTreeMap<FileIdentity, Vec<UseKind>>,
    target: &'a Directory,
    /// Directories that were looked at already.
    directories: HashMap<PathBuf, Option<FileIdentity>>,
}

// === impl TrustedHostFiles ===

impl TrustedHostFiles<'_> {
    fn reason(&mut self, path: &Path, changed: &PathChange) -> Result<Option<&'static str>, DirectoryError> {
        let stays_directory = changed.after.is_some_and(|after| after.kind == FileType::Directory);
        let itself = self.target.stat(path)?.and_then(|stat| self.by_identity.get(&FileIdentity::of(&stat)));
        if itself.is_some_and(|uses| uses.contains(&UseKind::Obeyed) || !stays_directory) {
            return Ok(Some("Belljar obeys this very file on the host at the moment"));
        }
        for directory in path.ancestors().skip(1) {
            let Some(identity) = self.identity(directory)? else { continue };
            let rest = path.strip_prefix(directory).unwrap_or(path);
            for used in self.by_identity.get(&identity).into_iter().flatten() {
                match used {
                    UseKind::ObeyedBelow => {
                        return Ok(Some("a program that Belljar runs on the host is given this directory"));
                    }
                    // A directory on the way gives it nothing to obey yet; a link does.
                    UseKind::Missing { below } if below.starts_with(rest) && changed.after.is_some() => {
                        if below == rest || !stays_directory {
                            return Ok(Some(
                                "Belljar obeys the file of this name on the host if there is one",
                            ));
                        }
                    }
                    UseKind::Missing { .. } | UseKind::Obeyed | UseKind::Writable => {}
                }
            }
        }
        Ok(None)
    }

    fn identity(&mut self, directory: &Path) -> Result<Option<FileIdentity>, DirectoryError> {
        if let Some(known) = self.directories.get(directory) {
            return Ok(*known);
        }
        let stat = match directory.as_os_str().is_empty() {
            true => Some(self.target.stat_itself()?),
            false => self.target.stat(directory)?,
        };
        let identity = stat.map(|stat| FileIdentity::of(&stat));
        self.directories.insert(directory.to_owned(), identity);
        Ok(identity)
    }
}
