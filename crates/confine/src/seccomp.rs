//! Which system calls a sandbox may make: our own allowlist, compiled to a balanced tree.
//!
//! [`policy`] is the list, as data, a reason beside every entry. [`program`] turns it into the kernel's filter
//! language; what comes of it is kept beside them. A tree, because the kernel walks the filter once for every system call number
//! when it is installed: a linear list of this length costs ten times as much (`bench/README.md`).

mod compiled;
pub mod policy;
pub mod program;

use policy::{Audience, rules};
use program::{Instruction, Program};

/// The compiled filter for an audience.
pub(crate) fn filter(audience: Audience) -> &'static [Instruction] {
    match audience {
        Audience::Everyone => &compiled::EVERYONE,
        Audience::Runner => &compiled::RUNNER,
    }
}

/// The filters as they are to be compiled, by the names of their constants.
pub fn programs() -> [(&'static str, Program); 2] {
    [("EVERYONE", Audience::Everyone), ("RUNNER", Audience::Runner)]
        .map(|(name, audience)| (name, Program::compile(&rules(audience))))
}
