//! Tools as a gateway lists them. Their descriptions are untrusted, and limited in length.

use crate::excerpt::within;
use serde::Deserialize;
use serde_json::Value;

/// A tool.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) description: String,
    /// A JSON Schema of an object.
    pub(crate) schema: Value,
    /// True if the tool is declared read-only.
    pub(crate) is_read_only: bool,
    pub(crate) category: String,
    pub(crate) cost_tier: String,
    /// Documents of the tool.
    pub(crate) resources: Vec<String>,
}

/// The tools of a gateway.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct ToolList {
    pub(crate) tools: Vec<Tool>,
    /// Names of other tools, each with the reason why it is left out.
    pub(crate) left_out: Vec<String>,
    bytes: usize,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawTool {
    name: String,
    #[serde(default)]
    description: Option<String>,
    input_schema: Value,
    #[serde(default)]
    annotations: Annotations,
    #[serde(default, rename = "_meta")]
    meta: Meta,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Annotations {
    #[serde(default)]
    read_only_hint: bool,
}

#[derive(Default, Deserialize)]
struct Meta {
    #[serde(default, rename = "belljar/category")]
    category: Option<String>,
    #[serde(default, rename = "belljar/cost_tier")]
    cost_tier: Option<String>,
    #[serde(default, rename = "belljar/resources")]
    resources: Vec<String>,
}

const MOST_TOOLS: usize = 1_000;
const MOST_BYTES: usize = 4 << 20;
const LONGEST_NAME: usize = 128;
const LONGEST_DESCRIPTION: usize = 8 << 10;
const LONGEST_SCHEMA: usize = 32 << 10;
const LONGEST_WORD: usize = 40;
const MOST_RESOURCES: usize = 50;
const LONGEST_RESOURCE: usize = 500;
const UNKNOWN: &str = "unknown";

// === impl ToolList ===

impl ToolList {
    /// Adds a tool, or notes why it is left out.
    pub(super) fn take(&mut self, written: Value) {
        let name = written.get("name").and_then(Value::as_str).unwrap_or_default();
        let shown = within(word(name, LONGEST_NAME), LONGEST_NAME);
        let taken = Tool::read(written).and_then(|tool| self.add(tool));
        if let Err(why) = taken
            && self.left_out.len() < MOST_TOOLS
        {
            self.left_out.push(format!("{shown}: {why}"));
        }
    }

    fn add(&mut self, tool: Tool) -> Result<(), String> {
        if self.tools.iter().any(|known| known.name == tool.name) {
            return Err("it is listed twice".to_owned());
        }
        let bytes = tool.name.len() + tool.description.len() + tool.schema.to_string().len();
        if self.tools.len() >= MOST_TOOLS || self.bytes + bytes > MOST_BYTES {
            return Err("the gateway lists too many tools".to_owned());
        }
        self.bytes += bytes;
        self.tools.push(tool);
        Ok(())
    }
}

// === impl Tool ===

impl Tool {
    fn read(written: Value) -> Result<Self, String> {
        let written: RawTool = serde_json::from_value(written).map_err(|error| error.to_string())?;
        let RawTool { name, description, input_schema: schema, annotations, meta } = written;
        if name.is_empty() || name.len() > LONGEST_NAME || name.chars().any(char::is_control) {
            return Err(format!(
                "its name must be 1 to {LONGEST_NAME} bytes long, without control characters"
            ));
        }
        if schema.get("type").and_then(Value::as_str) != Some("object") {
            return Err("its input schema is not an object".to_owned());
        }
        if schema.to_string().len() > LONGEST_SCHEMA {
            return Err(format!("its schema is longer than {LONGEST_SCHEMA} bytes"));
        }
        let of_name = name.split_once('.').map_or(UNKNOWN, |(category, _)| category);
        let resources = meta.resources.into_iter().filter(|id| id.len() <= LONGEST_RESOURCE);
        Ok(Self {
            description: within(description.unwrap_or_default(), LONGEST_DESCRIPTION),
            schema,
            is_read_only: annotations.read_only_hint,
            category: word(meta.category.as_deref().unwrap_or(of_name), LONGEST_WORD),
            cost_tier: word(meta.cost_tier.as_deref().unwrap_or(UNKNOWN), LONGEST_WORD),
            resources: resources.take(MOST_RESOURCES).collect(),
            name,
        })
    }
}

/// Returns a text on one line, truncated.
fn word(text: &str, longest: usize) -> String {
    text.chars().filter(|c| !c.is_control()).take(longest).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn missing_tool_metadata_is_derived() {
        let mut listed = ToolList::default();
        listed.take(json!({ "name": "artifact.put", "inputSchema": { "type": "object" } }));
        listed.take(json!({
            "name": "mcp_x_y", "description": "Does y.", "inputSchema": { "type": "object" },
            "annotations": { "readOnlyHint": true },
            "_meta": { "belljar/category": "x\ny", "belljar/cost_tier": "low", "belljar/resources": ["a://b"], "other": 1 },
        }));
        let [put, y] = &listed.tools[..] else { panic!("{listed:?}") };
        assert_eq!((put.category.as_str(), put.cost_tier.as_str()), ("artifact", "unknown"));
        assert_eq!((y.category.as_str(), y.cost_tier.as_str(), y.is_read_only), ("xy", "low", true));
        assert_eq!(y.resources, ["a://b"]);
    }

    #[test]
    fn invalid_gateway_tool_is_left_out_with_the_reason() {
        let mut listed = ToolList::default();
        let long = json!({ "type": "object", "description": "x".repeat(LONGEST_SCHEMA) });
        for (wrong, why) in [
            (json!({ "name": "a" }), "inputSchema"),
            (json!({ "name": "a", "inputSchema": { "type": "string" } }), "not an object"),
            (json!({ "name": "a", "inputSchema": long }), "longer"),
            (json!({ "name": "a\nb", "inputSchema": { "type": "object" } }), "control"),
            (json!({ "name": "x".repeat(200), "inputSchema": { "type": "object" } }), "128 bytes"),
            (json!(7), "invalid type"),
        ] {
            listed.take(wrong);
            assert!(listed.left_out.last().unwrap().contains(why), "{listed:?}");
        }
        assert!(listed.tools.is_empty());
        let long =
            json!({ "name": "a", "description": "x".repeat(99_999), "inputSchema": { "type": "object" } });
        listed.take(long.clone());
        listed.take(long);
        assert!(listed.tools[0].description.len() < LONGEST_DESCRIPTION + 50);
        assert!(listed.left_out.last().unwrap().contains("twice"));
    }
}
