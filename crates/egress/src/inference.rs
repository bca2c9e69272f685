//! The inference proxy: the only way from a sandbox to a model.
//!
//! ```text
//! sandbox                    │ host
//! client ─► listening socket ┼─► head ─► route ─► body ─► model, identity, reach ─► budget
//!   (the host's, made by     │                                                       │ credential, headers
//!    PID 1 inside)           │                                                       ▼
//!   ◄── bytes as they come ──┼──── looked at for usage and for what was injected ◄── provider
//!                            │                                     └─► one record for each call
//! ```
//! Heads are written anew; the body of a request is changed only where it says who pays, which model, or what the provider
//! is to do for others; the body of an answer not at all.

mod answer;
pub mod budget;
mod call;
pub mod config;
mod demand;
mod draft;
mod exchange;
pub mod ledger;
mod members;
pub mod models;
mod observe;
mod outgoing;
mod reach;
mod refusal;
mod relay;
mod request;
mod route;
pub mod run;
