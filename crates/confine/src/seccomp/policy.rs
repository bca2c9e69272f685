//! The system call policy, as data.
//!
//! Whatever is not listed gets `ENOSYS`, as if this kernel were older than the call: programs then fall back to what
//! they did before the call existed. Calls that programs know well and that are refused on purpose get `EPERM`.

mod denied;
mod files;
pub mod guard;
mod ioctl;
mod memory;
pub mod metadata;
mod network;
mod options;
mod processes;
mod signals;
mod supervised;
mod system;
mod time;

use serde::{Deserialize, Serialize};
use std::fmt;

/// Verdict on one system call, and its reason.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// The call's name.
    pub name: &'static str,
    /// System call number on this architecture.
    pub number: u32,
    /// Verdict on the call.
    pub verdict: Verdict,
    /// The reason.
    pub why: &'static str,
}

/// Verdict on a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The call reaches the kernel.
    Allow,
    /// The call fails with that errno.
    Refuse(u16),
    /// PID 1 makes it in the caller's place, or refuses.
    Ask,
    /// It reaches the kernel if all conditions of any one group hold; otherwise PID 1 is asked.
    AskUnless {
        /// The groups.
        any_of: &'static [&'static [Condition]],
    },
    /// It reaches the kernel if all conditions of any one group hold; otherwise it fails with `otherwise`.
    AllowIf {
        /// The groups.
        any_of: &'static [&'static [Condition]],
        /// The errno when none holds.
        otherwise: u16,
    },
}

/// A condition on the low 32 bits of one argument, which are all that the kernel looks at in the calls concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Condition {
    /// The argument's place, from 0.
    pub argument: u8,
    /// Which bits count.
    pub mask: u32,
    /// Comparison that must hold.
    pub comparison: Comparison,
}

/// Comparison of the masked argument with a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Comparison {
    /// Equal to the value.
    Is(u32),
    /// The masked argument is not equal to the value.
    IsNot(u32),
    /// Equal to one of the values.
    OneOf(&'static [u32]),
}

/// Verdict on calls that no rule of the policy names.
pub const UNLISTED: Verdict = Verdict::Refuse(libc::ENOSYS as u16);

/// Programs that a policy is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Audience {
    /// Every program.
    Everyone,
    /// The runner, which needs `openat2` to open paths that lead nowhere else. A filter can't see the mode that goes
    /// with that call, so the runner keeps it from what it starts.
    Runner,
    /// Any program in a sandbox without namespaces ([`crate::supervised`]): the rest of the host is within reach of its
    /// calls.
    Supervised,
}

/// Returns every rule, sorted by number.
pub fn rules(audience: Audience) -> Vec<Rule> {
    let openat2: &[Rule] = match audience {
        Audience::Everyone | Audience::Supervised => denied::OPENAT2,
        Audience::Runner => files::OPENAT2,
    };
    let groups = [
        openat2,
        files::RULES,
        ioctl::RULES,
        memory::RULES,
        network::RULES,
        options::RULES,
        processes::RULES,
        signals::RULES,
        system::RULES,
        time::RULES,
        denied::RULES,
    ];
    let mut rules = groups.concat();
    rules.sort_unstable_by_key(|rule| rule.number);
    if audience == Audience::Supervised {
        replace(&mut rules, supervised::RULES);
    }
    rules
}

/// Replaces rules by others for the same calls.
fn replace(rules: &mut [Rule], others: &[Rule]) {
    for rule in rules {
        if let Some(other) = others.iter().find(|other| other.number == rule.number) {
            *rule = *other;
        }
    }
}

/// Returns the rules for a sandbox with a [`guard`]: They allow one more system call, which PID 1 needs and the guard refuses to all other processes.
pub fn rules_under_guard(audience: Audience) -> Vec<Rule> {
    let mut rules = rules(audience);
    replace(&mut rules, guard::ONLY_PID_1);
    rules
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Allow => f.write_str("allow"),
            Self::Refuse(errno) => write!(f, "errno {errno}"),
            Self::Ask => f.write_str("ask PID 1"),
            Self::AskUnless { .. } => f.write_str("allow on conditions, else ask PID 1"),
            Self::AllowIf { otherwise, .. } => write!(f, "allow on conditions, else errno {otherwise}"),
        }
    }
}

const fn allow(name: &'static str, number: libc::c_long, why: &'static str) -> Rule {
    Rule { name, number: number as u32, verdict: Verdict::Allow, why }
}

const fn ask(name: &'static str, number: libc::c_long, why: &'static str) -> Rule {
    Rule { name, number: number as u32, verdict: Verdict::Ask, why }
}

const fn refuse(name: &'static str, number: libc::c_long, errno: i32, why: &'static str) -> Rule {
    Rule { name, number: number as u32, verdict: Verdict::Refuse(errno as u16), why }
}

const fn allow_if(
    name: &'static str,
    number: libc::c_long,
    any_of: &'static [&'static [Condition]],
    errno: i32,
    why: &'static str,
) -> Rule {
    Rule { name, number: number as u32, verdict: Verdict::AllowIf { any_of, otherwise: errno as u16 }, why }
}

const fn is(argument: u8, value: u32) -> Condition {
    Condition { argument, mask: u32::MAX, comparison: Comparison::Is(value) }
}

const fn is_not(argument: u8, value: u32) -> Condition {
    Condition { argument, mask: u32::MAX, comparison: Comparison::IsNot(value) }
}

const fn one_of(argument: u8, values: &'static [u32]) -> Condition {
    Condition { argument, mask: u32::MAX, comparison: Comparison::OneOf(values) }
}

/// Requires that none of these bits is set.
const fn without(argument: u8, bits: u32) -> Condition {
    masked(argument, bits, 0)
}

/// Requires a value less than a power of two.
const fn below(argument: u8, power_of_two: u32) -> Condition {
    without(argument, !(power_of_two - 1))
}

const fn masked(argument: u8, mask: u32, value: u32) -> Condition {
    Condition { argument, mask, comparison: Comparison::Is(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_system_call_has_one_rule_and_a_reason() {
        for rules in [Audience::Everyone, Audience::Runner, Audience::Supervised].map(rules) {
            every_call_has_one(&rules);
        }
    }

    fn every_call_has_one(rules: &[Rule]) {
        for pair in rules.windows(2) {
            assert_ne!(pair[0].number, pair[1].number, "{} and {}", pair[0].name, pair[1].name);
        }
        for rule in rules {
            assert!(rule.why.len() >= 5, "{}: {:?}", rule.name, rule.why);
        }
    }
}
