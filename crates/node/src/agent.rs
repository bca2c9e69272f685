//! Agents: programs that work by themselves, with a model.

pub mod catalogue;
pub mod template;
