//! Inference proxy: the sandbox's only route to models.
//!
//! ```text
//! sandbox                    │ host
//! client ─► listening socket ┼─► head ─► route ─► body ─► model, identity, reach ─► budget
//!   (the host's, made by     │                                                       │ credential, headers
//!    PID 1 inside)           │                                                       ▼
//!   ◄── bytes as they come ──┼──── scanned for usage and for injected secrets ◄───── provider
//!                            │                                     └─► one record for each call
//! ```
//! Heads are written anew. A request's body is changed only where it names the account that pays, the model, or work that the
//! provider would do for others. An answer's body is never changed.

mod answer;
pub mod budget;
mod call;
pub mod config;
mod draft;
mod exchange;
pub mod ledger;
mod members;
pub mod models;
mod observe;
mod outbound_parts;
mod outgoing;
mod refusal;
mod relay;
mod request;
mod route;
pub mod run;
mod token_demand;
