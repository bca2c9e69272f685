//! Which system calls a sandbox may make: our own allowlist, compiled to a balanced tree.
//!
//! [`policy`] is the list, as data, a reason beside every entry. [`program`] turns it into the kernel's filter
//! language; what comes of it is kept beside them. A tree, because the kernel walks the filter once for every system call number
//! when it is installed: a linear list of this length costs ten times as much (`bench/README.md`).

mod compiled;
pub mod policy;
pub mod profile;
pub mod program;
pub(crate) mod spare;

use policy::{Audience, UNLISTED, Verdict, asked_for as rules_asked_for, guard, rules, rules_under_guard};
use profile::Profile;
use program::{Instruction, Program};

/// The policy as a container engine takes it, made by `cargo xtask generate`.
pub const PROFILE: &str = include_str!("seccomp/profile.json");

/// What [`PROFILE`] must be.
pub fn profile() -> Profile {
    Profile(rules_under_guard(Audience::Everyone))
}

/// The filter for every process.
pub(crate) fn policy(audience: Audience) -> &'static [Instruction] {
    match audience {
        Audience::Everyone => &compiled::EVERYONE,
        Audience::Runner => &compiled::RUNNER,
        Audience::Supervised => &compiled::SUPERVISED,
    }
}

/// The filter for every process but PID 1, on top.
pub(crate) const GUARD: &[Instruction] = &compiled::GUARD;

/// The filter that has new processes asked for, and changes of metadata if need be, on top, in a sandbox without
/// namespaces.
pub(crate) fn asked_for(files_too: bool) -> &'static [Instruction] {
    if files_too { &compiled::FORKS_AND_METADATA } else { &compiled::FORKS }
}

/// The filters as they are to be compiled, by the names of their constants.
pub fn programs() -> [(&'static str, Program); 6] {
    let policy = |audience| Program::compile(&rules_under_guard(audience), UNLISTED);
    [
        ("EVERYONE", policy(Audience::Everyone)),
        ("RUNNER", policy(Audience::Runner)),
        ("GUARD", Program::compile(guard::RULES, Verdict::Allow)),
        ("FORKS", Program::compile(&rules_asked_for(false), Verdict::Allow)),
        ("FORKS_AND_METADATA", Program::compile(&rules_asked_for(true), Verdict::Allow)),
        ("SUPERVISED", Program::compile(&rules(Audience::Supervised), UNLISTED)),
    ]
}
