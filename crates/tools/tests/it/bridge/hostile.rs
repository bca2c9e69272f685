//! Tests with servers that crash, lie, flood, or never end.

use super::Case;
use super::rig::{OTHER_TASK, Rig, SandboxFactory, TASK, folder, run, scripted, text};
use belljar_contract::tool::DomainCode;
use serde_json::json;
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub(crate) const CASES: &[Case] = &[
    ("crashed_server_is_restarted_and_changes_are_not_repeated", dying),
    ("silent_server_times_out", silent),
    ("server_that_ignores_unknown_requests_still_connects", curt),
    ("endless_lines_and_answers_close_the_connection", endless),
    ("unsolicited_messages_are_limited", flooding),
    ("server_requests_are_rejected", asking),
    ("endless_lists_and_invalid_tools_leave_valid_tools_usable", lists),
    ("changed_tool_list_is_fetched_again", changing),
    ("answers_are_cached_for_read_only_tools_per_task", kept),
    ("unavailable_server_does_not_affect_others", missing),
    ("bridge_shutdown_during_server_start_leaves_no_process", hurried),
    ("calls_beyond_the_concurrency_limit_wait_or_are_rejected", many),
];

/// A bridge with one malicious server called `bad`, and a folder it may write to.
fn bad(house: &SandboxFactory, script: &str, more: &str) -> (Rig, TempDir) {
    let folder = folder();
    std::fs::set_permissions(folder.path(), std::os::unix::fs::PermissionsExt::from_mode(0o777)).unwrap();
    let with = format!(", workspace: {{path: '{}', mode: direct}}{more}", folder.path().display());
    let rig = house.bridge(&scripted(folder.path(), "bad", script, &with));
    (rig, folder)
}

fn lines(folder: &TempDir, name: &str) -> usize {
    std::fs::read_to_string(folder.path().join(name)).unwrap_or_default().lines().count()
}

fn dying(house: &SandboxFactory) -> Result<(), String> {
    let script = r#"
def listed(params):
    return {"tools": [tool("change"), tool("look", annotations=READ_ONLY), tool("pid", annotations=READ_ONLY)]}


def note(name):
    with open("/workspace/" + name, "a") as file:
        file.write("x\n")
    return sum(1 for _ in open("/workspace/" + name))


def called(name, arguments):
    times = note(name)
    # Dies of the first call of each.
    if times == 1:
        os._exit(1)
    return text(name + str(times))


note("starts")
serve()
"#;
    run(async {
        let (rig, folder) = bad(house, script, ", cache_size: 0");
        rig.definition("mcp_bad_change").await;
        // A request that was sent may have been carried out, so it is not repeated.
        let gone = rig.call("mcp_bad_change", json!({})).await.unwrap_err();
        assert_eq!(gone.code, DomainCode::Unavailable, "{gone:?}");
        assert_eq!(lines(&folder, "change"), 1);
        // A call to a dead server waits until it has been restarted.
        assert_eq!(rig.text("mcp_bad_change", json!({})).await, "change2");
        assert_eq!(lines(&folder, "starts"), 2);
        // Read-only calls are repeated.
        assert_eq!(rig.text("mcp_bad_look", json!({})).await, "look2");
        assert_eq!((lines(&folder, "look"), lines(&folder, "starts")), (2, 3));
        rig.end().await;
        assert!(house.runs().is_empty());
    });
    Ok(())
}

fn silent(house: &SandboxFactory) -> Result<(), String> {
    let script = r#"
def called(name, arguments):
    return None


serve()
"#;
    run(async {
        let (rig, _folder) = bad(house, script, ", timeout_seconds: 1");
        rig.definition("mcp_bad_one").await;
        let silent = rig.call("mcp_bad_one", json!({})).await.unwrap_err();
        assert_eq!(silent.code, DomainCode::LimitExceeded, "{silent:?}");
        rig.end().await;
    });
    Ok(())
}

fn curt(house: &SandboxFactory) -> Result<(), String> {
    let script = r#"
ours = say


def say(message):
    # Late, and only then: the answer to what was asked first.
    if "error" not in message:
        if "protocolVersion" in message["result"]:
            ours({"jsonrpc": "2.0", "id": 0, "error": {"code": -32601, "message": "too late"}})
        ours(message)


serve()
"#;
    run(async {
        let folder = folder();
        let server = scripted(folder.path(), "bad", script, "").replace("60,", "9,");
        let rig = house.bridge(&server);
        rig.definition("mcp_bad_one").await;
        assert_eq!(rig.text("mcp_bad_one", json!({})).await, "one");
        rig.end().await;
    });
    Ok(())
}

fn endless(house: &SandboxFactory) -> Result<(), String> {
    let script = r#"
def listed(params):
    return {"tools": [tool("line"), tool("large"), tool("fits")]}


def called(name, arguments):
    if name == "line":
        while True:
            sys.stdout.write("x" * 65536)
    if name == "large":
        return text("x" * (100 << 20))
    return text("x" * 60000)


serve()
"#;
    run(async {
        let (rig, _folder) = bad(house, script, ", limits: {answer: 64k}");
        rig.definition("mcp_bad_line").await;
        for tool in ["mcp_bad_line", "mcp_bad_large"] {
            let large = rig.call(tool, json!({})).await.unwrap_err();
            assert_eq!(large.code, DomainCode::LimitExceeded, "{large:?}");
            assert!(large.message.contains("larger than 65536 bytes"), "{large:?}");
        }
        // An answer of the maximum size arrives.
        assert_eq!(rig.text("mcp_bad_fits", json!({})).await.len(), 60_000);
        rig.end().await;
    });
    Ok(())
}

fn flooding(house: &SandboxFactory) -> Result<(), String> {
    let script = r#"
def listed(params):
    return {"tools": [tool("notes"), tool("asks"), tool("noise"), tool("few")]}


def called(name, arguments):
    many = 10 if name == "few" else 100000
    for number in range(many):
        if name == "noise":
            print("this is no message", flush=True)
        elif name == "asks":
            say({"jsonrpc": "2.0", "id": number, "method": "ping"})
        else:
            say({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}})
    # Responses without a request are ignored.
    for strange in [999999, "x", None, -1]:
        say({"jsonrpc": "2.0", "id": strange, "result": {}})
    return text("said")


serve()
"#;
    run(async {
        let (rig, _folder) = bad(house, script, "");
        rig.definition("mcp_bad_few").await;
        assert_eq!(rig.text("mcp_bad_few", json!({})).await, "said");
        for tool in ["mcp_bad_notes", "mcp_bad_asks", "mcp_bad_noise"] {
            let flood = rig.call(tool, json!({})).await.unwrap_err();
            assert_eq!(flood.code, DomainCode::Unavailable, "{tool}: {flood:?}");
            assert!(!flood.message.contains("closed the connection"), "{tool}: {flood:?}");
        }
        assert_eq!(rig.text("mcp_bad_few", json!({})).await, "said");
        rig.end().await;
    });
    Ok(())
}

fn asking(house: &SandboxFactory) -> Result<(), String> {
    let script = r#"
ASKED = ["sampling/createMessage", "roots/list", "elicitation/create", "x/y"]
PARAMS = {"messages": [], "maxTokens": 1, "message": "who?", "requestedSchema": {"type": "object", "properties": {}}}
answers = []


def called(name, arguments):
    for number, method in enumerate(ASKED):
        say({"jsonrpc": "2.0", "id": "ask-%d" % number, "method": method, "params": PARAMS})
    for line in sys.stdin:
        answers.append(json.loads(line))
        if len(answers) == len(ASKED):
            break
    codes = sorted(str(answer["id"]) + ":" + str(answer.get("error", {}).get("code")) for answer in answers)
    return text(" ".join(codes))


serve()
"#;
    run(async {
        let (rig, _folder) = bad(house, script, "");
        rig.definition("mcp_bad_one").await;
        let refused = rig.text("mcp_bad_one", json!({})).await;
        assert_eq!(refused, "ask-0:-32601 ask-1:-32601 ask-2:-32601 ask-3:-32601");
        rig.end().await;
    });
    Ok(())
}

fn lists(house: &SandboxFactory) -> Result<(), String> {
    let script = r##"
deep = {}
for _ in range(50):
    deep = {"properties": {"a": deep}}


def chained(length, of):
    defs = {"a0": {"type": "object"}}
    for i in range(1, length + 1):
        defs["a%d" % i] = of({"$ref": "#/$defs/a%d" % (i - 1)})
    return {"type": "object", "$defs": defs, "$ref": "#/$defs/a%d" % length}


BAD = [
    tool("doubling", inputSchema=chained(30, lambda a: {"allOf": [a, a]})),
    tool("chained", inputSchema=chained(1300, lambda a: {"allOf": [a]})),
    tool("patterns", inputSchema={"patternProperties": {"^\\p{L}{240}%d$" % i: {} for i in range(40)}}),
    tool("short", inputSchema=chained(3, lambda a: {"allOf": [a, a]})),
    tool("huge", description="x" * 100000, inputSchema={"type": "object", "description": "x" * 100000}),
    tool("broken", inputSchema={"type": "wrong"}),
    tool("elsewhere", inputSchema={"$ref": "http://127.0.0.1:9/schema.json"}),
    tool("list", inputSchema=[]),
    tool("n" * 200),
    tool(""),
    {"inputSchema": {}},
    "text",
    tool("a b"),
    tool("a/b"),
    tool("../../etc/passwd"),
    tool("long", description="\u001b[31mred\n" + "x" * 100000),
    tool("deep", inputSchema=deep),
]


def listed(params):
    page = int(params.get("cursor") or 0)
    return {"tools": BAD if page == 0 else [tool("page%d" % page)], "nextCursor": str(page + 1)}


serve()
"##;
    run(async {
        let (rig, _folder) = bad(house, script, ", limits: {tools: 40}");
        let long = rig.definition("mcp_bad_long").await;
        assert!(long.description.len() <= 4096 && long.summary == "[31mred", "{:?}", long.summary);
        let names = rig.names();
        assert!(names.len() > 20 && names.len() <= 40, "{names:?}");
        // A schema similar to the excessive ones, but cheap, is accepted.
        assert_eq!(rig.text("mcp_bad_short", json!({})).await, "short");
        for out in ["huge", "broken", "elsewhere", "list", "doubling", "chained", "patterns"] {
            assert!(!names.contains(&format!("mcp_bad_{out}")), "{out}: {names:?}");
        }
        // Of two tools with the same resulting name, the second is left out.
        assert_eq!(names.iter().filter(|name| *name == "mcp_bad_a_b").count(), 1);
        assert_eq!(rig.text("mcp_bad_a_b", json!({})).await, "a b");
        assert_eq!(rig.text("mcp_bad_______etc_passwd", json!({})).await, "../../etc/passwd");
        rig.end().await;
    });
    Ok(())
}

fn changing(house: &SandboxFactory) -> Result<(), String> {
    let script = r#"
names = ["one", "two"]


def listed(params):
    return {"tools": [tool(name) for name in names]}


def called(name, arguments):
    names[:] = ["two", "three"]
    say({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
    return text(name)


serve()
"#;
    run(async {
        let (rig, _folder) = bad(house, script, "");
        rig.definition("mcp_bad_one").await;
        rig.text("mcp_bad_one", json!({})).await;
        rig.definition("mcp_bad_three").await;
        assert_eq!(rig.names(), ["mcp_bad_three", "mcp_bad_two"]);
        rig.end().await;
    });
    Ok(())
}

fn kept(house: &SandboxFactory) -> Result<(), String> {
    let script = r#"
def listed(params):
    return {"tools": [tool("look", annotations=READ_ONLY), tool("change"), tool("fail", annotations=READ_ONLY)]}


times = [0]


def called(name, arguments):
    times[0] += 1
    return {**text(str(times[0])), "isError": name == "fail"}


serve()
"#;
    run(async {
        let (rig, _folder) = bad(house, script, "");
        rig.definition("mcp_bad_look").await;
        let look =
            async |task, arguments| text(&rig.call_for(task, "mcp_bad_look", arguments).await.unwrap());
        assert_eq!(look(TASK, json!({ "a": 1, "b": 2 })).await, "1");
        assert_eq!(look(TASK, json!({ "b": 2, "a": 1 })).await, "1");
        assert_eq!(look(OTHER_TASK, json!({ "a": 1, "b": 2 })).await, "2");
        assert_eq!(look(TASK, json!({ "a": 1 })).await, "3");
        assert_eq!(rig.text("mcp_bad_change", json!({})).await, "4");
        assert_eq!(rig.text("mcp_bad_change", json!({})).await, "5");
        for message in ["6", "7"] {
            assert_eq!(rig.call("mcp_bad_fail", json!({})).await.unwrap_err().message, message);
        }
        rig.end().await;
    });
    Ok(())
}

fn missing(house: &SandboxFactory) -> Result<(), String> {
    let scripts = folder();
    let good = scripted(scripts.path(), "good", "serve()\n", "");
    let dead = scripted(scripts.path(), "dead", "sys.exit(1)\n", "");
    let mute = scripted(scripts.path(), "mute", "time.sleep(600)\n", "").replace("60,", "1,");
    let none = "  - {name: none, transport: stdio, command: /nowhere/server}\n";
    let off = "  - {name: idle, transport: stdio, command: /usr/bin/true, enabled: false}\n";
    run(async {
        let rig = house.bridge(&[dead.as_str(), &mute, none, off, &good].concat());
        rig.definition("mcp_good_one").await;
        assert_eq!(rig.text("mcp_good_one", json!({})).await, "one");
        assert_eq!(rig.names(), ["mcp_good_one"]);
        rig.end().await;
        assert!(house.runs().is_empty());
    });
    Ok(())
}

fn hurried(house: &SandboxFactory) -> Result<(), String> {
    let scripts = folder();
    let mute = scripted(scripts.path(), "mute", "time.sleep(600)\n", "");
    for milliseconds in 0..40 {
        run(async {
            let rig = house.bridge(&mute);
            tokio::time::sleep(Duration::from_millis(milliseconds)).await;
            rig.end().await;
            assert_eq!(house.runs(), [] as [std::path::PathBuf; 0], "after {milliseconds} ms");
        });
    }
    Ok(())
}

fn many(house: &SandboxFactory) -> Result<(), String> {
    let script = r#"
def called(name, arguments):
    time.sleep(0.2)
    return text("done")


serve()
"#;
    run(async {
        let (rig, _folder) = bad(house, script, ", limits: {calls: 1}, timeout_seconds: 20");
        rig.definition("mcp_bad_one").await;
        let begun = Instant::now();
        let calls = (0..40).map(|_| rig.call("mcp_bad_one", json!({})));
        let answers = futures_util::future::join_all(calls).await;
        let (done, refused): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
        assert!(
            refused.iter().all(|refused| refused.as_ref().unwrap_err().code == DomainCode::LimitExceeded)
        );
        assert!(done.len() >= 16 && !refused.is_empty(), "{} of 40", done.len());
        // The calls are sequential.
        assert!(begun.elapsed().as_millis() >= 200 * done.len() as u128);
        let again = rig.text("mcp_bad_one", json!({})).await;
        assert_eq!(again, "done");
        rig.end().await;
    });
    Ok(())
}
