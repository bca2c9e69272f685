//! The contract from outside: documents go in as bytes, and what comes out is compared.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking, also outside of the test function"
)]

mod agent;
mod corpus;
mod dialects;
mod documents;
mod hostile;
mod ids_and_versions;
mod inference;
mod members;
mod messages;
mod records;
mod reference;
mod result;
mod schema;
mod spend;
mod usage;
