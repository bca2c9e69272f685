//! Checks arguments by a JSON Schema. The one place that knows the library for it.
//!
//! ```text
//! schema ─► graph, judged: names only itself, bounded work per value ─► compiled, patterns of bounded size
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

/// A schema, ready.
#[derive(Debug)]
pub struct ArgumentSchema {
    /// Taken when it is dropped.
    validator: Option<Validator>,
    graph: Graph,
    /// The schema itself, for what it says of its values in words.
    schema: Value,
}

/// A schema that has been judged and not been compiled: compiling it takes bounded time and memory.
#[derive(Debug)]
pub struct JudgedSchema {
    schema: Value,
    graph: Graph,
}

/// The schema can't be used.
#[derive(Debug, thiserror::Error)]
pub enum InvalidSchemaError {
    /// The library doesn't take it.
    #[error("not a JSON Schema that stands by itself: {problem}")]
    Schema {
        /// What the library says.
        problem: String,
    },
    /// A reference leads out of the schema.
    #[error("`$ref` {reference:?} is no place in the schema; `#` or `#/…` is, without `%`")]
    Reference {
        /// The reference.
        reference: String,
    },
    /// Another base, anchor or draft within the schema.
    #[error("the keyword `{keyword}` is not taken within a schema; `$ref` with `#/…` is")]
    Renaming {
        /// The keyword.
        keyword: &'static str,
    },
    /// Subschemas that apply each other to the same value.
    #[error("subschemas apply each other to the same value without end")]
    Endless,
    /// Too many subschemas in a chain.
    #[error("a chain of more than {most} subschemas is applied to the same value")]
    Chain {
        /// As many are taken.
        most: u64,
    },
    /// Too much work.
    #[error("more than {most} evaluations for one value")]
    Work {
        /// As many are done.
        most: u64,
    },
    /// Too many patterns.
    #[error("more than {most} patterns")]
    Patterns {
        /// As many are taken.
        most: usize,
    },
    /// It can't be compiled now.
    #[error("there is no thread to compile it on")]
    Thread(#[source] std::io::Error),
    /// A pattern is too long.
    #[error("a pattern of {bytes} bytes; {most} are taken")]
    LongPattern {
        /// Its length.
        bytes: usize,
        /// As much is taken.
        most: usize,
    },
}

/// So many mistakes are told at once.
const MOST_TOLD: usize = 8;

/// As much of each.
const LONGEST_TOLD: usize = 300;

/// Of arguments that are more work, no mistakes are collected: each takes memory.
const MOST_COLLECTED: u64 = 50_000;

// === impl JudgedSchema ===

impl JudgedSchema {
    /// Reads a schema and judges it, in time proportional to its size.
    ///
    /// # Errors
    /// [`InvalidSchemaError`] when it names what is not in it, or asks for more work than is done.
    pub fn new(schema: &Value) -> Result<Self, InvalidSchemaError> {
        let mut schema = schema.clone();
        if let Some(members) = schema.as_object_mut() {
            // Which draft it is of, and what others call it, changes nothing here.
            members.remove("$schema");
            members.remove("$id");
        }
        let graph = Graph::of(&schema)?;
        Ok(Self { schema, graph })
    }

    /// What its patterns compile to at most, in bytes.
    pub fn pattern_bytes(&self) -> usize {
        self.graph.pattern_bytes
    }

    /// Compiles it. Nothing that it refers to is fetched, and its patterns take time in proportion to what they look at.
    ///
    /// # Errors
    /// [`InvalidSchemaError`] when the library doesn't take it, or a pattern compiles to more than is taken.
    pub fn compile(self) -> Result<ArgumentSchema, InvalidSchemaError> {
        let compiled = stack::enough_for(self.graph.nodes.len(), || patterns::compile(&self.schema));
        let validator = compiled.map_err(InvalidSchemaError::Thread)??;
        Ok(ArgumentSchema { validator: Some(validator), graph: self.graph, schema: self.schema })
    }
}

// === impl ArgumentSchema ===

impl ArgumentSchema {
    /// Reads, judges and compiles a schema.
    ///
    /// # Errors
    /// [`InvalidSchemaError`] when it can't be used.
    pub fn new(schema: &Value) -> Result<Self, InvalidSchemaError> {
        JudgedSchema::new(schema)?.compile()
    }

    /// Checks arguments, in bounded time, memory and depth of the stack.
    ///
    /// # Errors
    /// Each mistake with its place.
    pub fn check(&self, arguments: &Arguments) -> Result<(), Vec<String>> {
        let value = Value::Object(arguments.clone());
        let Ok(work) = work::of(&self.graph, &value) else {
            return Err(vec![format!(
                "the arguments: checking them by the tool's schema takes more than {} evaluations; give fewer, shorter or flatter values",
                work::MOST_WORK
            )]);
        };
        let Some(validator) = &self.validator else {
            return Err(vec!["the arguments: the tool is gone".to_owned()]);
        };
        if work > MOST_COLLECTED {
            let told =
                "the arguments: not what the schema takes; they are too large to tell where".to_owned();
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
        // Subschemas own each other: dropping them takes as deep a stack as they are nested.
        if stack::enough_for(self.graph.nodes.len(), || drop(validator)).is_err() {
            tracing::warn!("there is no thread to drop a schema of a tool on; its memory is lost");
        }
    }
}

fn told(text: &str) -> String {
    text[..text.floor_char_boundary(LONGEST_TOLD)].to_owned()
}
