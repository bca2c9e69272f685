//! JSON-RPC answers: one that could be read in two ways is rejected.

use super::McpError;
use crate::excerpt;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// A JSON-RPC message; a repeated member is refused.
#[derive(Deserialize)]
struct Message {
    jsonrpc: String,
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default, deserialize_with = "given")]
    result: Option<Value>,
    #[serde(default)]
    error: Option<RpcError>,
}

#[derive(Deserialize)]
struct RpcError {
    code: i64,
    message: String,
}

/// Maximum length of a refusal's message that is kept.
const LONGEST: usize = 2_000;

/// Returns the result for the request with this id; `None` if it is a notification.
pub(super) fn read(bytes: &[u8], id: u64) -> Result<Option<Value>, McpError> {
    let malformed = |what| Err(McpError::Malformed(what));
    let message: Message = serde_json::from_slice(bytes).map_err(McpError::Unreadable)?;
    if message.jsonrpc != "2.0" {
        return malformed("it is not JSON-RPC 2.0");
    }
    match message {
        Message { method: Some(_), id: None, result: None, error: None, .. } => Ok(None),
        Message { method: Some(_), .. } => malformed("it is a request, not a response"),
        Message { result: Some(_), error: Some(_), .. } => malformed("it has both a result and an error"),
        Message { result: None, error: None, .. } => malformed("it has neither a result nor an error"),
        Message { id: theirs, error: Some(RpcError { code, message }), .. } => {
            // A server that can't parse a request doesn't know its id either.
            match theirs.is_none_or(|theirs| theirs == id) {
                true => Err(McpError::Refused { code, message: excerpt::within(message, LONGEST) }),
                false => malformed("it has the id of another request"),
            }
        }
        Message { id: theirs, result: Some(result), .. } if theirs == Some(id.into()) => {
            match result.get("resultType").map(Value::as_str) {
                None | Some(Some("complete")) => Ok(Some(result)),
                Some(Some("input_required")) => Err(McpError::InputRequired),
                Some(_) => malformed("its resultType is unknown"),
            }
        }
        Message { .. } => malformed("it has the id of another request"),
    }
}

/// Returns true if it is a request from the other side.
pub(super) fn asks(bytes: &[u8]) -> bool {
    let message = serde_json::from_slice(bytes);
    matches!(message, Ok(Message { method: Some(_), id: Some(_), .. }))
}

/// Null is a value, too.
fn given<'d, D: Deserializer<'d>>(from: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(from).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_rpc_result_and_notification_are_distinguished() {
        let result = read(br#"{"jsonrpc":"2.0","id":7,"result":{"resultType":"complete","a":1}}"#, 7);
        assert_eq!(result.unwrap().unwrap()["a"], 1);
        let note = br#"{"jsonrpc":"2.0","method":"notifications/progress","params":{}}"#;
        assert_eq!(read(note, 7).unwrap(), None);
    }

    #[test]
    fn json_rpc_error_is_returned_with_its_message_and_code() {
        for id in ["7", "null"] {
            let text =
                format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32602,"message":"no tool x"}}}}"#);
            let refused = read(text.as_bytes(), 7).unwrap_err();
            assert_eq!(refused.to_string(), "no tool x (-32602)");
        }
    }

    #[test]
    fn ambiguous_json_rpc_response_is_rejected() {
        for wrong in [
            r#"{"jsonrpc":"2.0","id":8,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":"7","result":{}}"#,
            r#"{"jsonrpc":"2.0","result":{}}"#,
            r#"{"jsonrpc":"1.0","id":7,"result":{}}"#,
            r#"{"id":7,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":1,"message":"m"}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{},"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":7,"id":7,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":7}"#,
            r#"{"jsonrpc":"2.0","id":7,"method":"sampling/createMessage"}"#,
            r#"{"jsonrpc":"2.0","id":8,"error":{"code":1,"message":"m"}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{"resultType":"input_required"}}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{"resultType":"other"}}"#,
            r#"[{"jsonrpc":"2.0","id":7,"result":{}}]"#,
            "",
            "null",
        ] {
            let read = read(wrong.as_bytes(), 7);
            assert!(
                read.as_ref().is_err_and(|why| !matches!(why, McpError::Refused { .. })),
                "{wrong}: {read:?}"
            );
        }
    }
}
