//! Network access of sandboxes through the host. Nothing from inside a sandbox is trusted: the socket of a connection
//! identifies the run, and its permissions were decided before.

#![forbid(unsafe_code)]

pub mod api;
pub mod audit_quota;
pub mod callback;
mod client;
pub mod credential;
pub mod exchange;
pub mod git;
pub mod http1;
pub mod identity;
pub mod inference;
pub mod known_secrets;
mod leak_scan;
pub mod mail;
mod memory_quota;
pub mod proxy;
mod rate_limit;
pub mod remote;
mod searcher;
pub mod secret;
pub mod spend;
mod time_limit;
pub mod upstream;
pub mod web;
pub mod webhook;
