//! Preparation of mounts by a privileged host before a launch. As seen from inside, their files belong to the user that the
//! sandbox runs as, whatever owner they have on disk (identity-mapped mounts). Nothing on disk is changed, and the
//! sandbox's user needs no rights on the host.

use crate::kernel::{self, CloneResult, set_mount_attributes, set_mount_identity};
use crate::launcher::Launcher;
use crate::plan::{Access, HostSource, Identity};
use crate::wall;
use crate::walls::sources::attributes_of_lent;
use belljar_files::host_path::{HostPath, Inode};
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxFlags, openat, statx};
use rustix::io::Errno;
use rustix::mount::{OpenTreeFlags, open_tree};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, pidfd_send_signal, waitid};
use serde::{Deserialize, Serialize};

/// Why a mount could not be prepared.
#[derive(Debug, thiserror::Error)]
#[error("can't prepare the bind mount of {} at `{step}`", path.as_path().display())]
pub struct MountPrepareError {
    /// Path to lend.
    pub path: HostPath,
    /// The system call that failed.
    pub step: &'static str,
    /// Why.
    #[source]
    pub source: Errno,
}

/// Prepares `path` for a sandbox of that identity: its owner on disk appears as the sandbox's user inside.
///
/// Needs the host's root, and a file system that supports identity-mapped mounts. The user namespace that holds the maps is
/// made by the launcher. Without a launcher this process makes it, and must then have a single thread, as with
/// [`crate::launch::launch`].
///
/// # Errors
/// [`MountPrepareError`] with the step that failed.
pub fn prepare(
    path: &HostPath,
    access: Access,
    identity: Identity,
    launcher: Option<&Launcher>,
) -> Result<HostSource, MountPrepareError> {
    let failed = |step| move |source| MountPrepareError { path: path.clone(), step, source };
    let flags =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
    let mount = open_tree(CWD, path.as_path(), flags).map_err(failed("open_tree"))?;
    let wanted = StatxFlags::TYPE | StatxFlags::INO | StatxFlags::UID | StatxFlags::GID;
    let stat = statx(&mount, c"", AtFlags::EMPTY_PATH, wanted).map_err(failed("statx"))?;
    // Another file may have been put there since the host looked.
    if wall!(SameInode: Inode::of(&stat) != path.inode(), else false) {
        return Err(Errno::STALE).map_err(failed("statx"));
    }
    let maps =
        IdentityMaps { owners: (stat.stx_uid, stat.stx_gid), users: (identity.host_uid, identity.host_gid) };
    let namespace = match launcher {
        Some(launcher) => launcher.user_namespace(maps),
        None => user_namespace(maps),
    };
    let namespace = namespace.map_err(failed("user namespace"))?;
    set_mount_identity(mount.as_fd(), namespace.as_fd()).map_err(failed("mount_setattr"))?;
    set_mount_attributes(mount.as_fd(), attributes_of_lent(access), true).map_err(failed("mount_setattr"))?;
    Ok(HostSource::Mount { mount, is_directory: path.is_directory() })
}

/// Identity maps: user and group each.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct IdentityMaps {
    /// User and group that own the files on disk.
    owners: (u32, u32),
    /// User and group that own them for the sandbox.
    users: (u32, u32),
}

/// Makes a user namespace that maps the owners on disk to the sandbox's user and group. Only its maps are wanted, so the
/// process it was made with ends at once.
pub(crate) fn user_namespace(maps: IdentityMaps) -> Result<OwnedFd, Errno> {
    if kernel::thread_count()? > 1 {
        return Err(Errno::AGAIN);
    }
    let parent = rustix::process::getpid();
    // SAFETY: this is the only thread, as counted above.
    let (pid, pidfd) = match unsafe { kernel::clone_into(libc::CLONE_NEWUSER, None) }? {
        CloneResult::Child => wait_to_be_killed(parent),
        CloneResult::Parent { pid, pidfd } => (pid, pidfd),
    };
    let namespace = write_maps(pid, maps).and_then(|()| {
        let path = format!("/proc/{pid}/ns/user");
        openat(CWD, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())
    });
    pidfd_send_signal(&pidfd, Signal::KILL)?;
    if let Some(pid) = Pid::from_raw(pid) {
        match rustix::io::retry_on_intr(|| waitid(WaitId::Pid(pid), WaitIdOptions::EXITED)) {
            // A launcher has the kernel collect its children.
            Ok(_) | Err(Errno::CHILD) => {}
            Err(errno) => return Err(errno),
        }
    }
    namespace
}

fn write_maps(pid: i32, IdentityMaps { owners, users }: IdentityMaps) -> Result<(), Errno> {
    let files = [
        ("uid_map", format!("{} {} 1", owners.0, users.0)),
        ("gid_map", format!("{} {} 1", owners.1, users.1)),
    ];
    for (file, map) in files {
        let path = format!("/proc/{pid}/{file}");
        let file = openat(CWD, path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
        rustix::io::write(&file, map.as_bytes())?;
    }
    Ok(())
}

fn wait_to_be_killed(parent: Pid) -> ! {
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    // Died before that call, it sends no signal any more.
    if rustix::process::getppid() != Some(parent) {
        kernel::exit_now(1);
    }
    loop {
        rustix::event::pause();
    }
}
