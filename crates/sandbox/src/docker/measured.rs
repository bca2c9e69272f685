//! Properties of the container, measured from inside by our own program before any other has run.

use belljar_confine::inner_init::WalledInit;
use rustix::fs::{StatVfsMountFlags, stat, statvfs};
use rustix::process::{getegid, geteuid};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs;

/// Measured properties.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct MeasuredIsolation {
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// Further groups.
    pub(super) groups: Vec<u32>,
    /// Mapping of users inside to users outside, as in `/proc/self/uid_map`, with single spaces.
    pub(super) uid_map: String,
    /// The inode of each namespace, by its name below `/proc/self/ns`.
    pub(super) namespaces: BTreeMap<String, u64>,
    pub(super) interfaces: Vec<String>,
    /// True if a seccomp filter was in force before PID 1 installed its own.
    pub(super) has_engines_filter: bool,
    /// True if PID 1 has installed its own filter, on top of that.
    pub(super) has_own_filter: bool,
    pub(super) has_no_new_privs: bool,
    /// All capabilities that are in any set.
    pub(super) capabilities: u64,
    pub(super) landlock_abi: u32,
    pub(super) is_root_read_only: bool,
    /// Limits of the control groups; `None` where there is no limit.
    pub(super) memory_bytes: Option<u64>,
    pub(super) processes: Option<u64>,
    pub(super) millicpus: Option<u64>,
    pub(super) open_files: Option<u64>,
    /// Capacity of the file system at each place, in bytes.
    pub(super) sizes: BTreeMap<String, u64>,
    /// Device and inode of each place.
    pub(super) places: BTreeMap<String, (u64, u64)>,
}

// === impl MeasuredIsolation ===

impl MeasuredIsolation {
    /// Looks around; `places` are relative to the root.
    pub(super) fn take(attended: &WalledInit, places: &[String]) -> Self {
        let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
        let of_init = fs::read_to_string("/proc/1/status").unwrap_or_default();
        let sets = ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"];
        let capabilities = [&status, &of_init].into_iter().flat_map(|status| {
            // An unreadable set is not known to be empty.
            sets.map(|set| {
                field(status, set).and_then(|hex| u64::from_str_radix(hex, 16).ok()).unwrap_or(u64::MAX)
            })
        });
        Self {
            uid: geteuid().as_raw(),
            gid: getegid().as_raw(),
            groups: field(&of_init, "Groups")
                .map(|groups| groups.split_whitespace().filter_map(|group| group.parse().ok()).collect())
                .unwrap_or_default(),
            uid_map: fs::read_to_string("/proc/self/uid_map")
                .map_or_else(|_| String::new(), |map| in_line(&map)),
            namespaces: NAMESPACES
                .into_iter()
                .filter_map(|name| Some((name.to_owned(), namespace(name)?)))
                .collect(),
            interfaces: interfaces(),
            has_engines_filter: field(&status, "Seccomp") == Some("2"),
            has_own_filter: filters(&of_init) > filters(&status),
            has_no_new_privs: [&status, &of_init]
                .iter()
                .all(|status| field(status, "NoNewPrivs") == Some("1")),
            capabilities: capabilities.fold(0, |all, set| all | set),
            landlock_abi: attended.landlock_abi(),
            is_root_read_only: statvfs("/").is_ok_and(|fs| fs.f_flag.contains(StatVfsMountFlags::RDONLY)),
            memory_bytes: first_number(&["memory.max", "memory/memory.limit_in_bytes"]),
            processes: first_number(&["pids.max", "pids/pids.max"]),
            millicpus: millicpus(),
            open_files: open_files(),
            sizes: each(places, |path| statvfs(path).ok().map(|fs| fs.f_blocks * fs.f_frsize)),
            places: each(places, |path| stat(path).ok().map(|stat| (stat.st_dev, stat.st_ino))),
        }
    }
}

/// Namespaces that a container has of its own.
pub(super) const NAMESPACES: [&str; 7] = ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup"];

/// The inode of a namespace of this process.
pub(super) fn namespace(name: &str) -> Option<u64> {
    stat(format!("/proc/self/ns/{name}")).ok().map(|stat| stat.st_ino)
}

/// Returns the inode of a namespace of the process with that process id.
pub(super) fn namespace_of(pid: i32, name: &str) -> Option<u64> {
    stat(format!("/proc/{pid}/ns/{name}")).ok().map(|stat| stat.st_ino)
}

fn each<T>(places: &[String], look: impl Fn(&str) -> Option<T>) -> BTreeMap<String, T> {
    places.iter().filter_map(|place| Some((place.clone(), look(&format!("/{place}"))?))).collect()
}

fn field<'s>(status: &'s str, name: &str) -> Option<&'s str> {
    status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

/// Returns the number of seccomp filters; one if there are any and the kernel reports no number.
fn filters(status: &str) -> u64 {
    match (field(status, "Seccomp"), field(status, "Seccomp_filters")) {
        (Some("2"), count) => count.and_then(|count| count.parse().ok()).unwrap_or(1),
        _ => 0,
    }
}

fn in_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The hard limit of PID 1, which its programs have from it.
fn open_files() -> Option<u64> {
    let limits = fs::read_to_string("/proc/1/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Returns the network interfaces: two lines of headings, then a line for each.
fn interfaces() -> Vec<String> {
    let table = fs::read_to_string("/proc/net/dev").unwrap_or_default();
    table.lines().skip(2).filter_map(|line| Some(line.split_once(':')?.0.trim().to_owned())).collect()
}

/// Returns the number in the first of these files, if it is one. Control groups of version 1 write an unreachable number
/// for no limit.
fn first_number(files: &[&str]) -> Option<u64> {
    const NO_LIMIT: u64 = 1 << 60;
    let text = files.iter().find_map(|file| fs::read_to_string(format!("/sys/fs/cgroup/{file}")).ok())?;
    text.trim().parse().ok().filter(|number| *number < NO_LIMIT)
}

fn millicpus() -> Option<u64> {
    let read = |file: &str| fs::read_to_string(format!("/sys/fs/cgroup/{file}")).ok();
    let text = read("cpu.max").or_else(|| {
        let directory = ["cpu", "cpu,cpuacct"]
            .into_iter()
            .find(|one| read(&format!("{one}/cpu.cfs_quota_us")).is_some())?;
        Some(format!(
            "{} {}",
            read(&format!("{directory}/cpu.cfs_quota_us"))?,
            read(&format!("{directory}/cpu.cfs_period_us"))?
        ))
    })?;
    let mut numbers = text.split_whitespace().map(str::parse::<u64>);
    let (Some(Ok(quota)), Some(Ok(period))) = (numbers.next(), numbers.next()) else { return None };
    (quota * 1000).checked_div(period)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_was_there_before_is_not_pid_1s_own() {
        let engines = "Seccomp:\t2\nSeccomp_filters:\t1\n";
        let both = "Seccomp:\t2\nSeccomp_filters:\t2\n";
        let without_count = "Seccomp:\t2\n";
        let none = "Seccomp:\t0\nSeccomp_filters:\t0\n";
        for (init, other, has_own) in [
            (both, engines, true),
            (engines, none, true),
            (without_count, none, true),
            (engines, engines, false),
            (without_count, without_count, false),
            (none, none, false),
            ("", "", false),
        ] {
            assert_eq!(filters(init) > filters(other), has_own, "{init:?} {other:?}");
        }
    }
}
