//! The web hatch of a sandbox: a forward proxy. It is the sandbox's only route to anything outside that speaks HTTP or TLS.
//!
//! ```text
//! sandbox                    │ host
//! client ─► listening socket ┼─► head ─► policy ─┬─► name, resolved once ─► addresses, vetted ─► recorded ─► dialed
//!   CONNECT, or a whole URL  │    one way        │ no                                                        │
//!                            │    to read it     └─► refused, recorded; the needed rule is named            │
//!   ◄── bytes as they come ──┼──── counted, closed once the policy does not allow them any more ◄────────────┘
//! ```
//! Both forms of a request lead to one decision ([`belljar_policy::egress`]). The socket identifies the run that asks. A tunnel
//! begins with a TLS ClientHello for the requested host, or with another protocol that no TLS server mistakes for TLS.

mod answer;
mod asked_names;
pub mod config;
mod credential_injection;
mod decision;
pub mod explain;
pub mod fetch;
mod forward;
pub(crate) mod hatch_server;
mod header_filter;
pub mod interception_ca;
pub mod ledger;
pub mod limits;
pub mod live;
mod other_resource;
mod placeholder;
pub mod proposal;
mod proxied_request;
mod refusal;
mod response_scan;
pub mod run;
mod sigv4;
mod tls_interception;
mod tunnel;
mod tunnel_opening;

pub(crate) use forward::authority as authority_of;
pub(crate) use sigv4::encoded;
