//! Locations, in their file systems, of the directories that sandboxes write.

use super::error::{UntrustedFileError, errno, look};
use super::scan;
use crate::in_use::{self, FileIdentity, InUseEntry};
use crate::mounts::{Location, Mounts};
use rustix::fd::OwnedFd;
use rustix::fs::Stat;
use std::path::Path;

/// The directories that sandboxes write at the moment.
pub(super) struct WritableDirectories<'a> {
    mounts: Mounts,
    places: Vec<WritableDirectory<'a>>,
}

struct WritableDirectory<'a> {
    entry: &'a InUseEntry,
    /// `None` if it can't be opened, as when its holder is a process of another machine.
    found: Option<(OwnedFd, Location)>,
}

// === impl WritableDirectories ===

impl<'a> WritableDirectories<'a> {
    /// Makes the reach of these entries.
    ///
    /// # Errors
    /// [`UntrustedFileError::Look`] where `/proc` isn't mounted.
    pub(super) fn of(entries: &'a [InUseEntry]) -> Result<Self, UntrustedFileError> {
        let path = Path::new("/proc/self/mountinfo");
        let mounts = Mounts::read().map_err(|error| look(path)(errno(&error)))?;
        let (found, lost): (Vec<_>, Vec<_>) = entries
            .iter()
            .filter_map(|entry| WritableDirectory::of(entry, &mounts))
            .partition(|place| place.found.is_some());
        // A process that has ended may have left its list to another one, which has the directory in its own.
        let is_known = |lost: &WritableDirectory<'a>| {
            found.iter().any(|place| place.entry.identity == lost.entry.identity)
        };
        let lost: Vec<_> = lost.into_iter().filter(|place| !is_known(place)).collect();
        Ok(Self { mounts, places: found.into_iter().chain(lost).collect() })
    }

    /// Returns the location of an open file.
    pub(super) fn location(&self, found: &OwnedFd) -> Option<Location> {
        self.mounts.location(found)
    }

    /// Refuses what is a directory that a sandbox writes, or lies in one, also if that was not on the way: a part of it can be mounted
    /// elsewhere.
    pub(super) fn check(&self, path: &Path, found: &OwnedFd, stat: &Stat) -> Result<(), UntrustedFileError> {
        let identity = FileIdentity::of(stat);
        let location = self.mounts.location(found);
        for WritableDirectory { entry, found } in &self.places {
            let is_within = match (&location, found) {
                _ if entry.identity == identity => true,
                (Some(location), Some((_, place))) => location.is_within(place),
                _ if entry.identity.shares_device_with(identity) => {
                    return Err(UntrustedFileError::unknown(path, entry, "its location can't be determined"));
                }
                _ => false,
            };
            if is_within {
                let workspace = entry.path.clone();
                return Err(UntrustedFileError::Workspace { path: path.to_owned(), workspace });
            }
        }
        Ok(())
    }

    /// Refuses a file with several names if one of them lies where a sandbox writes, which the path doesn't show.
    pub(super) fn check_names(
        &self,
        path: &Path,
        file: &OwnedFd,
        stat: &Stat,
    ) -> Result<(), UntrustedFileError> {
        let Some(location) = self.mounts.location(file) else { return Ok(()) };
        for WritableDirectory { entry, found } in &self.places {
            // One that can't be opened was refused before.
            let Some((directory, place)) = found else { continue };
            if place.file_system != location.file_system {
                continue;
            }
            // A mount made there since may hide what the sandbox still sees.
            let is_mounted = |identity| {
                let is_it =
                    |entry: &InUseEntry| entry.identity == identity || entry.read_only.contains(&identity);
                self.places.iter().any(|place| is_it(place.entry))
            };
            let workspace = entry.path.clone();
            match scan::find(directory, FileIdentity::of(stat), is_mounted) {
                Ok(None) => {}
                Ok(Some(below)) => {
                    let (path, other) = (path.to_owned(), entry.path.join(below));
                    return Err(UntrustedFileError::Linked { path, other, workspace });
                }
                Err(why) => return Err(UntrustedFileError::unknown(path, entry, why)),
            }
        }
        Ok(())
    }

    /// Returns the directories that are in one of these file systems.
    pub(super) fn in_file_systems<'s>(
        &'s self,
        locations: &'s [Location],
    ) -> impl Iterator<Item = &'a InUseEntry> {
        let is_one = move |place: &&WritableDirectory<'a>| {
            let Some((_, own)) = &place.found else { return false };
            locations.iter().any(|location| location.file_system == own.file_system)
        };
        self.places.iter().filter(is_one).map(|place| place.entry)
    }
}

// === impl WritableDirectory ===

impl<'a> WritableDirectory<'a> {
    /// Returns `None` if the sandbox has ended.
    fn of(entry: &'a InUseEntry, mounts: &Mounts) -> Option<Self> {
        let Some(opened) = entry.open() else {
            return in_use::writable().contains(entry).then_some(Self { entry, found: None });
        };
        let of_holder = || Mounts::of(entry.holder?.process).ok()?.location(&opened);
        let location = mounts.location(&opened).or_else(of_holder);
        let found = location.map(|location| (opened, location));
        Some(Self { entry, found })
    }
}
