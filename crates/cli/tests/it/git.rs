//! `belljar git`: real servers, what an agent may have left for git to find, and what the server has in the end.

mod agent;
mod bounds;
mod handed_off;
mod hostile;
mod https;
mod ignored;
mod names;
mod obeyed;
mod pull_requests;
mod refs;
pub(crate) mod rig;
mod ssh;
mod tools;
