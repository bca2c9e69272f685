//! Pure decisions: what a job may do, and what may be done for whom.
//!
//! No I/O, no clock. Each decision answers with a value that only this crate can make, such as
//! [`admission::Admitted`]: whoever holds one holds a decision that was taken here.

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
