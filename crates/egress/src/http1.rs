//! HTTP/1.1 for the proxies: heads are parsed strictly and written anew; bodies are opaque bytes with a known end.
//!
//! Anything that two parsers could understand differently is refused, never repaired. So nothing can be read as a second
//! request by the server behind the proxy (request smuggling).

pub mod body;
pub mod head;
mod headers;
pub mod limits;

pub use body::{BodyLength, Chunks};
pub use head::{MalformedHttp, RequestHead, ResponseHead, Target};
pub use headers::Headers;
