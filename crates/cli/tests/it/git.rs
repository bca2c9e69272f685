//! `belljar git`: real servers, traps that an agent may leave for git, and the resulting state of the server.

mod agent;
mod bounds;
mod handed_off;
mod hostile;
mod https;
mod ignored;
mod jobs;
mod names;
mod obeyed;
mod pull_requests;
mod refs;
pub(crate) mod rig;
mod ssh;
mod tools;
