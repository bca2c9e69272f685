//! The `belljar` command, run like a user runs it.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod access;
mod agents;
mod apart;
mod approval;
mod audit;
mod backend;
mod budget;
mod changes;
mod config;
mod deploy;
mod doctor;
mod egress;
mod exec;
mod failures;
mod full;
mod git;
mod grant;
mod hatches;
mod https_server;
mod inputs;
mod job;
mod killed;
mod limits;
mod limits_page;
mod mcp;
mod models;
mod node;
mod obeyed;
mod pages;
mod painted;
mod printed;
mod programs;
mod recording_server;
mod reviewed;
mod run;
mod run_agent;
mod sealed;
mod secrets;
mod session;
mod session_workspace;
mod state;
mod tools;
mod trust;
mod usage;
mod usage_totals;
mod validate;
mod workspace_copy;

/// The program under test.
const BELLJAR: &str = env!("CARGO_BIN_EXE_belljar");
