//! The policy as a container engine takes it: a seccomp profile in Docker's JSON.
//!
//! The engine compiles it by itself, and into another filter than ours: it can't fail a call with one errno where a
//! condition holds and with another where it doesn't. What is refused on conditions fails as what is not listed does.
//! PID 1 puts our own filter on top, whose errno is the one that programs see.

use super::policy::{Comparison, Condition, Rule, UNLISTED, Verdict};
use std::collections::BTreeMap;
use std::fmt;

/// A profile.
#[derive(Debug)]
pub struct Profile(pub Vec<Rule>);

/// Condition on one argument: `argument & mask == value`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct MaskedCondition {
    mask: u32,
    value: u32,
}

// === impl Profile ===

impl fmt::Display for Profile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{{")?;
        writeln!(f, "  \"defaultAction\": \"SCMP_ACT_ERRNO\",")?;
        writeln!(f, "  \"defaultErrnoRet\": {},", errno(UNLISTED))?;
        // Calls of any other architecture kill the thread that makes them.
        writeln!(f, "  \"architectures\": [\"SCMP_ARCH_X86_64\"],")?;
        writeln!(f, "  \"syscalls\": [")?;
        let entries: Vec<String> = self.0.iter().flat_map(entries).collect();
        writeln!(f, "{}", entries.join(",\n"))?;
        writeln!(f, "  ]\n}}")
    }
}

fn entries(rule: &Rule) -> Vec<String> {
    match rule.verdict {
        Verdict::Allow => vec![entry(rule, "\"action\": \"SCMP_ACT_ALLOW\"")],
        Verdict::AllowIf { any_of, .. } => any_of
            .iter()
            .flat_map(|group| alternatives(group))
            .map(|arguments| entry(rule, &format!("\"action\": \"SCMP_ACT_ALLOW\", \"args\": [{arguments}]")))
            .collect(),
        refused @ (Verdict::Refuse(_) | Verdict::Ask | Verdict::AskUnless { .. }) => {
            vec![entry(rule, &format!("\"action\": \"SCMP_ACT_ERRNO\", \"errnoRet\": {}", errno(refused)))]
        }
    }
}

fn entry(rule: &Rule, action: &str) -> String {
    let comment = rule.why.replace('\\', "\\\\").replace('"', "\\\"");
    format!("    {{ \"names\": [\"{}\"], {action}, \"comment\": \"{comment}\" }}", rule.name)
}

/// A profile has no supervisor that could be asked.
fn errno(verdict: Verdict) -> u16 {
    match verdict {
        Verdict::Refuse(errno) => errno,
        _ => libc::EPERM as u16,
    }
}

/// The ways in which all conditions of a group hold, each as the conditions of one entry. An argument may come up only
/// once in an entry: the engine would take two conditions on it for alternatives.
fn alternatives(group: &[Condition]) -> Vec<String> {
    let mut by_argument: BTreeMap<u8, Vec<Condition>> = BTreeMap::new();
    for condition in group {
        by_argument.entry(condition.argument).or_default().push(*condition);
    }
    let mut ways = vec![Vec::new()];
    for (argument, conditions) in by_argument {
        let allowed = allowed(&conditions);
        ways = ways
            .iter()
            .flat_map(|way| {
                let longer = |masked: &MaskedCondition| [way.clone(), vec![masked.shown(argument)]].concat();
                allowed.iter().map(longer).collect::<Vec<_>>()
            })
            .collect();
    }
    ways.into_iter().map(|way| way.join(", ")).collect()
}

/// Returns the values of one argument that meet all conditions on it: a value that must be equal, without some values; or
/// some values alone.
fn allowed(conditions: &[Condition]) -> Vec<MaskedCondition> {
    let mut whole = MaskedCondition { mask: 0, value: 0 };
    let mut excluded = Vec::new();
    for Condition { mask, comparison, .. } in conditions {
        match comparison {
            Comparison::Is(value) => {
                whole = MaskedCondition { mask: whole.mask | mask, value: whole.value | value };
            }
            Comparison::IsNot(value) => excluded.push(*value),
            Comparison::OneOf(values) => {
                return values.iter().map(|value| MaskedCondition { mask: *mask, value: *value }).collect();
            }
        }
    }
    match excluded.as_slice() {
        [] => vec![whole],
        excluded => all_but(excluded).into_iter().filter_map(|range| range.within(whole)).collect(),
    }
}

/// Returns every number but these, as ranges of numbers that begin with the same bits.
///
/// Not as "unequal": the engine compares all 64 bits, and the kernel looks at the lower half alone.
fn all_but(excluded: &[u32]) -> Vec<MaskedCondition> {
    let mut found = Vec::new();
    let mut pending = vec![MaskedCondition { mask: 0, value: 0 }];
    while let Some(range) = pending.pop() {
        match excluded.iter().any(|value| value & range.mask == range.value) {
            false => found.push(range),
            true if range.mask == u32::MAX => {}
            true => {
                let mask = (range.mask >> 1) | 1 << 31;
                let bit = mask & !range.mask;
                pending.extend([range.value | bit, range.value].map(|value| MaskedCondition { mask, value }));
            }
        }
    }
    found
}

// === impl MaskedCondition ===

impl MaskedCondition {
    /// Returns the intersection of both.
    fn within(self, other: Self) -> Option<Self> {
        let is_possible = (self.value ^ other.value) & self.mask & other.mask == 0;
        is_possible.then_some(Self { mask: self.mask | other.mask, value: self.value | other.value })
    }

    fn shown(self, argument: u8) -> String {
        let Self { mask, value } = self;
        format!(
            "{{ \"index\": {argument}, \"value\": {mask}, \"valueTwo\": {value}, \"op\": \"SCMP_CMP_MASKED_EQ\" }}"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seccomp::policy::{Audience, rules_under_guard};

    #[test]
    fn profile_of_excluded_numbers_matches_all_others() {
        let excluded = [1, 0x5412, 0x541c, u32::MAX];
        let ranges = all_but(&excluded);
        let near = |value: u32| [value.wrapping_sub(1), value, value.wrapping_add(1), value ^ 1 << 31];
        for value in excluded.into_iter().chain([0, 7, 1 << 31]).flat_map(near) {
            let holding = ranges.iter().filter(|range| value & range.mask == range.value).count();
            assert_eq!(holding, usize::from(!excluded.contains(&value)), "{value:#x}");
        }
    }

    #[test]
    fn profile_of_masked_numbers_with_exclusions_matches_exactly() {
        let condition = |mask, comparison| Condition { argument: 1, mask, comparison };
        let excluded = [0x5412, 0x541c, 0x5423];
        let mut conditions = vec![condition(0xff00, Comparison::Is(0x5400))];
        conditions.extend(excluded.map(|value| condition(u32::MAX, Comparison::IsNot(value))));
        let ranges = allowed(&conditions);
        for value in (0x5300..0x5600).chain([0x1_5401, 0x8000_5401, 0x8000_5412, 0]) {
            let holding = ranges.iter().filter(|range| value & range.mask == range.value).count();
            let is_allowed = value & 0xff00 == 0x5400 && !excluded.contains(&value);
            assert_eq!(holding, usize::from(is_allowed), "{value:#x}");
        }
    }

    #[test]
    fn profile_keeps_every_argument_condition() {
        // Combinations that `allowed` does not make: a list of values beside another comparison, and values under a mask that
        // are excluded.
        for rule in rules_under_guard(Audience::Everyone) {
            let Verdict::AllowIf { any_of, .. } = rule.verdict else { continue };
            for group in any_of {
                for condition in *group {
                    let on_same = group.iter().filter(|other| other.argument == condition.argument);
                    let is_exclusion = |one: &Condition| matches!(one.comparison, Comparison::IsNot(_));
                    let is_list = matches!(condition.comparison, Comparison::OneOf(_));
                    assert!(!is_list || on_same.count() == 1, "{}", rule.name);
                    assert!(!is_exclusion(condition) || condition.mask == u32::MAX, "{}", rule.name);
                }
            }
        }
    }

    #[test]
    fn profile_contains_every_policy_rule() {
        let rules = rules_under_guard(Audience::Everyone);
        let profile = Profile(rules.clone()).to_string();
        for rule in rules {
            assert!(profile.contains(&format!("[\"{}\"]", rule.name)), "{}", rule.name);
        }
    }
}
