//! Tests of the proxies against hostile servers and clients.

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
