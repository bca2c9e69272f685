//! The regular expressions of a schema: few, of bounded size, and known by what a match takes.
//!
//! All are matched in time proportional to the text. How much that is for a byte depends on the size that an expression compiles to, so
//! large ones may look at less text.

use super::InvalidSchemaError as Invalid;
use jsonschema::{PatternOptions, Validator};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The most patterns that a schema may have, and the longest of them, in bytes.
const MOST: usize = 64;
const LONGEST: usize = 1 << 10;

/// Patterns by what they compile to, in bytes as the library counts them, with the work of a match for each [`PORTION`] of the text, at
/// worst. The last are the largest.
const SIZES: [Size; 3] = [
    Size { bytes: 4 << 10, work: 4 },
    Size { bytes: 32 << 10, work: 128 },
    Size { bytes: 512 << 10, work: 2_048 },
];

/// Bytes of a text.
const PORTION: u64 = 16;

/// What a pattern may keep of its matches to be faster, in bytes.
const LARGEST_CACHE: usize = 64 << 10;

/// A size of patterns.
#[derive(Debug, Clone, Copy)]
struct Size {
    bytes: usize,
    work: u64,
}

/// The patterns of a schema, each with its size.
#[derive(Debug, Default)]
pub(super) struct Patterns<'v> {
    all: BTreeMap<&'v str, Size>,
}

// === impl Patterns ===

impl<'v> Patterns<'v> {
    /// The work of a match of that pattern for each portion of a text.
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

    /// What all of them compile to at most, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.all.values().map(|size| size.bytes).sum()
    }
}

/// The work of matching a text of so many bytes against patterns of that work.
pub(super) const fn work(of_portion: u64, bytes: usize) -> u64 {
    (of_portion * bytes as u64).div_ceil(PORTION)
}

/// Compiles a schema whose patterns have been looked at.
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
