//! The web proxy: what gets through, what doesn't, and what nobody outside ever hears of. An upstream that counts is the witness.

mod fetched;
mod filled;
mod framing;
mod greetings;
mod handshakes;
mod headers;
pub(crate) mod house;
mod inside;
mod names_below;
mod rebinding;
mod recorded;
mod requested;
mod rules;
mod slow;
mod spellings;
mod through;
mod tunnels;
mod upstream;
