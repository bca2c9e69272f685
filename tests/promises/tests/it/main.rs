//! The containment suite: each row that a sandbox must withstand, attempted inside and, as a control, where nothing
//! forbids it.
//!
//! A case is data. The probe makes the attempt and reports the kernel's answer. The verdict is made out here, by what
//! the host sees: listeners that weren't reached, a canary that didn't leak, files that are unchanged. A case whose
//! control fails proves nothing, and fails the suite as an escape does.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod belljar;
#[cfg(feature = "removable-walls")]
mod canary;
mod case;
mod containers;
#[cfg(feature = "failpoints")]
mod faults;
mod files;
mod holding;
mod host;
mod judge;
mod known_holes;
mod leaks;
mod lifetime;
mod listeners;
mod neighbours;
mod network;
mod policy;
mod posture;
mod privileges;
mod programs;
#[cfg(feature = "removable-walls")]
mod removal;
mod resources;
mod scene;
mod swapped;
mod tally;
mod twins;
mod way;
