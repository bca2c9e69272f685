//! The inspection of a sandbox without namespaces, whose programs inherit everything from their starter.

use super::proc_files::{ProcFiles, ProcStatus};
use super::{MissingLayer, capabilities, filters, no_new_privileges};
use crate::supervised::{Files, SupervisedPlan};
use rustix::io::Errno;
use rustix::process::geteuid;

/// An ordinary user may not empty the last set, and has no program gain anything from it either (`no_new_privs`).
const CAPABILITIES: [&str; 5] = ["CapInh", "CapPrm", "CapEff", "CapAmb", "CapBnd"];

/// Compares what is found of a starter, whose walls stand, with what the plan promises. Nothing else of the sandbox runs
/// yet.
pub(crate) fn inspect(pid: i32, plan: &SupervisedPlan) -> Result<(), MissingLayer> {
    let unread = |errno: Errno| MissingLayer {
        layer: "no_new_privs".to_owned(),
        found: format!("what the kernel says of the starter can't be read ({errno})"),
    };
    let papers = ProcFiles::open(pid, false).map_err(unread)?;
    let status = papers.status().map_err(unread)?;
    let sets = if geteuid().is_root() { &CAPABILITIES[..] } else { &CAPABILITIES[..4] };
    no_new_privileges(&status)?;
    capabilities(&status, sets)?;
    if plan.walls.seccomp {
        let own = ProcStatus::own().map_err(unread)?.number("Seccomp_filters").unwrap_or_default();
        // The policy, what spares the supervisor, and what asks for changes of metadata.
        let more = if matches!(plan.files, Files::Listed { .. }) { 3 } else { 2 };
        filters(&status, own, more)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Limits;
    use crate::supervised::{OpenedPath, SupervisedWalls};

    #[test]
    fn unsealed_process_is_not_accepted_as_starter() {
        let base = rustix::fs::open("/", rustix::fs::OFlags::PATH, rustix::fs::Mode::empty()).unwrap();
        let plan = SupervisedPlan {
            base: OpenedPath::from(base),
            files: Files::AllOfTheUsers,
            walls: SupervisedWalls::default(),
            limits: Limits::default(),
            held: Vec::new(),
            user: None,
        };
        let found = inspect(std::process::id().cast_signed(), &plan).unwrap_err();
        assert_eq!(found.layer, "no_new_privs", "{found}");
        assert!(inspect(i32::MAX, &plan).unwrap_err().found.contains("can't be read"));
    }
}
