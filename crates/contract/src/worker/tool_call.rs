//! A tool call by the node's operator: `POST /v1/worker/tools:call`.

use super::ApiVersion;
use crate::decode::{Decode, DecodeContext, Fields, decode_document};
use crate::id::UserId;
use crate::json::{self, Node};
use crate::problem::Problems;
use crate::tool::{DomainCode, Envelope, ToolName};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// A request to call a tool.
#[derive(Debug, Clone, PartialEq, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CallToolRequest {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// The tool, such as `db.preference.create`.
    #[schemars(with = "String", regex(pattern = "^[A-Za-z0-9._-]{1,128}$"))]
    pub tool: ToolName,
    /// Arguments of the tool.
    #[schemars(default, with = "Map<String, Value>")]
    pub arguments: Map<String, Value>,
    /// The user who calls it, for the record; `operator` if none is named.
    #[schemars(default, with = "UserId")]
    pub user_id: Option<UserId>,
}

/// Answer of the tool: `data`, or an error. A call that is rejected before it reaches the tool is answered with a
/// problem instead.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallToolResponse {
    /// The version of the Worker API.
    pub version: ApiVersion,
    /// The answer.
    pub answer: Envelope,
    /// Images, sounds and files of the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<ToolAttachment>,
}

/// An attachment that is not JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolAttachment {
    /// Its type, such as `image/png`.
    pub mime_type: String,
    /// Address of the file, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uri: Option<String>,
    /// Its bytes, in Base64.
    pub base64: String,
}

/// The name of a tool.
struct Name(ToolName);

/// Members of any kind.
struct Arguments(Map<String, Value>);

// === impl CallToolRequest ===

impl CallToolRequest {
    /// Parses a request.
    ///
    /// # Errors
    /// [`Problems`]: all that are found.
    pub fn parse(document: &[u8]) -> Result<Self, Problems> {
        decode_document(&json::parse(document)?)
    }
}

impl Decode for CallToolRequest {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        let mut fields = Fields::open(node, at)?;
        let version = fields.required("version");
        let tool = fields.required("tool").map(|Name(tool)| tool);
        let arguments = fields.or("arguments", Arguments(Map::new()));
        let user_id = fields.optional("user_id");
        fields.finish()?;
        let Arguments(arguments) = arguments?;
        Some(Self { version: version?, tool: tool?, arguments, user_id: user_id? })
    }
}

impl Decode for Name {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        at.parsed(node, "the name of a tool such as db.preference.create", ToolName::parse).map(Self)
    }
}

impl Decode for Arguments {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        match node {
            Node::Object(_) => match Value::decode(node, at)? {
                Value::Object(members) => Some(Self(members)),
                _ => None,
            },
            other => at.mistyped(other, "an object"),
        }
    }
}

// === impl CallToolResponse ===

impl JsonSchema for CallToolResponse {
    fn schema_name() -> Cow<'static, str> {
        "CallToolResponse".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let version = generator.subschema_for::<ApiVersion>();
        let attachments = generator.subschema_for::<Vec<ToolAttachment>>();
        let codes = DomainCode::ALL.map(DomainCode::as_str);
        json_schema!({
            "description": "Result of the tool: `data`, or an error.",
            "type": "object",
            "required": ["version", "answer"],
            "properties": {
                "version": version,
                "attachments": attachments,
                "answer": {
                    "oneOf": [
                        {
                            "type": "object",
                            "required": ["status", "data"],
                            "properties": {
                                "status": { "const": "ok" },
                                "data": { "description": "Result of the call." },
                                "pagination": {
                                    "description": "Position of this part in a list.",
                                    "type": "object",
                                    "required": ["total", "offset", "limit"],
                                    "properties": {
                                        "total": { "type": "integer", "minimum": 0 },
                                        "offset": { "type": "integer", "minimum": 0 },
                                        "limit": { "type": "integer", "minimum": 0 },
                                    },
                                },
                            },
                        },
                        {
                            "type": "object",
                            "required": ["status", "error_type", "message", "domain_code"],
                            "properties": {
                                "status": { "const": "error" },
                                "error_type": { "type": "string" },
                                "message": { "type": "string" },
                                "domain_code": { "enum": codes },
                            },
                        },
                    ],
                },
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_call_request_requires_tool_name_and_object_arguments() {
        let parse = |document: &str| CallToolRequest::parse(document.as_bytes());
        let request = parse(r#"{"version": 1, "tool": "skills.list", "arguments": {"limit": 5}}"#).unwrap();
        assert_eq!((request.tool.as_str(), request.arguments["limit"].as_u64()), ("skills.list", Some(5)));
        assert!(parse(r#"{"version": 1, "tool": "skills.list"}"#).unwrap().arguments.is_empty());
        for refused in [
            r#"{"version": 1}"#,
            r#"{"version": 1, "tool": "a b"}"#,
            r#"{"version": 1, "tool": "a", "arguments": []}"#,
            r#"{"version": 1, "tool": "a", "user": "ada"}"#,
        ] {
            assert!(parse(refused).is_err(), "{refused}");
        }
    }
}
