//! Where a program meets a sandbox: hatches are served, the program is supervised, and its output, usage and changes are collected.
//!
//! [`run_once`] does all of that for one program that a grant permits; [`serving`] serves the hatches of jobs and sessions, too.

#![forbid(unsafe_code)]

pub mod grant;
pub mod policy_file;
pub mod run_once;
pub mod serving;
pub mod tls_interception;
pub mod web;
