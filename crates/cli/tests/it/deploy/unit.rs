//! The systemd unit.

use super::{said, text};
use crate::BELLJAR;
use belljar_testkit::skip::skip;
use belljar_testkit::world::World;
use serde_json::Value;
use std::collections::BTreeSet;
use std::process::Command;

const UNIT: &str = "belljar-node.service";
const DOCUMENT: &str = include_str!("../../../../../docs/guides/deploy.md");

/// Returns true if `systemd-analyze` succeeds, with its output; `None` if it isn't installed.
fn analyzed(arguments: &[&str]) -> Option<(bool, String)> {
    said(Command::new("systemd-analyze").arg("--no-pager").args(arguments))
}

/// Returns the system calls that a setting of the unit names, directly or by group.
fn calls(named: &str) -> BTreeSet<String> {
    let Some(group) = named.strip_prefix('@') else { return BTreeSet::from([named.to_owned()]) };
    let (_, listed) = analyzed(&["syscall-filter", &format!("@{group}")]).unwrap();
    let members =
        listed.lines().skip(1).map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    members.flat_map(calls).collect()
}

/// Returns the unit with the drop-in.
fn as_ordinary_user() -> String {
    let settings = text("ordinary-user.conf");
    let (_, settings) = settings.split_once("[Service]").unwrap();
    text(UNIT).replace("[Install]", &format!("{settings}\n[Install]"))
}

/// Returns the score of a unit by `systemd-analyze security`.
fn exposure(unit: &str) -> String {
    let world = World::new(BELLJAR);
    world.write(UNIT, unit);
    let path = world.path().join(UNIT).display().to_string();
    let (_, said) = analyzed(&["security", "--offline=true", &path]).unwrap();
    let score = said.split("Overall exposure level for belljar-node.service: ").nth(1);
    score.and_then(|rest| rest.split_whitespace().next()).unwrap_or_else(|| panic!("{said}")).to_owned()
}

#[test]
fn unit_exposure_score_is_the_documented_one() {
    let Some((_, version)) = analyzed(&["--version"]) else {
        return skip(
            "deploy::unit::unit_exposure_score_is_the_documented_one",
            "systemd-analyze is not installed",
        );
    };
    // "systemd 252 (252.38-1~deb12u1)": another version may score differently.
    let version = version.split_whitespace().take(2).collect::<Vec<_>>().join(" ");
    if !DOCUMENT.contains(&version) {
        let reason = format!("the score is stated for another systemd than {version}");
        return skip("deploy::unit::unit_exposure_score_is_the_documented_one", &reason);
    }
    let score = exposure(&text(UNIT));
    assert!(DOCUMENT.contains(&format!("an exposure of **{score}**")), "the unit's exposure is {score}");
    let score = exposure(&as_ordinary_user());
    assert!(DOCUMENT.contains(&format!("Its exposure is **{score}**")), "as an ordinary user it is {score}");
}

#[test]
fn systemd_finds_no_mistake_in_the_unit() {
    let world = World::new(BELLJAR);
    let installed = as_ordinary_user().replace("/usr/local/bin/belljar", BELLJAR);
    world.write(UNIT, &installed);
    let path = world.path().join(UNIT);
    let Some(found) = analyzed(&["verify", "--man=no", &path.display().to_string()]) else {
        return skip(
            "deploy::unit::systemd_finds_no_mistake_in_the_unit",
            "systemd-analyze is not installed",
        );
    };
    assert_eq!(found, (true, String::new()));
    // The control: a mistake is found.
    world.write(UNIT, installed.replace("ProtectClock=yes", "ProtectClocks=yes"));
    let (_, found) = analyzed(&["verify", "--man=no", &path.display().to_string()]).unwrap();
    assert!(found.contains("ProtectClocks"), "{found}");
}

#[test]
fn container_seccomp_profile_allows_the_units_system_calls() {
    if analyzed(&["--version"]).is_none() {
        return skip(
            "deploy::unit::container_seccomp_profile_allows_the_units_system_calls",
            "systemd-analyze is not installed",
        );
    }
    let settings = text(UNIT);
    let named = settings.lines().filter_map(|line| line.strip_prefix("SystemCallFilter="));
    // The calls that systemd itself adds to every list.
    let named = named.flat_map(str::split_whitespace).chain(["@default"]);
    let of_unit: BTreeSet<String> = named.flat_map(calls).collect();
    let profile: Value = serde_json::from_str(&text("seccomp.json")).unwrap();
    let allowed = profile["syscalls"][0]["names"].as_array().unwrap();
    let of_containers: BTreeSet<String> =
        allowed.iter().map(|name| name.as_str().unwrap().to_owned()).collect();
    assert_eq!(of_unit, of_containers);
    assert_eq!(profile["syscalls"].as_array().unwrap().len(), 1);
}
