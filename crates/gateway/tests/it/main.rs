//! Tests of the gateway, with tools that note their calls and a real audit log.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod bearer;
mod calls;
mod conformance;
mod earned;
mod judged;
mod long;
mod mcp;
mod rig;
