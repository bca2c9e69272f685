//! Content of tools and resources, as text.

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Result of a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ToolCallResult {
    /// Text of its parts, one below the other; parts that are not text are only named.
    pub(crate) text: String,
    /// Structured content, if there is any.
    pub(crate) structured: Option<Value>,
    pub(crate) is_error: bool,
}

/// Content of a resource.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Resource {
    pub(crate) text: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawToolCallResult {
    content: Vec<Value>,
    #[serde(default)]
    structured_content: Option<Value>,
    #[serde(default)]
    is_error: bool,
}

#[derive(Deserialize)]
struct Contents {
    contents: Vec<Value>,
}

/// Maximum length of a name, in characters.
const LONGEST_NAME: usize = 200;

// === Deserialize ===

impl<'d> Deserialize<'d> for ToolCallResult {
    fn deserialize<D: Deserializer<'d>>(from: D) -> Result<Self, D::Error> {
        let RawToolCallResult { content, structured_content: structured, is_error } =
            RawToolCallResult::deserialize(from)?;
        let text = match (content.is_empty(), &structured) {
            (true, Some(structured)) => structured.to_string(),
            _ => content.iter().map(part).collect::<Vec<_>>().join("\n"),
        };
        Ok(Self { text, structured, is_error })
    }
}

impl<'d> Deserialize<'d> for Resource {
    fn deserialize<D: Deserializer<'d>>(from: D) -> Result<Self, D::Error> {
        let Contents { contents } = Contents::deserialize(from)?;
        let one = |content: &Value| match content.get("text").and_then(Value::as_str) {
            Some(text) => text.to_owned(),
            None => format!("[resource: {}]", named(content, "uri")),
        };
        Ok(Self { text: contents.iter().map(one).collect::<Vec<_>>().join("\n") })
    }
}

fn part(part: &Value) -> String {
    match part.get("type").and_then(Value::as_str) {
        Some("text") => part.get("text").and_then(Value::as_str).unwrap_or_default().to_owned(),
        Some(kind @ ("image" | "audio")) => format!("[{kind}: {}]", named(part, "mimeType")),
        Some("resource_link") => format!("[resource: {}]", named(part, "uri")),
        Some("resource") => {
            let resource = part.get("resource").unwrap_or(&Value::Null);
            let text = resource.get("text").and_then(Value::as_str);
            let text = text.map(|text| format!("\n{text}")).unwrap_or_default();
            format!("[resource: {}]{text}", named(resource, "uri"))
        }
        _ => format!("[{}]", named(part, "type")),
    }
}

/// A member, as a placeholder can hold it.
fn named(part: &Value, member: &str) -> String {
    let name = part.get(member).and_then(Value::as_str).unwrap_or("unknown");
    name.chars().filter(|c| !c.is_control() && !matches!(c, '[' | ']')).take(LONGEST_NAME).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn called(result: Value) -> ToolCallResult {
        serde_json::from_value(result).unwrap()
    }

    #[test]
    fn tool_result_joins_text_parts_and_names_other_parts() {
        let all = called(json!({ "content": [
            { "type": "text", "text": "one" },
            { "type": "image", "mimeType": "image/png", "data": "AAAA" },
            { "type": "audio", "mimeType": "audio/wav]\n", "data": "AAAA" },
            { "type": "resource", "resource": { "uri": "a://b", "text": "inside" } },
            { "type": "resource", "resource": { "uri": "a://c", "blob": "AAAA" } },
            { "type": "resource_link", "uri": "a://d", "name": "d" },
            { "type": "hologram" },
            7,
        ] }));
        assert_eq!(
            all.text,
            "one\n[image: image/png]\n[audio: audio/wav]\n[resource: a://b]\ninside\n[resource: a://c]\n[resource: a://d]\n[hologram]\n[unknown]"
        );
        assert!(!all.is_error);
    }

    #[test]
    fn structured_content_is_shown_to_the_model_when_there_is_no_text() {
        let only = called(json!({ "content": [], "structuredContent": { "n": 1 }, "isError": true }));
        assert_eq!((only.text.as_str(), only.is_error), (r#"{"n":1}"#, true));
        let both = called(
            json!({ "content": [{ "type": "text", "text": "n is 1" }], "structuredContent": { "n": 1 } }),
        );
        assert_eq!(both.text, "n is 1");
        assert!(serde_json::from_value::<ToolCallResult>(json!({ "content": "text" })).is_err());
        assert!(serde_json::from_value::<ToolCallResult>(json!({})).is_err());
    }
}
