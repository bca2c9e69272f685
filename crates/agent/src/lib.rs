//! Coding agents: the catalogue, their programs and templates, and one run of an agent with its events.

#![forbid(unsafe_code)]

pub mod catalogue;
pub mod envelope;
pub mod event;
pub mod failure;
pub mod messages;
pub mod outcome;
pub mod program;
pub mod run;
mod similar;
pub mod template;
