//! HTTP/1.1 as the proxies speak it: heads are parsed strictly and written anew, bodies are bytes whose end is found.
//!
//! What two parsers could understand in two ways is refused, never repaired: between this one and whoever comes behind it
//! nothing may be read as a second request.

pub mod body;
pub mod head;
mod headers;
pub mod limits;

pub use body::{BodyLength, Chunks};
pub use head::{Malformed, RequestHead, ResponseHead, Target};
pub use headers::Headers;
