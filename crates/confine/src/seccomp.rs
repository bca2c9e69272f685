//! Which system calls a sandbox may make: our own allowlist, compiled to a balanced tree.
//!
//! [`policy`] is the list, as data, a reason beside every entry. [`program`] turns it into the kernel's filter
//! language; [`compiled`] is what comes of it. A tree, because the kernel walks the filter once for every system call number
//! when it is installed: a linear list of this length costs ten times as much (`bench/README.md`).

pub mod compiled;
pub mod policy;
pub mod program;
