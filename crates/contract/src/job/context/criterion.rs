//! Acceptance criteria: a text, and a command that checks it if there is one.

use crate::decode::{Decode, DecodeContext, Fields};
use crate::job::step::run_command::RunCommand;
use crate::json::Node;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use std::borrow::Cow;

/// An acceptance criterion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Criterion {
    /// Condition that must hold.
    pub text: String,
    /// Command that checks the criterion; it is met if the exit code is 0. Without a command, a model decides.
    pub check: Option<RunCommand>,
}

// === Decode ===

impl Decode for Criterion {
    fn decode(node: &Node, at: &mut DecodeContext<'_, '_>) -> Option<Self> {
        match node {
            Node::String(text) => Some(Self { text: text.clone(), check: None }),
            Node::Object(_) => {
                let mut fields = Fields::open(node, at)?;
                let text = fields.required("text");
                let check = fields.optional("check");
                fields.finish()?;
                Some(Self { text: text?, check: check? })
            }
            other => at.mistyped(other, "a text, or an object of `text` and `check`"),
        }
    }
}

impl JsonSchema for Criterion {
    fn schema_name() -> Cow<'static, str> {
        "Criterion".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let check = generator.subschema_for::<RunCommand>();
        json_schema!({
            "description": "One acceptance criterion.",
            "oneOf": [
                { "type": "string" },
                {
                    "type": "object",
                    "properties": {
                        "text": { "description": "Condition that must hold.", "type": "string" },
                        "check": check,
                    },
                    "required": ["text"],
                    "additionalProperties": false,
                },
            ],
        })
    }
}
