//! `docs/reference/limits.md` matches the code.

use belljar_confine::plan;
use belljar_egress::http1::limits as hatch;
use belljar_policy::audit_pace::AuditLimits;
use belljar_sandbox::kept::Retention;
use belljar_sandbox::limits::{Bytes, KILL_LIMIT, Limits};
use std::collections::BTreeMap;

const PAGE: &str = include_str!("../../../../docs/reference/limits.md");

/// Beginnings of the tables whose second column is a value: their first line.
const HEADINGS: [&str; 2] = ["| limit | default |", "| limit | value |"];

#[test]
fn every_limit_in_the_documentation_matches_the_code() {
    let shown = values_of(PAGE);
    let actual: BTreeMap<&str, String> =
        settable().into_iter().chain(fixed()).chain(of_hatches()).chain(of_kept()).collect();
    for (name, value) in &actual {
        assert_eq!(shown.get(name), Some(&value.as_str()), "{name}");
    }
    let unknown: Vec<_> = shown.keys().filter(|name| !actual.contains_key(*name)).collect();
    assert!(unknown.is_empty(), "nothing in the code is compared with {unknown:?}");
}

#[test]
fn every_limit_option_and_setting_is_documented() {
    let help = std::process::Command::new(crate::BELLJAR).args(["exec", "--help"]).output().unwrap();
    let help = String::from_utf8(help.stdout).unwrap();
    let (_, limits) = help.split_once("Limits:").unwrap();
    // The line of an option begins with it; other options follow the last limit.
    let options = limits.lines().filter_map(|line| line.trim().split(' ').next());
    let options = options.filter(|word| word.starts_with("--"));
    let options: Vec<&str> = options.take_while(|option| *option != "--require").collect();
    assert!(options.len() >= 8, "{help}");
    for option in options {
        assert!(PAGE.contains(&format!("`{option} ")), "{option} is missing");
    }
}

/// Returns the second cell of each row of those tables, by the first.
fn values_of(page: &str) -> BTreeMap<&str, &str> {
    let mut values = BTreeMap::new();
    let mut is_in_table = false;
    for line in page.lines() {
        if HEADINGS.iter().any(|heading| line.starts_with(heading)) {
            is_in_table = true;
        } else if !line.starts_with('|') {
            is_in_table = false;
        } else if is_in_table && !line.starts_with("| ---") {
            let mut cells = line.trim_matches('|').split('|').map(str::trim);
            let (Some(name), Some(value)) = (cells.next(), cells.next()) else { continue };
            values.insert(name, value);
        }
    }
    values
}

fn settable() -> Vec<(&'static str, String)> {
    let limits = Limits::default();
    let amount = |bytes: Option<u64>| bytes.map_or("none".to_owned(), |bytes| Bytes(bytes).to_string());
    vec![
        ("memory", amount(limits.memory_bytes)),
        ("processor time", limits.millicpus.map_or("none".to_owned(), |millicpus| millicpus.to_string())),
        ("processes and threads", limits.processes.to_string()),
        ("open files of one process", limits.open_files.to_string()),
        ("written to disk", amount(limits.disk_bytes)),
        ("files in memory (scratch)", amount(Some(limits.scratch_bytes))),
        ("pseudo-terminals (PTYs)", limits.terminals.to_string()),
        ("seccomp filters that programs install", limits.filters.to_string()),
    ]
}

fn of_kept() -> Vec<(&'static str, String)> {
    let kept = Retention::default();
    vec![
        ("age", format!("{} days", kept.keep_for.as_secs() / 86_400)),
        ("size on disk of all but the newest together", Bytes(kept.most_bytes).to_string()),
    ]
}

fn fixed() -> Vec<(&'static str, String)> {
    let limits = plan::Limits::default();
    let for_each = (1 << 30) / plan::scratch_inodes(1 << 30);
    vec![
        ("locked memory of one process", Bytes(limits.locked_memory_bytes).to_string()),
        ("core dumps", "1 byte".to_owned()),
        ("queued signals and POSIX timers", limits.pending_signals.to_string()),
        ("POSIX message queues", Bytes(limits.message_queue_bytes).to_string()),
        ("inotify instances", limits.inotify_instances.to_string()),
        ("inotify watches", limits.inotify_watches.to_string()),
        ("locks on files (`fcntl`, `flock`)", plan::MOST_LOCKS.to_string()),
        ("lists of directories that are open", Bytes(plan::MOST_FOR_DIRECTORIES).to_string()),
        ("closed TCP connections that are not over", plan::MOST_ORPHANS.to_string()),
        ("netlink sockets", plan::MOST_NETLINK_SOCKETS.to_string()),
        ("bound or connected UDP sockets", plan::MOST_UDP_SOCKETS.to_string()),
        ("queues of UDP sockets together", Bytes(plan::MOST_QUEUED_BYTES).to_string()),
        ("IP sockets that are neither bound nor connected", plan::MOST_UNLISTED_SOCKETS.to_string()),
        (
            "descriptors in one `poll` or `select` that are not counted",
            plan::MOST_POLLED_UNCOUNTED.to_string(),
        ),
        ("counted descriptors in `poll` and `select` together", plan::MOST_POLLED.to_string()),
        ("operations in one `semop`", plan::MOST_SEMAPHORE_OPERATIONS.to_string()),
        ("System V semaphores of a set", plan::MOST_SEMAPHORES_OF_SET.to_string()),
        ("start of a program in a session", format!("{} s", plan::LONGEST_START.as_secs())),
        (
            "end of a program in a session or a container that is killed (`--timeout`, an interrupt)",
            format!("{} s", KILL_LIMIT.as_secs()),
        ),
        ("scratch for each file, directory or link", Bytes(for_each).to_string()),
    ]
}

fn of_hatches() -> Vec<(&'static str, String)> {
    let amount = |bytes: usize| Bytes(bytes as u64).to_string();
    let audit = AuditLimits::USUAL;
    vec![
        ("connections at a time", hatch::CONNECTIONS.to_string()),
        ("head of a request", amount(hatch::REQUEST_HEAD_BYTES)),
        ("head of a `CONNECT`", amount(hatch::CONNECT_HEAD_BYTES)),
        ("headers of a request", hatch::REQUEST_HEADERS.to_string()),
        ("body of a request", amount(hatch::REQUEST_BODY_BYTES)),
        ("bodies of requests under way together", amount(hatch::REQUEST_BODIES_BYTES)),
        ("head of a response", amount(hatch::RESPONSE_HEAD_BYTES)),
        ("headers of a response", hatch::RESPONSE_HEADERS.to_string()),
        ("body of a response", Bytes(hatch::RESPONSE_BODY_BYTES).to_string()),
        ("refusals at once", hatch::OWN_ANSWERS.0.to_string()),
        ("refusals each second after that", hatch::OWN_ANSWERS.1.to_string()),
        ("bytes of audit records at once", Bytes(audit.burst_bytes).to_string()),
        ("bytes of audit records each second after that", Bytes(audit.bytes_per_second).to_string()),
        ("bytes of audit records in all", Bytes(audit.bytes).to_string()),
    ]
}
