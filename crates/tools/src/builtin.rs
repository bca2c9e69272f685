//! The tools of the host, by their namespaces.

pub mod api;
pub mod help;
pub mod web;
