//! When sandboxes are made, kept and destroyed; time passes only as the tests say.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod double;
mod model;
mod races;
mod strategies;
