//! Tests of the reports of executions: their contents, and what they leave out.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod events;
mod queue;
mod secrets;
