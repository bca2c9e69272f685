//! A property that differs from the plan is found, layer by layer. The launches of every other test show that correct ones
//! pass.

use super::*;
use crate::group::CgroupJoin;
use crate::plan::{Identity, Limits};
use crate::seccomp::policy::Audience;
use rustix::fs::{Mode, OFlags};

const GOOD: &str = "Name:\tbelljar-init\nUid:\t7 7 7 7\nGid:\t8 8 8 8\nGroups:\t \nNSpid:\t4711\t1\nCapInh:\t0000000000000000
CapPrm:\t0000000000000000\nCapEff:\t0000000000000000\nCapBnd:\t0000000000000000\nCapAmb:\t0000000000000000
NoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t2\n";

const MAP: &str = "      1000          7          1\n";

fn plan() -> Plan {
    Plan {
        identity: Identity { inside_uid: 1000, inside_gid: 1000, host_uid: 7, host_gid: 8 },
        base: Vec::new(),
        root: Vec::new(),
        scratch_bytes: 1 << 20,
        writable: Vec::new(),
        exported: None,
        hatches: Vec::new(),
        hostname: "belljar".to_owned(),
        limits: Limits { open_files: 100, processes: 64, ..Limits::default() },
        group: None,
        group_name: None,
        watched_memory_bytes: None,
        audience: Audience::Everyone,
        hides_mounts: false,
        programs: None,
        program: None,
    }
}

fn testimony() -> SelfReport {
    SelfReport {
        namespaces: [101, 102, 103, 104],
        limits: [1, 100, 8 << 20, 64],
        root: (5, 6),
        scratch_bytes: 1 << 20,
        is_dumpable: false,
        landlock_abi: landlock_abi(),
        refused_by_landlock: libc::EACCES,
    }
}

/// Runs all checks on the given contents.
fn judge(status: &str, map: &str, testimony: &SelfReport) -> Result<(), MissingLayer> {
    let (plan, status) = (plan(), ProcStatus::from(status));
    let own = HostState { namespaces: [1, 2, 3, 4], root: (1, 2), filters: 1 };
    identity(&plan, &status, map)?;
    place(&plan, testimony, own.root)?;
    privileges(&status, testimony, own.filters)?;
    namespaces(testimony, &own)?;
    limits(&plan, &testimony.limits)
}

#[test]
fn inspection_failure_names_the_missing_layer() {
    assert_eq!(judge(GOOD, MAP, &testimony()), Ok(()), "the control");
    for (good, bad, layer) in [
        ("Uid:\t7 7 7 7", "Uid:\t7 7 0 7", "host_user"),
        ("Uid:\t7 7 7 7", "Uid:\t", "host_user"),
        ("Gid:\t8 8 8 8", "Gid:\t8 8 8 0", "host_user"),
        ("Groups:\t ", "Groups:\t0 4 ", "host_user"),
        ("NSpid:\t4711\t1", "NSpid:\t4711", "pid_namespace"),
        ("NSpid:\t4711\t1", "NSpid:\t4711\t2", "pid_namespace"),
        ("NoNewPrivs:\t1", "NoNewPrivs:\t0", "no_new_privs"),
        ("Seccomp:\t2", "Seccomp:\t0", "seccomp"),
        // As where the launching process has one filter, and PID 1 has that and no other.
        ("Seccomp_filters:\t2", "Seccomp_filters:\t1", "seccomp"),
        ("Seccomp_filters:\t2\n", "", "seccomp"),
    ] {
        let found = judge(&GOOD.replace(good, bad), MAP, &testimony()).unwrap_err();
        assert_eq!(found.layer, layer, "{bad}");
    }
    for set in CAPABILITIES {
        let line = format!("{set}:\t0000000000000000");
        for bad in [format!("{set}:\t0000000000000400"), String::new()] {
            let found = judge(&GOOD.replace(&line, &bad), MAP, &testimony()).unwrap_err();
            assert_eq!(found.layer, "capabilities", "{bad}");
        }
    }
    for bad in ["0 7 1", "1000 0 1", "1000 7 2", "0 0 4294967295", "1000 7 1 1001 8 1", ""] {
        assert_eq!(judge(GOOD, bad, &testimony()).unwrap_err().layer, "user_namespace", "{bad}");
    }
}

#[test]
fn self_report_of_pid_1_is_checked_against_the_plan() {
    let good = testimony();
    for (bad, layer) in [
        (SelfReport { root: (1, 2), ..good.clone() }, "mount_namespace"),
        (SelfReport { scratch_bytes: 0, ..good.clone() }, "scratch_limit"),
        (SelfReport { scratch_bytes: 1 << 30, ..good.clone() }, "scratch_limit"),
        (SelfReport { namespaces: [1, 102, 103, 104], ..good.clone() }, "network_namespace"),
        (SelfReport { namespaces: [101, 2, 103, 104], ..good.clone() }, "ipc_namespace"),
        (SelfReport { namespaces: [101, 102, 3, 104], ..good.clone() }, "uts_namespace"),
        (SelfReport { namespaces: [101, 102, 103, 4], ..good.clone() }, "cgroup_namespace"),
        (SelfReport { limits: [2, 100, 8 << 20, 64], ..good.clone() }, "resource_limits"),
        (SelfReport { limits: [1, 101, 8 << 20, 64], ..good.clone() }, "resource_limits"),
        (SelfReport { limits: [1, 100, u64::MAX, 64], ..good.clone() }, "resource_limits"),
        (SelfReport { limits: [1, 100, 8 << 20, 65], ..good.clone() }, "process_limit"),
        (SelfReport { is_dumpable: true, ..good.clone() }, "pid_namespace"),
        (SelfReport { landlock_abi: landlock_abi() + 1, ..good.clone() }, "landlock"),
    ] {
        assert_eq!(judge(GOOD, MAP, &bad).unwrap_err().layer, layer, "{bad:?}");
    }
    // A host that allows less keeps its own.
    let lower = SelfReport { limits: [0, 50, 0, 5], ..good.clone() };
    assert_eq!(judge(GOOD, MAP, &lower), Ok(()));
    if good.landlock_abi > 0 {
        for errno in [0, libc::EPERM] {
            let idle = SelfReport { refused_by_landlock: errno, ..good.clone() };
            assert_eq!(judge(GOOD, MAP, &idle).unwrap_err().layer, "landlock");
        }
    }
    assert_eq!(SelfReport::decode(&good.encode()), Some(good));
    assert_eq!(SelfReport::decode(&[0; 8]), None);
}

#[test]
fn unsealed_process_fails_inspection() {
    let own = std::process::id().cast_signed();
    // Whatever PID 1 reports about itself.
    let found = Inspector::begin(own, &plan()).unwrap().inspect(&plan(), &testimony()).unwrap_err();
    assert_eq!(found.layer, "user_namespace", "{found}");
    let gone = Inspector::begin(i32::MAX, &plan()).unwrap().inspect(&plan(), &testimony()).unwrap_err();
    assert!(gone.found.contains("can't be read"), "{gone}");
}

#[test]
fn cgroup_in_only_one_of_two_hierarchies_fails_inspection() {
    let door = || {
        crate::group::LaunchDescriptor(rustix::fs::open("/dev/null", OFlags::RDONLY, Mode::empty()).unwrap())
    };
    let entrance = CgroupJoin::Joins { lists: vec![door(), door()], out_of_memory: None, sockets: None };
    let plan = Plan { group: Some(entrance), ..plan() };
    let text = "4:memory:/a/belljar-1\n2:cpuacct:/\n1:cpu:/belljar-1\n0::/\n";
    assert_eq!(in_group(&plan, "belljar-1", text), Ok(()));
    for bad in [text.replace("/a/belljar-1", "/a"), text.replace("/belljar-1", "/belljar-12"), String::new()]
    {
        assert!(in_group(&plan, "belljar-1", &bad).is_err(), "{bad}");
    }
}
