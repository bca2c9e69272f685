//! Describes the expected form of a value, instead of the library's message with a regular expression or a schema.

use crate::definition::EXPECTED_MARK;
use jsonschema::ValidationError;
use jsonschema::error::ValidationErrorKind;
use serde_json::Value;

/// Descriptions of the values of `format`.
const FORMATS: [(&str, &str); 1] = [("uuid", "a UUID such as 0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e")];

/// Describes a mistake without the value, which may be secret or long.
pub(super) fn described(schema: &Value, error: &ValidationError<'_>) -> String {
    match error.kind() {
        ValidationErrorKind::Pattern { .. }
        | ValidationErrorKind::PropertyNames { .. }
        | ValidationErrorKind::Not { .. } => in_words(schema, error.schema_path().as_str()),
        _ => error.masked().to_string(),
    }
}

/// Describes the form required by a keyword.
fn in_words(schema: &Value, keyword: &str) -> String {
    let said = |name: &str| said_of(schema, keyword, name);
    let known =
        |format: &str| FORMATS.iter().find(|(name, _)| *name == format).map(|(_, expected)| *expected);
    let format = said("format").and_then(known);
    match (said(EXPECTED_MARK), format, said("description")) {
        (Some(expected), ..) | (None, Some(expected), _) => format!("expected {expected}"),
        (None, None, Some(description)) => format!("not of the required form: {description}"),
        (None, None, None) => "does not match the pattern that the tool's schema requires".to_owned(),
    }
}

/// Text of a member beside or below a keyword, given its JSON pointer.
fn said_of<'s>(schema: &'s Value, keyword: &str, name: &str) -> Option<&'s str> {
    let holder = keyword.rsplit_once('/').map_or("", |(holder, _)| holder);
    let places = [keyword, holder].map(|place| schema.pointer(place));
    places.into_iter().flatten().find_map(|place| place.get(name)?.as_str())
}
