//! Plans random patches on random trees, and compares each plan with the result of the real `git apply`.
//!
//! Where git accepts, our plan must give the same bytes and modes; where git refuses, we must refuse. We may refuse
//! more only by policy, and only if an independent check of the diff's text, which shares no code with the parser,
//! finds a reason ([`policy`]).
//!
//! `BELLJAR_PATCH_CASES` sets the number of cases (default 10,000), `BELLJAR_PATCH_SEED` the first seed. A failure
//! prints its seed and a shrunken case.

mod case;
mod content;
mod diff_text;
mod mutation;
mod oracle;
mod policy;
mod regressions;
mod shrink;
mod verdict;
mod world;

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use case::Case;
use oracle::Git;
use verdict::Verdict;

const DEFAULT_CASES: u64 = 10_000;
const THREADS: u64 = 2;

fn setting(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{name} must be a number, not {text:?}")),
        Err(_) => default,
    }
}

#[derive(Default)]
struct Tally {
    accepted: AtomicU64,
    refused: AtomicU64,
    stricter: AtomicU64,
}

#[test]
fn random_patches_have_the_same_result_as_git_apply() {
    let all = setting("BELLJAR_PATCH_CASES", DEFAULT_CASES);
    let share = belljar_testkit::share::Share::current().of_seeds(0..all);
    let cases = share.end - share.start;
    let first_seed = setting("BELLJAR_PATCH_SEED", 1) + share.start;
    let most_failures = setting("BELLJAR_PATCH_FAILURES", 1);
    let tally = Tally::default();
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (tally, failures) = (&tally, &failures);
            scope.spawn(move || {
                let git = Git::new();
                for number in (thread..cases).step_by(THREADS as usize) {
                    if failures.lock().unwrap().len() as u64 >= most_failures {
                        return;
                    }
                    let seed = first_seed + number;
                    if let Some(report) = check(seed, &git, tally) {
                        failures.lock().unwrap().push(report);
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let (accepted, refused, stricter) =
        (count(&tally.accepted), count(&tally.refused), count(&tally.stricter));
    println!("{cases} cases: {accepted} accepted, {refused} refused, {stricter} refused by policy alone");
    // Cases that all programs accept, or all refuse, would prove little.
    assert!(cases < 1000 || accepted * 4 > cases, "only {accepted} of {cases} cases were accepted");
    assert!(cases < 1000 || refused * 8 > cases, "only {refused} of {cases} cases were refused");
}

fn check(seed: u64, git: &Git, tally: &Tally) -> Option<String> {
    let case = Case::random(seed, git);
    let counter = match verdict::compare(&case, git) {
        Verdict::BothAccept => &tally.accepted,
        Verdict::BothRefuse => &tally.refused,
        Verdict::PolicyRefuses => &tally.stricter,
        Verdict::Differ(_) => {
            let case = shrink::shrink(case, |candidate| {
                matches!(verdict::compare(candidate, git), Verdict::Differ(_))
            });
            let Verdict::Differ(difference) = verdict::compare(&case, git) else { unreachable!() };
            return Some(format!("seed {seed}: {difference}\n{case}"));
        }
    };
    counter.fetch_add(1, Ordering::Relaxed);
    None
}
