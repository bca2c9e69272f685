//! The proxies against servers and clients that are as bad as can be.

#![expect(clippy::unwrap_used, reason = "a test that can't go on has failed")]

mod api;
mod credentials;
mod deadlines;
mod framing;
mod identity;
mod names;
mod refusals;
mod rig;
mod spend;
mod streams;
mod tls;
mod web;
