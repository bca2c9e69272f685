//! Files and directories of the host: found again in the new mount namespace, compared, and detached from their place.

use super::root::restrictive;
use super::{ErrorContext, WallError};
use crate::kernel::set_mount_attributes;
use crate::plan::{Access, HostSource, RootEntry};
use crate::wall;
use belljar_files::host_path::HostPath;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, OpenTreeFlags, open_tree};

/// The descriptors that one entry of the root needs.
pub(crate) enum EntryDescriptors {
    /// No source of the host.
    Nothing,
    /// A mount, not yet anywhere.
    Mount(OwnedFd),
    /// The directories of an overlay; the lower one as a mount if it was prepared by the host.
    Overlay { lower: OwnedFd, changes: Option<OverlayDirectories> },
}

/// Directories that hold the changes to an overlay.
pub(crate) struct OverlayDirectories {
    pub(crate) upper: OwnedFd,
    pub(crate) work: OwnedFd,
}

/// Opens the sources of the entries, in their order. Must happen before the new root covers anything of the old one.
pub(crate) fn take<'a>(
    entries: impl IntoIterator<Item = &'a RootEntry>,
) -> Result<Vec<EntryDescriptors>, WallError> {
    entries.into_iter().map(take_one).collect()
}

fn take_one(entry: &RootEntry) -> Result<EntryDescriptors, WallError> {
    match entry {
        RootEntry::Bind { source: HostSource::Path(path), access, .. } => {
            let mount = cut_loose(path)?;
            let attributes = attributes_of_lent(*access);
            set_mount_attributes(mount.as_fd(), attributes, true).about(&name(path))?;
            Ok(EntryDescriptors::Mount(mount))
        }
        RootEntry::Bind { source: HostSource::Mount { mount, .. }, .. } => {
            copy(mount).map(EntryDescriptors::Mount)
        }
        RootEntry::View { source, .. } => {
            Ok(EntryDescriptors::Overlay { lower: layer(source)?, changes: None })
        }
        RootEntry::Overlay { lower, upper, work, .. } => {
            let changes = OverlayDirectories { upper: open(upper)?, work: open(work)? };
            Ok(EntryDescriptors::Overlay { lower: layer(lower)?, changes: Some(changes) })
        }
        RootEntry::Symlink { .. } | RootEntry::File { .. } | RootEntry::Scratch { .. } => {
            Ok(EntryDescriptors::Nothing)
        }
    }
}

/// Returns the attributes of every mount of a lent directory.
pub(crate) fn attributes_of_lent(access: Access) -> MountAttrFlags {
    let nothing = MountAttrFlags::empty();
    let read_only = wall!(ReadOnlyBinds: MountAttrFlags::MOUNT_ATTR_RDONLY, else nothing);
    restrictive() | if access == Access::ReadOnly { read_only } else { nothing }
}

fn layer(source: &HostSource) -> Result<OwnedFd, WallError> {
    match source {
        HostSource::Path(path) => open(path),
        HostSource::Mount { mount, .. } => copy(mount),
    }
}

fn copy(mount: &OwnedFd) -> Result<OwnedFd, WallError> {
    rustix::io::fcntl_dupfd_cloexec(mount, 0).about("prepared mount")
}

fn cut_loose(path: &HostPath) -> Result<OwnedFd, WallError> {
    let flags =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
    let mount = open_tree(CWD, path.as_path(), flags).about(&name(path))?;
    same_inode(&mount, path)?;
    Ok(mount)
}

fn open(path: &HostPath) -> Result<OwnedFd, WallError> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = openat(CWD, path.as_path(), flags, Mode::empty()).about(&name(path))?;
    same_inode(&directory, path)?;
    Ok(directory)
}

/// Checks the inode: another file may have been put there since the host looked.
fn same_inode(found: &OwnedFd, meant: &HostPath) -> Result<(), WallError> {
    match wall!(SameInode: meant.is(found).about(&name(meant))?, else true) {
        true => Ok(()),
        false => Err(Errno::STALE).about(&name(meant)),
    }
}

fn name(path: &HostPath) -> String {
    path.as_path().display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn mount_source_swapped_after_the_host_check_is_refused() {
        let folder = std::env::temp_dir().join(format!("belljar-swapped-{}", std::process::id()));
        let meant = folder.join("meant");
        fs::create_dir_all(&meant).unwrap();
        let looked_at = HostPath::resolve(&meant).unwrap();
        assert!(open(&looked_at).is_ok());
        fs::rename(&meant, folder.join("aside")).unwrap();
        fs::create_dir(&meant).unwrap();
        assert_eq!(open(&looked_at).map_err(|fault| fault.errno).unwrap_err(), Errno::STALE);
        fs::remove_dir_all(&folder).unwrap();
    }
}
