//! `belljar tools`, and the built-in tools of `belljar mcp`: every caller's call takes the same path, and all calls of an
//! agent share one session.

use crate::BELLJAR;
use crate::egress::HelloServer;
use crate::mcp::McpConversation;
use crate::models::recorded;
use crate::session::{SessionCleanup, create};
use belljar_testkit::git::git;
use belljar_testkit::world::World;
use serde_json::{Value, json};
use std::process::Command;

/// Returns a world with a project in it, and the project's path.
fn project() -> (World, String) {
    let world = World::new(BELLJAR);
    world.write("project/notes.txt", "one\ntwo\n");
    let path = world.path().join("project").display().to_string();
    (world, path)
}

fn names(world: &World, whose: &[&str]) -> Vec<String> {
    let all = world.run(&[&["tools", "list", "--json"], whose].concat()).succeeded().json();
    all.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn called(world: &World, (tool, arguments): (&str, &Value), options: &[&str]) -> (i32, Value) {
    let arguments = arguments.to_string();
    let ran = world.run(&[&["tools", "call", tool, &arguments, "--json"], options].concat());
    (ran.code, ran.json())
}

#[test]
fn tools_list_shows_what_the_named_agent_may_call() {
    let world = World::new(BELLJAR);
    let [sandboxed, restricted, standard] =
        ["sandboxed", "restricted", "standard"].map(|level| names(&world, &["--level", level]));
    let has = |names: &[String], name: &str| names.iter().any(|known| known == name);
    assert!(!has(&sandboxed, "html_parser") && has(&restricted, "html_parser"));
    assert!(!has(&restricted, "render_chart") && has(&standard, "render_chart"));
    for least in [&sandboxed, &restricted] {
        assert!(has(least, "read_file") && has(least, "git_commit") && !has(least, "shell_command"));
    }
    assert!(has(&standard, "shell_command"));
    let shown = world.run(&["tools", "show", "edit_file", "--level", "restricted"]).succeeded().stdout;
    for part in ["edit_file", "file_system", "code:write", "\"path\""] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert_eq!(world.run(&["tools", "show", "shell_command", "--level", "restricted"]).code, 2);
}

#[test]
fn each_tool_has_a_valid_example_its_failures_and_a_guide() {
    let (world, project) = project();
    git(&world.path().join("project"), &["init", "--quiet"]);
    let whose = ["--level", "elevated"];
    let all = names(&world, &whose);
    assert!(all.len() > 20, "{all:?}");
    for name in &all {
        let shown = world.run(&[&["tools", "show", name, "--json"], &whose[..]].concat()).succeeded().json();
        let has = |member: &str| shown[member].as_array().is_some_and(|all| !all.is_empty());
        assert!(has("failures") && has("resources"), "{shown}");
        let (_, answer) =
            called(&world, (name, &shown["example"]), &["--workspace", &project, "--level", "elevated"]);
        assert_ne!(answer["domain_code"], "invalid_argument", "{name}: {answer}");
    }
    // An MCP client gets both, and reads the guide.
    let mut talk = McpConversation::begin(&world, &["--tools", "builtin", "--level", "elevated"]);
    let listed = talk.ask("tools/list", &json!({}))["result"]["tools"].clone();
    let read_file = listed.as_array().unwrap().iter().find(|tool| tool["name"] == "read_file").unwrap();
    let description = read_file["description"].as_str().unwrap();
    assert!(description.contains("Example: {") && description.contains("- not_found: "), "{description}");
    let uri = &read_file["_meta"]["belljar/resources"][0];
    let guide = talk.ask("resources/read", &json!({ "uri": uri }))["result"]["contents"][0].clone();
    assert_eq!(guide["mimeType"], "text/markdown", "{guide}");
    assert!(guide["text"].as_str().unwrap().starts_with("# Files of the workspace"), "{guide}");
}

#[test]
fn timed_out_program_is_reported_with_its_real_duration() {
    let (world, project) = project();
    world.write(
        ".config/belljar/config.yaml",
        "sandboxing: {default_backend: native, native: {timeout_seconds: 2}}",
    );
    let slow = json!({ "command": "sleep 300", "timeout": 60 });
    let (_, ran) = called(&world, ("shell_command", &slow), &["--workspace", &project]);
    let notice = ran["data"]["notice"].as_str().unwrap_or_else(|| panic!("{ran}")).to_owned();
    assert_eq!(ran["data"]["timed_out"], true, "{ran}");
    let seconds: f64 = notice.split(' ').nth(2).unwrap().parse().unwrap();
    let took = ran["data"]["duration_ms"].as_f64().unwrap() / 1_000.0;
    assert!((seconds - took).abs() <= 0.1, "{notice}: {ran}");
}

#[test]
fn directories_are_refused_to_a_caller_whose_workspaces_begin_empty() {
    let (world, project) = project();
    let read = json!({ "path": "notes.txt" }).to_string();
    let call = |level: &str| {
        world.run(&["tools", "call", "read_file", &read, "--level", level, "--workspace", &project])
    };
    let refused = call("sandboxed");
    assert!(refused.code == 125 && refused.stderr.contains("--workspace: sandboxed"), "{refused:?}");
    // The control.
    assert!(call("restricted").succeeded().stdout.contains("one"));
}

#[test]
fn approval_hint_names_the_list_that_requires_the_approval() {
    let world = World::new(BELLJAR);
    let why = |yaml: &str| {
        world.write(".config/belljar/config.yaml", yaml);
        let arguments = json!({ "path": "a", "content": "x" });
        let (code, _) = called(&world, ("write_file", &arguments), &["--agent", "writer"]);
        assert_eq!(code, 3);
        let last = recorded(&world.path().join("state/audit"), "tool_called").pop().unwrap();
        let decision = last["call_id"].as_str().unwrap_or_else(|| panic!("{last}")).to_owned();
        world.run(&["why", &decision]).succeeded().stdout
    };
    let agent = "tool_access: {agents: [{name: writer, level: standard, autonomy: full";
    let by_house = why(&format!("{agent}}}]}}\nautonomy: {{human_approval: [code]}}\n"));
    assert!(by_house.contains("node list `autonomy.human_approval`"), "{by_house}");
    assert!(by_house.contains("human_approval:house") && !by_house.contains("allowed:"), "{by_house}");
    let by_agent = why(&format!("{agent}, human_approval: [code]}}]}}\n"));
    assert!(by_agent.contains("human_approval:agent"), "{by_agent}");
    let by_autonomy = why("tool_access: {agents: [{name: writer, level: standard, autonomy: supervised}]}\n");
    assert!(by_autonomy.contains("auto_approve: ['code:"), "{by_autonomy}");
}

#[test]
fn changes_of_session_calls_stay_there_until_a_user_commits_them() {
    let (world, project) = project();
    let session = create(&world, &["--workspace-copy", &project]);
    let _ended = SessionCleanup(&world);
    let with = ["--session", session.as_str(), "--level", "standard"];
    let edit = json!({ "path": "notes.txt", "old_text": "two", "new_text": "three" });
    let (code, edited) = called(&world, ("edit_file", &edit), &with);
    assert_eq!((code, &edited["status"]), (0, &json!("ok")), "{edited}");
    let (_, read) = called(&world, ("read_file", &json!({ "path": "notes.txt" })), &with);
    assert_eq!(read["data"]["content"], "one\nthree\n");
    let source = || std::fs::read_to_string(world.path().join("project/notes.txt")).unwrap();
    assert_eq!(source(), "one\ntwo\n");
    world.run(&["session", "commit", &session]).succeeded();
    assert_eq!(source(), "one\nthree\n");
    // Without it a session is made for the call, and its files are discarded.
    let write = json!({ "path": "more.txt", "content": "x" });
    assert_eq!(called(&world, ("write_file", &write), &["--workspace", &project]).0, 0);
    assert!(!world.path().join("project/more.txt").exists());
    assert_eq!(world.run(&["session", "list", "--json"]).succeeded().json().as_array().unwrap().len(), 1);
}

/// Source code in which names of secrets are next to values that aren't secrets.
const SOURCE: &str = "code: int = 3\npassword = getpass()\nPWD=/workspace\ntoken = next(tokens)\nnpm_config_registry = 'x'\n\
    headers = {'Authorization': 'Bearer ' + key}\nCONSTRAINT pk_user_accounts_history\n";

#[test]
fn source_code_is_read_unchanged_and_can_be_edited_as_read() {
    let (world, project) = project();
    world.write("project/settings.py", SOURCE);
    let token = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
    world.write("project/key.py", format!("KEY = '{token}'\nPWD = 1\n"));
    let session = create(&world, &["--workspace-copy", &project]);
    let _ended = SessionCleanup(&world);
    let with = ["--session", session.as_str(), "--level", "standard"];
    let read = |path: &str| called(&world, ("read_file", &json!({ "path": path })), &with).1;
    let content = read("settings.py")["data"]["content"].as_str().unwrap().to_owned();
    assert_eq!(content, SOURCE);
    for line in content.lines() {
        let edit = json!({ "path": "settings.py", "old_text": line, "new_text": format!("{line} #") });
        let (code, edited) = called(&world, ("edit_file", &edit), &with);
        assert_eq!(code, 0, "{line}: {edited}");
    }
    assert_eq!(read("settings.py")["data"]["content"], SOURCE.replace('\n', " #\n"));
    // The control: a token is redacted, which is reported.
    let told = read("key.py");
    assert_eq!(told["data"]["content"], "KEY = '***'\nPWD = 1\n");
    assert_eq!((&told["redacted"]["texts"], &told["redacted"]["at"]), (&json!(1), &json!(["/content"])));
    // Error messages stay complete, too: the existing names, and that a file with such a name doesn't exist.
    let unknown = json!({ "action_type": "deploy:prodction", "title": "T", "description": "D" });
    let (_, refused) = called(&world, ("request_human_approval", &unknown), &with);
    let message = refused["message"].as_str().unwrap();
    assert!(message.contains("code:write") && message.contains("deploy:production"), "{message}");
    assert!(!message.contains("***"), "{message}");
    let missing = read("password: hunter22")["message"].to_string();
    assert!(missing.contains("password: hunter22"), "{missing}");
    assert!(!read(&token)["message"].to_string().contains(&token), "the token is redacted");
    let call = ["tools", "call", "read_file", "{\"path\": \"key.py\"}"];
    let ran = world.run(&[&call, &with[..]].concat()).succeeded();
    assert!(ran.stderr.contains("at /content: `***` stands for a secret"), "{ran:?}");
}

#[test]
fn tool_that_needs_no_session_answers_without_creating_one() {
    let world = World::new(BELLJAR);
    let chart = json!({ "kind": "bar", "title": "T", "series": [{ "points": [["a", 1], ["b", 2]] }] });
    let (code, drawn) = called(&world, ("render_chart", &chart), &["--level", "standard"]);
    assert!(drawn["data"]["svg"].as_str().unwrap().starts_with("<svg "), "{drawn}");
    let page = json!({ "html_content": "<p>seen<p hidden>not" });
    let (other, read) = called(&world, ("html_parser", &page), &["--level", "restricted"]);
    assert_eq!((code, other, &read["data"]["content"]), (0, 0, &json!("seen")));
    assert_eq!(world.run(&["session", "list", "--json"]).succeeded().json(), json!([]));
    // The control: a tool that the level lacks is refused.
    assert_eq!(called(&world, ("render_chart", &chart), &["--level", "restricted"]).0, 3);
}

#[test]
fn exit_code_reports_how_a_call_ended() {
    let (world, project) = project();
    let code =
        |call: (&str, &Value), level| called(&world, call, &["--workspace", &project, "--level", level]).0;
    let list = ("shell_command", &json!({ "command": "ls" }));
    assert_eq!((code(list, "restricted"), code(list, "standard")), (3, 0));
    let read = |path: &str| json!({ "path": path });
    assert_eq!(code(("read_file", &read("absent")), "standard"), 1);
    assert_eq!(code(("read_file", &json!({ "paths": [] })), "standard"), 2);
    let refused = |arguments: &[&str]| world.run(&[&["tools", "call"], arguments].concat());
    let absent = refused(&["write_fil"]);
    assert_eq!(absent.code, 2, "{absent:?}");
    for wrong in ["[]", "{", "1"] {
        let ran = refused(&["read_file", wrong]);
        assert!(ran.code == 2 && ran.stderr.contains("JSON object"), "{wrong}: {ran:?}");
    }
    // A refusal names the decision, and the decision its rule.
    let ran =
        world.run(&["tools", "call", "shell_command", "{\"command\": \"ls\"}", "--level", "restricted"]);
    let decision = ran.stderr.split("decision ").nth(1).unwrap().split(')').next().unwrap().to_owned();
    let why = world.run(&["why", &decision]).succeeded().stdout;
    assert!(why.contains("constraint:terminal:none"), "{why}");
}

#[test]
fn agents_tools_share_one_session() {
    let (world, project) = project();
    let mut talk = McpConversation::begin(
        &world,
        &["--tools", "builtin", "--level", "standard", "--workspace", &project],
    );
    let _ended = SessionCleanup(&world);
    let listed = talk.ask("tools/list", &json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap().clone();
    let has = |name: &str| tools.iter().any(|tool| tool["name"] == name);
    assert!(has("read_file") && has("git_commit") && !has("open"), "{listed}");
    talk.done(
        "write_file",
        &json!({ "path": "src/new.txt", "content": "new\n", "create_directories": true }),
    );
    let ran = talk.done("shell_command", &json!({ "command": "cat src/new.txt notes.txt" }));
    assert_eq!((&ran["stdout"], &ran["exit_code"]), (&json!("new\none\ntwo\n"), &json!(0)), "{ran}");
    let code = json!({ "language": "python", "code": "print(open('notes.txt').read().upper(), end='')" });
    assert_eq!(talk.done("code_runner", &code)["stdout"], "ONE\nTWO\n");
    let sessions = world.run(&["session", "list", "--json"]).succeeded().json();
    assert_eq!(sessions.as_array().unwrap().len(), 1, "{sessions}");
    // A path out of the workspace is refused.
    let (refused, _) = talk.refused("read_file", &json!({ "path": "../../etc/passwd" }));
    assert_eq!(refused, "permission_denied");
    assert!(!world.path().join("project/src").exists());
    assert_eq!(talk.end(), Some(0));
    assert_eq!(world.run(&["session", "list", "--json"]).succeeded().json(), json!([]));
}

#[test]
fn agents_commits_are_made_in_its_copy() {
    let (world, project) = project();
    let at = world.path().join("project");
    git(&at, &["init", "--quiet", "--initial-branch", "main"]);
    git(&at, &["add", "."]);
    git(&at, &["-c", "user.name=a", "-c", "user.email=a@b.invalid", "commit", "--quiet", "-m", "first"]);
    let mut talk = McpConversation::begin(
        &world,
        &["--tools", "builtin", "--level", "restricted", "--workspace", &project],
    );
    let _ended = SessionCleanup(&world);
    talk.done("write_file", &json!({ "path": "notes.txt", "content": "other\n" }));
    let committed = talk.done("git_commit", &json!({ "message": "second", "paths": ["notes.txt"] }));
    let log = talk.done("git_log", &json!({}));
    let log = log["output"].as_str().unwrap();
    assert!(log.contains("second") && log.contains("first"), "{committed} {log}");
    assert_eq!(git(&at, &["rev-list", "--count", "HEAD"]).trim(), "1");
    // An agent without a project has nothing to commit.
    drop(talk);
    let mut alone = McpConversation::begin(
        &world,
        &["--tools", "builtin", "--level", "sandboxed", "--workspace", &project],
    );
    let (refused, _) = alone.refused("git_commit", &json!({ "message": "third", "paths": ["notes.txt"] }));
    assert_eq!(refused, "not_found");
}

#[test]
fn tools_work_where_a_sandbox_has_no_root_of_its_own() {
    let (world, project) = project();
    let options = ["--workspace", project.as_str(), "--backend", "subprocess"];
    let read = called(&world, ("read_file", &json!({ "path": "notes.txt" })), &options);
    assert_eq!((read.0, &read.1["data"]["content"]), (0, &json!("one\ntwo\n")), "{}", read.1);
}

#[test]
fn configured_tools_are_called_like_built_in_ones() {
    let world = World::new(BELLJAR);
    let database = world.path().join("house.db");
    let make = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript('CREATE TABLE t (a); INSERT INTO t VALUES (1), (2);')";
    let made = Command::new("python3").args(["-c", make]).arg(&database).status().unwrap();
    assert!(made.success());
    let config =
        format!("tools: {{databases: {{sqlite: [{{name: house, path: {}}}]}}}}\n", database.display());
    world.write(".config/belljar/config.yaml", config);
    let query = |text: &str| json!({ "database": "house", "query": text });
    let elevated = ["--level", "elevated"];
    let (code, read) = called(&world, ("sql_query", &query("SELECT sum(a) AS s FROM t")), &elevated);
    assert_eq!((code, &read["data"]["rows"]), (0, &json!([{ "s": 3 }])), "{read}");
    let (code, refused) = called(&world, ("sql_query", &query("DELETE FROM t")), &elevated);
    assert_ne!(code, 0, "{refused}");
    assert!(!names(&world, &["--level", "restricted"]).contains(&"sql_query".to_owned()));
}

/// Writes a policy that allows that port of this machine, and agents named like their levels, with full autonomy.
fn policy(world: &World, port: u16) -> String {
    let agent = |level: &str| format!("{{name: {level}, level: {level}, autonomy: full}}");
    let agents = ["sandboxed", "restricted", "elevated"].map(agent).join(", ");
    world.write(".config/belljar/config.yaml", format!("tool_access: {{agents: [{agents}]}}\n"));
    let rule = format!("{{host: localhost, ports: [{port}], networks: [127.0.0.0/8, \"::1\"]}}");
    world.write("policy.yaml", format!("rules: [{rule}]\n")).display().to_string()
}

#[test]
fn agents_tools_reach_the_web_as_far_as_its_session() {
    let (world, server) = (World::new(BELLJAR), HelloServer::start());
    let (port, egress) = (server.address.port(), policy(&world, server.address.port()));
    let there = json!({ "url": format!("http://localhost:{port}/") });
    let mut talk =
        McpConversation::begin(&world, &["--tools", "builtin", "--agent", "restricted", "--egress", &egress]);
    let _ended = SessionCleanup(&world);
    let read = talk.done("web_fetch", &there);
    assert_eq!((&read["content_text"], &read["untrusted"]), (&json!("hello\n"), &json!(true)), "{read}");
    for elsewhere in ["http://localhost:1/", "http://169.254.169.254/latest/"] {
        let (refused, message) = talk.refused("web_fetch", &json!({ "url": elsewhere }));
        assert_eq!(refused, "permission_denied", "{message}");
        // A rule for a name may need `networks`, but the sandbox must not learn the resolved address. For this address no
        // rule helps.
        let is_name = elsewhere.contains("localhost");
        assert_eq!(message.contains("`belljar egress why"), is_name, "{message}");
    }
    assert_eq!((talk.end(), server.asked()), (Some(0), 1));
    // It is recorded like requests of the session's own programs, and completely once the server has ended.
    let audit = world.path().join("state/audit");
    let passages = recorded(&audit, "egress");
    assert_eq!(passages.len(), 3, "{passages:?}");
    assert!(passages.iter().all(|passage| passage["run_id"] == passages[0]["run_id"]), "{passages:?}");
    assert_eq!(passages[0]["asked"]["host"], "localhost");
}

#[test]
fn web_tools_are_not_offered_without_permission_or_web_access() {
    let (world, server) = (World::new(BELLJAR), HelloServer::start());
    let egress = policy(&world, server.address.port());
    let offered = |whose: &[&str]| {
        let names = names(&world, whose);
        ["web_fetch", "http_request"].map(|name| names.iter().any(|known| known == name))
    };
    assert_eq!(offered(&["--agent", "sandboxed"]), [false, false]);
    assert!(offered(&["--agent", "restricted", "--egress", &egress])[0]);
    assert_eq!(offered(&["--agent", "elevated", "--egress", &egress]), [true, true]);
    assert_eq!((offered(&["--egress", &egress]), offered(&[])), ([true, true], [false, false]));
    let url = json!({ "url": format!("http://localhost:{}/", server.address.port()), "method": "POST", "body": "x" });
    let asked = |whose: &[&str]| called(&world, ("http_request", &url), whose);
    assert_eq!((asked(&["--agent", "sandboxed"]).0, server.asked()), (3, 0));
    let (code, made) = asked(&["--agent", "elevated", "--egress", &egress]);
    assert_eq!((code, &made["data"]["status"], server.asked()), (0, &json!(200), 1), "{made}");
    // A level that reaches only allowed hosts reaches none without an allowlist.
    let (code, refused) =
        called(&world, ("web_fetch", &json!({ "url": url["url"] })), &["--agent", "restricted"]);
    assert_eq!(
        (code, &refused["domain_code"], server.asked()),
        (3, &json!("permission_denied"), 1),
        "{refused}"
    );
}
