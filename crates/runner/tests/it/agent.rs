//! Jobs with an agent, led by a model that says what a test tells it to.

mod ends;
mod gateway;
pub(crate) mod house;
mod models;
mod repair;
mod time;
mod told;
