//! Agents: programs that work by themselves, with a model.

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
