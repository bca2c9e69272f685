//! The gateway, with tools that note what becomes of them and a real audit.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod bearer;
mod calls;
mod conformance;
mod earned;
mod judged;
mod long;
mod mcp;
mod rig;
