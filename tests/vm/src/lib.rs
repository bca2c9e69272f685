//! A small virtual machine for tests: Debian's cloud kernel with only version 2 of control groups, and a list of static
//! programs, each of which must succeed.
//!
//! ```text
//! kernel  ── downloaded once ──────────────┐
//! guest   ── an archive made in memory ────┼─► machine (qemu) ── serial line ──► transcript
//!            busybox, programs, a script ──┘
//! ```

#![forbid(unsafe_code)]

pub mod archive;
pub mod guest;
pub mod kernel;
pub mod machine;
pub mod transcript;
