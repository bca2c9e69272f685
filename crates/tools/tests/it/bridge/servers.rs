//! Tests with real servers: the reference servers, and one using the official Python SDK.

use super::Case;
use super::rig::{SandboxFactory, folder, program, reference, run, text};
use belljar_contract::tool::{DomainCode, ToolScope};
use belljar_testkit::mcp;
use belljar_tools::definition::Effect;
use serde_json::json;

pub(crate) const CASES: &[Case] = &[
    ("reference_server_works_in_a_sandbox", everything),
    ("file_server_sees_its_mounted_directory", files),
    ("server_with_latest_protocol_revision_works", python),
    ("only_enabled_tools_are_offered", chosen),
];

fn everything(house: &SandboxFactory) -> Result<(), String> {
    let server = program("every", "node", &[&reference("server-everything")?, "stdio"], ", scope: both");
    run(async {
        let rig = house.bridge(&server);
        let echo = rig.definition("mcp_every_echo").await;
        assert_eq!((echo.scope, echo.effect), (ToolScope::Both, Effect::ReadOnly));
        assert!(echo.is_installed && !echo.reaches_out && !echo.is_guarded);
        assert_eq!(echo.summary, "Echoes back the input string");
        assert_eq!(rig.text("mcp_every_echo", json!({ "message": "hello" })).await, "Echo: hello");
        assert!(rig.text("mcp_every_get-sum", json!({ "a": 2, "b": 3 })).await.contains('5'));
        let image = rig.call("mcp_every_get-tiny-image", json!({})).await.unwrap();
        assert!(text(&image).contains("\n[image: image/png]\n"), "{image:?}");
        assert_eq!((image.attachments.len(), image.attachments[0].mime_type.as_str()), (1, "image/png"));
        let structured = rig.call("mcp_every_get-structured-content", json!({ "location": "Chicago" })).await;
        assert!(structured.unwrap().data["structured_content"]["temperature"].is_number());
        let links = rig.text("mcp_every_get-resource-links", json!({ "count": 2 })).await;
        assert_eq!(links.matches("\n[resource: ").count(), 2, "{links}");
        // The environment of the host is not passed on.
        let env = rig.text("mcp_every_get-env", json!({})).await;
        assert!(!env.contains("CARGO") && env.contains("\"PATH\""), "{env}");
        assert_eq!(house_runs(house), 1);
        rig.end().await;
        assert_eq!(house_runs(house), 0);
    });
    Ok(())
}

/// Number of sandboxes of this test's house.
fn house_runs(house: &SandboxFactory) -> usize {
    house.runs().len()
}

fn files(house: &SandboxFactory) -> Result<(), String> {
    let lent = folder();
    std::fs::write(lent.path().join("note.txt"), "on the host").unwrap();
    let main = reference("server-filesystem")?;
    let with = format!(", workspace: {{path: '{}'}}", lent.path().display());
    run(async {
        let rig = house.bridge(&program("files", "node", &[&main, "/workspace"], &with));
        let write = rig.definition("mcp_files_write_file").await;
        assert_eq!(write.effect, Effect::Destructive);
        let read = json!({ "path": "/workspace/note.txt" });
        assert_eq!(rig.text("mcp_files_read_text_file", read).await, "on the host");
        let written = json!({ "path": "/workspace/note.txt", "content": "by an agent" });
        rig.call("mcp_files_write_file", written).await.unwrap();
        let outside =
            rig.call("mcp_files_read_text_file", json!({ "path": "/etc/passwd" })).await.unwrap_err();
        assert_eq!(outside.code, DomainCode::ToolFailed);
        rig.end().await;
    });
    // Its changes went to its own layer.
    assert_eq!(std::fs::read_to_string(lent.path().join("note.txt")).unwrap(), "on the host");
    Ok(())
}

fn python(house: &SandboxFactory) -> Result<(), String> {
    mcp::sdk()?;
    let lent = folder();
    let path = lent.path().join("server.py");
    let text = "from mcp.server.mcpserver import MCPServer\nserver = MCPServer('sdk', log_level='WARNING')\n\n\n\
                @server.tool()\ndef add(a: int, b: int) -> int:\n    \"\"\"Adds.\"\"\"\n    return a + b\n\n\n\
                @server.tool()\ndef fail() -> str:\n    raise ValueError('as it was told')\n\n\nserver.run('stdio')\n";
    std::fs::write(&path, text).unwrap();
    let path = path.display().to_string();
    run(async {
        let rig = house.bridge(&program("sdk", "python", &[&path], &format!(", lend: ['{path}']")));
        rig.definition("mcp_sdk_add").await;
        let sum = rig.call("mcp_sdk_add", json!({ "a": 40, "b": 2 })).await.unwrap();
        assert_eq!(sum.data["content"], "42");
        assert_eq!(sum.data["structured_content"]["result"], 42);
        let failed = rig.call("mcp_sdk_fail", json!({})).await.unwrap_err();
        assert_eq!(failed.code, DomainCode::ToolFailed);
        assert!(!failed.message.is_empty());
        rig.end().await;
    });
    Ok(())
}

fn chosen(house: &SandboxFactory) -> Result<(), String> {
    let only = ", enabled_tools: [echo, get-sum, get-env, nothing], disabled_tools: []";
    let server = program("every", "node", &[&reference("server-everything")?, "stdio"], only);
    let not = ", disabled_tools: [echo]";
    let other = program("other", "node", &[&reference("server-everything")?, "stdio"], not);
    run(async {
        let rig = house.bridge(&[server, other].concat());
        rig.definition("mcp_every_echo").await;
        rig.definition("mcp_other_get-sum").await;
        let names = rig.names();
        let of = |server: &str| names.iter().filter(|name| name.starts_with(server)).count();
        assert_eq!(of("mcp_every_"), 3, "{names:?}");
        assert!(of("mcp_other_") > 5 && !names.contains(&"mcp_other_echo".to_owned()), "{names:?}");
        rig.end().await;
    });
    Ok(())
}
