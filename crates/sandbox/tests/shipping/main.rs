//! What is told of executions, and what is not.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod events;
mod queue;
mod secrets;
