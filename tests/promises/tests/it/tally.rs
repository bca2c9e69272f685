//! Counts verdicts by row, tells them, and decides whether the group has passed.

use crate::case::Case;
use crate::known_holes::{Hole, KNOWN_HOLES, KNOWN_HOLES_OF_CONTAINERS};
use belljar_testkit::skip::skip;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::Write;

/// What one case on one way proved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The wall held, and the control shows that this means something.
    Held,
    /// It did not hold; what was seen.
    Escaped(String),
    /// Something that must work does not; what it said.
    Blocked(String),
    /// It proves nothing; why.
    Invalid(String),
    /// This machine can't show it; why.
    NotShown(String),
}

/// The verdicts of one group of cases.
pub(crate) struct Tally {
    group: String,
    /// What is told of every row besides, where it is not of native sandboxes.
    of: &'static str,
    holes: &'static [Hole],
    counted: RefCell<Counted>,
}

#[derive(Default)]
struct Counted {
    rows: BTreeMap<&'static str, Row>,
    /// What is wrong, by case.
    wrong: BTreeMap<String, BTreeMap<String, Vec<String>>>,
    holes: BTreeSet<String>,
    /// By row and reason.
    not_shown: BTreeMap<&'static str, BTreeMap<String, BTreeSet<String>>>,
    slowest: Option<(String, f64)>,
    slow: usize,
    refusals: usize,
}

#[derive(Default)]
struct Row {
    held: usize,
    escaped: usize,
    known: usize,
    invalid: usize,
    not_shown: usize,
}

/// A refusal that takes longer is told.
const SLOW_MS: f64 = 100.0;

/// The variable that names the file where counts are noted; `scripts/test` sums them up.
pub(crate) const FINDINGS: &str = "BELLJAR_FINDINGS";

/// The variable that names the file where it is noted what is wrong, case by case, and how many held.
pub(crate) const CASES: &str = "BELLJAR_CASES";

/// What the line with the number of those that held begins with.
pub(crate) const HELD: &str = "held";

/// Says something beside the counts.
pub(crate) fn tell(what: &str) {
    std::io::stdout().write_all(format!("{what}\n").as_bytes()).unwrap();
}

// === impl Tally ===

impl Tally {
    pub(crate) fn new(group: &str) -> Self {
        Self { group: group.to_owned(), of: "", holes: KNOWN_HOLES, counted: RefCell::default() }
    }

    /// For verdicts about containers.
    pub(crate) fn of_containers(group: &str) -> Self {
        Self { of: " docker", holes: KNOWN_HOLES_OF_CONTAINERS, ..Self::new(group) }
    }

    /// The rows of which something was counted.
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

    /// Notes how long a refusal took. No verdict depends on it: other work may slow this machine down.
    pub(crate) fn took(&self, case: &Case, ms: f64) {
        let mut counted = self.counted.borrow_mut();
        counted.refusals += 1;
        counted.slow += usize::from(ms > SLOW_MS);
        if counted.slowest.as_ref().is_none_or(|(_, slowest)| ms > *slowest) {
            counted.slowest = Some((case.name(), ms));
        }
    }

    /// Tells the counts, and fails if anything is wrong.
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

// === impl Counted ===

impl Counted {
    /// Adds what is wrong to what others found, and whether anything held.
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
    /// Known holes of these rows through which nothing comes any more.
    fn mended(&self, holes: &'static [Hole]) -> Vec<&'static str> {
        let is_ours = |case: &str| self.rows.contains_key(case.split(' ').next().unwrap_or_default());
        let ours = holes.iter().map(|hole| hole.case).filter(|case| is_ours(case));
        ours.filter(|case| !self.holes.contains(*case)).collect()
    }

    /// All of it, for people.
    fn told(&self, group: &str, holes: &[Hole]) -> String {
        let mut told = format!("{group}\nrow        held  escaped  invalid  known  not shown\n");
        let mut add = |line: String| told.push_str(&(line + "\n"));
        for (row, Row { held, escaped, invalid, known, not_shown }) in &self.rows {
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

/// Adds a row's counts to those of all groups.
fn note(row: &str, counts: &Row) {
    let Some(file) = std::env::var_os(FINDINGS) else { return };
    let Row { held, escaped, invalid, known, not_shown } = counts;
    let line = format!("{row}\t{held}\t{escaped}\t{invalid}\t{known}\t{not_shown}\n");
    // One write in append mode: tests run in many processes at once.
    OpenOptions::new().create(true).append(true).open(file).unwrap().write_all(line.as_bytes()).unwrap();
}
