//! Parses messages of a server leniently: an unknown part doesn't invalidate the rest.

use super::guarded::ConnectionState;
use belljar_contract::json::Node;
use belljar_contract::json::{self, Bounds, MAX_MESSAGE_VALUES};
use rmcp::model::{ContentBlock, ErrorCode, ErrorData, RequestId, ServerJsonRpcMessage, Tool};
use serde::Deserialize;
use serde::de::{Error, IgnoredAny};
use serde_json::{Value, json};

/// The bytes are not a message.
#[derive(Debug, thiserror::Error)]
#[error("not an MCP message")]
pub(super) struct InvalidMessageError(#[source] serde_json::Error);

/// Members of a tool that are used; others may be large, and are dropped.
const KEPT_OF_TOOL: [&str; 5] = ["name", "title", "description", "inputSchema", "annotations"];

/// Limits of a message. The maximum depth is generous, so that one tool with a deep schema doesn't invalidate the others.
const WITHIN: Bounds = Bounds { values: MAX_MESSAGE_VALUES, depth: 128 };

/// Envelope of an unreadable answer, which identifies the request.
#[derive(Deserialize)]
struct Envelope {
    jsonrpc: String,
    id: RequestId,
    method: Option<IgnoredAny>,
}

/// Parses a message of a limited number of values. Invalid tools are counted. An unreadable answer is converted to an error
/// answer, as its caller would wait in vain otherwise.
pub(super) fn read(
    bytes: &[u8],
    watched: &ConnectionState,
) -> Result<ServerJsonRpcMessage, InvalidMessageError> {
    read_whole(bytes, watched).or_else(|error| {
        let envelope = serde_json::from_slice::<Envelope>(bytes).ok();
        let answer = envelope.filter(|found| found.jsonrpc == "2.0" && found.method.is_none());
        let id = answer.map(|answer| answer.id).ok_or(error)?;
        let unreadable =
            ErrorData::new(ErrorCode::INTERNAL_ERROR, "the server's response can't be parsed", None);
        Ok(ServerJsonRpcMessage::error(unreadable, Some(id)))
    })
}

fn read_whole(bytes: &[u8], watched: &ConnectionState) -> Result<ServerJsonRpcMessage, InvalidMessageError> {
    let read = json::parse_within(bytes, &WITHIN);
    let mut node = read.map_err(|problem| InvalidMessageError(serde_json::Error::custom(problem.found)))?;
    let ambiguous_tools = without_ambiguous_tools(&mut node);
    if let Some(name) = node.repeated_member() {
        let found = format!("duplicate member {name:?}");
        return Err(InvalidMessageError(serde_json::Error::custom(found)));
    }
    let mut value = node.to_value();
    if let Some(result) = value.get_mut("result").and_then(Value::as_object_mut) {
        if let Some(tools) = result.get_mut("tools").and_then(Value::as_array_mut) {
            let listed = tools.len();
            tools.retain_mut(is_tool);
            watched.passed_over(listed - tools.len() + ambiguous_tools);
        }
        if let Some(blocks) = result.get_mut("content").and_then(Value::as_array_mut) {
            blocks.iter_mut().for_each(understood);
        }
    }
    ServerJsonRpcMessage::deserialize(value).map_err(InvalidMessageError)
}

/// Removes tools with a duplicate member, and counts them, so that they don't invalidate the others.
fn without_ambiguous_tools(message: &mut Node) -> usize {
    fn member<'n>(node: &'n mut Node, wanted: &str) -> Option<&'n mut Node> {
        let Node::Object(members) = node else { return None };
        members.iter_mut().find(|(name, _)| name == wanted).map(|(_, value)| value)
    }
    let tools = member(message, "result").and_then(|result| member(result, "tools"));
    let Some(Node::Array(tools)) = tools else { return 0 };
    let listed = tools.len();
    tools.retain(|tool| tool.repeated_member().is_none());
    listed - tools.len()
}

/// Returns true for a valid tool. Unused members are removed.
fn is_tool(tool: &mut Value) -> bool {
    if let Some(members) = tool.as_object_mut() {
        members.retain(|name, _| KEPT_OF_TOOL.contains(&name.as_str()));
    }
    Tool::deserialize(&*tool).is_ok()
}

fn understood(block: &mut Value) {
    if ContentBlock::deserialize(&*block).is_err() {
        *block = json!({ "type": "text", "text": "[unknown]" });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result_of(text: &str) -> Value {
        serde_json::to_value(read(text.as_bytes(), &ConnectionState::default()).unwrap()).unwrap()["result"]
            .clone()
    }

    #[test]
    fn invalid_tool_in_a_list_does_not_affect_others() {
        let listed = result_of(
            r#"{"jsonrpc":"2.0","id":1,"result":{"tools":[
            {"name":"good","inputSchema":{"type":"object"},"icons":[{"src":"x"}]},
            {"name":"none","inputSchema":"x"}, {"inputSchema":{}}, 7, {"name":7,"inputSchema":{}},
            {"name":"too","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}}]}}"#,
        );
        let names: Vec<_> = listed["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
        assert_eq!(names, ["good", "too"]);
    }

    #[test]
    fn invalid_tool_entries_are_counted() {
        let listed = |entries: &[&str]| {
            let watched = ConnectionState::default();
            let entries = entries.join(",");
            let text = format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"tools":[{entries}]}}}}"#);
            read(text.as_bytes(), &watched).unwrap();
            watched.take_passed_over()
        };
        assert_eq!(listed(&["7"; 1_000]), 1_000);
        assert_eq!(listed(&[r#"{"name":"good","inputSchema":{"type":"object"}}"#]), 0);
    }

    #[test]
    fn unknown_content_part_is_marked() {
        let called = result_of(
            r#"{"jsonrpc":"2.0","id":1,"result":{"content":[
            {"type":"hologram","data":"x"}, {"type":"text"}, {"type":"text","text":"known"}]}}"#,
        );
        let texts: Vec<_> =
            called["content"].as_array().unwrap().iter().map(|block| &block["text"]).collect();
        assert_eq!(texts, ["[unknown]", "[unknown]", "known"]);
    }

    #[test]
    fn invalid_messages_are_rejected() {
        for text in
            ["", "hello", "[]", "{}", "7", r#"{"jsonrpc":"1.0","id":1,"result":{}}"#, &"[".repeat(100_000)]
        {
            assert!(read(text.as_bytes(), &ConnectionState::default()).is_err(), "{text}");
        }
    }

    #[test]
    fn message_with_too_many_values_is_rejected() {
        let of = |count: usize| {
            let list = vec!["0"; count].join(",");
            format!(r#"{{"jsonrpc":"2.0","id":1,"result":{{"content":[],"structuredContent":[{list}]}}}}"#)
        };
        let watched = ConnectionState::default();
        assert!(read_whole(of(MAX_MESSAGE_VALUES).as_bytes(), &watched).is_err());
        // Control: slightly fewer.
        assert!(read_whole(of(MAX_MESSAGE_VALUES - 12).as_bytes(), &watched).is_ok());
    }

    #[test]
    fn ambiguous_answer_becomes_an_error_for_its_caller() {
        let answered = |text: &str| {
            serde_json::to_value(read(text.as_bytes(), &ConnectionState::default()).unwrap()).unwrap()
        };
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        for text in [
            r#"{"jsonrpc":"2.0","id":7,"result":{"content":[]},"result":{"content":[]}}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":7,"result":{"content":[],"content":[]}}"#.to_owned(),
            r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"A","te\u0078t":"B"}]}}"#
                .to_owned(),
            format!(
                r#"{{"jsonrpc":"2.0","id":7,"result":{{"content":[],"structuredContent":{{"a":{deep}}}}}}}"#
            ),
        ] {
            let answer = answered(&text);
            assert_eq!(
                (&answer["id"], &answer["error"]["message"]),
                (&json!(7), &json!("the server's response can't be parsed"))
            );
        }
        // An answer must have one unambiguous id, and a request is not an answer.
        for text in [
            r#"{"jsonrpc":"2.0","id":7,"id":8,"result":{"content":[]}}"#,
            r#"{"jsonrpc":"2.0","id":7,"method":"ping","method":"ping"}"#,
        ] {
            assert!(read(text.as_bytes(), &ConnectionState::default()).is_err(), "{text}");
        }
        // Control: a readable answer, and a list with one unreadable tool.
        let one = r#"{"jsonrpc":"2.0","id":7,"result":{"content":[{"type":"text","text":"A"}]}}"#;
        assert_eq!(answered(one)["result"]["content"][0]["text"], "A");
        let listed = answered(
            r#"{"jsonrpc":"2.0","id":7,"result":{"tools":[{"name":"a","name":"b","inputSchema":{"type":"object"}},
            {"name":"good","inputSchema":{"type":"object"}}]}}"#,
        );
        assert_eq!(listed["result"]["tools"].as_array().map(Vec::len), Some(1));
    }
}
