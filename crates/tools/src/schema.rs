//! Checks arguments by a JSON Schema. The one place that knows the library for it.

use crate::Arguments;
use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

/// A schema, ready.
#[derive(Debug)]
pub struct ArgumentSchema {
    validator: Validator,
}

/// The text is no schema, or one that asks for what isn't there.
#[derive(Debug, thiserror::Error)]
#[error("not a JSON Schema that stands by itself: {problem}")]
pub struct InvalidSchemaError {
    problem: String,
}

/// So many mistakes are told at once.
const MOST_TOLD: usize = 8;

/// As much of each.
const LONGEST_TOLD: usize = 300;

// === impl ArgumentSchema ===

impl ArgumentSchema {
    /// Reads a schema. Nothing that it refers to is fetched, and its patterns take time in proportion to what they look at.
    ///
    /// # Errors
    /// [`InvalidSchemaError`] when it can't be used.
    pub fn new(schema: &Value) -> Result<Self, InvalidSchemaError> {
        let validator = jsonschema::draft202012::options()
            .with_pattern_options(PatternOptions::regex())
            .build(schema)
            .map_err(|error| InvalidSchemaError { problem: told(&error.to_string()) })?;
        Ok(Self { validator })
    }

    /// Checks arguments.
    ///
    /// # Errors
    /// Each mistake with its place.
    pub fn check(&self, arguments: &Arguments) -> Result<(), Vec<String>> {
        let value = Value::Object(arguments.clone());
        let mistakes: Vec<_> = self
            .validator
            .iter_errors(&value)
            .take(MOST_TOLD)
            .map(|error| {
                let at = error.instance_path().to_string();
                let at = if at.is_empty() { "the arguments".to_owned() } else { at };
                // Values may be secret, and long: what was expected says enough.
                told(&format!("{at}: {}", error.masked()))
            })
            .collect();
        if mistakes.is_empty() { Ok(()) } else { Err(mistakes) }
    }
}

fn told(text: &str) -> String {
    text[..text.floor_char_boundary(LONGEST_TOLD)].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn arguments(value: &Value) -> Arguments {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn mistakes_have_a_place_and_hide_the_value() {
        let schema = ArgumentSchema::new(&json!({
            "type": "object", "required": ["path"], "additionalProperties": false,
            "properties": { "path": { "type": "string", "maxLength": 3 }, "count": { "type": "integer" } }
        }))
        .unwrap();
        assert_eq!(schema.check(&arguments(&json!({ "path": "abc" }))), Ok(()));
        let mistakes = schema.check(&arguments(&json!({ "path": "hunter2", "count": true }))).unwrap_err();
        assert_eq!(mistakes.len(), 2, "{mistakes:?}");
        assert!(mistakes.iter().any(|mistake| mistake.starts_with("/path: ")), "{mistakes:?}");
        assert!(!mistakes.concat().contains("hunter2"), "{mistakes:?}");
        assert!(schema.check(&arguments(&json!({}))).is_err());
        assert!(schema.check(&arguments(&json!({ "path": "a", "Path": "a" }))).is_err());
    }

    #[test]
    fn a_schema_fetches_nothing_and_its_patterns_take_no_time() {
        assert!(ArgumentSchema::new(&json!({ "$ref": "http://127.0.0.1:9/schema.json" })).is_err());
        assert!(ArgumentSchema::new(&json!({ "type": "wrong" })).is_err());
        let slow =
            json!({ "type": "object", "properties": { "a": { "type": "string", "pattern": "^(a+)+$" } } });
        let schema = ArgumentSchema::new(&slow).unwrap();
        let hostile = format!("{}!", "a".repeat(100_000));
        assert!(schema.check(&arguments(&json!({ "a": hostile }))).is_err());
    }
}
