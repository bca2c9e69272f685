//! Test utilities that crates share. Never shipped: only tests import it.

#![forbid(unsafe_code)]
#![expect(clippy::expect_used, reason = "only tests use this, and a test that can't go on has failed")]

pub mod clients;
pub mod collector;
mod daemon;
pub mod foreign_root;
pub mod forge;
pub mod git;
pub mod http;
pub mod job;
mod joined;
mod kept;
pub mod launcher;
pub mod litellm;
pub mod machine_code;
pub mod mcp;
pub mod mcp_server;
pub mod models;
pub mod names;
pub mod node;
pub mod orchestrator;
pub mod other_user;
pub mod postgres;
pub mod processes;
pub mod random;
pub mod runner;
pub mod s3;
pub mod schemathesis;
pub mod searxng;
pub mod share;
pub mod skip;
pub mod spellings;
pub mod terminal;
pub mod wait;
pub mod world;
