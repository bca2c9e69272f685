//! New processes and threads. In a sandbox without namespaces nothing keeps processes together: whoever forks and ends,
//! again and again, is never where it was last seen. The supervisor is asked for each, and says yes, but not while it
//! signals or ends them ([`crate::supervised`]): then nobody gets away.

use super::{Rule, Verdict, allow};

/// Everything that no rule names is allowed: by this filter, and decided by the policy below it.
pub const RULES: &[Rule] = &[
    ask("clone", libc::SYS_clone, "threads and processes; what its flags may be is for the policy to say"),
    ask("fork", libc::SYS_fork, "a process; older programs"),
    ask("vfork", libc::SYS_vfork, "a process that will exec"),
];

/// Whether a call is one of these.
pub(crate) fn is_fork(number: i32) -> bool {
    RULES.iter().any(|rule| i64::from(rule.number) == i64::from(number))
}

const fn ask(name: &'static str, number: libc::c_long, why: &'static str) -> Rule {
    Rule { verdict: Verdict::Ask, ..allow(name, number, why) }
}
