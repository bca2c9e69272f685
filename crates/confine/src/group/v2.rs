//! Version 2: one tree, and a group is one directory in it.

use super::mounts::CgroupMountInfo;
use super::{CgroupError, CgroupJoin, CgroupLimits, make_directory, number, number_after, tree_error};
use rustix::fs::{Access, Mode, OFlags, access, open};
use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// The directory in which groups are made.
#[derive(Debug, Clone)]
pub struct V2Hierarchy {
    parent: PathBuf,
}

/// The directory of one group.
#[derive(Debug)]
pub(super) struct V2Directory {
    path: PathBuf,
}

/// An operator may say below which group belljar makes its own.
const PARENT_VARIABLE: &str = "BELLJAR_CGROUP";

/// Controller without which a tree is of no use.
const NEEDED: &str = "memory";
const WANTED: [&str; 3] = [NEEDED, "pids", "cpu"];

/// Group below the root in which root makes groups if it can't do so where it is itself.
const AT_THE_TOP: &str = "belljar";

/// Group that this process moves into to make room: a group that gives resources to others may not hold processes itself.
const ASIDE: &str = "belljar-host";

const PERIOD_MICROSECONDS: u64 = 100_000;

fn write(path: &Path, value: &str) -> Result<(), CgroupError> {
    let opened = fs::OpenOptions::new().write(true).open(path);
    opened.and_then(|mut file| file.write_all(value.as_bytes())).map_err(|error| tree_error(path, error))
}

fn words(path: &Path) -> Vec<String> {
    fs::read_to_string(path).unwrap_or_default().split_whitespace().map(str::to_owned).collect()
}

// === impl V2Hierarchy ===

impl V2Hierarchy {
    pub(super) fn find(place: &CgroupMountInfo) -> Result<Self, CgroupError> {
        let unavailable = |why: String| CgroupError::Unavailable { why };
        let mounted = place.of_version(2);
        let tree = mounted.first().ok_or_else(|| unavailable("version 2 is not mounted".to_owned()))?;
        let top = tree.point();
        if !words(&top.join("cgroup.controllers")).iter().any(|controller| controller == NEEDED) {
            return Err(unavailable("version 2 limits no memory here".to_owned()));
        }
        if let Some(parent) = std::env::var_os(PARENT_VARIABLE) {
            return Self::below(top, &parent);
        }
        let own = place.own_path(None).and_then(|own| tree.directory(&own)).filter(|own| own.is_dir());
        let own = own.ok_or_else(|| unavailable("this process is in no group of version 2".to_owned()))?;
        let here = Self::at(&own);
        if here.is_err() && rustix::process::geteuid().is_root() {
            let top_one = top.join(AT_THE_TOP);
            give(top)?;
            match fs::create_dir(&top_one) {
                Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                    return Err(tree_error(&top_one, error));
                }
                _ => return Self::at(&top_one),
            }
        }
        here.map_err(|error| unavailable(format!("version 2 is not delegated to this process ({error})")))
    }

    fn below(top: &Path, parent: &OsStr) -> Result<Self, CgroupError> {
        let parent = Path::new(parent);
        let below = parent.strip_prefix(top).or_else(|_| parent.strip_prefix("/")).unwrap_or(parent);
        let is_plain =
            below.components().all(|component| matches!(component, std::path::Component::Normal(_)));
        match is_plain {
            true => Self::at(&top.join(below)),
            false => Err(CgroupError::Unavailable {
                why: format!("{PARENT_VARIABLE} is {}, which is no plain path in the tree", parent.display()),
            }),
        }
    }

    /// Groups below that directory, if they can be given memory.
    fn at(parent: &Path) -> Result<Self, CgroupError> {
        access(parent, Access::WRITE_OK).map_err(|errno| tree_error(parent, errno))?;
        access(parent.join("cgroup.procs"), Access::WRITE_OK).map_err(|errno| tree_error(parent, errno))?;
        give(parent)?;
        Ok(Self { parent: parent.to_owned() })
    }

    pub(super) fn parent(&self) -> &Path {
        &self.parent
    }

    pub(super) fn make(&self, name: &str) -> Result<V2Directory, CgroupError> {
        let path = self.parent.join(name);
        make_directory(&path)?;
        Ok(V2Directory { path })
    }
}

/// Delegates a group's controllers to the groups below it.
fn give(parent: &Path) -> Result<(), CgroupError> {
    let control = parent.join("cgroup.subtree_control");
    let (given, there) = (words(&control), words(&parent.join("cgroup.controllers")));
    let missing = WANTED.into_iter().filter(|name| !given.iter().any(|given| given == name));
    for controller in missing.filter(|name| there.iter().any(|there| there == name)) {
        let order = format!("+{controller}");
        let Err(refused) = write(&control, &order) else { continue };
        // The reason is mostly that there are processes in it. Ours can make room; others are not ours to move.
        let given = step_aside(parent).and_then(|()| write(&control, &order));
        match given {
            Err(_) if controller != NEEDED => {}
            Err(_) => return Err(refused),
            Ok(()) => {}
        }
    }
    match words(&control).iter().any(|given| given == NEEDED) {
        true => Ok(()),
        false => Err(CgroupError::Unavailable { why: "no memory is given to groups below".to_owned() }),
    }
}

/// Moves this process and its children out of a group in which there are no other processes.
fn step_aside(parent: &Path) -> Result<(), CgroupError> {
    let aside = parent.join(ASIDE);
    let there = words(&parent.join("cgroup.procs"));
    let ours = |pid: &String| {
        let own = std::process::id();
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        pid.parse() == Ok(own) || parent == Some(own)
    };
    if there.is_empty() || !there.iter().all(ours) {
        return Err(CgroupError::Unavailable { why: "there are processes of others in it".to_owned() });
    }
    match fs::create_dir(&aside) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            return Err(tree_error(&aside, error));
        }
        _ => {}
    }
    there.iter().try_for_each(|pid| write(&aside.join("cgroup.procs"), pid))
}

// === impl V2Directory ===

impl V2Directory {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn limit(&self, limits: &CgroupLimits) -> Result<(), CgroupError> {
        if let Some(bytes) = limits.memory_bytes {
            write(&self.path.join("memory.max"), &bytes.to_string())?;
            let swap = self.path.join("memory.swap.max");
            if swap.exists() {
                write(&swap, "0")?;
            }
            // An OOM kill takes all processes of the group: half a job is of no use.
            write(&self.path.join("memory.oom.group"), "1")?;
        }
        if let Some(processes) = limits.processes {
            write(&self.path.join("pids.max"), &processes.to_string())?;
        }
        if let Some(millicpus) = limits.millicpus {
            let quota = u64::from(millicpus) * PERIOD_MICROSECONDS / 1000;
            write(&self.path.join("cpu.max"), &format!("{quota} {PERIOD_MICROSECONDS}"))?;
        }
        Ok(())
    }

    pub(super) fn entrance(&self) -> Result<CgroupJoin, CgroupError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = open(&self.path, flags, Mode::empty());
        directory.map(CgroupJoin::Born).map_err(|errno| tree_error(&self.path, errno))
    }

    pub(super) fn oom_kills(&self) -> u64 {
        number_after(&self.path.join("memory.events"), "oom_kill ").unwrap_or_default()
    }

    pub(super) fn memory_bytes(&self) -> Option<u64> {
        number(&self.path.join("memory.current"))
    }
}
