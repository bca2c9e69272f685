//! Tests of the web proxy: what is allowed, what is denied, and what never reaches the outside. A counting upstream is the
//! witness.

mod client_hellos;
mod fetched;
mod filled;
mod framing;
mod handshakes;
mod headers;
pub(crate) mod house;
mod inside;
mod names_below;
mod rebinding;
mod recorded;
mod requested;
mod rules;
mod second_hellos;
mod slow;
mod spellings;
mod through;
mod tunnels;
mod upstream;
