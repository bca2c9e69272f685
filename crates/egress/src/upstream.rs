//! Upstreams, and connections to them.
//!
//! ```text
//! Upstream ─► names: the host's files and DNS ─► address: may a name lead there? ─► dial ─┬─► TLS by trust ─► Connection
//!    │            (only for a name)                                                       └─► without TLS ──►     │
//!    └─────────────────────────────────────── Pool: idle connections ◄────────────────────────────────────────────┘
//! ```
//! TLS and DNS configuration is loaded only when an upstream needs it, and the serving thread reads no file.

mod address;
mod answer;
mod connect;
mod dial;
pub mod names;
mod place;
mod pool;
mod secure;
mod server_user;
mod stream;
mod trust;
mod upstream_proxy;

pub(crate) use answer::AnswerError;
pub(crate) use connect::{ConnectError, Connector, secure};
pub(crate) use dial::{
    ConnectTimeouts, DialAllowedError, DialedConnection, dial_allowed, is_of_this_machine,
};
pub use place::{Upstream, UpstreamError};
pub(crate) use pool::{Connection, Pool};
pub use server_user::{read_server_user, read_user};
pub(crate) use stream::Stream;
pub(crate) use trust::TrustStore;
pub(crate) use trust::pem;
pub use trust::{TrustError, authorities_of_system};
pub(crate) use upstream_proxy::{
    ConnectionPurpose, ProxyHeaders, ResolverLocation, RoutedConnection, UpstreamProxy,
};
