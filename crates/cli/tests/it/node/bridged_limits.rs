//! Limits of other MCP servers in the configuration: each limit applies to one server, and the first server has none.

use super::remote_tools::{self, call, list, names, token};
use belljar_testkit::node::Node;
use belljar_testkit::wait;
use belljar_testkit::world::World;
use serde_json::{Value, json};

/// A server with five tools, of which one only reads, and returns another number each time.
const SERVER: &str = r#"
import json, sys, threading, time
kept, number = [], 0
def say(asked, content): print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **content}), flush=True)
def text(said): return {"result": {"content": [{"type": "text", "text": str(said)}]}}
def hold(mebibytes, seconds):
    kept.append(b"x" * (mebibytes << 20))
    time.sleep(seconds)
    return "held"
def threads(count):
    begun, over = 0, threading.Event()
    try:
        while begun < count:
            threading.Thread(target=over.wait, daemon=True).start()
            begun += 1
    except RuntimeError: pass
    over.set()
    return "all" if begun == count else "fewer"
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked: continue
    if asked["method"] == "initialize":
        say(asked, {"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "a", "version": "1"}}})
    elif asked["method"] == "tools/list":
        names = ["wait", "size", "count", "hold", "threads"]
        say(asked, {"result": {"tools": [{"name": name, "inputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": name == "count"}} for name in names]}})
    elif asked["method"] == "tools/call":
        name, given = asked["params"]["name"], asked["params"].get("arguments") or {}
        number += 1
        if name == "wait": time.sleep(given["seconds"]); say(asked, text("waited"))
        elif name == "size": say(asked, text("x" * given["bytes"]))
        elif name == "count": say(asked, text(number))
        elif name == "hold": say(asked, text(hold(**given)))
        elif name == "threads": say(asked, text(threads(**given)))
    else: say(asked, {"error": {"code": -32601, "message": "no such method"}})
"#;

/// Starts a node with these servers, each with a name and further members.
fn started<'w>(world: &'w World, servers: &[(&str, &str)]) -> Node<'w> {
    let script = world.write("server/server.py", SERVER).display().to_string();
    let folder = world.path().join("server").display().to_string();
    let rows = servers.iter().map(|(name, more)| {
        format!(
            "    - {{name: {name}, transport: stdio, command: python3, args: ['{script}'], lend: ['{folder}'], \
             connect_timeout_seconds: 60{more}}}\n"
        )
    });
    let config = format!("mcp:\n  servers:\n{}", rows.collect::<String>());
    let config = world.write("mcp.yaml", config).display().to_string();
    Node::start(world, &["--config", &config])
}

/// Returns the text of a call's result, or the reason of its failure.
fn content(told: &Value) -> String {
    let told = &told["result"]["structuredContent"];
    let content = &told["data"]["content"];
    content.as_str().or(told["message"].as_str()).unwrap_or_else(|| panic!("{told}")).to_owned()
}

#[test]
fn mcp_servers_are_held_to_their_configured_limits() {
    let world = World::new(crate::BELLJAR);
    let node = started(
        &world,
        &[
            ("away", ", enabled: false"),
            ("plain", ""),
            ("narrow", ", memory_limit: 96m, pids_limit: 20"),
            ("hasty", ", timeout_seconds: 1, limits: {answer: 4k, tools: 3}"),
            ("partial", ", disabled_tools: [hold, wait]"),
            ("fresh", ", cache_ttl_seconds: 0"),
            ("forgetful", ", cache_size: 0"),
            ("single", ", limits: {calls: 1}"),
        ],
    );
    let planner = token(&node, json!({ "kind": "project_manager" }));
    let tools_of = |server: &str| -> Vec<String> {
        let prefix = format!("mcp_{server}_");
        let listed = names(&list(&node, &planner));
        listed.iter().filter_map(|name| name.strip_prefix(&prefix)).map(str::to_owned).collect()
    };
    let call = |name: &str, arguments: Value| {
        content(&call(node.address(), &planner, &format!("mcp_{name}"), &arguments))
    };
    for server in ["plain", "narrow", "hasty", "partial", "fresh", "forgetful", "single"] {
        wait::until(|| !tools_of(server).is_empty());
    }
    assert_eq!(tools_of("away"), [""; 0]);
    assert_eq!(tools_of("plain"), ["count", "hold", "size", "threads", "wait"]);
    assert_eq!(tools_of("hasty"), ["count", "size", "wait"]);
    assert_eq!(tools_of("partial"), ["count", "size", "threads"]);
    // The controls are calls of the server without limits of its own.
    assert_eq!(call("plain_hold", json!({ "mebibytes": 256, "seconds": 0 })), "held");
    let ended = call("narrow_hold", json!({ "mebibytes": 256, "seconds": 20 }));
    assert!(ended.contains("the server closed the connection"), "{ended}");
    assert_eq!(call("plain_threads", json!({ "count": 40 })), "all");
    wait::until(|| !tools_of("narrow").is_empty());
    assert_eq!(call("narrow_threads", json!({ "count": 40 })), "fewer");
    assert_eq!(call("plain_size", json!({ "bytes": 8_192 })).len(), 8_192);
    let larger = call("hasty_size", json!({ "bytes": 8_192 }));
    assert!(larger.contains("larger than 4096 bytes"), "{larger}");
    wait::until(|| !tools_of("hasty").is_empty());
    assert_eq!(call("plain_wait", json!({ "seconds": 2 })), "waited");
    let late = call("hasty_wait", json!({ "seconds": 20 }));
    assert!(late.contains("no response within 1 s"), "{late}");
    // With its limits one call runs and sixteen wait; with the default, four run and 64 wait, so none is refused.
    let turned_away = |server: &str| {
        let name = format!("mcp_{server}_wait");
        let call = || {
            // The number of concurrent calls per token is limited as well.
            let planner = token(&node, json!({ "kind": "project_manager" }));
            let told = remote_tools::call(node.address(), &planner, &name, &json!({ "seconds": 0.2 }));
            content(&told).contains("too many concurrent calls of this server")
        };
        std::thread::scope(|scope| {
            let calls: Vec<_> = (0..24).map(|_| scope.spawn(call)).collect();
            calls.into_iter().filter_map(|call| call.join().unwrap().then_some(())).count()
        })
    };
    assert!(turned_away("single") > 0);
    assert_eq!(turned_away("plain"), 0);
    let twice = |server: &str| [(); 2].map(|()| call(&format!("{server}_count"), json!({})));
    let [first, kept] = twice("plain");
    assert_eq!(first, kept, "a read-only response is cached");
    for server in ["fresh", "forgetful"] {
        let [first, second] = twice(server);
        assert_ne!(first, second, "{server}");
    }
}
