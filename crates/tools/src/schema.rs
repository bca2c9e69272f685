//! Checks arguments against a JSON Schema. The only module that depends on the schema library.
//!
//! ```text
//! schema ─► graph, checked: local references, bounded work per value ─► compiled, patterns of bounded size
//! arguments ─► work, counted: bounded for the call ─► validated
//! ```

mod expected;
mod graph;
mod patterns;
mod stack;
mod subschemas;
#[cfg(test)]
mod tests;
mod work;

use crate::Arguments;
use graph::Graph;
use jsonschema::Validator;
use serde_json::Value;

/// A compiled schema.
#[derive(Debug)]
pub struct ArgumentSchema {
    /// Taken on drop.
    validator: Option<Validator>,
    graph: Graph,
    /// The schema itself, for its descriptions of values.
    schema: Value,
}

/// A checked schema that has not been compiled yet. Compiling it takes bounded time and memory.
#[derive(Debug)]
pub struct CheckedSchema {
    schema: Value,
    graph: Graph,
}

/// The schema can't be used.
#[derive(Debug, thiserror::Error)]
pub enum InvalidSchemaError {
    /// The library rejects the schema.
    #[error("not a self-contained JSON Schema: {problem}")]
    Schema {
        /// Error message of the library.
        problem: String,
    },
    /// A reference points outside of the schema.
    #[error("`$ref` {reference:?} does not point into the schema; use `#` or `#/…`, without `%`")]
    Reference {
        /// The reference.
        reference: String,
    },
    /// The schema declares another base, anchor or draft.
    #[error("the keyword `{keyword}` is not supported within a schema; use `$ref` with `#/…`")]
    Renaming {
        /// The keyword.
        keyword: &'static str,
    },
    /// Subschemas refer to each other for the same value endlessly.
    #[error("subschemas refer to each other in an endless loop")]
    Endless,
    /// A chain of subschemas is too long.
    #[error("a chain of more than {most} subschemas is applied to the same value")]
    Chain {
        /// Maximum length of a chain.
        most: u64,
    },
    /// Validation would be too much work.
    #[error("more than {most} evaluations for one value")]
    Work {
        /// Maximum amount of work.
        most: u64,
    },
    /// Too many patterns.
    #[error("more than {most} patterns")]
    Patterns {
        /// Maximum number of patterns.
        most: usize,
    },
    /// No thread is available to compile it.
    #[error("can't start a thread to compile the schema")]
    Thread(#[source] std::io::Error),
    /// A pattern is too long.
    #[error("a pattern of {bytes} bytes; at most {most} are allowed")]
    LongPattern {
        /// Its length.
        bytes: usize,
        /// Maximum length.
        most: usize,
    },
}

/// Maximum number of mistakes reported at once.
const MOST_TOLD: usize = 8;

/// Maximum length of a reported mistake.
const LONGEST_TOLD: usize = 300;

/// Above this amount of work mistakes are not collected, because each of them takes memory.
const MOST_COLLECTED: u64 = 50_000;

// === impl CheckedSchema ===

impl CheckedSchema {
    /// Parses and checks a schema, in time proportional to its size.
    ///
    /// # Errors
    /// [`InvalidSchemaError`] for references out of the schema, or too much work.
    pub fn new(schema: &Value) -> Result<Self, InvalidSchemaError> {
        let mut schema = schema.clone();
        if let Some(members) = schema.as_object_mut() {
            // The draft and the id of the schema are irrelevant here.
            members.remove("$schema");
            members.remove("$id");
        }
        let graph = Graph::of(&schema)?;
        Ok(Self { schema, graph })
    }

    /// Upper bound for the size of its compiled patterns, in bytes.
    pub fn pattern_bytes(&self) -> usize {
        self.graph.pattern_bytes
    }

    /// Compiles the schema. References are not fetched, and patterns match in linear time.
    ///
    /// # Errors
    /// [`InvalidSchemaError`] when the library rejects the schema, or a compiled pattern is too large.
    pub fn compile(self) -> Result<ArgumentSchema, InvalidSchemaError> {
        let compiled = stack::enough_for(self.graph.nodes.len(), || patterns::compile(&self.schema));
        let validator = compiled.map_err(InvalidSchemaError::Thread)??;
        Ok(ArgumentSchema { validator: Some(validator), graph: self.graph, schema: self.schema })
    }
}

// === impl ArgumentSchema ===

impl ArgumentSchema {
    /// Parses, checks and compiles a schema.
    ///
    /// # Errors
    /// [`InvalidSchemaError`] when it can't be used.
    pub fn new(schema: &Value) -> Result<Self, InvalidSchemaError> {
        CheckedSchema::new(schema)?.compile()
    }

    /// Checks arguments, in bounded time, memory and stack depth.
    ///
    /// # Errors
    /// Each mistake with its location.
    pub fn check(&self, arguments: &Arguments) -> Result<(), Vec<String>> {
        let value = Value::Object(arguments.clone());
        let Ok(work) = work::of(&self.graph, &value) else {
            return Err(vec![format!(
                "the arguments: validating them takes more than {} evaluations; use fewer, shorter or \
    flatter values",
                work::MOST_WORK
            )]);
        };
        let Some(validator) = &self.validator else {
            return Err(vec!["the arguments: the tool is no longer available".to_owned()]);
        };
        if work > MOST_COLLECTED {
            let told =
                "the arguments do not match the schema; they are too large to report the position".to_owned();
            return if validator.is_valid(&value) { Ok(()) } else { Err(vec![told]) };
        }
        let mistakes: Vec<_> = validator
            .iter_errors(&value)
            .take(MOST_TOLD)
            .map(|error| {
                let at = error.instance_path().to_string();
                let at = if at.is_empty() { "the arguments".to_owned() } else { at };
                told(&format!("{at}: {}", expected::described(&self.schema, &error)))
            })
            .collect();
        if mistakes.is_empty() { Ok(()) } else { Err(mistakes) }
    }
}

impl Drop for ArgumentSchema {
    fn drop(&mut self) {
        let validator = self.validator.take();
        // Subschemas own each other, so dropping them needs stack space proportional to their nesting.
        if stack::enough_for(self.graph.nodes.len(), || drop(validator)).is_err() {
            tracing::warn!("can't start a thread to drop a tool's schema; its memory is leaked");
        }
    }
}

fn told(text: &str) -> String {
    text[..text.floor_char_boundary(LONGEST_TOLD)].to_owned()
}
