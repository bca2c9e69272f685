//! The new root: a small file system in memory that holds the entries of the plan and ends read-only. The old root is
//! removed from sight.

use super::sources::{EntryDescriptors, OverlayDirectories};
use super::{ErrorContext, WallError};
use crate::kernel::{self, set_mount_attributes};
use crate::plan::{self, HostSource, Limits, RootEntry};
use crate::wall;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{
    AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, mkdirat, mknodat, openat, openat2, statat, symlinkat,
    unlinkat,
};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags,
    UnmountFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, mount_bind,
    mount_change, move_mount, open_tree, unmount,
};

/// Directories on which the new root is mounted for a moment. Every host has one of them; in order of preference.
const FOOTHOLDS: [&str; 3] = ["/tmp", "/run", "/proc"];

/// Files that report on the whole machine, which no namespace hides and no ordinary program needs: keyrings of the user on the host as
/// which the sandbox runs, among them those that programs of the host have made; counters of disks, memory, interrupts, control groups,
/// open files and terminals; lists that change with what the host attaches or loads; the id of the machine's boot. Reading the list of locks makes every program of the
/// machine wait that locks a file.
const COVERED_FILES: [&str; 23] = [
    "proc/keys",
    "proc/key-users",
    "proc/locks",
    "proc/diskstats",
    "proc/interrupts",
    "proc/softirqs",
    "proc/schedstat",
    "proc/vmstat",
    "proc/zoneinfo",
    "proc/buddyinfo",
    "proc/cgroups",
    "proc/crypto",
    "proc/mdstat",
    "proc/modules",
    "proc/partitions",
    "proc/swaps",
    "proc/sys/fs/aio-nr",
    "proc/sys/fs/dentry-state",
    "proc/sys/fs/file-nr",
    "proc/sys/fs/inode-nr",
    "proc/sys/fs/inode-state",
    "proc/sys/kernel/pty/nr",
    "proc/sys/kernel/random/boot_id",
];

/// Directories of such files: of file systems and their journals, of each interrupt, of pressure, of quotas, and of devices.
const COVERED_DIRECTORIES: [&str; 7] =
    ["proc/acpi", "proc/asound", "proc/fs", "proc/irq", "proc/pressure", "proc/scsi", "proc/sys/fs/quota"];

/// An empty directory in the root, for overlays that change nothing, and to cover directories.
const NOTHING: &str = "run/belljar/nothing";

/// Stops mounts from spreading: what happens here from now on is not seen by the host.
pub(crate) fn cut_propagation() -> Result<(), WallError> {
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC).about("/")
}

/// Builds the root and fills it. What comes back is its descriptor; it is also the working directory.
///
/// One file system in memory holds everything that belongs to the sandbox, so that one size bounds it all. The root
/// itself becomes read-only; directories that may be written are mounts of their own on top.
pub(crate) fn build<'a>(
    entries: impl IntoIterator<Item = &'a RootEntry>,
    taken: Vec<EntryDescriptors>,
    size_bytes: u64,
) -> Result<OwnedFd, WallError> {
    let root = memory(size_bytes)?;
    FOOTHOLDS
        .into_iter()
        .map(|foothold| move_mount(&root, c"", CWD, foothold, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH))
        .find_or_last(Result::is_ok)
        .about("a place for the new root")?;
    rustix::process::fchdir(&root).about("new root")?;
    directory(root.as_fd(), NOTHING).about(NOTHING)?;
    for (entry, taken) in entries.into_iter().zip(taken) {
        make(root.as_fd(), entry, taken)?;
    }
    Ok(root)
}

/// Makes the places that a root which many share has for what each of them brings along.
pub(crate) fn make_places(root: BorrowedFd<'_>, places: &[String]) -> Result<(), WallError> {
    places.iter().try_for_each(|place| directory(root, place).about(place).map(drop))
}

/// Puts writable directories into a root that others also have. As in a root of one's own, one file system in memory
/// holds all of them: it is put on the first place, and covered there by the last of its directories. What comes back is also
/// the working directory.
pub(crate) fn furnish(places: &[&str], size_bytes: u64) -> Result<OwnedFd, WallError> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = openat(CWD, c"/", flags, Mode::empty()).about("/")?;
    rustix::process::fchdir(&root).about("/")?;
    let own = memory(size_bytes)?;
    let first = places.first().copied().unwrap_or("tmp");
    attach(&own, root.as_fd(), first, MountPointKind::Directory)?;
    for place in places.iter().rev() {
        let name = place.replace('/', "-");
        let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
        let mount = make_place(own.as_fd(), &name, MountPointKind::OpenDirectory)
            .and_then(|()| open_tree(&own, &name, flags))
            .about(place)?;
        attach(&mount, root.as_fd(), place, MountPointKind::OpenDirectory)?;
    }
    Ok(root)
}

/// Makes `root` the root. The old one then lies on top of it, for the worker to take off.
pub(crate) fn enter(root: &OwnedFd) -> Result<(), WallError> {
    wall!(Pivot: rustix::process::pivot_root(".", "."), else rustix::process::chroot("."))
        .about("pivot_root")?;
    rustix::process::chdir("/").about("/")?;
    let read_only = wall!(ReadOnlyRoot: MountAttrFlags::MOUNT_ATTR_RDONLY, else MountAttrFlags::empty());
    set_mount_attributes(root.as_fd(), read_only | restrictive(), false).about("new root")
}

/// Forbids programs in these places, which are mounts of this sandbox's own, and code mappings, too: a loader would start a
/// program that it may only read.
pub(crate) fn forbid_programs<'a>(places: impl Iterator<Item = &'a str>) -> Result<(), WallError> {
    let attributes = MountAttrFlags::MOUNT_ATTR_NOEXEC;
    for place in places {
        let mount = openat(CWD, format!("/{place}"), OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
        mount.and_then(|mount| set_mount_attributes(mount.as_fd(), attributes, true)).about(place)?;
    }
    Ok(())
}

/// Moves this process to another mount namespace and leaves its root where it was. `/proc/self/mountinfo` lists the mounts
/// in one's namespace that lie below one's root. Now there are none, so it names no directory of the host that was
/// bind-mounted. The namespace with the root lives as long as the returned descriptor.
pub(crate) fn hide_mounts() -> Result<OwnedFd, WallError> {
    let subject = "mount namespace";
    let place =
        openat(CWD, c"/", OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).about("/")?;
    let namespace = openat(CWD, c"/proc/self/ns/mnt", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let namespace = namespace.about(subject)?;
    kernel::leave_mount_namespace().about(subject)?;
    rustix::process::fchdir(&place).about("/")?;
    rustix::process::chroot(".").about("/")?;
    Ok(namespace)
}

/// Puts `/proc` up: of this PID namespace, and read-only as a whole, so that no setting of the kernel can be written. Before,
/// the limits of the user namespace are written there. The root is the working directory.
pub(crate) fn put_up_proc(root: BorrowedFd<'_>, limits: &Limits) -> Result<(), WallError> {
    let mount = wall!(PidNamespace: processes(limits)?, else copy_of_hosts("/proc")?);
    attach(&mount, root, "proc", MountPointKind::Directory)?;
    COVERED_FILES.into_iter().try_for_each(|file| cover(root, file, "/dev/null"))?;
    COVERED_DIRECTORIES.into_iter().try_for_each(|directory| cover(root, directory, NOTHING))?;
    // The covers, too: they are files of the host's and of a root that many share, and their times could be written.
    let read_only = wall!(ReadOnlyProc: MountAttrFlags::MOUNT_ATTR_RDONLY, else MountAttrFlags::empty());
    set_mount_attributes(mount.as_fd(), read_only, true).about("proc")
}

/// Covers a file or directory in the root with an empty one. The path is of a mount made just now, so that no part of it is a link.
/// Takes one call for each path, because a sandbox covers many.
fn cover(root: BorrowedFd<'_>, place: &str, nothing: &str) -> Result<(), WallError> {
    let is_missing =
        || statat(root, place, AtFlags::SYMLINK_NOFOLLOW).is_err_and(|errno| errno == Errno::NOENT);
    match mount_bind(nothing, place) {
        // A kernel that is built without it has no such file.
        Err(Errno::NOENT) if is_missing() => Ok(()),
        covered => covered.about(place),
    }
}

/// Puts the `/proc` of a launcher up, the host's, in which it writes the maps of its sandboxes. Each puts its own on top;
/// the kernel gives it one only where there is one already.
pub(crate) fn put_up_proc_of_launcher(root: BorrowedFd<'_>) -> Result<(), WallError> {
    attach(&copy_of_hosts("/proc")?, root, "proc", MountPointKind::Directory)
}

fn processes(limits: &Limits) -> Result<OwnedFd, WallError> {
    let attributes = restrictive() | MountAttrFlags::MOUNT_ATTR_NOEXEC;
    let context = fsopen(c"proc", FsOpenFlags::FSOPEN_CLOEXEC).about("proc")?;
    fsconfig_create(&context).about("proc")?;
    let mount = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes).about("proc")?;
    wall!(LimitWatches: limit_watches(&mount, limits)?, else ());
    Ok(mount)
}

/// The kernel counts these for each user and namespace. An ordinary user's sandboxes share that user's limits with each other
/// and with the user's programs, so each sandbox gets a part of them.
fn limit_watches(proc: &OwnedFd, limits: &Limits) -> Result<(), WallError> {
    let tables = [
        ("sys/user/max_inotify_instances", limits.inotify_instances),
        ("sys/user/max_inotify_watches", limits.inotify_watches),
    ];
    for (path, most) in tables {
        let written = openat(proc, path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())
            .and_then(|file| rustix::io::write(&file, most.to_string().as_bytes()));
        match written {
            // A kernel without inotify has no such limit.
            Ok(_) | Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno).about(path),
        }
    }
    Ok(())
}

/// Copies a mount of a directory of the host with everything in it: for a launcher, or where a wall is to be left out.
pub(crate) fn copy_of_hosts(path: &str) -> Result<OwnedFd, WallError> {
    let flags =
        OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_RECURSIVE;
    open_tree(CWD, path, flags).about(path)
}

fn memory(size_bytes: u64) -> Result<OwnedFd, WallError> {
    let context = fsopen(c"tmpfs", FsOpenFlags::FSOPEN_CLOEXEC).about("tmpfs")?;
    fsconfig_set_string(&context, c"source", c"belljar").about("tmpfs")?;
    wall!(ScratchSize: fsconfig_set_string(&context, c"size", size_bytes.to_string()).about("tmpfs")?, else ());
    let inodes = plan::scratch_inodes(size_bytes).to_string();
    wall!(ScratchInodes: fsconfig_set_string(&context, c"nr_inodes", inodes).about("tmpfs")?, else ());
    fsconfig_set_string(&context, c"mode", c"755").about("tmpfs")?;
    fsconfig_create(&context).about("tmpfs")?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, restrictive()).about("tmpfs")
}

/// Kind of mount point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MountPointKind {
    Directory,
    /// A directory in which any user may write, but only owners remove files.
    OpenDirectory,
    File,
}

/// Puts a mount at `inside`, which is made if it isn't there.
pub(crate) fn attach(
    mount: &OwnedFd,
    root: BorrowedFd<'_>,
    inside: &str,
    kind: MountPointKind,
) -> Result<(), WallError> {
    let (parent, name) = parent(root, inside).about(inside)?;
    match make_place(parent.as_fd(), name, kind) {
        Ok(()) => put(mount, parent.as_fd(), name),
        Err(Errno::EXIST) => open_place(parent.as_fd(), name).and_then(|place| {
            let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
            move_mount(mount, c"", &place, c"", flags)
        }),
        Err(errno) => Err(errno),
    }
    .about(inside)
}

/// Puts a writable directory at `inside`, over the root that will be read-only.
pub(crate) fn scratch(root: BorrowedFd<'_>, inside: &str) -> Result<(), WallError> {
    let (parent, name) = parent(root, inside).about(inside)?;
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC;
    make_place(parent.as_fd(), name, MountPointKind::OpenDirectory)
        .and_then(|()| open_tree(parent.as_fd(), name, flags))
        .and_then(|mount| put(&mount, parent.as_fd(), name))
        .about(inside)
}

/// Puts a mount on something that was made just now: only then is its name sure to mean it.
fn put(mount: &OwnedFd, parent: BorrowedFd<'_>, name: &str) -> Result<(), Errno> {
    move_mount(mount, c"", parent, name, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
}

/// A symbolic link at `inside`.
pub(crate) fn symlink(root: BorrowedFd<'_>, inside: &str, target: &str) -> Result<(), WallError> {
    let (parent, name) = parent(root, inside).about(inside)?;
    symlinkat(target, parent.as_fd(), name).about(inside)
}

fn make_place(parent: BorrowedFd<'_>, name: &str, kind: MountPointKind) -> Result<(), Errno> {
    match kind {
        MountPointKind::Directory => mkdirat(parent, name, Mode::from_raw_mode(0o755)),
        MountPointKind::OpenDirectory => mkdirat(parent, name, Mode::from_raw_mode(0o1777)),
        MountPointKind::File => mknodat(parent, name, FileType::RegularFile, Mode::from_raw_mode(0o644), 0),
    }
}

/// The directory at `inside`, made with its parents where missing.
pub(crate) fn directory(root: BorrowedFd<'_>, inside: &str) -> Result<OwnedFd, Errno> {
    let (parent, name) = parent(root, inside)?;
    match make_place(parent.as_fd(), name, MountPointKind::Directory) {
        Ok(()) | Err(Errno::EXIST) => open_place(parent.as_fd(), name),
        Err(errno) => Err(errno),
    }
}

/// The directory that `inside` is in, made with its own parents where missing, and the last name.
fn parent<'r, 'i>(root: BorrowedFd<'r>, inside: &'i str) -> Result<(ParentDirectory<'r>, &'i str), Errno> {
    let Some((above, name)) = inside.rsplit_once('/') else {
        return Ok((ParentDirectory::Root(root), inside));
    };
    match open_place(root, above) {
        Ok(directory) => Ok((ParentDirectory::Below(directory), name)),
        Err(Errno::NOENT) => directory(root, above).map(|made| (ParentDirectory::Below(made), name)),
        Err(errno) => Err(errno),
    }
}

enum ParentDirectory<'r> {
    Root(BorrowedFd<'r>),
    Below(OwnedFd),
}

impl AsFd for ParentDirectory<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Root(root) => *root,
            Self::Below(directory) => directory.as_fd(),
        }
    }
}

/// Never through a symbolic link: a workspace brings its own, and they may point anywhere.
fn open_place(directory: BorrowedFd<'_>, path: &str) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
    openat2(directory, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty(), resolve)
}

fn write_file(root: BorrowedFd<'_>, inside: &str, content: &[u8]) -> Result<(), Errno> {
    let (parent, name) = parent(root, inside)?;
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = openat(parent.as_fd(), name, flags, Mode::from_raw_mode(0o644))?;
    rustix::io::write(&file, content).map(drop)
}

fn make(root: BorrowedFd<'_>, entry: &RootEntry, taken: EntryDescriptors) -> Result<(), WallError> {
    match (entry, taken) {
        (RootEntry::Symlink { inside, target }, _) => symlink(root, inside, target),
        (RootEntry::File { inside, content }, _) => write_file(root, inside, content).about(inside),
        (RootEntry::Scratch { inside }, _) => scratch(root, inside),
        (RootEntry::Bind { inside, source, .. }, EntryDescriptors::Mount(mount)) => {
            let kind = if source.is_directory() { MountPointKind::Directory } else { MountPointKind::File };
            attach(&mount, root, inside, kind)
        }
        (
            RootEntry::View { inside, source } | RootEntry::Overlay { inside, lower: source, .. },
            EntryDescriptors::Overlay { lower, changes },
        ) => {
            let overlay = match source {
                HostSource::Path(_) => overlay(root, &lower, changes.as_ref()).about(inside)?,
                HostSource::Mount { .. } => overlay_on_mount(root, &lower, changes.as_ref()).about(inside)?,
            };
            attach(&overlay, root, inside, MountPointKind::Directory)
        }
        (
            RootEntry::Bind { inside, .. }
            | RootEntry::View { inside, .. }
            | RootEntry::Overlay { inside, .. },
            _,
        ) => Err(Errno::INVAL).about(inside),
    }
}

/// The layers are given by descriptor, so that neither a race nor `/proc/self/mountinfo` has a path of the host's.
fn overlay(
    root: BorrowedFd<'_>,
    lower: &OwnedFd,
    changes: Option<&OverlayDirectories>,
) -> Result<OwnedFd, Errno> {
    let path = |directory: &OwnedFd| format!("/proc/self/fd/{}", directory.as_raw_fd());
    let context = fsopen(c"overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_set_string(&context, c"source", c"belljar")?;
    let mut attributes = restrictive();
    // Kept open until the overlay is made.
    let _nothing = match changes {
        Some(OverlayDirectories { upper, work }) => {
            fsconfig_set_string(&context, c"lowerdir", path(lower))?;
            fsconfig_set_string(&context, c"upperdir", path(upper))?;
            fsconfig_set_string(&context, c"workdir", path(work))?;
            None
        }
        None => {
            // An overlay without changes needs two layers; the second is a directory with nothing in it.
            let nothing = directory(root, NOTHING)?;
            fsconfig_set_string(&context, c"lowerdir", format!("{}:{}", path(lower), path(&nothing)))?;
            attributes |=
                wall!(ReadOnlyBinds: MountAttrFlags::MOUNT_ATTR_RDONLY, else MountAttrFlags::empty());
            Some(nothing)
        }
    };
    // Without privileges on the host, the overlay keeps its notes in attributes that a user may write.
    fsconfig_set_flag(&context, c"userxattr")?;
    fsconfig_create(&context)?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes)
}

/// A prepared mount must be part of this mount namespace while the overlay takes its own copy of it.
fn overlay_on_mount(
    root: BorrowedFd<'_>,
    lower: &OwnedFd,
    changes: Option<&OverlayDirectories>,
) -> Result<OwnedFd, Errno> {
    // `build` has made the root the working directory.
    const STAGING: &str = ".lower";
    mkdirat(root, STAGING, Mode::RWXU)?;
    move_mount(lower, c"", root, STAGING, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)?;
    let overlay = overlay(root, lower, changes);
    unmount(STAGING, UnmountFlags::DETACH)?;
    unlinkat(root, STAGING, AtFlags::REMOVEDIR)?;
    overlay
}

/// Returns the attributes of every mount that isn't made for devices.
pub(crate) fn restrictive() -> MountAttrFlags {
    wall!(NoSetId: MountAttrFlags::MOUNT_ATTR_NOSUID, else MountAttrFlags::empty())
        | wall!(NoDevices: MountAttrFlags::MOUNT_ATTR_NODEV, else MountAttrFlags::empty())
}

/// The first that satisfies, or else the last.
trait FindOrLast: Iterator + Sized {
    fn find_or_last(self, satisfies: impl Fn(&Self::Item) -> bool) -> Self::Item;
}

impl<T> FindOrLast for T
where
    T: Iterator<Item = Result<(), Errno>>,
{
    fn find_or_last(mut self, satisfies: impl Fn(&Self::Item) -> bool) -> Self::Item {
        let mut last = Err(Errno::NOENT);
        for item in self.by_ref() {
            last = item;
            if satisfies(&last) {
                break;
            }
        }
        last
    }
}
