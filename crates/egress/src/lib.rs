//! Everything that leaves the host for a sandbox. Nothing inside is believed: who calls is known by the socket that the
//! call comes in by, and what it may do was decided before.

#![forbid(unsafe_code)]

pub mod api;
pub mod audit_quota;
pub mod callback;
mod client;
pub mod credential;
mod echo;
pub mod exchange;
pub mod git;
pub mod http1;
pub mod identity;
pub mod inference;
pub mod known;
pub mod mail;
mod pace;
pub mod proxy;
pub mod remote;
mod room;
mod searcher;
pub mod secret;
pub mod spend;
pub mod upstream;
pub mod web;
pub mod webhook;
mod within;
