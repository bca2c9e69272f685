//! Tests of a client that sends without reading, and of unreadable messages.

use crate::Gateway;
use crate::caller_slot::CallerSlot;
use crate::stdio::serve;
use belljar_contract::tool::AgentKind;
use belljar_store::audit::{AuditLog, folder_in};
use belljar_tools::caller::Caller;
use belljar_tools::registry::Registry;
use rmcp::model::RequestId;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

/// A client of a running server.
struct Client {
    input: DuplexStream,
    output: Lines<BufReader<DuplexStream>>,
    _state: TempDir,
}

const PATIENCE: Duration = Duration::from_secs(30);

impl Client {
    /// Returns a client that has completed the handshake.
    async fn begun() -> Self {
        let state = tempfile::tempdir().unwrap();
        let audit = Arc::new(AuditLog::open(&folder_in(state.path())).unwrap());
        let gateway = Arc::new(Gateway::new(Arc::new(Registry::new([]).unwrap()), audit));
        let seat = CallerSlot::new(Caller::of(AgentKind::Operator), CancellationToken::new());
        let (input, theirs) = tokio::io::duplex(4 << 10);
        let (answers, output) = tokio::io::duplex(4 << 10);
        let server = crate::mcp::Server { gateway, seat: Some(seat) };
        tokio::spawn(serve(server, (theirs, answers), CancellationToken::new()));
        let mut client = Self { input, output: BufReader::new(output).lines(), _state: state };
        let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" }
        }});
        client.say(&hello.to_string()).await;
        assert_eq!(client.hear().await["id"], 0);
        client.say(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        client
    }

    async fn say(&mut self, line: &str) {
        let line = format!("{line}\n");
        timeout(PATIENCE, self.input.write_all(line.as_bytes())).await.unwrap().unwrap();
    }

    async fn hear(&mut self) -> Value {
        let line = timeout(PATIENCE, self.output.next_line()).await.unwrap().unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

fn call(id: usize) -> String {
    let called = json!({ "name": "none", "arguments": { "text": "x".repeat(100) } });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": called }).to_string()
}

#[tokio::test]
async fn client_that_does_not_read_answers_gets_backpressure() {
    for id in [None, Some(7)] {
        let mut client = Client::begun().await;
        let mut sent = 0;
        while sent < 2_000 {
            let line = format!("{}\n", call(id.unwrap_or(sent + 1)));
            if timeout(Duration::from_secs(2), client.input.write_all(line.as_bytes())).await.is_err() {
                break;
            }
            sent += 1;
        }
        assert!((super::MOST_WRITING..500).contains(&sent), "{sent} with the id {id:?}");
    }
    // Control: a client that reads.
    let mut client = Client::begun().await;
    for id in 1..=2_000 {
        client.say(&call(id)).await;
        assert_eq!(client.hear().await["id"], id);
    }
}

#[tokio::test]
async fn cancelled_calls_free_capacity_for_others() {
    let mut client = Client::begun().await;
    for id in 1..=200 {
        client.say(&call(id)).await;
        let given_up = json!({ "requestId": id });
        let given_up = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": given_up });
        client.say(&given_up.to_string()).await;
        client.say(&json!({ "jsonrpc": "2.0", "id": 1_000 + id, "method": "ping" }).to_string()).await;
        while client.hear().await["id"] != 1_000 + id {}
    }
}

#[tokio::test]
async fn ambiguous_or_malformed_message_is_answered_with_an_error() {
    let mut client = Client::begun().await;
    for (line, code) in [
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\ud800"}}"#, -32_700),
        ("{", -32_700),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","id":2}"#, -32_600),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"a":1,"\u0061":2}}}"#,
            -32_600,
        ),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32_600),
        (&format!("\"{}\"", "x".repeat(super::LARGEST_MESSAGE_BYTES)), -32_600),
    ] {
        let shown = &line[..line.len().min(100)];
        client.say(line).await;
        assert_eq!(client.hear().await["error"]["code"], code, "{shown}");
    }
    // Control, after a blank line and a notification that gets no answer.
    client.say("").await;
    client.say(r#"{"jsonrpc":"2.0","method":"notifications/other"}"#).await;
    client.say(r#"{"jsonrpc":"2.0","id":9,"method":"ping"}"#).await;
    assert_eq!(client.hear().await["id"], 9);
}

#[test]
fn total_size_of_unanswered_requests_is_limited() {
    let mut load = super::MessageLoad::default();
    load.running.insert(RequestId::Number(1), super::MOST_RUNNING_BYTES - 1);
    assert!(!load.is_full(), "the control: there is room for another one");
    load.running.insert(RequestId::Number(2), 1);
    assert!(load.is_full());
    load.running.remove(&RequestId::Number(1));
    assert!(!load.is_full());
}
