//! The web proxy: what gets through, what doesn't, and what nobody outside ever hears of. An upstream that counts is the witness.

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
