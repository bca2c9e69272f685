//! Tests of configurations as people write them: the defaults when little is written, and the errors for mistakes.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod choice;
mod mistakes;
mod strictness;
