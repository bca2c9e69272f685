//! The system call policy, entry by entry: refused calls are attempted, conditional calls are attempted on both sides of the
//! condition, and allowed calls are used by a case.

use crate::case::Case;
use crate::judge::CaseSource;
use crate::scene::PreparedHost;
use crate::way::AttemptPlace;
use crate::{files, lifetime, network, privileges, resources, twins};
use belljar_confine::seccomp::policy::{Audience, Condition, Rule, UNLISTED, Verdict, guard, rules};
use belljar_confine::seccomp::program::{ARCHITECTURE, Call, FilterAction, Program};
use belljar_testkit::world::World;
use std::collections::BTreeSet;

/// Allowed calls that no case or twin makes with success. The list may only become shorter.
const USED_BY_NOTHING: &[&str] = &[];

/// Refused or conditional calls of which only the refused side can be shown.
const ONLY_REFUSED: &[&str] = &[];

/// Calls of the guard that PID 1 refuses only when many threads make them, so that no single case shows it.
/// `resources/tables.rs` does.
const REFUSED_TO_MANY: &[&str] = &["poll", "ppoll", "pselect6", "select"];

/// Every group of cases.
const GROUPS: [&[CaseSource]; 6] =
    [files::CASES, network::CASES, privileges::CASES, resources::CASES, lifetime::CASES, twins::CASES];

type AttemptedCalls = Vec<(u32, [u64; 6])>;

/// The calls that the cases make, by their expected result.
struct Attempts {
    /// Calls that must fail inside.
    denied: AttemptedCalls,
    /// Calls that must work inside.
    used: AttemptedCalls,
}

#[test]
fn every_seccomp_policy_entry_is_attempted_inside_and_outside() {
    let world = World::new(crate::belljar::belljar());
    let scene = PreparedHost::lay(&world);
    let attempts = Attempts::of(&scene);
    let mut missing = Vec::new();
    for audience in [Audience::Everyone, Audience::Runner] {
        for rule in rules(audience) {
            // A job's steps have a further filter, which refuses this call again.
            let is_the_runners_own = audience == Audience::Runner && rule.name == "openat2";
            if !is_the_runners_own {
                missing.extend(attempts.missing_for(&rule, "policy"));
            }
        }
    }
    for rule in guard::RULES {
        missing.extend(attempts.missing_for(rule, "guard"));
    }
    missing.sort();
    missing.dedup();
    assert!(missing.is_empty(), "nothing shows that these hold:\n{}", missing.join("\n"));
}

#[test]
fn every_allowed_system_call_is_used_by_a_case() {
    let world = World::new(crate::belljar::belljar());
    let scene = PreparedHost::lay(&world);
    let used: BTreeSet<u32> = Attempts::of(&scene).used.into_iter().map(|(number, _)| number).collect();
    let allowed = rules(Audience::Everyone);
    let allowed = allowed.iter().filter(|rule| !matches!(rule.verdict, Verdict::Refuse(_)));
    let unused: Vec<&str> =
        allowed.filter(|rule| !used.contains(&rule.number)).map(|rule| rule.name).collect();
    assert_eq!(unused, USED_BY_NOTHING, "what is allowed and used by nothing");
}

#[test]
fn sockets_are_limited_to_four_families_and_loaded_protocols() {
    let program = Program::compile(&rules(Audience::Everyone), UNLISTED);
    let (unix, inet, inet6, netlink) = (1, 2, 10, 16);
    for family in 0..64_u64 {
        for kind in 0..16_u64 {
            for protocol in 0..300_u64 {
                let is_allowed = match (family, kind, protocol) {
                    (family, ..) if family == unix => true,
                    (family, _, protocol) if family == netlink => protocol == 0,
                    (family, 1, 0 | 6) | (family, 2, 0 | 17) => family == inet || family == inet6,
                    _ => false,
                };
                let number = crate::case::number_of("socket");
                let call = Call {
                    architecture: ARCHITECTURE,
                    number,
                    arguments: [family, kind | 0x8_0000, protocol, 0, 0, 0],
                };
                let answer = program.evaluate(&call).unwrap();
                assert_eq!(
                    answer == FilterAction::Allow,
                    is_allowed,
                    "{family} {kind} {protocol}: {answer:?}"
                );
            }
        }
    }
}

// === impl Attempts ===

impl Attempts {
    fn of(scene: &PreparedHost<'_>) -> Self {
        let cases: Vec<Case> =
            GROUPS.concat().iter().flat_map(|cases| cases(scene, &AttemptPlace::inside())).collect();
        let (mut denied, mut used) = (Vec::new(), Vec::new());
        for case in cases {
            match case.must_fail() {
                true => denied.extend(case.tried_calls()),
                false => used.extend(case.calls()),
            }
        }
        Self { denied, used }
    }

    /// Returns the sides of a rule that no case shows.
    fn missing_for(&self, rule: &Rule, which: &str) -> Vec<String> {
        let denied = |holds: &dyn Fn(&[u64; 6]) -> bool| has(&self.denied, rule.number, holds);
        let used = |holds: &dyn Fn(&[u64; 6]) -> bool| has(&self.used, rule.number, holds);
        let named = |what: &str| format!("{which}: {}: {what}", rule.name);
        match rule.verdict {
            Verdict::Allow => Vec::new(),
            Verdict::Refuse(_) if denied(&|_| true) => Vec::new(),
            Verdict::Refuse(_) => vec![named("refused, and no case tries it")],
            Verdict::Ask | Verdict::AskUnless { .. } => {
                let is_refused = denied(&|_| true) || REFUSED_TO_MANY.contains(&rule.name);
                let both = [(is_refused, "never refused"), (used(&|_| true), "never let through")];
                both.into_iter().filter(|(is_shown, _)| !is_shown).map(|(_, what)| named(what)).collect()
            }
            Verdict::AllowIf { any_of, otherwise } => {
                let mut missing = Vec::new();
                let is_allowed = |arguments: &[u64; 6]| any_of.iter().any(|group| holds(group, arguments));
                // Errno 0: the call succeeds without effect.
                let is_shown = match otherwise {
                    0 => used(&|arguments| !is_allowed(arguments)),
                    _ => denied(&|arguments| !is_allowed(arguments)),
                };
                if !is_shown {
                    missing.push(named("no case tries what it refuses"));
                }
                // The guard allows everything that the policy then decides.
                let groups =
                    any_of.iter().filter(|_| which == "policy" && !ONLY_REFUSED.contains(&rule.name));
                for group in groups.filter(|group| !used(&|arguments| holds(group, arguments))) {
                    missing.push(named(&format!("no twin uses what it allows with {group:?}")));
                }
                missing
            }
        }
    }
}

fn has(tried: &AttemptedCalls, number: u32, holds: &dyn Fn(&[u64; 6]) -> bool) -> bool {
    tried.iter().any(|(tried, arguments)| *tried == number && holds(arguments))
}

/// Returns true if all conditions of a group hold, according to the filter's own interpreter.
fn holds(group: &'static [Condition], arguments: &[u64; 6]) -> bool {
    let groups: &'static [&'static [Condition]] = Box::leak(Box::new([group]));
    let rule =
        Rule { name: "", number: 0, verdict: Verdict::AllowIf { any_of: groups, otherwise: 1 }, why: "" };
    let call = Call { architecture: ARCHITECTURE, number: 0, arguments: *arguments };
    Program::compile(&[rule], UNLISTED).evaluate(&call) == Some(FilterAction::Allow)
}
