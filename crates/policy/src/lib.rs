//! Pure decisions about what jobs, agents and sandboxes may do.
//!
//! No I/O, no clock. Each decision returns a value that only this crate can create, such as [`admission::AdmittedJob`]. So a
//! caller with such a value has a decision that was made here.

#![forbid(unsafe_code)]

pub mod access;
pub mod action;
pub mod admission;
pub mod approval;
pub mod audit_pace;
pub mod autonomy;
pub mod constraint;
pub mod egress;
pub mod git;
pub mod grant;
pub mod handoff;
pub mod image;
pub mod lifecycle;
pub mod permission;
pub mod preferences;
pub mod secret;
pub mod skill;
pub mod tool;
pub mod trust;
pub mod untrusted;
pub mod verdict;
