//! Check of a new sandbox's walls from outside, before its program's first instruction.
//!
//! ```text
//! host                                     PID 1
//! clone3 ─────────────────────────────────► walls, one after the other
//! opens what /proc says of it               │
//!   │ ◄── Built: what only it can see ──────┤ nothing else has run yet
//! reads, and compares with the plan         │ a program is made ready
//!   ├── go ─────────────────────────────────► exec
//!   └── or kills it: a layer is not in force
//! ```
//! The files are opened while PID 1 may still be looked at by an ordinary user, and read when its walls stand. PID 1 itself
//! reports its namespaces, which only root could see from outside, and its limits, which are cheaper to have that way.
//! Nothing has run yet that could make it lie.

mod proc_files;
mod self_report;
mod starter;

pub(crate) use self_report::SelfReport;
pub(crate) use starter::inspect as inspect_starter;

use crate::kernel::landlock_abi;
use crate::plan::{self, Plan};
use proc_files::{ProcFiles, ProcStatus};
use rustix::fs::stat;
use rustix::io::Errno;
use rustix::process::{Resource, geteuid};
use rustix::thread::SecureComputingMode;
use serde::{Deserialize, Serialize};
use std::sync::OnceLock;

/// A layer that should be in force and isn't. There is no sandbox then.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("the layer {layer} is not in force: {found}")]
pub struct MissingLayer {
    /// Its name, as in the isolation report.
    pub layer: String,
    /// State that was found instead.
    pub found: String,
}

/// Looks at one new PID 1.
#[derive(Debug)]
pub(crate) struct Inspector {
    /// The kernel's description of PID 1, or the reason why it can't be read.
    papers: Result<ProcFiles, Errno>,
    own: &'static HostState,
}

/// State of this process on the host, which must be different inside. It stays the same for as long as the launching
/// process lives.
#[derive(Debug)]
struct HostState {
    namespaces: [u64; NAMESPACES.len()],
    root: (u64, u64),
    filters: u64,
}

/// Namespaces: how `/proc` calls each, and which layer it is. Those of users, processes and mounts show in other ways:
/// by the map of users, by PID 1 having two numbers, and by its root.
const NAMESPACES: [(&str, &str); 4] = [
    ("net", "network_namespace"),
    ("ipc", "ipc_namespace"),
    ("uts", "uts_namespace"),
    ("cgroup", "cgroup_namespace"),
];

/// Limits, and which layer each is.
const LIMITS: [(Resource, &str); 4] = [
    (Resource::Core, "resource_limits"),
    (Resource::Nofile, "resource_limits"),
    (Resource::Memlock, "resource_limits"),
    (Resource::Nproc, "process_limit"),
];

/// The sets of capabilities, all of which must be empty.
const CAPABILITIES: [&str; 5] = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"];

/// Passes if `holds`; otherwise returns an error with what was found.
fn check(layer: &str, holds: bool, found: impl FnOnce() -> String) -> Result<(), MissingLayer> {
    match holds {
        true => Ok(()),
        false => Err(MissingLayer { layer: layer.to_owned(), found: found() }),
    }
}

// === impl Inspector ===

impl Inspector {
    /// Begins the inspection while PID 1 puts up its walls and this process is idle.
    pub(crate) fn begin(pid: i32, plan: &Plan) -> Result<Self, Errno> {
        let papers = ProcFiles::open(pid, plan.group_name.is_some());
        Ok(Self { papers, own: HostState::get()? })
    }

    /// Compares what is found with what the plan promises.
    pub(crate) fn inspect(&self, plan: &Plan, testimony: &SelfReport) -> Result<(), MissingLayer> {
        let unread = |errno: Errno| MissingLayer {
            layer: "pid_namespace".to_owned(),
            found: format!("what the kernel says of PID 1 can't be read ({errno})"),
        };
        let papers = self.papers.as_ref().map_err(|errno| unread(*errno))?;
        let status = papers.status().map_err(unread)?;
        namespaces(testimony, self.own)?;
        identity(plan, &status, &papers.uid_map().map_err(unread)?)?;
        place(plan, testimony, self.own.root)?;
        privileges(&status, testimony, self.own.filters)?;
        limits(plan, &testimony.limits)?;
        match &plan.group_name {
            Some(name) => in_group(plan, name, &papers.groups().map_err(unread)?),
            None => Ok(()),
        }
    }
}

/// Looks at the host now, before this process leaves it: what it launches must be somewhere else than here.
pub(crate) fn remember_the_host() -> Result<(), Errno> {
    HostState::get().map(drop)
}

// === impl HostState ===

impl HostState {
    fn get() -> Result<&'static Self, Errno> {
        static OWN: OnceLock<HostState> = OnceLock::new();
        match OWN.get() {
            Some(own) => Ok(own),
            None => Self::look().map(|own| OWN.get_or_init(|| own)),
        }
    }

    fn look() -> Result<Self, Errno> {
        let mut namespaces = [0; NAMESPACES.len()];
        for (found, (name, _)) in namespaces.iter_mut().zip(NAMESPACES) {
            *found = namespace(name)?;
        }
        let root = stat("/")?;
        let filters = match rustix::thread::secure_computing_mode()? {
            SecureComputingMode::Disabled => 0,
            _ => ProcStatus::own()?.number("Seccomp_filters").ok_or(Errno::NOSYS)?,
        };
        Ok(Self { namespaces, root: (root.st_dev, root.st_ino), filters })
    }
}

fn namespace(name: &str) -> Result<u64, Errno> {
    stat(format!("/proc/self/ns/{name}")).map(|stat| stat.st_ino)
}

fn namespaces(testimony: &SelfReport, own: &HostState) -> Result<(), MissingLayer> {
    let all = NAMESPACES.iter().zip(own.namespaces).zip(testimony.namespaces);
    for (((_, layer), own), found) in all {
        check(layer, found != own, || "it is the host's".to_owned())?;
    }
    Ok(())
}

/// Checks the user and group ids of PID 1, inside and on the host.
fn identity(plan: &Plan, status: &ProcStatus, uid_map: &str) -> Result<(), MissingLayer> {
    let identity = plan.identity;
    let map: Vec<&str> = uid_map.split_whitespace().collect();
    let meant = [identity.inside_uid, identity.host_uid, 1].map(|number| number.to_string());
    check("user_namespace", map == meant, || format!("users inside and outside: {}", map.join(" ")))?;
    for (field, id) in [("Uid", identity.host_uid), ("Gid", identity.host_gid)] {
        let ids = status.field(field);
        let is_the_one = ids.split_whitespace().count() == 4
            && ids.split_whitespace().all(|found| found.parse() == Ok(id));
        check("host_user", is_the_one, || format!("{field} is {ids}, not {id}"))?;
    }
    // A launch as the own user can't leave the user's groups.
    let became_another = geteuid().as_raw() != identity.host_uid;
    let groups = status.field("Groups");
    check("host_user", !became_another || groups.is_empty(), || format!("it is in the groups {groups}"))?;
    let numbers: Vec<&str> = status.field("NSpid").split_whitespace().collect();
    let is_first = numbers.len() > 1 && numbers.last() == Some(&"1");
    check("pid_namespace", is_first, || format!("its numbers are {}", numbers.join(" ")))
}

/// Checks the namespaces and the root of PID 1.
fn place(plan: &Plan, testimony: &SelfReport, hosts: (u64, u64)) -> Result<(), MissingLayer> {
    check("mount_namespace", testimony.root != hosts, || "its root is the host's".to_owned())?;
    // The kernel rounds memory to whole pages, and reports no limit as zero.
    let (found, most) = (testimony.scratch_bytes, plan.scratch_bytes.saturating_add(1 << 16));
    check("scratch_limit", (1..=most).contains(&found), || format!("there is room for {found} bytes"))
}

/// Checks the privileges of PID 1.
fn privileges(status: &ProcStatus, testimony: &SelfReport, own_filters: u64) -> Result<(), MissingLayer> {
    no_new_privileges(status)?;
    capabilities(status, &CAPABILITIES)?;
    filters(status, own_filters, 1)?;
    check("pid_namespace", !testimony.is_dumpable, || "PID 1 can be looked into".to_owned())?;
    let (told, offered) = (testimony.landlock_abi, landlock_abi());
    check("landlock", told == offered, || format!("ABI {told} where the kernel has {offered}"))?;
    let errno = testimony.refused_by_landlock;
    check("landlock", told == 0 || errno == libc::EACCES, || format!("it denies nothing (errno {errno})"))
}

fn capabilities(status: &ProcStatus, sets: &[&str]) -> Result<(), MissingLayer> {
    for set in sets {
        let held = status.field(set);
        let is_empty = !held.is_empty() && held.bytes().all(|digit| digit == b'0');
        check("capabilities", is_empty, || format!("{set} is {held}"))?;
    }
    Ok(())
}

fn no_new_privileges(status: &ProcStatus) -> Result<(), MissingLayer> {
    check("no_new_privs", status.number("NoNewPrivs") == Some(1), || "the flag is not set".to_owned())
}

/// Checks the seccomp filters. The launching process may have filters itself, which every process that descends from it
/// then has, too.
fn filters(status: &ProcStatus, own: u64, more: u64) -> Result<(), MissingLayer> {
    let (mode, filters) = (status.number("Seccomp"), status.number("Seccomp_filters").unwrap_or_default());
    let found = || format!("{filters} filters, {own} of them inherited from the launching process");
    check("seccomp", mode == Some(2) && filters >= own.saturating_add(more), found)
}

/// Checks the limits that every process of the sandbox has from PID 1.
fn limits(plan: &Plan, found: &[u64; LIMITS.len()]) -> Result<(), MissingLayer> {
    let plan::Limits { open_files, processes, locked_memory_bytes, .. } = plan.limits;
    let most = [1, open_files, locked_memory_bytes, processes];
    for (((_, layer), found), most) in LIMITS.iter().zip(found).zip(most) {
        check(layer, *found <= most, || format!("{found} where there should be at most {most}"))?;
    }
    Ok(())
}

/// Checks that PID 1 is in its control group, in each tree where it has a directory.
fn in_group(plan: &Plan, name: &str, text: &str) -> Result<(), MissingLayer> {
    let trees = plan.group.as_ref().map_or(0, crate::group::CgroupJoin::trees);
    let found = text.lines().filter(|line| line.rsplit('/').next() == Some(name)).count();
    let told = || format!("PID 1 is in {found} of {trees} groups named {name}");
    check("memory_limit or cpu_limit", trees > 0 && found == trees, told)
}

#[cfg(test)]
mod tests;
