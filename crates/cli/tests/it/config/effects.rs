//! The effects of members of `sandboxing`, seen from inside of sandboxes and in refusals.

use crate::BELLJAR;
use crate::session::{SessionCleanup, list};
use belljar_testkit::foreign_root::{Docker, IMAGE};
use belljar_testkit::node::{Node, command, script};
use belljar_testkit::skip::skip;
use belljar_testkit::wait::until;
use belljar_testkit::world::{ProgramOutput, World};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

fn configure(world: &World, sandboxing: &str) {
    world.write(".config/belljar/config.yaml", format!("sandboxing: {sandboxing}\n"));
}

/// Returns the isolation report in a command's standard error.
fn isolation(ran: &ProgramOutput) -> Value {
    let report = &ran.stderr[ran.stderr.find('{').unwrap()..];
    serde_json::Deserializer::from_str(report).into_iter().next().unwrap().unwrap()
}

/// Runs a shell command as a tool, with these variables in the environment of `belljar`.
fn shell(world: &World, script: &str, environment: &[(&str, &str)]) -> String {
    let arguments = json!({ "command": script }).to_string();
    let mut call = world.command(&["tools", "call", "shell_command", &arguments, "--json"]);
    call.envs(environment.iter().copied());
    let told = ProgramOutput::from(call.output().unwrap()).succeeded().json();
    told["data"]["stdout"].as_str().unwrap_or_else(|| panic!("{told}")).to_owned()
}

#[test]
fn subprocess_passes_listed_variables_and_searches_its_safe_prefixes() {
    World::as_everyone(BELLJAR, |world| {
        let _sessions = SessionCleanup(world);
        let tool = world.write("opt/bin/house-tool", "#!/bin/sh\necho found\n");
        std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let prefix = world.path().join("opt/bin").display().to_string();
        let path = format!("{prefix}:/usr/bin:/bin");
        let environment = [
            ("PATH", path.as_str()),
            ("HOUSE_REGION", "north"),
            ("HOUSE_ID_SECRET", "s"),
            ("TZ", "Asia/Tokyo"),
        ];
        let script = "echo $HOUSE_REGION,$HOUSE_ID_SECRET,$TZ; house-tool || true";
        let in_subprocess = |more: &str| {
            configure(world, &format!("{{overrides: {{terminal: subprocess}}, subprocess: {{{more}}}}}"));
            shell(world, script, &environment)
        };
        // The control: the backend's own lists, and the system's directories.
        assert_eq!(in_subprocess(""), ",,Asia/Tokyo\n");
        assert_eq!(in_subprocess("env_allowlist: [PATH, 'HOUSE_*']"), "north,,\n");
        assert_eq!(
            in_subprocess("env_allowlist: ['HOUSE_*'], env_denylist_patterns: [HOUSE_REGION]"),
            ",s,\n"
        );
        let extra = format!("extra_safe_path_prefixes: ['{prefix}']");
        assert_eq!(in_subprocess(&extra), ",,Asia/Tokyo\nfound\n");
        assert_eq!(in_subprocess(&format!("{extra}, env_allowlist: [TZ]")), ",,Asia/Tokyo\n");
    });
}

#[test]
fn commands_run_in_the_backend_that_the_configuration_sets_for_them() {
    World::as_everyone(BELLJAR, |world| {
        let _sessions = SessionCleanup(world);
        let backend = |options: &[&str]| {
            let ran = world.run(&[&["exec", "--isolation"], options, &["--", "true"]].concat()).succeeded();
            let report = isolation(&ran);
            (report["backend"].as_str().unwrap().to_owned(), ran.stderr)
        };
        for (sandboxing, expected) in [
            // A setting that isn't written moves no command out of its native sandbox.
            ("{}", "native"),
            ("{native: {pids_limit: 40}}", "native"),
            ("{default_backend: native}", "native"),
            ("{default_backend: subprocess, overrides: {terminal: subprocess}}", "subprocess"),
            ("{overrides: {terminal: subprocess}}", "subprocess"),
            ("{overrides: {file_system: subprocess}}", "native"),
        ] {
            configure(world, sandboxing);
            assert_eq!(backend(&[]).0, expected, "{sandboxing}");
            world.run(&["session", "create", "--name", "one"]).succeeded();
            assert_eq!(list(world)[0]["backend"], expected, "{sandboxing}");
            world.run(&["session", "end", "one"]).succeeded();
        }
        configure(world, "{overrides: {terminal: subprocess}}");
        assert_eq!(backend(&["--backend", "native"]).0, "native", "the command line takes precedence");
        let (listed, said) = backend(&["--programs", "true"]);
        assert!(listed == "native" && said.contains("configured: subprocess"), "{said}");
        // Containers of the specification's configuration require an engine.
        configure(world, "{default_backend: docker}");
        let refused = world.run(&["exec", "--docker-socket", "no-engine", "--", "true"]);
        assert!(
            refused.code == 125 && refused.stderr.contains("the docker backend is not available"),
            "{refused:?}"
        );
    });
}

#[test]
fn required_layers_of_all_backends_are_required_by_nodes_and_each_backend() {
    let world = World::new(BELLJAR);
    let config = world.write("node.yaml", "sandboxing: {required: [cpu_limit]}\n").display().to_string();
    let node = Node::start(&world, &["--config", &config]);
    let told = node.run(&command(&["true"])).json();
    assert_ne!(
        told["status"], "completed",
        "no CPU limit is configured, so that layer is inactive everywhere: {told}"
    );
    assert!(told.to_string().contains("cpu_limit"), "{told}");
    drop(node);
    // The control: an active layer.
    let config = world.write("node.yaml", "sandboxing: {required: [seccomp]}\n").display().to_string();
    let node = Node::start(&world, &["--config", &config]);
    assert_eq!(node.run(&command(&["true"])).json()["status"], "completed");
    for (backend, sandboxing) in [
        ("native", "{required: [cpu_limit]}"),
        ("subprocess", "{overrides: {terminal: subprocess}, required: [pid_namespace]}"),
        ("subprocess", "{overrides: {terminal: subprocess}, subprocess: {required: [pid_namespace]}}"),
    ] {
        configure(&world, sandboxing);
        let refused = world.run(&["exec", "--", "true"]);
        let says_why = refused.stderr.contains(&format!("the {backend} backend can't give"))
            || refused.stderr.contains("cpu_limit");
        assert!(refused.code == 125 && says_why, "{sandboxing}: {refused:?}");
    }
}

#[test]
fn container_limits_follow_their_section() {
    let engine = match Docker::start() {
        Ok(engine) => engine,
        Err(reason) => return skip("container_limits_follow_their_section", &reason),
    };
    let world = World::new(BELLJAR);
    configure(
        &world,
        &format!(
            "{{default_backend: docker, docker: {{image: '{IMAGE}', tmpfs_size: 24m, memory_limit: 80m, pids_limit: 33, cpu_limit: 0.5}}}}"
        ),
    );
    let socket = engine.socket().display().to_string();
    let exec = |script: &str| {
        let all = ["exec", "--docker-socket", &socket, "--isolation", "--", "sh", "-c", script];
        world.run(&all).succeeded()
    };
    let ran = exec("df --block-size=1M --output=size /tmp | tail -n 1");
    assert_eq!(ran.stdout.trim(), "24", "{ran:?}");
    for part in ["83886080 bytes", "35 processes", "500 thousandths"] {
        assert!(ran.stderr.contains(part), "{part}: {ran:?}");
    }
    // A layer that containers lack, and as the control one that they have.
    for (layer, code) in [("kernel_tables", 125), ("seccomp", 0)] {
        configure(
            &world,
            &format!("{{default_backend: docker, docker: {{image: '{IMAGE}', required: [{layer}]}}}}"),
        );
        let ran = world.run(&["exec", "--docker-socket", &socket, "--", "true"]);
        assert!(ran.code == code && ran.stderr.contains("kernel_tables") == (code != 0), "{layer}: {ran:?}");
    }
}

#[test]
fn programs_in_sandboxes_get_the_ids_of_agent_session_task_and_request() {
    let world = World::new(BELLJAR);
    world.write(
        ".config/belljar/config.yaml",
        "sandboxing: {default_backend: native, overrides: {file_system: subprocess}}\ntool_access: {agents: [{name: coder, level: elevated, autonomy: full}]}\n",
    );
    let _sessions = SessionCleanup(&world);
    let ids = "echo $SYNTHORG_AGENT_ID,$SYNTHORG_SESSION_ID,${SYNTHORG_TASK_ID-unset},$BELLJAR_AGENT_ID";
    let arguments = json!({ "command": ids }).to_string();
    let call = ["tools", "call", "shell_command", &arguments, "--json", "--agent", "coder", "--keep"];
    let told = world.run(&call).succeeded().json();
    let session = list(&world)[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(told["data"]["stdout"], format!("coder,{session},,coder\n"), "{told}");
    // A session with a single sandbox has its id, too.
    configure(&world, "{default_backend: native}");
    let told =
        world.run(&["tools", "call", "shell_command", &arguments, "--json", "--keep"]).succeeded().json();
    let sessions = list(&world);
    let other = sessions.iter().filter_map(|listed| listed["id"].as_str()).find(|id| *id != session).unwrap();
    assert_eq!(told["data"]["stdout"], format!(",{other},,\n"), "{told}");
    // A job of a node.
    let node = Node::start(&world, &[]);
    let job = command(&["sh", "-c", "echo $SYNTHORG_TASK_ID,$SYNTHORG_REQUEST_ID"]);
    let told = node.run(&job).json();
    let (task, id) = (job["task_id"].as_str().unwrap(), job["job_id"].as_str().unwrap());
    assert!(told.to_string().contains(&format!("{task},{id}")), "{told}");
}

#[test]
fn configured_mcp_servers_that_the_cli_ignores_are_reported() {
    let world = World::new(BELLJAR);
    let says = |config: &str| {
        world.write(".config/belljar/config.yaml", config);
        world.run(&["tools", "list"]).succeeded().stderr
    };
    let servers = "mcp: {servers: [{name: house, transport: stdio, command: 'true', scope: sandbox}]}\n";
    let said = says(servers);
    assert!(said.contains("1 servers of mcp.servers are not asked here"), "{said}");
    assert_eq!(says("mcp: {}\n"), "", "the control");
}

/// Returns the log entry of an MCP server for a program that prints a secret, with that configuration.
fn shipped(shipping: &str) -> Option<Value> {
    shipped_of(shipping, "echo 0123456789; echo sk-proj-0123456789abcdefghij0123456789")
}

/// Returns its log entry for that command.
fn shipped_of(shipping: &str, command: &str) -> Option<Value> {
    let world = World::new(BELLJAR);
    let config = format!("log: {{container_log_shipping: {{{shipping}}}}}\n");
    world.write(".config/belljar/config.yaml", config);
    let call = json!({ "name": "shell_command", "arguments": { "command": command } });
    let messages = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "test", "version": "1" } } }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call }),
    ];
    let mut server = world.command(&["mcp", "--tools", "builtin", "--log-level", "info"]);
    // A file, because the log is read at the end, and a pipe's buffer is too small.
    let log = std::fs::File::create(world.path().join("log")).unwrap();
    server.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
    let mut server = server.spawn().unwrap();
    let mut input = server.stdin.take().unwrap();
    messages.iter().for_each(|message| writeln!(input, "{message}").unwrap());
    let mut answers = BufReader::new(server.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(answers.any(|line| line.contains("\"id\":2")), "no answer");
    drop(input);
    server.wait().unwrap();
    let said = world.read("log");
    let line = said.lines().find(|line| line.contains("a tool has run a program"))?;
    let event = line.split_once("event=").unwrap().1;
    Some(serde_json::Deserializer::from_str(event).into_iter().next().unwrap().unwrap())
}

#[test]
fn execution_reports_contain_what_the_log_shipping_section_allows() {
    let usual = shipped("").unwrap();
    assert_eq!((&usual["event"], &usual["backend"]), (&json!("execution"), &json!("native")), "{usual}");
    assert!(usual["stdout_bytes"].as_u64().unwrap() > 40 && usual.get("raw").is_none(), "{usual}");
    let raw = shipped("ship_raw_logs: true").unwrap();
    assert!(raw["raw"]["stdout"].as_str().unwrap().starts_with("0123456789\n"), "{raw}");
    assert!(!raw.to_string().contains("sk-proj-0123456789"), "{raw}");
    let short = shipped("ship_raw_logs: true, max_log_bytes: 4").unwrap();
    assert_eq!(
        (&short["raw"]["stdout"], &short["raw"]["truncated"]),
        (&json!("0123"), &json!(true)),
        "{short}"
    );
    assert_eq!(shipped("enabled: false"), None);
}

#[test]
fn output_not_scanned_for_secrets_in_time_is_left_out_of_the_log() {
    // Two streams of the maximum size, with a secret in every eleven bytes, take three times as long as the shortest timeout.
    let many = "yes é=code=é | head -c 65536; yes é=code=é | head -c 65536 >&2";
    let raw = |timeout: &str| {
        let shipping = format!("ship_raw_logs: true, collection_timeout_seconds: {timeout}");
        let event = shipped_of(&shipping, many).unwrap();
        assert_eq!((&event["stdout_bytes"], &event["stderr_bytes"]), (&json!(65_536), &json!(65_536)));
        (event["raw"]["stderr"].as_str().unwrap().to_owned(), event["raw"]["truncated"].clone())
    };
    assert_eq!(raw("0.1"), (String::new(), json!(true)));
    let (in_time, is_truncated) = raw("30");
    assert!(in_time.starts_with("é=code=***\né=code=***\n") && is_truncated == false, "{in_time:.100}");
}

fn layer<'r>(report: &'r Value, name: &str) -> &'r Value {
    report["layers"].as_array().unwrap().iter().find(|layer| layer["name"] == name).unwrap()
}

#[test]
fn native_sandboxes_have_the_limits_of_their_section() {
    World::as_everyone(BELLJAR, |world| {
        let exec = |script: &str| {
            let ran = world.run(&["exec", "--isolation", "--", "sh", "-c", script]).succeeded();
            let report = isolation(&ran);
            let detail = |name: &str| layer(&report, name)["detail"].as_str().unwrap().to_owned();
            (ran.stdout, detail("kernel_tables"), detail("cpu_limit"))
        };
        let script = "ulimit -n; df --block-size=1M --output=size /tmp | tail -n 1 | tr -d ' '";
        let usual = exec(script);
        assert!(usual.0.ends_with("\n1024\n"), "{usual:?}");
        assert_eq!(usual.2, "not requested");
        configure(
            world,
            "{native: {open_files_limit: 77, tmpfs_size: 3m, ptys_limit: 3, seccomp_filters_limit: 5, timeout_seconds: 1}}",
        );
        let limited = exec(script);
        assert_eq!(limited.0, "77\n3\n", "{limited:?}");
        assert_ne!(limited.1, usual.1);
        // Either the processor share is limited, or no sandbox is made.
        configure(world, "{native: {cpu_limit: 0.5}}");
        let slowed = world.run(&["exec", "--isolation", "--", "true"]);
        match slowed.code {
            0 => assert_eq!(layer(&isolation(&slowed), "cpu_limit")["in_force"], true, "{slowed:?}"),
            code => assert!(code == 125 && slowed.stderr.contains("cpu_limit"), "{slowed:?}"),
        }
        world.run(&["exec", "--cpus", "none", "--", "true"]).succeeded();
        let arguments = json!({ "command": "sleep 600" }).to_string();
        configure(world, "{default_backend: native, native: {timeout_seconds: 1}}");
        let told = world.run(&["tools", "call", "shell_command", &arguments, "--json"]).succeeded().json();
        assert_eq!(told["data"]["timed_out"], true, "{told}");
    });
}

#[test]
fn subprocess_sees_files_and_searches_directories_as_configured() {
    World::as_everyone(BELLJAR, |world| {
        let _sessions = SessionCleanup(world);
        let tool = world.write("opt/bin/house-tool", "#!/bin/sh\necho found\n");
        std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let outside = world.write("outside.txt", "outside\n").display().to_string();
        let path = format!("{}:/usr/bin:/bin", world.path().join("opt/bin").display());
        let in_subprocess = |more: &str| {
            configure(world, &format!("{{overrides: {{terminal: subprocess}}, subprocess: {{{more}}}}}"));
            shell(world, &format!("cat {outside}; house-tool; true"), &[("PATH", &path)])
        };
        assert_eq!(in_subprocess(""), "", "both are hidden by default");
        assert_eq!(in_subprocess("workspace_only: false"), "outside\n");
        assert_eq!(in_subprocess("workspace_only: false, restricted_path: false"), "outside\nfound\n");
    });
}

#[test]
fn idle_native_sandbox_of_a_group_ends_and_its_files_stay() {
    let world = World::new(BELLJAR);
    let _sessions = SessionCleanup(&world);
    configure(
        &world,
        "{default_backend: native, overrides: {file_system: subprocess}, native: {lifecycle: {max_idle_seconds: 1}}}",
    );
    let call = |session: &[&str], command: &str| {
        let arguments = json!({ "command": command }).to_string();
        let all = [&["tools", "call", "shell_command", &arguments, "--json"], session].concat();
        world.run(&all).succeeded().json()["data"]["stdout"].clone()
    };
    call(&["--keep"], "echo kept > kept; echo gone > /tmp/gone");
    let session = list(&world)[0]["id"].as_str().unwrap().to_owned();
    // The keeper's own folder stays.
    until(|| std::fs::read_dir(world.path().join("state/runs")).unwrap().count() == 1);
    let found = call(&["--session", &session], "cat kept; test -e /tmp/gone || echo fresh");
    assert_eq!(found, "kept\nfresh\n");
}

#[test]
fn node_limits_concurrency_queue_and_request_size_as_configured() {
    let world = World::new(BELLJAR);
    let config =
        world.write("node.yaml", "node: {max_concurrency: 1, max_waiting: 1, max_request_bytes: 4096}\n");
    let node = Node::start(&world, &["--config", &config.display().to_string()]);
    let running = node.submit(script("sleep 60"));
    node.wait_for(&running, "in_progress");
    node.submit(command(&["true"]));
    let mut job = command(&["true"]);
    job["wait"] = json!(false);
    assert_eq!(node.run(&job).status, 503, "one job runs, one waits, a third is refused");
    let large = command(&["echo", &"x".repeat(8_000)]);
    assert_eq!(node.run(&large).status, 413);
}

#[test]
fn calls_have_the_timeout_of_their_backends_section() {
    World::as_everyone(BELLJAR, |world| {
        let _sessions = SessionCleanup(world);
        let is_ended = |subprocess: &str| {
            configure(
                world,
                &format!("{{overrides: {{terminal: subprocess}}, subprocess: {{{subprocess}}}}}"),
            );
            let arguments = json!({ "command": "sleep 3" }).to_string();
            let call = ["tools", "call", "shell_command", &arguments, "--json"];
            world.run(&call).succeeded().json()["data"]["timed_out"] == true
        };
        assert!(is_ended("timeout_seconds: 1"));
        assert!(!is_ended(""), "the control");
    });
}
