//! Counts verdicts by row, prints them, and decides whether the group has passed.

use crate::case::Case;
use crate::known_holes::{KNOWN_HOLES, KNOWN_HOLES_OF_CONTAINERS, KnownHole};
use belljar_testkit::skip::skip;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::Write;

/// The verdict on one case in one way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The wall held, and the control shows that the attempt would otherwise get through.
    Held,
    /// The wall didn't hold; what was seen.
    Escaped(String),
    /// A required feature doesn't work; its error.
    Blocked(String),
    /// The case proves nothing; the reason.
    Invalid(String),
    /// This machine can't show it; the reason.
    NotShown(String),
}

/// The verdicts of one group of cases.
pub(crate) struct Tally {
    group: String,
    /// Suffix of every printed row, for sandboxes that aren't native.
    of: &'static str,
    holes: &'static [KnownHole],
    counted: RefCell<GroupCounts>,
}

#[derive(Default)]
struct GroupCounts {
    rows: BTreeMap<&'static str, RowCounts>,
    /// Failures, by case.
    wrong: BTreeMap<String, BTreeMap<String, Vec<String>>>,
    holes: BTreeSet<String>,
    /// Reasons by row.
    not_shown: BTreeMap<&'static str, BTreeMap<String, BTreeSet<String>>>,
    slowest: Option<(String, f64)>,
    slow: usize,
    refusals: usize,
}

#[derive(Default)]
struct RowCounts {
    held: usize,
    escaped: usize,
    known: usize,
    invalid: usize,
    not_shown: usize,
}

/// Duration in milliseconds above which a refusal is reported as slow.
const SLOW_MS: f64 = 100.0;

/// The variable that names the file for the counts; `scripts/test` sums them up.
pub(crate) const FINDINGS: &str = "BELLJAR_FINDINGS";

/// The variable that names the file for the failures, case by case, and the number of cases that held.
pub(crate) const CASES: &str = "BELLJAR_CASES";

/// Beginning of the line with the number of cases that held.
pub(crate) const HELD: &str = "held";

/// Prints a line in addition to the counts.
pub(crate) fn tell(what: &str) {
    std::io::stdout().write_all(format!("{what}\n").as_bytes()).unwrap();
}

// === impl Tally ===

impl Tally {
    pub(crate) fn new(group: &str) -> Self {
        Self { group: group.to_owned(), of: "", holes: KNOWN_HOLES, counted: RefCell::default() }
    }

    /// Returns a tally for verdicts about containers.
    pub(crate) fn of_containers(group: &str) -> Self {
        Self { of: " docker", holes: KNOWN_HOLES_OF_CONTAINERS, ..Self::new(group) }
    }

    /// Returns the rows with at least one verdict.
    pub(crate) fn rows(&self) -> BTreeSet<&'static str> {
        self.counted.borrow().rows.keys().copied().collect()
    }

    /// Counts one verdict.
    pub(crate) fn count(&self, row: &'static str, case: &str, place: &str, verdict: Verdict) {
        let mut counted = self.counted.borrow_mut();
        let counts = counted.rows.entry(row).or_default();
        match verdict {
            Verdict::Held => counts.held += 1,
            Verdict::Escaped(_) | Verdict::Blocked(_) if self.holes.iter().any(|hole| hole.case == case) => {
                counts.known += 1;
                counted.holes.insert(case.to_owned());
            }
            Verdict::Escaped(what) => {
                counts.escaped += 1;
                counted.note_wrong(case, format!("ESCAPED: {what}"), place.to_owned());
            }
            Verdict::Blocked(what) => {
                counts.invalid += 1;
                counted.note_wrong(case, format!("blocked: {what}"), place.to_owned());
            }
            Verdict::Invalid(why) => {
                counts.invalid += 1;
                counted.note_wrong(case, format!("invalid: {why}"), place.to_owned());
            }
            Verdict::NotShown(why) => {
                counts.not_shown += 1;
                let cases = counted.not_shown.entry(row).or_default().entry(why).or_default();
                cases.insert(case.to_owned());
            }
        }
    }

    /// Notes the duration of a refusal. No verdict depends on it, because other work may slow this machine down.
    pub(crate) fn took(&self, case: &Case, ms: f64) {
        let mut counted = self.counted.borrow_mut();
        counted.refusals += 1;
        counted.slow += usize::from(ms > SLOW_MS);
        if counted.slowest.as_ref().is_none_or(|(_, slowest)| ms > *slowest) {
            counted.slowest = Some((case.name(), ms));
        }
    }

    /// Prints the counts, and fails if anything is wrong.
    #[track_caller]
    pub(crate) fn close(self) {
        let counted = self.counted.into_inner();
        let mended = counted.mended(self.holes);
        tell(&counted.told(&self.group, self.holes));
        for (row, cases) in &counted.not_shown {
            let told = cases.iter().map(|(why, cases)| {
                let cases: Vec<&str> = cases.iter().map(|case| case.trim_start_matches(row).trim()).collect();
                format!("{why}: {}", cases.join(", "))
            });
            skip(&format!("promises {row}{}, in part", self.of), &told.collect::<Vec<_>>().join("; "));
        }
        for (row, counts) in &counted.rows {
            note(&format!("{row}{}", self.of), counts);
        }
        counted.note_cases();
        assert!(mended.is_empty(), "no longer holes, so to be removed from the list: {mended:?}");
        assert!(counted.wrong.is_empty(), "{} cases are not as they should be", counted.wrong.len());
    }
}

// === impl GroupCounts ===

impl GroupCounts {
    /// Appends the failures to those of other processes, with the number of cases that held.
    fn note_cases(&self) {
        let Some(file) = std::env::var_os(CASES) else { return };
        let held: usize = self.rows.values().map(|row| row.held).sum();
        let wrong = self
            .wrong
            .iter()
            .flat_map(|(case, what)| what.keys().map(move |what| format!("{case}\t{what}\n")));
        let lines: String = std::iter::once(format!("{HELD}\t{held}\n")).chain(wrong).collect();
        OpenOptions::new().create(true).append(true).open(file).unwrap().write_all(lines.as_bytes()).unwrap();
    }

    fn note_wrong(&mut self, case: &str, what: String, place: String) {
        self.wrong.entry(case.to_owned()).or_default().entry(what).or_default().push(place);
    }
    /// Returns the known holes of these rows that no case shows any more.
    fn mended(&self, holes: &'static [KnownHole]) -> Vec<&'static str> {
        let is_ours = |case: &str| self.rows.contains_key(case.split(' ').next().unwrap_or_default());
        let ours = holes.iter().map(|hole| hole.case).filter(|case| is_ours(case));
        ours.filter(|case| !self.holes.contains(*case)).collect()
    }

    /// Returns the whole report, for people.
    fn told(&self, group: &str, holes: &[KnownHole]) -> String {
        let mut told = format!("{group}\nrow        held  escaped  invalid  known  not shown\n");
        let mut add = |line: String| told.push_str(&(line + "\n"));
        for (row, RowCounts { held, escaped, invalid, known, not_shown }) in &self.rows {
            add(format!("{row:8}{held:>7}{escaped:>9}{invalid:>9}{known:>7}{not_shown:>11}"));
        }
        if let Some((case, ms)) = &self.slowest {
            let (slow, all) = (self.slow, self.refusals);
            add(format!(
                "refusals slower than {SLOW_MS} ms: {slow} of {all}; the slowest: {ms:.1} ms, {case}"
            ));
        }
        for hole in holes.iter().filter(|hole| self.holes.contains(hole.case)) {
            add(format!("known hole: {}: {}", hole.case, hole.why));
        }
        for (case, what) in &self.wrong {
            add(case.clone());
            for (what, places) in what {
                add(format!("  {what} ({})", places.join(", ")));
            }
        }
        told
    }
}

/// Appends a row's counts to those of all groups.
fn note(row: &str, counts: &RowCounts) {
    let Some(file) = std::env::var_os(FINDINGS) else { return };
    let RowCounts { held, escaped, invalid, known, not_shown } = counts;
    let line = format!("{row}\t{held}\t{escaped}\t{invalid}\t{known}\t{not_shown}\n");
    // One write in append mode: tests run in many processes at once.
    OpenOptions::new().create(true).append(true).open(file).unwrap().write_all(line.as_bytes()).unwrap();
}
