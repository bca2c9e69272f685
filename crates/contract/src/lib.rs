//! All data that crosses a process boundary: the job, its result, the runner's log events, the ids, and the records for
//! auditing and billing calls.
//!
//! No I/O, no clock, no environment: text and bytes come in, values and complete lists of problems go out. A value of a
//! type in here has been checked; later code doesn't check it again.

#![forbid(unsafe_code)]

pub mod access;
pub mod action;
pub mod agent;
pub mod approval;
pub mod audit;
pub mod category;
pub mod egress;
pub mod event;
pub mod failure;
pub mod git;
pub mod grant;
pub mod id;
pub mod image;
pub mod inference;
pub mod isolation;
pub mod job;
pub mod json;
pub mod key;
pub mod label;
pub mod limit;
pub mod media;
pub mod path;
pub mod preference;
pub mod problem;
pub mod programs;
pub mod result;
pub mod schema;
pub mod scope;
pub mod spend;
pub mod text;
pub mod tool;
pub mod trust;
pub mod usage;
pub mod version;
pub mod workbench;
pub mod worker;
pub mod yaml;

mod decode;
