//! The cases that don't apply to containers, each with the reason. A row that is neither listed here nor counted fails
//! the suite.

use crate::case::Case;
use crate::tally::{Tally, tell};
use std::collections::BTreeSet;

/// Cases that don't apply to containers.
struct ExemptCases {
    row: &'static str,
    /// Beginnings of the cases' names after the row; empty for every case of the row.
    cases: &'static [&'static str],
    why: &'static str,
}

/// Every row that native sandboxes are tried for.
const ROWS: [&str; 36] = [
    "FS1", "FS2", "FS3", "FS4", "FS5", "FS6", "FS7", "FS8", "LF1", "LF2", "LF3", "LK1", "LK2", "LK3", "NT1",
    "NT2", "NT4", "NT5", "NT6", "NT7", "PK1", "PK2", "PK3", "PK4", "PK5", "PK7", "RS1", "RS2", "RS3", "RS4",
    "RS5", "RS6", "RS8", "twins", "init", "posture",
];

const EXEMPT: [ExemptCases; 11] = [
    ExemptCases {
        row: "FS5",
        cases: &["utimensat: times of /dev/"],
        why: "an engine makes devices for each container, which have times of their own",
    },
    ExemptCases {
        row: "FS2",
        cases: &["utimensat: times of /proc/"],
        why: "an engine covers files in /proc by the container's own /dev/null",
    },
    ExemptCases {
        row: "FS7",
        cases: &[],
        why: "no job runs in a container yet: there are no papers and no runner in one",
    },
    ExemptCases {
        row: "RS5",
        cases: &[],
        why: "what is cut and shown is the output of jobs, and no job runs in a container yet",
    },
    ExemptCases {
        row: "RS3",
        cases: &["on disk"],
        why: "an engine limits no directory that it is lent; the report says so, and --disk is refused",
    },
    ExemptCases {
        row: "RS4",
        cases: &["setrlimit: raise processes", "prlimit64: raise processes"],
        why: "an engine counts processes by control group; this limit is a user's, and other containers have the same user",
    },
    ExemptCases {
        row: "LF1",
        cases: &["belljar killed while PID 1 stands still"],
        why: "containers are an engine's children; a container whose PID 1 was stopped by a user of the host is removed by the \
              next command",
    },
    ExemptCases {
        row: "twins",
        cases: &["a mapping that is sealed"],
        why: "an engine may not know the newest calls by name, and refuses what it doesn't know",
    },
    ExemptCases { row: "twins", cases: &["git"], why: "the image has none" },
    ExemptCases {
        row: "twins",
        cases: &["datagrams on loopback 6", "loopback of family 10"],
        why: "an engine since version 26 gives containers without network no loopback of IPv6",
    },
    ExemptCases {
        row: "PK7",
        cases: &["the control groups"],
        why: "PID 1 reads the container's own to know its limits; they can't be written",
    },
];

/// Returns true if a case doesn't apply to containers.
pub(crate) fn is_exempt(case: &Case) -> bool {
    let is_named = |exempt: &ExemptCases| {
        exempt.cases.is_empty() || exempt.cases.iter().any(|name| case.what.starts_with(name))
    };
    EXEMPT.iter().any(|exempt| exempt.row == case.row && is_named(exempt))
}

/// Prints the exempt cases, and checks that nothing else is left out.
pub(super) fn tell_and_check(tallies: &[&Tally]) {
    for ExemptCases { row, cases, why } in &EXEMPT {
        let cases = if cases.is_empty() { "all of it".to_owned() } else { cases.join(", ") };
        tell(&format!("not of containers: {row}, {cases}: {why}"));
    }
    let whole = EXEMPT.iter().filter(|exempt| exempt.cases.is_empty()).map(|exempt| exempt.row);
    let accounted: BTreeSet<&str> = tallies.iter().flat_map(|tally| tally.rows()).chain(whole).collect();
    let forgotten: Vec<_> = ROWS.iter().filter(|row| !accounted.contains(*row)).collect();
    assert!(forgotten.is_empty(), "neither tried nor exempt: {forgotten:?}");
}
