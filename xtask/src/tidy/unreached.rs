//! Checks that no public item of the product is used by tests only: `belljar` or `cynode-sba` reaches it, or an
//! exception gives a reason.

use super::{File, Finding, Repository};
use crate::reach::{self, NamedItem};
use crate::rooms::{ROOMS, ReachException, UNREACHED};
use std::collections::{BTreeMap, BTreeSet};

/// Rooms with a program for users, or for making what users get.
const PROGRAMS: [&str; 3] = ["cli", "runner", "xtask"];
/// Rooms whose public items are checked.
const JUDGED: [&str; 9] =
    ["confine", "egress", "gateway", "node", "policy", "sandbox", "store", "tools", "trusted"];

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    found(repository, UNREACHED)
}

fn found(repository: &Repository, exceptions: &[ReachException]) -> Vec<Finding> {
    let below = rooms_below();
    let (mut items, mut findings) = (Vec::new(), Vec::new());
    for room in below.keys() {
        let folder = if *room == "xtask" { "xtask".to_owned() } else { format!("crates/{room}") };
        for root in ["lib.rs", "main.rs"] {
            if let Some(root) = repository.file(&format!("{folder}/src/{root}")) {
                read(repository, room, root, &mut items, &mut findings);
            }
        }
    }
    let unreached = reach::unreached(&items, &PROGRAMS, &below);
    let mut used = BTreeSet::new();
    for item in unreached.iter().filter(|item| item.is_public && JUDGED.contains(&item.room.as_str())) {
        let name = item.name.as_deref().unwrap_or_default();
        let is_this = |exception: &&ReachException| exception.room == item.room && exception.name == name;
        match exceptions.iter().find(is_this) {
            Some(exception) => _ = used.insert((exception.room, exception.name)),
            None => findings.push(finding(
                item,
                format!("`{name}` is public, and no program reaches it"),
                "a program that uses it, or its removal; tests cover what programs do",
            )),
        }
    }
    let unneeded = exceptions.iter().filter(|exception| !used.contains(&(exception.room, exception.name)));
    findings.extend(unneeded.map(|exception| Finding {
        path: "xtask/src/rooms.rs".into(),
        line: 1,
        found: format!("an exception for `{}` of {}", exception.name, exception.room),
        right: format!("none for what is reached or gone ({})", exception.why),
    }));
    findings
}

fn finding(item: &NamedItem, found: String, right: &str) -> Finding {
    Finding { path: item.path.clone(), line: item.line, found, right: right.to_owned() }
}

/// Returns for each room of the product all rooms whose items it may hold, also indirectly.
fn rooms_below() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let mut below = BTreeMap::new();
    // The table goes from the bottom up.
    for room in ROOMS {
        let mut all: BTreeSet<&'static str> = room.may_import.iter().copied().collect();
        for import in room.may_import {
            all.extend(below.get(import).into_iter().flatten());
        }
        below.insert(room.name, all);
    }
    let product: BTreeSet<_> =
        PROGRAMS.iter().flat_map(|program| below[program].iter().copied().chain([*program])).collect();
    below.retain(|room, _| product.contains(room));
    below
}

/// Reads a file and the modules below it.
fn read(
    repository: &Repository,
    room: &str,
    file: &File,
    items: &mut Vec<NamedItem>,
    findings: &mut Vec<Finding>,
) {
    let listed = match reach::list(room, &file.path, &file.text) {
        Ok(listed) => listed,
        Err(error) => return findings.push(file.finding(1, error.to_string(), "Rust")),
    };
    items.extend(listed.items);
    let directory = match file.is_crate_root() {
        true => file.path.rsplit_once('/').map_or("", |(directory, _)| directory),
        false => file.path.trim_end_matches(".rs"),
    };
    for module in listed.modules {
        // The compiler reports a missing file.
        if let Some(below) = repository.file(&format!("{directory}/{}.rs", module.join("/"))) {
            read(repository, room, below, items, findings);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: [(&str, &str); 4] = [
        ("crates/cli/src/main.rs", "mod a; fn main() { a::run() }"),
        ("crates/cli/src/a.rs", "pub fn run() { store::used() } pub fn not_judged() {}"),
        ("crates/store/src/lib.rs", "mod b;"),
        ("crates/store/src/b.rs", "pub fn used() {}\npub fn alone() {}\npub(crate) fn of_the_lint() {}"),
    ];

    #[test]
    fn a_public_item_that_no_program_reaches_is_found() {
        let findings = found(&Repository::of(&FILES), &[]);
        assert_eq!(
            findings.iter().map(|found| (found.path.as_str(), found.line)).collect::<Vec<_>>(),
            [("crates/store/src/b.rs", 2)]
        );
    }

    #[test]
    fn unreached_exception_is_honoured_and_found_when_unneeded() {
        let exception = |name| ReachException { room: "store", name, why: "so" };
        assert_eq!(found(&Repository::of(&FILES), &[exception("alone")]), []);
        let findings = found(&Repository::of(&FILES), &[exception("alone"), exception("used")]);
        assert_eq!(findings.len(), 1);
        assert!(findings[0].found.contains("`used`"));
    }
}
