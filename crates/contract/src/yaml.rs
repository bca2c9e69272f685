//! Strict parsing of YAML configurations.
//!
//! A strict subset is accepted: nothing unknown, nothing repeated, no anchors, no tags, and nothing that YAML 1.1 and
//! 1.2 interpret differently. All mistakes are reported at once, each with its line, its column and the expected value.
//! Pure: text comes in, values or all mistakes go out.

mod category;
mod document;
mod members;
mod mistake;
mod quantity;
mod scalar;

pub use category::by_category;
pub use document::{Key, Node, Value, below, parse};
pub use members::{Members, instead_of, list, nearest, one_of, only, place};
pub use mistake::{Mistake, MistakeLog, Mistakes, Position, quoted};
pub use quantity::{duration, kubernetes_cpu, kubernetes_memory, processors, size};
pub use scalar::{boolean, decimal, seconds, text, text_or_number, thousandths, whole, whole_number};

/// The largest file that is read, in bytes.
pub const LARGEST_BYTES: usize = 256 << 10;
