//! The probe's own properties as it sees them: threads, descriptors, limits, namespaces, and process 1.

use super::kernel::call_named;
use super::places;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::sync::{Arc, Barrier};
use std::thread;

/// Prints the user, group, capabilities and `no_new_privs` of this process in one line.
pub(super) fn print_identity() -> Result<(), String> {
    let status = status_of("/proc/self/status")?;
    let of = |key: &str| status.get(key).and_then(Value::as_str).unwrap_or("?").to_owned();
    println!(
        "uid {} gid {} permitted {} effective {} new {}",
        of("Uid"),
        of("Gid"),
        of("CapPrm"),
        of("CapEff"),
        of("NoNewPrivs")
    );
    Ok(())
}

/// Files and directories of `/proc` that report on the whole machine.
const COUNTERS: [&str; 28] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/buddyinfo",
    "/proc/cgroups",
    "/proc/crypto",
    "/proc/diskstats",
    "/proc/fs",
    "/proc/interrupts",
    "/proc/irq",
    "/proc/locks",
    "/proc/mdstat",
    "/proc/modules",
    "/proc/partitions",
    "/proc/pressure",
    "/proc/schedstat",
    "/proc/scsi",
    "/proc/softirqs",
    "/proc/swaps",
    "/proc/sys/fs/aio-nr",
    "/proc/sys/fs/dentry-state",
    "/proc/sys/fs/file-nr",
    "/proc/sys/fs/inode-nr",
    "/proc/sys/fs/inode-state",
    "/proc/sys/fs/quota",
    "/proc/sys/kernel/pty/nr",
    "/proc/sys/kernel/random/boot_id",
    "/proc/vmstat",
    "/proc/zoneinfo",
];

/// Returns those of [`COUNTERS`] that aren't empty.
fn counters() -> Vec<&'static str> {
    let holds_something = |path: &&str| match fs::read_dir(path) {
        Ok(mut entries) => entries.next().is_some(),
        Err(_) => fs::read(path).is_ok_and(|content| !content.is_empty()),
    };
    COUNTERS.into_iter().filter(holds_something).collect()
}

/// Prints all properties as JSON: once with one thread, once with more.
pub(super) fn print() -> Result<(), String> {
    let alone = threads()?;
    let gate = Arc::new(Barrier::new(4));
    let others: Vec<_> = (0..3)
        .map(|_| {
            let gate = Arc::clone(&gate);
            thread::spawn(move || {
                gate.wait();
                gate.wait();
            })
        })
        .collect();
    gate.wait();
    let with_others = threads();
    gate.wait();
    for other in others {
        let _ = other.join();
    }
    let told = json!({
        "threads": alone,
        "more_threads": with_others?,
        "init": status_of("/proc/1/status")?,
        "init_dumpable": fs::read_link("/proc/1/exe").is_ok() || fs::read("/proc/1/environ").is_ok(),
        "processes": processes(),
        "descriptors": descriptors(),
        "limits": limits()?,
        "namespaces": links("/proc/self/ns"),
        "securebits": number(libc::SYS_prctl, [libc::PR_GET_SECUREBITS as u64, 0, 0, 0, 0, 0]),
        "dumpable": number(libc::SYS_prctl, [libc::PR_GET_DUMPABLE as u64, 0, 0, 0, 0, 0]),
        "tsc": number(libc::SYS_prctl, [libc::PR_GET_TIMERSLACK as u64, 0, 0, 0, 0, 0]),
        "personality": number(libc::SYS_personality, [0xffff_ffff, 0, 0, 0, 0, 0]),
        "scheduler": number(libc::SYS_sched_getscheduler, [0; 6]),
        "nice": number(libc::SYS_getpriority, [0; 6]),
        "environment": std::env::vars().collect::<BTreeMap<_, _>>(),
        "directory": std::env::current_dir().map(|path| path.display().to_string()).unwrap_or_default(),
        "devices": names("/dev"),
        "root": names("/"),
        "oom_score_adj": text("/proc/self/oom_score_adj"),
        "keys": text("/proc/keys"),
        "key_users": text("/proc/key-users"),
        "counters": counters(),
        "groups": text("/proc/self/cgroup"),
        "mounts": places::mounts(),
        "domains_left": places::domains_left(),
        "host_name": text("/proc/sys/kernel/hostname"),
        "has_session": number(libc::SYS_getsid, [0; 6]) > 0,
        "mounts_are_listed": !text("/proc/self/mountinfo").is_empty(),
        "mounts_follow_others": follows_others(&text("/proc/self/mountinfo")),
        "root_is_on_top": same_place("/", "/.."),
        "terminals": fs::metadata("/dev/pts").map_or(0, |metadata| metadata.dev()),
    });
    println!("{told}");
    Ok(())
}

fn threads() -> Result<Vec<Value>, String> {
    let listed = fs::read_dir("/proc/self/task").map_err(|error| error.to_string())?;
    let listed = listed.filter_map(Result::ok);
    listed.map(|task| status_of(&format!("{}/status", task.path().display()))).collect()
}

fn status_of(path: &str) -> Result<Value, String> {
    let status = fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let fields = status.lines().filter_map(|line| line.split_once(':'));
    let fields = fields.map(|(key, value)| {
        (key.to_owned(), Value::from(value.split_whitespace().collect::<Vec<_>>().join(" ")))
    });
    Ok(Value::Object(fields.collect::<Map<_, _>>()))
}

/// Returns the limits as the kernel shows them: name, soft, hard.
fn limits() -> Result<BTreeMap<String, String>, String> {
    let text = fs::read_to_string("/proc/self/limits").map_err(|error| error.to_string())?;
    let rows = text.lines().skip(1).filter(|line| line.len() > 26);
    Ok(rows
        .map(|line| {
            let (name, rest) = line.split_at(26);
            let values: Vec<&str> = rest.split_whitespace().take(2).collect();
            (name.trim().to_owned(), values.join(" "))
        })
        .collect())
}

/// Returns the open descriptors, except the one that lists them.
fn descriptors() -> BTreeMap<String, String> {
    let mut open = links("/proc/self/fd");
    open.retain(|_, target| !target.ends_with("/fd"));
    open
}

fn links(directory: &str) -> BTreeMap<String, String> {
    let listed = fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    listed
        .map(|entry| {
            let target = fs::read_link(entry.path()).map(|target| target.display().to_string());
            (
                entry.file_name().to_string_lossy().into_owned(),
                target.unwrap_or_else(|error| error.to_string()),
            )
        })
        .collect()
}

/// Returns true if two paths lead to one directory.
fn same_place(one: &str, other: &str) -> bool {
    let place = |path: &str| fs::metadata(path).map(|metadata| (metadata.dev(), metadata.ino())).ok();
    place(one).is_some() && place(one) == place(other)
}

/// Returns true if a mount receives mount events from others or sends them.
fn follows_others(mounts: &str) -> bool {
    mounts.split_whitespace().any(|word| word.starts_with("master:") || word.starts_with("shared:"))
}

fn names(directory: &str) -> Vec<String> {
    let listed = fs::read_dir(directory).into_iter().flatten().filter_map(Result::ok);
    let mut names: Vec<String> =
        listed.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Returns the names of all visible processes.
fn processes() -> Vec<String> {
    let numbers = names("/proc").into_iter().filter(|name| name.bytes().all(|byte| byte.is_ascii_digit()));
    numbers.map(|pid| text(&format!("/proc/{pid}/comm")).trim().to_owned()).collect()
}

fn text(path: &str) -> String {
    let mut text = String::new();
    let read = fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text));
    read.map_or_else(|error| error.to_string(), |_| text.trim().to_owned())
}

fn number(call: libc::c_long, arguments: [u64; 6]) -> i64 {
    call_named(call, arguments).unwrap_or_else(|errno| -i64::from(errno.0))
}
