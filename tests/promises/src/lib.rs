//! What the tests and their probe tell each other: what to attempt, and what came of it.

#![forbid(unsafe_code)]

pub mod attempt;
