//! State of one sandbox by which PID 1 decides what programs may do.

use super::filters::Filters;
use super::poll_tables::PollTables;
use crate::plan::{Access, Plan, RootEntry};
use crate::walls::{ErrorContext, WallError, devices};
use rustix::fd::AsFd;
use rustix::fs::{AtFlags, CWD, StatxFlags, statx};
use rustix::io::Errno;
use std::cell::{OnceCell, RefCell};

/// The sandbox's own files and limits.
pub(super) struct OwnResources {
    /// The devices on which a socket is the sandbox's own: its memory, and its overlays, behind whose names nothing of the
    /// host listens.
    devices: Vec<u64>,
    /// The mount points of files of the sandbox's own: what can be written, and views through overlays, in which nothing
    /// shows that other processes of the machine do. Programs can't change what is mounted there.
    places: Vec<String>,
    /// Ids of those mounts, read when they are first needed.
    mounts: OnceCell<Vec<u64>>,
    /// The mount points of overlays that can be written.
    overlay_places: Vec<String>,
    /// Ids of those overlays, read when they are first needed.
    overlays: OnceCell<Vec<u64>>,
    /// The seccomp filters that programs have installed.
    pub(super) filters: RefCell<Filters>,
    /// Descriptors that threads wait for in `poll` and `select`.
    pub(super) poll_tables: RefCell<PollTables>,
}

// === impl OwnResources ===

impl OwnResources {
    /// Reads it from the root that is in place. The root itself may be shared with other sandboxes, but it can't be written.
    pub(super) fn of_plan(plan: &Plan) -> Result<Self, WallError> {
        let overlays = plan.root.iter().filter_map(|entry| match entry {
            RootEntry::Overlay { inside, .. } => Some(inside.as_str()),
            _ => None,
        });
        // All scratch directories are in one file system.
        let on_own_devices = [""].into_iter().chain(plan.scratch_places().take(1)).chain(overlays.clone());
        let watched = plan.root.iter().filter_map(|entry| match entry {
            RootEntry::Overlay { inside, .. }
            | RootEntry::View { inside, .. }
            | RootEntry::Bind { inside, access: Access::ReadWrite, .. } => Some(inside.as_str()),
            _ => None,
        });
        let watched = watched.chain(plan.scratch_places()).chain([devices::SHARED_MEMORY]);
        let overlay_places = overlays.map(str::to_owned).collect();
        Ok(Self { overlay_places, ..Self::of(on_own_devices, watched, plan.limits.filters)? })
    }

    /// Reads the state from these places, none of which is an overlay of its own.
    pub(super) fn of<'p>(
        on_own_devices: impl Iterator<Item = &'p str>,
        watched: impl Iterator<Item = &'p str>,
        most_filters: u64,
    ) -> Result<Self, WallError> {
        let device =
            |inside: &str| rustix::fs::stat(format!("/{inside}")).map(|stat| stat.st_dev).about(inside);
        Ok(Self {
            devices: on_own_devices.map(device).collect::<Result<_, _>>()?,
            places: watched.map(str::to_owned).collect(),
            mounts: OnceCell::new(),
            overlay_places: Vec::new(),
            overlays: OnceCell::new(),
            filters: RefCell::new(Filters::new(most_filters)),
            poll_tables: RefCell::default(),
        })
    }

    pub(super) fn has_device(&self, device: u64) -> bool {
        self.devices.contains(&device)
    }

    /// Returns true if an open file lies in a mount of the sandbox's own.
    pub(super) fn has_mount_of(&self, file: impl AsFd) -> Result<bool, Errno> {
        let mount = mount_of(file, "")?;
        Ok(self.mounts.get_or_init(|| mounts_at(&self.places)).contains(&mount))
    }

    /// The ids of mounts of overlays that can be written.
    pub(super) fn overlays(&self) -> &[u64] {
        self.overlays.get_or_init(|| mounts_at(&self.overlay_places))
    }
}

fn mounts_at(places: &[String]) -> Vec<u64> {
    places.iter().filter_map(|inside| mount_of(CWD, &format!("/{inside}")).ok()).collect()
}

/// The id of the mount that a path leads to.
fn mount_of(directory: impl AsFd, path: &str) -> Result<u64, Errno> {
    let stat = statx(directory, path, AtFlags::EMPTY_PATH, StatxFlags::MNT_ID)?;
    match stat.stx_mask & StatxFlags::MNT_ID.bits() {
        // Before Linux 5.8.
        0 => Err(Errno::NOSYS),
        _ => Ok(stat.stx_mnt_id),
    }
}
