//! API calls that the host makes for agents. The caller names a connection of the configuration and the request; it never sees
//! the credential.
//!
//! ```text
//! ApiCall ─► connection: method, path ─► may it be made now? ─► recorded ─► name, resolved once; addresses, vetted ─► TLS ─► answer
//!              │ not one of them           │ rate, approval                  credential, injected here            scanned ───┘
//!              └───────────────────────────┴─► ApiError, and recorded
//! ```
//! A connection is bound to its host, its port and the paths below its own. Redirects are not followed; they are returned as
//! answers.

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
