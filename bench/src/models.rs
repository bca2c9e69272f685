//! Throughput and latency of model calls through the inference proxy, compared with nginx and with the chain that it
//! replaces.
//!
//! Each part is a process of its own, so that none shares threads with another: the provider, the proxy, its peers and the
//! client. All of them share the processors of one machine, in the same way for each contestant.

mod audit;
mod house;
mod listener;
mod load;
mod message;
mod nginx;
pub(crate) mod part;
pub(crate) mod process;
mod proxy;
pub(crate) mod socket;
mod source;
mod stream;
mod streams;
mod turns;
mod upstream;
mod visitors;

pub(crate) use audit::run as audit;
pub(crate) use part::play;
pub(crate) use proxy::run as proxy;
pub(crate) use stream::run as stream;
pub(crate) use streams::run as streams;
