//! Which system calls a sandbox may make: our own allowlist, compiled to a balanced tree.
//!
//! [`policy`] is the list, as data, a reason beside every entry. [`program`] turns it into the kernel's filter
//! language; what comes of it is kept beside them. A tree, because the kernel walks the filter once for every system call number
//! when it is installed: a linear list of this length costs ten times as much (`bench/README.md`).

mod compiled;
pub(crate) mod nameless;
pub mod policy;
pub mod profile;
pub mod program;
pub(crate) mod spare;

use policy::{Audience, UNLISTED, Verdict, guard, metadata, rules, rules_under_guard};
use profile::Profile;
use program::{Instruction, Program};

/// The policy in the format of a container engine, made by `cargo xtask generate`.
pub const PROFILE: &str = include_str!("seccomp/profile.json");

/// Returns the expected contents of [`PROFILE`].
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

/// The filter that asks the supervisor about changes of metadata, on top, in a sandbox without namespaces.
pub(crate) const METADATA: &[Instruction] = &compiled::METADATA;

/// Returns the programs to compile, by the names of their constants.
pub fn programs() -> [(&'static str, Program); 5] {
    let policy = |audience| Program::compile(&rules_under_guard(audience), UNLISTED);
    [
        ("EVERYONE", policy(Audience::Everyone)),
        ("RUNNER", policy(Audience::Runner)),
        ("GUARD", Program::compile(guard::RULES, Verdict::Allow)),
        ("METADATA", Program::compile(metadata::RULES, Verdict::Allow)),
        ("SUPERVISED", Program::compile(&rules(Audience::Supervised), UNLISTED)),
    ]
}
