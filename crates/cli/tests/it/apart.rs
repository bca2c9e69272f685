//! Tools of agents, each in a sandbox of the backend that is configured for its category, and all on the same files.

use crate::BELLJAR;
use crate::session::{SessionCleanup, exec, keeper_of, list};
use crate::session_workspace::commit_trusting;
use belljar_testkit::foreign_root::{Docker, IMAGE};
use belljar_testkit::skip::skip;
use belljar_testkit::wait::until;
use belljar_testkit::world::{User, World};
use serde_json::{Value, json};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

/// A world, and the session that its tools work in.
struct AgentToolWorld<'w> {
    world: &'w World,
    options: Vec<String>,
}

impl<'w> AgentToolWorld<'w> {
    /// Creates an agent with this configuration of `sandboxing`, on a copy of `source`. The first call makes the session.
    fn of(world: &'w World, sandboxing: &str, options: &[&str]) -> Self {
        world.write(".config/belljar/config.yaml", format!("sandboxing: {sandboxing}\n"));
        world.write("source/notes.txt", "one\n");
        let mut agent = Self { world, options: options.iter().map(|&option| option.to_owned()).collect() };
        agent.options.extend(["--keep", "--workspace", "source"].map(str::to_owned));
        agent.does("write_file", &json!({ "path": "draft.txt", "content": "written\n" }));
        agent.options = options.iter().map(|&option| option.to_owned()).collect();
        agent.options.extend(["--session".to_owned(), agent.session()]);
        agent
    }

    fn session(&self) -> String {
        let sessions = list(self.world);
        assert_eq!(sessions.len(), 1, "{sessions:?}");
        sessions[0]["id"].as_str().unwrap().to_owned()
    }

    fn calls(&self, tool: &str, arguments: &Value) -> Value {
        let arguments = arguments.to_string();
        let options: Vec<&str> = self.options.iter().map(String::as_str).collect();
        self.world.run(&[&["tools", "call", tool, &arguments, "--json"], &options[..]].concat()).json()
    }

    fn does(&self, tool: &str, arguments: &Value) -> Value {
        let told = self.calls(tool, arguments);
        assert_eq!(told["status"], "ok", "{tool}: {told}");
        told["data"].clone()
    }

    /// Returns the output of a shell command.
    fn prints(&self, command: &str) -> String {
        let told = self.does("shell_command", &json!({ "command": command }));
        assert_eq!(told["exit_code"], 0, "{told}");
        told["stdout"].as_str().unwrap().to_owned()
    }
}

#[test]
fn tools_run_in_the_backend_of_their_category_and_share_files() {
    World::as_everyone(BELLJAR, |world| {
        let _sessions = SessionCleanup(world);
        let agent = AgentToolWorld::of(
            world,
            "{default_backend: native, overrides: {file_system: subprocess, git: subprocess, terminal: subprocess}}",
            &[],
        );
        let place = |python: Value| python["stdout"].as_str().unwrap().trim().to_owned();
        let code = |code: &str| agent.does("code_runner", &json!({ "language": "python", "code": code }));
        // In a sandbox without a root of its own, paths are those of the host.
        let state = world.path().join("state/runs").canonicalize().unwrap();
        assert!(agent.prints("pwd -P").starts_with(state.to_str().unwrap()));
        assert_eq!(place(code("import os; print(os.getcwd())")), "/workspace");
        assert_eq!(agent.prints("cat draft.txt notes.txt"), "written\none\n");
        code(
            "open('made.py', 'w').write('1'); import os; os.chmod('notes.txt', 0o755); os.remove('draft.txt')",
        );
        agent.prints("echo more >> notes.txt; mkdir folder; mv made.py folder/");
        let edit = json!({ "path": "notes.txt", "old_text": "one", "new_text": "two" });
        agent.does("edit_file", &edit);
        assert_eq!(
            place(code("print(open('notes.txt').read() + open('folder/made.py').read())")),
            "two\nmore\n1"
        );
        let session = agent.session();
        assert_eq!(exec(world, &session, "cat folder/made.py").succeeded().stdout, "1");
        let divided = &list(world)[0]["divisions"];
        let expected = json!([
            { "backend": "subprocess", "categories": ["file_system", "version_control", "terminal"] },
            { "backend": "native", "categories": ["code_execution"] },
        ]);
        let sorted = |divided: &Value| {
            let each = divided.as_array().unwrap().iter().map(|division| {
                let mut categories: Vec<String> =
                    serde_json::from_value(division["categories"].clone()).unwrap();
                categories.sort();
                (division["backend"].clone(), categories)
            });
            each.collect::<Vec<_>>()
        };
        assert_eq!(sorted(divided), sorted(&expected));
        // A person commits the changes of all sandboxes, as with any other session.
        assert_eq!(world.read("source/notes.txt"), "one\n");
        commit_trusting(world, &session, &["--trust", "notes.txt"]).succeeded();
        assert_eq!(world.read("source/notes.txt"), "two\nmore\n");
        assert_eq!(world.read("source/folder/made.py"), "1");
        world.run(&["session", "end", "--discard", &session]).succeeded();
        assert_eq!(std::fs::read_dir(&state).unwrap().count(), 0);
    });
}

#[test]
fn other_sandboxes_are_frozen_during_a_diff_and_end_with_the_session() {
    let world = &World::new(BELLJAR);
    let _sessions = SessionCleanup(world);
    let agent =
        AgentToolWorld::of(world, "{default_backend: native, overrides: {terminal: subprocess}}", &[]);
    let session = agent.session();
    let mut busy = world
        .command(&["session", "exec", &session, "--", "sh", "-c", "while :; do echo x >> log; done"])
        .spawn()
        .unwrap();
    until(|| agent.calls("read_file", &json!({ "path": "log" }))["status"] == "ok");
    // The kernel counts the processes of all sandboxes. A diff shows one moment, and nothing is discarded while a program
    // works on it.
    let told = world.run(&["session", "diff", &session, "--json"]).succeeded().json();
    assert_eq!(told["files"].as_array().unwrap().len(), 2, "{told}");
    assert_eq!(world.run(&["session", "discard", &session]).code, 125);
    world.run(&["session", "end", "--discard", &session]).succeeded();
    assert!(!busy.wait().unwrap().success());
    assert_eq!(std::fs::read_dir(world.path().join("state/runs")).unwrap().count(), 0);
}

#[test]
fn sandboxes_of_a_session_share_one_disk_limit_and_a_restart_does_not_reset_it() {
    World::as_everyone(BELLJAR, |world| {
        let _sessions = SessionCleanup(world);
        for strategy in ["per-call", "per-agent"] {
            let native = format!("{{disk_limit: 24m, lifecycle: {{strategy: {strategy}}}}}");
            let sandboxing =
                format!("{{default_backend: native, overrides: {{terminal: subprocess}}, native: {native}}}");
            let agent = AgentToolWorld::of(world, &sandboxing, &[]);
            let writes = |name: &str| {
                let code = format!("import os; open('{name}', 'wb').write(os.urandom(10 << 20))");
                agent.calls("code_runner", &json!({ "language": "python", "code": code }))
            };
            for name in ["one", "two"] {
                let told = writes(name);
                assert_eq!(told["data"]["exit_code"], 0, "{strategy}: {told}");
            }
            // The third write exceeds the quota, and no later sandbox gets more.
            let told = until_refused(|number| writes(&format!("more-{number}")));
            assert!(told.contains("(24 MiB) is used up"), "{told}");
            // The ended sandboxes block no other, and files are removed in a sandbox without a limit.
            let session = agent.session();
            world.run(&["session", "diff", &session, "--stat"]).succeeded();
            agent.prints("rm -f one two more-*");
            assert_eq!(writes("again")["data"]["exit_code"], 0, "{strategy}");
            world.run(&["session", "end", "--discard", &session]).succeeded();
        }
    });
}

#[test]
fn sandbox_per_call_keeps_only_files_for_the_next_call() {
    World::as_everyone(BELLJAR, |world| {
        let _sessions = SessionCleanup(world);
        let agent = AgentToolWorld::of(
            world,
            "{default_backend: native, native: {lifecycle: {strategy: per-call}}}",
            &[],
        );
        assert_eq!(
            agent.prints("cat draft.txt; echo x > kept; echo gone > /tmp/gone; sleep 600 &"),
            "written\n"
        );
        assert_eq!(agent.prints("cat kept; test -e /tmp/gone || echo fresh; grep -qs ^sleep /proc/[0-9]*/cmdline || echo alone"), "x\nfresh\nalone\n");
        let session = agent.session();
        world.run(&["session", "commit", &session]).succeeded();
        assert_eq!(
            (world.read("source/kept"), world.read("source/draft.txt")),
            ("x\n".into(), "written\n".into())
        );
    });
}

/// Becomes a daemon in every possible way, and writes to `alive` as long as it lives.
const DAEMON: &str = r#"
import os, signal, time
print("left", flush=True)
for _ in range(2):
    if os.fork():
        time.sleep(0.3)
        os._exit(0)
    os.setsid()
for fd in range(3):
    os.close(fd)
for sig in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(sig, signal.SIG_IGN)
while True:
    with open("alive", "a") as alive:
        alive.write("x")
    time.sleep(0.02)
"#;

#[test]
fn background_process_of_a_tool_is_killed_after_its_call_and_the_sandbox_stays() {
    World::as_everyone(BELLJAR, |world| {
        let _sessions = SessionCleanup(world);
        let agent =
            AgentToolWorld::of(world, "{default_backend: native, overrides: {terminal: subprocess}}", &[]);
        let python = |code: &str| agent.does("code_runner", &json!({ "language": "python", "code": code }));
        python("open('/tmp/kept', 'w').write('kept')");
        let shell = "(setsid nohup sh -c 'while :; do echo >> alive; sleep 0.02; done' > /dev/null 2>&1 &); sleep 0.3";
        let begin: [&dyn Fn() -> Value; 2] =
            [&|| python(DAEMON), &|| agent.does("shell_command", &json!({ "command": shell }))];
        for begin in begin {
            begin();
            let size = || agent.prints("stat -c %s alive");
            let before = size();
            assert_ne!(before, "0\n", "the control: the process ran");
            std::thread::sleep(std::time::Duration::from_millis(200));
            assert_eq!(size(), before);
            agent.prints("rm alive");
        }
        assert_eq!(python("print(open('/tmp/kept').read())")["stdout"], "kept\n");
    });
}

/// Returns the message of the first call that exceeds the limit. The number of calls before is limited.
fn until_refused(writes: impl Fn(usize) -> Value) -> String {
    let told = (0..8).map(writes).find(|told| told["domain_code"] == "limit_exceeded");
    told.unwrap()["message"].as_str().unwrap().to_owned()
}

#[test]
fn other_host_users_cannot_access_the_files_of_a_session() {
    World::as_everyone(BELLJAR, |world| {
        let _sessions = SessionCleanup(world);
        let agent =
            AgentToolWorld::of(world, "{default_backend: native, overrides: {terminal: subprocess}}", &[]);
        agent.prints("true");
        let folder = world.path().join("state/runs").join(agent.session());
        let mode = |name: &str| folder.join(name).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("private"), mode("session.json"), mode("session.sock")), (0o700, 0o600, 0o600));
        if world.user() == User::Ordinary || !rustix::process::geteuid().is_root() {
            return;
        }
        let as_user = |uid: u32, command: &[&str]| {
            let ids = [format!("--reuid={uid}"), format!("--regid={uid}")];
            let mut setpriv = std::process::Command::new("setpriv");
            setpriv.args(ids).arg("--clear-groups").args(command).output().unwrap().status.success()
        };
        let owner = folder.join("private").metadata().unwrap().uid();
        let notes = folder.join("private/workspace/notes.txt").display().to_string();
        assert!(!as_user(65_534, &["cat", &notes]));
        assert!(as_user(owner, &["cat", &notes]), "the control");
        // Nor can the host user of its programs stop the supervisors (SIGSTOP): the session could not be ended then.
        let names = std::fs::read_dir("/proc").unwrap().flatten();
        let supervisors = names.filter(|process| {
            let keeps = std::fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten();
            let own =
                std::fs::read_to_string(process.path().join("comm")).unwrap_or_default() == "belljar-super\n";
            own && keeps
                .filter_map(|fd| std::fs::read_link(fd.path()).ok())
                .any(|link| link.starts_with(&folder))
        });
        let supervisors: Vec<_> =
            supervisors.map(|process| process.file_name().display().to_string()).collect();
        assert_eq!(supervisors.len(), 1);
        assert!(!as_user(owner, &["kill", "-STOP", &supervisors[0]]));
        agent.prints("sleep 600 > /dev/null 2>&1 & echo $!");
        world.run(&["session", "end", "--discard", &agent.session()]).succeeded();
    });
}

#[test]
fn killed_keeper_leaves_none_of_several_sandboxes() {
    World::as_everyone(BELLJAR, |world| {
        let agent =
            AgentToolWorld::of(world, "{default_backend: native, overrides: {terminal: subprocess}}", &[]);
        let (session, runs) = (agent.session(), world.path().join("state/runs"));
        let mark = format!("{}", 1_000_000_000 + std::process::id());
        agent.does("code_runner", &json!({ "language": "python", "code": "1" }));
        let spawn = || {
            let sleep = ["session", "exec", &session, "--", "sleep", &mark];
            world.command(&sleep).stderr(std::process::Stdio::null()).spawn().unwrap()
        };
        let mut sleeping = spawn();
        let is_there = || {
            let processes = std::fs::read_dir("/proc").unwrap().flatten();
            let command_lines =
                processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
            let sleeps = format!("sleep\0{mark}\0").into_bytes();
            command_lines.filter(|line| *line == sleeps).count() > 0
        };
        until(is_there);
        // The keeper's own folder, and one for each sandbox that was made.
        assert_eq!(std::fs::read_dir(&runs).unwrap().count(), 3);
        rustix::process::kill_process(keeper_of(&runs.join(&session)), rustix::process::Signal::KILL)
            .unwrap();
        assert!(!sleeping.wait().unwrap().success());
        until(|| !is_there());
        until(|| {
            world.run(&["exec", "--workspace-copy", "source", "--", "true"]).succeeded();
            std::fs::read_dir(&runs).unwrap().count() == 0
        });
        assert_eq!(world.read("source/notes.txt"), "one\n");
    });
}

#[test]
fn code_that_requires_containment_is_contained_or_not_run() {
    let world = &World::new(BELLJAR);
    let run = |sandboxing: &str, options: &[&str]| {
        let agents = "{agents: [{name: coder, level: elevated, autonomy: full, sub_constraints: {code_execution: containerized}}]}";
        let config = format!("sandboxing: {sandboxing}\ntool_access: {agents}\n");
        world.write(".config/belljar/config.yaml", config);
        let call = ["tools", "call", "shell_command", r#"{"command": "true"}"#, "--json"];
        world.run(&[&call, options].concat())
    };
    let (native, weaker) =
        ("{default_backend: native}", "{default_backend: native, overrides: {terminal: subprocess}}");
    assert_eq!(run(native, &["--agent", "coder"]).code, 0, "{:?}", run(native, &["--agent", "coder"]));
    // A sandbox without a root of its own contains nothing. Another backend replaces the configured one, which is reported.
    let moved = run(weaker, &["--agent", "coder"]).succeeded();
    assert!(moved.stderr.contains("terminal in native, because subprocess doesn't contain"), "{moved:?}");
    // A backend that is requested for this call isn't replaced.
    let refused = run(native, &["--agent", "coder", "--backend", "subprocess"]);
    assert!(refused.code != 0 && format!("{refused:?}").contains("containerized"), "{refused:?}");
    for options in [&[][..], &["--backend", "subprocess"]] {
        let control = run(weaker, options).succeeded();
        assert!(!control.stderr.contains("in native, because"), "{control:?}");
    }
    for (sandboxing, options, why) in [
        (
            native,
            &["--backend", "subprocess", "--programs", "sh"][..],
            "--backend subprocess: a list of programs",
        ),
        (
            "{overrides: {terminal: docker}, docker: {runtime: runsc}}",
            &["--programs", "sh"],
            "sandboxing.docker asks for the runtime runsc",
        ),
        ("{default_backend: k8s}", &[], "makes no pods"),
        (weaker, &["--docker-socket", "x"], "--docker-socket is for the docker backend"),
        (weaker, &["--image", IMAGE], "--image is for --backend docker"),
        (
            "{docker: {network: bridge, allowed_hosts: ['db:5432']}}",
            &[],
            "sandboxing.docker.allowed_hosts: found a list of 1; expected `[]`: containers reach the web by the rules",
        ),
    ] {
        let refused = run(sandboxing, options);
        assert!(
            [2, 125].contains(&refused.code) && refused.stderr.contains(why),
            "{sandboxing}: {refused:?}"
        );
        assert_eq!(list(world), Vec::<Value>::new());
    }
}

#[test]
fn missing_backend_fails_only_its_own_categories() {
    let world = &World::new(BELLJAR);
    let _sessions = SessionCleanup(world);
    // The default of the specification: files and git without namespaces, code and commands in containers.
    let agent = AgentToolWorld::of(world, "{}", &["--docker-socket", "no-engine"]);
    assert_eq!(agent.does("read_file", &json!({ "path": "draft.txt" }))["content"], "written\n");
    let told = agent.calls("shell_command", &json!({ "command": "true" }));
    assert_eq!((&told["status"], &told["domain_code"]), (&json!("error"), &json!("unavailable")), "{told}");
    assert!(
        told["message"].as_str().unwrap().contains("the docker backend is not available: no engine answers"),
        "{told}"
    );
}

#[test]
fn containers_follow_their_configuration_and_share_files_with_native_sandboxes() {
    let engine = match Docker::start() {
        Ok(engine) => engine,
        Err(reason) => {
            return skip(
                "containers_follow_their_configuration_and_share_files_with_native_sandboxes",
                &reason,
            );
        }
    };
    let world = &World::new(BELLJAR);
    let _sessions = SessionCleanup(world);
    let socket = engine.socket().display().to_string();
    let containers = || engine.command(&["ps", "--all", "--quiet"]).unwrap().lines().count();
    let with = |more: &str| {
        let sandboxing = format!(
            "{{overrides: {{git: native}}, docker: {{image: '{IMAGE}', memory_limit: 96m, {more}}}}}"
        );
        AgentToolWorld::of(world, &sandboxing, &["--docker-socket", &socket])
    };
    let ends = |agent: AgentToolWorld<'_>| {
        world.run(&["session", "end", "--discard", &agent.session()]).succeeded();
        assert_eq!(
            (containers(), std::fs::read_dir(world.path().join("state/runs")).unwrap().count()),
            (0, 0)
        );
    };

    // The default: the container is kept for the agent, with read-only files.
    let agent = with("pids_limit: 40");
    assert_eq!(containers(), 0, "no container was started yet");
    assert_eq!(
        agent.prints(
            "cat draft.txt; echo kept > /tmp/kept; tr ' ' '\\n' < /proc/mounts | grep -c ^/workspace"
        ),
        "written\n1\n"
    );
    let refused = agent.does("shell_command", &json!({ "command": "echo x > draft.txt" }));
    assert!(refused["stderr"].as_str().unwrap().contains("Read-only file system"), "{refused}");
    assert_eq!(agent.prints("cat /tmp/kept"), "kept\n");
    let python = agent
        .calls("code_runner", &json!({ "language": "python", "code": "print(open('/tmp/kept').read())" }));
    assert_ne!(python["data"]["stdout"], "", "commands and code share one container: {python}");
    assert_eq!(containers(), 1);
    ends(agent);

    // Writable files, and a container for each call.
    let agent = with("mount_mode: rw, lifecycle: {strategy: per-call}");
    agent.prints(
        "echo more >> draft.txt; mkdir made; chmod 700 made; echo x > made/file; echo gone > /tmp/gone",
    );
    assert_eq!(agent.does("read_file", &json!({ "path": "draft.txt" }))["content"], "written\nmore\n");
    agent.does("write_file", &json!({ "path": "made/other", "content": "y" }));
    assert_eq!(agent.prints("cat made/other; test -e /tmp/gone || echo fresh"), "yfresh\n");
    let missing = world.run(&["session", "exec", &agent.session(), "--", "no-such-program"]);
    assert_eq!((missing.code, containers()), (127, 0), "{missing:?}");
    ends(agent);

    // An idle container is removed; a later call gets another one.
    let agent = with("mount_mode: rw, lifecycle: {max_idle_seconds: 1}");
    agent.prints("echo kept > kept; echo gone > /tmp/gone");
    until(|| containers() == 0);
    assert_eq!(agent.prints("cat kept; test -e /tmp/gone || echo fresh"), "kept\nfresh\n");
    ends(agent);

    // A container that has used up its memory is replaced; its files are those from before.
    let agent = with("mount_mode: rw");
    let greedy = json!({ "command": "echo before > state; perl -e '$x = \"a\" x (200 << 20); sleep 9'" });
    let told = agent.calls("shell_command", &greedy);
    assert_ne!(told["data"]["exit_code"], 0, "{told}");
    // A diff doesn't wait for that.
    let changes = world.run(&["session", "diff", &agent.session()]).succeeded().stdout;
    assert!(changes.contains("+before"), "{changes}");
    assert_eq!(agent.prints("cat state"), "before\n");
    ends(agent);
}
