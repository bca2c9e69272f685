//! Access levels and agents: their effect on sandboxes without a permission check for each call, and the reports of
//! decisions.

use crate::BELLJAR;
use crate::egress::HelloServer;
use crate::egress::git_server::GitServer;
use crate::mcp::McpConversation;
use crate::session::{SessionCleanup, create};
use belljar_testkit::world::World;
use serde_json::{Value, json};

const HOUSE: &str = "
tool_access:
  agents:
    - {name: looker, level: sandboxed, autonomy: full}
    - {name: worker, level: standard, autonomy: full}
    - {name: asker, level: standard, autonomy: full, human_approval: ['code:write']}
";

fn configured(world: &World, text: &str) {
    world.write(".config/belljar/config.yaml", text);
}

fn shown(world: &World, whose: &[&str]) -> Value {
    world.run(&[&["policy", "show", "--json"], whose].concat()).succeeded().json()
}

#[test]
fn access_level_is_shown_with_its_effect_on_sandboxes() {
    let world = World::new(BELLJAR);
    let web = |level: &str| shown(&world, &["--level", level])["sandbox"]["web"]["mode"].clone();
    assert_eq!(
        ["sandboxed", "restricted", "standard", "elevated"].map(web),
        ["none", "listed", "open", "open"]
    );
    let restricted = shown(&world, &["--level", "restricted"]);
    assert_eq!(
        restricted["categories"],
        json!(["file_system", "code_execution", "version_control", "web", "memory"])
    );
    assert_eq!(restricted["sandbox"]["git"], json!({ "fetches": true, "pushes": false }));
    assert_eq!(restricted["sandbox"]["programs"]["mode"], "only");
    assert_eq!(
        restricted["constraints"]["requires_approval"],
        json!(["deploy:staging", "deploy:production", "db:mutate"])
    );
    let text = world.run(&["policy", "show", "--level", "standard"]).succeeded().stdout;
    for part in
        ["Normal development access.", "all public hosts at 80 and 443", "a copy of the project", "tools of"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    configured(&world, HOUSE);
    assert_eq!(shown(&world, &["--agent", "looker"])["level"], "sandboxed");
    for wrong in [&["--level", "root"][..], &[], &["--level", "standard", "--agent", "looker"]] {
        let ran = world.run(&[&["policy", "show"], wrong].concat());
        assert_eq!(ran.code, 125, "{wrong:?}: {ran:?}");
    }
}

#[test]
fn session_has_no_more_permissions_than_its_level() {
    let world = World::new(BELLJAR);
    let _sessions = SessionCleanup(&world);
    world.write("source/file", "of the project\n");
    let server = HelloServer::start();
    let there = format!("http://localhost:{}/", server.address.port());
    world.write(
        "policy.yaml",
        format!(
            "rules: [{{host: localhost, ports: [{}], networks: [127.0.0.0/8, '::1']}}]\n",
            server.address.port()
        ),
    );
    // Options that exceed the level are refused before anything is made.
    for (wrong, told) in [
        (&["--level", "sandboxed", "--egress", "policy.yaml"][..], "--egress"),
        (&["--level", "sandboxed", "--workspace-copy", "source"], "--workspace"),
        (&["--level", "standard", "--workspace", "source"], "--workspace-copy"),
        (&["--level", "standard", "--ro", "source"], "--ro"),
    ] {
        let ran = world.run(&[&["session", "create"], wrong].concat());
        assert!(ran.code == 125 && ran.stderr.contains(told), "{wrong:?}: {ran:?}");
    }
    // These levels have no shell.
    let python = |session: &str, script: &str| {
        let script = format!(
            "import os, urllib.request\nfor name in ('NO_PROXY', 'no_proxy'): os.environ.pop(name, None)\n{script}"
        );
        world.run(&["session", "exec", session, "--", "python3", "-c", &script])
    };
    let get = |url: &str| {
        format!(
            "try: print(urllib.request.urlopen('{url}').read().decode(), end='')\n\
             except OSError as error: print(getattr(error, 'code', 'nothing'))\n"
        )
    };
    let restricted =
        create(&world, &["--level", "restricted", "--egress", "policy.yaml", "--workspace-copy", "source"]);
    assert_eq!(python(&restricted, &get(&there)).stdout, "hello\n");
    assert_eq!(python(&restricted, &get("http://elsewhere.example/")).stdout, "403\n");
    assert_eq!(python(&restricted, "print(open('file').read(), end='')").stdout, "of the project\n");
    let sandboxed = create(&world, &["--level", "sandboxed"]);
    let count = "print(sum('proxy' in name.lower() for name in os.environ), len(os.listdir()))";
    let ran = python(&sandboxed, &format!("{}{count}", get(&there)));
    assert_eq!(ran.stdout, "nothing\n0 0\n", "{ran:?}");
    assert_eq!(server.asked(), 1);
}

#[test]
fn read_only_git_level_cannot_push_through_the_proxy_either() {
    let world = World::new(BELLJAR);
    let _sessions = SessionCleanup(&world);
    let server = GitServer::start();
    server.open_to_pushes();
    let (port, ca) = (server.port(), server.authority());
    world.write(
        "policy.yaml",
        format!("rules: [{{host: localhost, ports: [{port}], networks: [127.0.0.0/8, '::1']}}]\nauthorities: {ca}\n"),
    );
    let push = |level: &str| {
        let session = create(&world, &["--level", level, "--egress", "policy.yaml"]);
        world.run(&["session", "exec", &session, "--", "python3", "-c", &server.cloning_and_pushing(level)])
    };
    let ran = push("restricted");
    assert!(ran.code != 0 && ran.stdout == "cloned\n" && ran.stderr.contains("403"), "{ran:?}");
    // The control: a level that may push.
    let ran = push("standard");
    assert_eq!(ran.stdout, "cloned\npushed\n", "{ran:?}");
    assert_eq!(["restricted", "standard"].map(|branch| server.has_branch(branch)), [false, true]);
}

#[test]
fn each_access_decision_is_explained_and_can_be_replayed_with_other_rules() {
    let world = World::new(BELLJAR);
    let _sessions = SessionCleanup(&world);
    configured(&world, HOUSE);
    let mut talk = McpConversation::begin(&world, &["--agent", "looker"]);
    let listed = talk.ask("tools/list", &json!({}));
    let names: Vec<_> =
        listed["result"]["tools"].as_array().unwrap().iter().map(|tool| tool["name"].clone()).collect();
    assert!(
        names.contains(&json!("open")) && !names.contains(&json!("exec")) && !names.contains(&json!("run")),
        "{names:?}"
    );
    let (code, message) = talk.refused("run", &json!({ "argv": ["true"] }));
    assert_eq!(code, "permission_denied");
    let decision = message.split("decision ").nth(1).unwrap()[..36].to_owned();
    drop(talk);
    // The control: another agent makes this call.
    let mut talk = McpConversation::begin(&world, &["--agent", "worker"]);
    assert_eq!(talk.done("run", &json!({ "argv": ["true"] }))["exit_code"], 0);
    drop(talk);
    let mut talk = McpConversation::begin(&world, &["--agent", "asker"]);
    let (code, message) = talk.refused("run", &json!({ "argv": ["true"] }));
    assert!(code == "approval_required" && message.contains("belljar approval approve"), "{message}");
    drop(talk);

    let why = world.run(&["why", &decision, "--json"]).succeeded().json();
    assert_eq!(
        (&why["decision"], &why["judged"]["rule"]),
        (&json!("deny"), &json!("constraint:terminal:none"))
    );
    assert_eq!(why["judged"]["agent_id"], "looker");
    let text = world.run(&["why", &decision]).succeeded().stdout;
    for part in
        ["was refused", "terminal is none", "sub_constraints: {terminal: restricted_commands}", "looker"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let unknown = world.run(&["why", "ffffffff"]);
    assert_eq!(unknown.code, 2, "{unknown:?}");

    // The rules in force already: no decision would change.
    world.write("same.yaml", HOUSE);
    let same = world.run(&["policy", "check", "same.yaml", "--json"]);
    assert_eq!(same.code, 0, "{same:?}");
    assert_eq!(same.json(), json!({ "calls": 3, "changes": [] }));
    world.write("wider.yaml", HOUSE.replace("level: sandboxed", "level: elevated"));
    let wider = world.run(&["policy", "check", "wider.yaml", "--json"]);
    assert_eq!(wider.code, 1, "{wider:?}");
    let change = &wider.json()["changes"][0];
    assert_eq!(
        (&change["agent"], &change["was"], &change["would_be"]),
        (&json!("looker"), &json!("deny"), &json!("allow"))
    );
    assert_eq!(change["decision"], decision);
    let text = world.run(&["policy", "check", "wider.yaml"]).stdout;
    assert!(text.contains("1 of 3 calls would end otherwise"), "{text}");
    let wrong = world.run(&["policy", "check", "policy-that-is-not-there.yaml"]);
    assert_eq!(wrong.code, 125, "{wrong:?}");
}

#[test]
fn agent_unknown_to_the_rules_is_refused_with_the_closest_name() {
    let world = World::new(BELLJAR);
    let _sessions = SessionCleanup(&world);
    configured(&world, HOUSE);
    let commands: [&[&str]; 4] = [
        &["tools", "call", "read_file", r#"{"path": "a"}"#],
        &["tools", "list"],
        &["policy", "show"],
        &["session", "create"],
    ];
    for command in commands {
        let refused = world.run(&[command, &["--agent", "workr"]].concat());
        let says_why = refused.stderr.contains("agent workr is not listed")
            && refused.stderr.contains("`worker`, perhaps");
        assert!(refused.code == 125 && says_why, "{command:?}: {refused:?}");
    }
    // The control: a listed agent, and a configuration with a default level for unlisted agents.
    world.run(&["tools", "list", "--agent", "worker"]).succeeded();
    configured(&world, &HOUSE.replace("tool_access:", "tool_access:\n  default_level: sandboxed"));
    assert_eq!(shown(&world, &["--agent", "workr"])["level"], "sandboxed");
    // Or a configuration in which new agents earn their levels, as at a node.
    let earning = "trust: {strategy: per_category, initial_levels: {git: restricted}, \
        promotion_criteria: {git: {restricted_to_standard: {tasks_completed: 2, quality_score_min: 0}}}}";
    configured(&world, &format!("{HOUSE}\n{earning}\n"));
    assert_eq!(shown(&world, &["--agent", "workr"])["level"], "restricted");
    // An agent with recorded events is known, so its name is no typing error.
    configured(&world, HOUSE);
    world.run(&["trust", "record", "hired", r#"{"type": "agent_hired"}"#]).succeeded();
    world.run(&["tools", "list", "--agent", "hired"]).succeeded();
}
