//! Regular expressions of a schema: limited in number and size, and with a known matching cost.
//!
//! All patterns match in time proportional to the length of the text. The cost per byte depends on the compiled size, so large
//! patterns may match less text.

use super::InvalidSchemaError as Invalid;
use jsonschema::{PatternOptions, Validator};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Maximum number of patterns, and maximum length of a pattern in bytes.
const MOST: usize = 64;
const LONGEST: usize = 1 << 10;

/// Size classes of compiled patterns: size in bytes as counted by the library, and work per [`PORTION`] of text in the worst
/// case. The largest class is last.
const SIZES: [Size; 3] = [
    Size { bytes: 4 << 10, work: 4 },
    Size { bytes: 32 << 10, work: 128 },
    Size { bytes: 512 << 10, work: 2_048 },
];

/// Bytes of a portion of text.
const PORTION: u64 = 16;

/// Maximum size of the lazy DFA cache of a pattern, in bytes.
const LARGEST_CACHE: usize = 64 << 10;

/// A size class.
#[derive(Debug, Clone, Copy)]
struct Size {
    bytes: usize,
    work: u64,
}

/// The patterns of a schema with their size classes.
#[derive(Debug, Default)]
pub(super) struct Patterns<'v> {
    all: BTreeMap<&'v str, Size>,
}

// === impl Patterns ===

impl<'v> Patterns<'v> {
    /// Work of matching a pattern per portion of text.
    pub(super) fn work_of(&mut self, pattern: &'v str) -> Result<u64, Invalid> {
        if let Some(size) = self.all.get(pattern) {
            return Ok(size.work);
        }
        if pattern.len() > LONGEST {
            return Err(Invalid::LongPattern { bytes: pattern.len(), most: LONGEST });
        }
        if self.all.len() == MOST {
            return Err(Invalid::Patterns { most: MOST });
        }
        let [smaller @ .., largest] = &SIZES;
        let alone = json!({ "pattern": pattern });
        let size = smaller.iter().find(|size| build(&alone, size.bytes).is_ok()).unwrap_or(largest);
        self.all.insert(pattern, *size);
        Ok(size.work)
    }

    /// Upper bound for the compiled size of all patterns, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.all.values().map(|size| size.bytes).sum()
    }
}

/// Work of matching a text of the given length, with the given work per portion.
pub(super) const fn work(of_portion: u64, bytes: usize) -> u64 {
    (of_portion * bytes as u64).div_ceil(PORTION)
}

/// Compiles a schema whose patterns have been checked.
pub(super) fn compile(schema: &Value) -> Result<Validator, Invalid> {
    build(schema, SIZES[SIZES.len() - 1].bytes)
}

fn build(schema: &Value, largest: usize) -> Result<Validator, Invalid> {
    jsonschema::draft202012::options()
        .with_pattern_options(PatternOptions::regex().size_limit(largest).dfa_size_limit(LARGEST_CACHE))
        .should_validate_formats(false)
        .build(schema)
        .map_err(|error| Invalid::Schema { problem: super::told(&error.to_string()) })
}
