//! Tests of the test utilities: the scripted model server, LiteLLM, and real clients of both.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod agents;
mod delivery;
mod litellm;
mod python;
mod raw;
mod records;
mod shapes;
