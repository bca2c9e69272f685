//! The web for a sandbox: a forward proxy, which is the only way from there to anything outside that speaks HTTP or TLS.
//!
//! ```text
//! sandbox                    │ host
//! client ─► listening socket ┼─► head ─► policy ─┬─► name, resolved once ─► addresses, vetted ─► recorded ─► dialed
//!   CONNECT, or a whole URL  │    one way        │ no                                                        │
//!                            │    to read it     └─► told what rule it would take, and recorded              │
//!   ◄── bytes as they come ──┼──── counted, ended when the policy does not allow them any more ◄─────────────┘
//! ```
//! Both forms of a request come to one decision ([`belljar_policy::egress`]). Who asks is known by the socket. A tunnel begins
//! with a ClientHello of TLS for the host that was asked for, or with another protocol that no TLS server takes for one.

mod answer;
mod asked_names;
pub mod authority;
pub mod config;
mod decision;
pub mod explain;
pub mod fetch;
mod filling;
mod forward;
pub(crate) mod gate;
mod guard;
mod inside;
pub mod ledger;
pub mod limits;
pub mod live;
mod opening;
mod other_resource;
mod passage;
mod passed_on;
mod placeholder;
pub mod proposal;
mod refusal;
pub mod run;
mod sigv4;
mod tunnel;

pub(crate) use forward::authority as authority_of;
pub(crate) use sigv4::encoded;
