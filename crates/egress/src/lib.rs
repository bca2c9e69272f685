//! Network access of sandboxes through the host. Nothing from inside a sandbox is trusted: the socket of a connection
//! identifies the run, and its permissions were decided before.

#![forbid(unsafe_code)]

pub mod api;
pub mod audit_quota;
pub mod callback;
mod client;
pub mod credential;
mod leak_scan;
pub mod exchange;
pub mod git;
pub mod http1;
pub mod identity;
pub mod inference;
pub mod known;
pub mod mail;
mod rate_limit;
pub mod proxy;
pub mod remote;
mod memory_quota;
mod searcher;
pub mod secret;
pub mod spend;
pub mod upstream;
pub mod web;
pub mod webhook;
mod within;
