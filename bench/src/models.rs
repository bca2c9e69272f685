//! How fast calls of models pass through the inference proxy, beside nginx and beside the chain that it stands for.
//!
//! Everybody who takes part is a process of its own, so that nobody has another's threads: the provider, the proxy, its
//! peers and the one who calls. All of them share the processors of one machine, for each contestant in the same way.

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
