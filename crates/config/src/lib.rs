//! The configuration file: its sections as one value, where it is found, and its reference.
//!
//! ```text
//!                      ┌─► documentation page, JSON Schema, example file
//! reference (tables) ──┤        a test compares them, member by member
//!                      │                    │
//! file ─► discovery ─► configuration ─► the parser of each section, in the crate that owns it
//! ```
//! The tables of [`mod@reference`] depend on nothing: without the feature `sections` they are all that is compiled.

#![forbid(unsafe_code)]

#[cfg(feature = "sections")]
mod configuration;
#[cfg(feature = "sections")]
pub mod discovery;
#[cfg(feature = "sections")]
pub mod effective;
mod example;
#[cfg(feature = "sections")]
pub mod inert;
mod json;
pub mod reference;
mod schema;

#[cfg(feature = "sections")]
pub use configuration::Configuration;
pub use example::example;
pub use schema::schema;
