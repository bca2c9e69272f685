//! The MCP Inspector as a command-line client. It also validates that clients can parse the schemas.

use super::http::McpHttpServer;
use crate::BELLJAR;
use belljar_testkit::mcp::inspector;
use belljar_testkit::skip::skip;
use belljar_testkit::world::{ProgramOutput, World};
use serde_json::{Value, json};

/// Returns its output for these arguments.
fn inspected(world: &World, arguments: &[&str]) -> Result<ProgramOutput, String> {
    let mut command = inspector()?;
    command.arg("--cli").args(arguments).current_dir(world.path());
    command.env("BELLJAR_STATE_DIR", world.path().join("state")).env("HOME", world.path());
    Ok(ProgramOutput::from(command.output().unwrap()))
}

#[test]
fn mcp_inspector_lists_valid_tools_and_calls_one() {
    let world = World::new(BELLJAR);
    world.write("source/file", "before\n");
    let server = McpHttpServer::start(&world, &["--workspace", "source"]);
    let url = format!("http://{}/mcp", server.address);
    let header = format!("Authorization: Bearer {}", server.token);
    let by_stdio = [BELLJAR, "mcp", "--workspace", "source"];
    let by_http = [&url, "--transport", "http", "--header", &header];
    for target in [&by_stdio[..], &by_http[..]] {
        let listed = match inspected(&world, &[target, &["--method", "tools/list", "--strict"]].concat()) {
            Ok(listed) => listed.succeeded(),
            Err(why) => return skip("the_inspector_lists_the_tools", &why),
        };
        assert_eq!(listed.json()["tools"].as_array().map(Vec::len), Some(11), "{listed:?}");
        let call = ["--method", "tools/call", "--tool-name", "run", "--tool-arg", "shell=cat file"];
        let called = inspected(&world, &[target, &call].concat()).unwrap().succeeded().json();
        let data: &Value = &called["structuredContent"]["data"];
        assert_eq!((&data["exit_code"], &data["stdout"]), (&json!(0), &json!("before\n")), "{called}");
    }
    let without = [&url, "--transport", "http", "--method", "tools/list"];
    assert_ne!(inspected(&world, &without).unwrap().code, 0, "a request without the token");
}
