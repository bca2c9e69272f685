//! Jobs with an agent, whose model is scripted by the test.

mod ends;
mod gateway;
pub(crate) mod house;
mod models;
mod repair;
mod time;
mod told;
