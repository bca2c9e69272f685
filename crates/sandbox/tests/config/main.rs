//! Configurations as people write them: what stands when little is written, and what is said of mistakes.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod choice;
mod mistakes;
mod strictness;
