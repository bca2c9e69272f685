//! The messages between the tests and their probe: attempts and answers.

#![forbid(unsafe_code)]

pub mod attempt;
