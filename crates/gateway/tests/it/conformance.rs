//! Runs the conformance suite of MCP's authors against a gateway with the tools that the suite requires.
//!
//! The suite is for whole SDKs. Scenarios about features that this server doesn't declare don't apply: prompts, completions,
//! logging, resource templates, resource subscriptions, and requests to the client.

use crate::rig::{in_sandbox, seat};
use belljar_contract::category::Category;
use belljar_contract::tool::{DomainCode, ToolName};
use belljar_gateway::{EndpointKind, Gateway, routes};
use belljar_store::audit::{AuditLog, folder_in};
use belljar_testkit::mcp;
use belljar_testkit::skip::skip;
use belljar_tools::answer::{Answer, Attachment, Failure, Success};
use belljar_tools::caller::Caller;
use belljar_tools::definition::{Content, Definition, Resource};
use belljar_tools::registry::Registry;
use belljar_tools::{Arguments, Tool};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// Server scenarios about features that this server declares.
const THAT_APPLY: [&str; 15] = [
    "server-initialize",
    "ping",
    "tools-list",
    "tools-call-simple-text",
    "tools-call-image",
    "tools-call-audio",
    "tools-call-embedded-resource",
    "tools-call-mixed-content",
    "tools-call-error",
    "json-schema-2020-12",
    "server-sse-multiple-streams",
    "resources-list",
    "resources-read-text",
    "resources-read-binary",
    "dns-rebinding-protection",
];

/// Other scenarios, by the capability that this server doesn't declare.
const THAT_DO_NOT: [(&str, &[&str]); 6] = [
    (
        "prompts",
        &[
            "prompts-list",
            "prompts-get-simple",
            "prompts-get-with-args",
            "prompts-get-embedded-resource",
            "prompts-get-with-image",
        ],
    ),
    ("completions", &["completion-complete"]),
    ("logging", &["logging-set-level", "tools-call-with-logging"]),
    ("resources/subscribe", &["resources-subscribe", "resources-unsubscribe", "resources-templates-read"]),
    (
        "questions to the client",
        &[
            "tools-call-sampling",
            "tools-call-elicitation",
            "elicitation-sep1034-defaults",
            "elicitation-sep1330-enums",
            "tools-call-with-progress",
        ],
    ),
    ("sessions", &["server-sse-polling"]),
];

/// A tool of the suite, with the answer that the suite expects.
struct Fixture(Definition);

/// A single pixel, and a tenth of a second of silence.
const IMAGE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const SOUND: &str = "UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=";

fn fixtures() -> Vec<Arc<dyn Tool>> {
    let names = [
        "test_simple_text",
        "test_image_content",
        "test_audio_content",
        "test_embedded_resource",
        "test_multiple_content_types",
        "test_error_handling",
    ];
    let define = |name: &str, input| {
        let name = ToolName::parse(name).unwrap();
        Definition {
            is_installed: true,
            ..Definition::new(name, Category::Other, "Is there for tests.", input)
        }
    };
    let mut all: Vec<_> =
        names.iter().map(|name| define(name, json!({ "type": "object", "properties": {} }))).collect();
    all.push(define("json_schema_2020_12_tool", dialect()));
    let resource = |id: &str, content_type: &str, content| Resource {
        id: id.to_owned(),
        content_type: content_type.to_owned(),
        content,
    };
    let text = Content::Text("This is the content of the static text resource.".to_owned());
    all[0].resources = vec![
        resource("test://static-text", "text/plain", text),
        resource("test://static-binary", "image/png", Content::Base64(IMAGE.to_owned())),
    ];
    all.into_iter().map(|definition| Arc::new(Fixture(definition)) as Arc<dyn Tool>).collect()
}

/// A schema with keywords of its dialect that must reach a client unchanged.
fn dialect() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": { "address": { "type": "object", "properties": {
            "street": { "type": "string" }, "city": { "type": "string" }
        }}},
        "properties": { "name": { "type": "string" }, "address": { "$ref": "#/$defs/address" } },
        "additionalProperties": false
    })
}

impl Tool for Fixture {
    fn definition(&self) -> &Definition {
        &self.0
    }

    fn call<'a>(&'a self, _: &'a Caller, _: Arguments) -> BoxFuture<'a, Answer> {
        let attached = |mime_type: &str, base64: &str| Attachment {
            mime_type: mime_type.to_owned(),
            uri: None,
            base64: base64.to_owned(),
        };
        let resource = || Attachment {
            uri: Some("test://embedded-resource".to_owned()),
            ..attached("text/plain", "VGhpcyBpcyBhbiBlbWJlZGRlZCByZXNvdXJjZSBjb250ZW50Lg==")
        };
        let attachments = match self.0.name.as_str() {
            "test_error_handling" => {
                return async { Err(Failure::new(DomainCode::ToolFailed, "it fails by intent")) }.boxed();
            }
            "test_image_content" => vec![attached("image/png", IMAGE)],
            "test_audio_content" => vec![attached("audio/wav", SOUND)],
            "test_embedded_resource" => vec![resource()],
            "test_multiple_content_types" => vec![attached("image/png", IMAGE), resource()],
            _ => Vec::new(),
        };
        let data = json!("This is a simple text response for testing.");
        async move { Ok(Success { attachments, ..Success::of(data) }) }.boxed()
    }
}

#[test]
fn every_applicable_mcp_conformance_scenario_passes() {
    const NAME: &str = "every_applicable_mcp_conformance_scenario_passes";
    if let Err(why) = mcp::packages_folder() {
        return skip(NAME, &why);
    }
    let listed = said(suite().args(["list", "--server"]), Path::new("/"));
    for scenario in THAT_APPLY.iter().chain(THAT_DO_NOT.iter().flat_map(|(_, scenarios)| *scenarios)) {
        assert!(listed.contains(&format!("- {scenario} ")), "the suite has no scenario {scenario}: {listed}");
    }
    let known = THAT_APPLY.len() + THAT_DO_NOT.iter().map(|(_, scenarios)| scenarios.len()).sum::<usize>();
    let has = listed.lines().filter(|line| line.starts_with("  - ")).count();
    assert_eq!(known, has, "the suite has others: {listed}");
    let results = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (url, _state) = runtime.block_on(serve());
    for scenario in THAT_APPLY {
        let mut command = suite();
        command.args(["server", "--url", &url, "--scenario", scenario]);
        let text = said(&mut command, results.path());
        assert!(text.contains("0 failed"), "{scenario}: {text}");
    }
}

fn suite() -> Command {
    mcp::program("conformance/dist/index.js").unwrap()
}

/// Returns the output of the suite, which must succeed.
fn said(command: &mut Command, folder: &Path) -> String {
    let output = command.current_dir(folder).stdin(Stdio::null()).output().unwrap();
    let text =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{text}");
    text
}

async fn serve() -> (String, tempfile::TempDir) {
    let state = tempfile::tempdir().unwrap();
    let audit = Arc::new(AuditLog::open(&folder_in(state.path())).unwrap());
    let gateway = Arc::new(Gateway::new(Arc::new(Registry::new(fixtures()).unwrap()), audit));
    let routes = routes(gateway, EndpointKind::Hatch(seat(in_sandbox())), CancellationToken::new());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, routes).await });
    (url, state)
}
