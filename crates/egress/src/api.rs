//! Calls of the interfaces that the configuration names, made by the host for whoever is in a sandbox: they say which connection, what
//! for, and never with what.
//!
//! ```text
//! ApiCall ─► connection: method, path ─► may it be made now? ─► recorded ─► name, resolved once; addresses, vetted ─► TLS ─► answer
//!              │ not one of them           │ rate, approval                  credential, filled in here           looked at ─┘
//!              └───────────────────────────┴─► ApiError, and recorded
//! ```
//! A connection is bound to its host, its port and what is below its path. Nothing is followed: an answer that leads elsewhere is an
//! answer.

mod allowance;
mod call;
pub mod config;
mod error;
mod operation;
mod outgoing;
mod under_way;

pub use call::{ApiAnswer, ApiCall, ApiCaller, Caller};
pub use config::{ApiConnection, Connections, Effect};
pub use error::ApiError;
pub use operation::{InvalidParametersError, Operation};
