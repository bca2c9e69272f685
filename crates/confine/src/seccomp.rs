//! Which system calls a sandbox may make: our own allowlist, compiled to a balanced tree.
//!
//! [`policy`] is the list, as data, a reason beside every entry. [`program`] turns it into the kernel's filter
//! language; what comes of it is kept beside them. A tree, because the kernel walks the filter once for every system call number
//! when it is installed: a linear list of this length costs ten times as much (`bench/README.md`).

mod compiled;
pub mod policy;
pub mod program;

use policy::{Audience, UNLISTED, Verdict, guard, rules, rules_under_guard};
use program::{Instruction, Program};
use std::borrow::Cow;

/// The filters of one sandbox.
pub(crate) struct Filters {
    /// For every process.
    pub(crate) policy: Cow<'static, [Instruction]>,
    /// For every process but PID 1, on top.
    pub(crate) guard: Option<Program>,
}

impl Filters {
    pub(crate) fn new(audience: Audience, is_guarded: bool) -> Self {
        match is_guarded {
            false => Self { policy: Cow::Borrowed(compiled(audience)), guard: None },
            true => {
                let policy = Program::compile(&rules_under_guard(audience), UNLISTED);
                let guard = Program::compile(guard::RULES, Verdict::Allow);
                Self { policy: Cow::Owned(policy.into_instructions()), guard: Some(guard) }
            }
        }
    }
}

/// The compiled filter for an audience.
fn compiled(audience: Audience) -> &'static [Instruction] {
    match audience {
        Audience::Everyone => &compiled::EVERYONE,
        Audience::Runner => &compiled::RUNNER,
    }
}

/// The filters as they are to be compiled, by the names of their constants.
pub fn programs() -> [(&'static str, Program); 2] {
    [("EVERYONE", Audience::Everyone), ("RUNNER", Audience::Runner)]
        .map(|(name, audience)| (name, Program::compile(&rules(audience), UNLISTED)))
}
