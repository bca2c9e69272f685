//! Control groups for sandboxes, and what is done where there are none.

use crate::limits::Limits;
use crate::state::StateDirectory;
use belljar_confine::group::{Cgroup, CgroupError, CgroupHierarchies, CgroupJoin, CgroupLimits, sweep};
use belljar_confine::wall;
use belljar_contract::id::RunId;

/// Place of this deployment's groups, or the reason why they can't be made.
#[derive(Debug)]
pub(super) struct DeploymentGroups {
    hierarchies: Result<CgroupHierarchies, String>,
    /// Prefix of the names of this deployment's groups.
    prefix: String,
}

/// Means by which one sandbox is kept within its limits.
#[derive(Debug)]
pub(super) struct ResourceControls {
    /// The group that everything in it is part of.
    pub(super) group: Option<Cgroup>,
    /// Limits of the group; empty without one.
    pub(super) limits: CgroupLimits,
    /// The version of control groups that limits it, or why none does.
    pub(super) version: Result<u8, String>,
    /// Memory limit that PID 1 itself enforces, in bytes.
    pub(super) watched_memory_bytes: Option<u64>,
}

/// PID 1, and the process that helps it in the beginning.
const OWN_PROCESSES: u64 = 2;

// === impl DeploymentGroups ===

impl DeploymentGroups {
    /// Looks for a place, and removes what others of this deployment have left there.
    pub(super) fn open(state: &StateDirectory) -> Self {
        let prefix = prefix(state);
        let hierarchies = CgroupHierarchies::find().map_err(|error| crate::backend::with_causes(&error));
        let hierarchies = hierarchies.and_then(|found| {
            // A place that can't be remembered could not be cleared after a crash.
            let remembered = state.remember_groups_at(&found.parents());
            remembered.map(|()| found).map_err(|error| crate::backend::with_causes(&error))
        });
        let _ = clear(state);
        Self { hierarchies, prefix }
    }

    /// Makes what keeps a sandbox within `limits`.
    pub(super) fn hold(&self, id: &RunId, limits: &Limits) -> Result<ResourceControls, CgroupError> {
        let wanted = CgroupLimits {
            memory_bytes: limits.memory_bytes,
            processes: Some(limits.processes.saturating_add(OWN_PROCESSES)),
            millicpus: limits.millicpus,
        };
        // A limit that a test leaves out is reported as present: a limit that is known to be missing is refused.
        let upheld = CgroupLimits {
            memory_bytes: wall!(MemoryLimit: wanted.memory_bytes, else None),
            millicpus: wall!(CpuLimit: wanted.millicpus, else None),
            ..wanted
        };
        let needs_group = wanted.memory_bytes.is_some() || wanted.millicpus.is_some();
        match &self.hierarchies {
            Ok(found) if needs_group => {
                let group = found.make(&format!("{}{id}", self.prefix), &upheld)?;
                let (group, version) = (Some(group), Ok(found.version()));
                Ok(ResourceControls { group, limits: wanted, version, watched_memory_bytes: None })
            }
            Ok(_) => Ok(ResourceControls::without_group("not requested", None)),
            Err(why) => Ok(ResourceControls::without_group(why, wanted.memory_bytes)),
        }
    }
}

/// Removes the groups that sandboxes of this deployment have left whose owner is gone.
pub(crate) fn clear(state: &StateDirectory) -> Result<usize, CgroupError> {
    let prefix = prefix(state);
    state.groups_at().iter().map(|parent| sweep(parent, &prefix)).sum()
}

/// Prefix of this deployment's groups. Another deployment has another one.
fn prefix(state: &StateDirectory) -> String {
    format!("belljar-{}-", state.deployment())
}

// === impl ResourceControls ===

impl ResourceControls {
    fn without_group(why: &str, watched_memory_bytes: Option<u64>) -> Self {
        let version = Err(why.to_owned());
        Self { group: None, limits: CgroupLimits::default(), version, watched_memory_bytes }
    }

    pub(super) fn entrance(&self) -> Result<Option<CgroupJoin>, CgroupError> {
        self.group.as_ref().map(Cgroup::entrance).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    #[test]
    fn who_clears_away_takes_no_group_from_whoever_is_making_it() {
        let found = match CgroupHierarchies::find() {
            Ok(found) => found,
            Err(why) => {
                let test = "who_clears_away_takes_no_group_from_whoever_is_making_it";
                return belljar_testkit::skip::skip(test, &why.to_string());
            }
        };
        let prefix = format!("belljar-test-{}-", std::process::id());
        let limits = CgroupLimits { memory_bytes: Some(64 << 20), ..CgroupLimits::default() };
        let is_over = AtomicBool::new(false);
        let made: Result<(), CgroupError> = std::thread::scope(|scope| {
            // So many that some are held up where it matters.
            for parent in found.parents().into_iter().cycle().take(8) {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        // Several who clear away may be in each other's way, which is no matter here.
                        let _ = sweep(parent, &prefix);
                    }
                });
            }
            let made = (0..1_000).try_for_each(|number| {
                let group = found.make(&format!("{prefix}{number}"), &limits)?;
                group.entrance().map(drop)?;
                group.remove()
            });
            is_over.store(true, Ordering::Relaxed);
            made
        });
        made.unwrap();
    }
}
