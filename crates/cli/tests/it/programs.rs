//! Allowlists of programs, from the command line and from an access level. That the kernel enforces them is shown in
//! `tests/promises`.

use crate::BELLJAR;
use crate::mcp::McpConversation;
use crate::session::{SessionCleanup, create, exec};
use belljar_testkit::world::World;
use serde_json::json;

#[test]
fn program_not_on_the_list_fails_as_in_a_shell_and_the_reason_is_reported() {
    let world = World::new(BELLJAR);
    let ran = world.run(&[
        "exec",
        "--programs",
        "sh,ls",
        "--programs",
        "cat",
        "--",
        "sh",
        "-c",
        "ls / | cat; wc x",
    ]);
    assert!(ran.code == 126 && ran.stdout.contains("usr\n"), "{ran:?}");
    assert!(ran.stderr.contains("wc: Permission denied"), "{ran:?}");
    let ran = world.run(&["exec", "--programs", "sh,ls", "--", "wc"]);
    assert_eq!(
        (ran.code, ran.stderr.as_str()),
        (
            126,
            "belljar: can't run wc: Permission denied (os error 13)\n\
             hint: it is not on this sandbox's list of programs (--programs, or a level of access): ls, sh\n"
        )
    );
    assert_eq!(world.run(&["exec", "--programs", "", "--", "sh"]).code, 126);
    assert_eq!(world.run(&["exec", "--programs", "sh,none-such", "--", "none-such"]).code, 127);
    // The control.
    assert_eq!(world.run(&["exec", "--", "wc", "/dev/null"]).code, 0);
}

#[test]
fn invalid_or_unenforceable_program_list_is_refused_before_anything_is_made() {
    let world = World::new(BELLJAR);
    let ran = world.run(&["exec", "--programs", "sh,/bin/ls", "--", "sh"]);
    assert!(
        ran.code == 125 && ran.stderr.contains("--programs: invalid program name \"/bin/ls\""),
        "{ran:?}"
    );
    let exec = ["exec", "--backend", "subprocess", "--programs", "sh", "--", "true"];
    let ran = world.run(&exec);
    assert!(
        ran.code == 125 && ran.stderr.contains("the subprocess backend cannot enforce a list of programs"),
        "{ran:?}"
    );
    let ran = world.run(&["session", "create", "--backend", "subprocess", "--level", "sandboxed"]);
    assert!(ran.code != 0 && ran.stderr.contains("cannot enforce a list of programs"), "{ran:?}");
    // The control.
    assert_eq!(world.run(&["exec", "--backend", "subprocess", "--", "true"]).code, 0);
}

#[test]
fn session_and_its_fork_keep_the_program_list() {
    let world = World::new(BELLJAR);
    let _sessions = SessionCleanup(&world);
    world.write("source/file", "of the project\n");
    let session = create(&world, &["--workspace-copy", "source", "--programs", "sh,cat"]);
    let fork = world.run(&["session", "fork", &session]).succeeded().stdout.trim().to_owned();
    for session in [session, fork] {
        assert_eq!(
            exec(&world, &session, "cat file; ls 2> /dev/null || echo refused").stdout,
            "of the project\nrefused\n"
        );
        let ran = world.run(&["session", "exec", &session, "--", "ls"]);
        assert!(ran.code == 126 && ran.stderr.contains("hint: it is not on"), "{ran:?}");
    }
}

#[test]
fn level_without_a_terminal_starts_its_tools_programs_and_no_shell() {
    let world = World::new(BELLJAR);
    let _sessions = SessionCleanup(&world);
    let code =
        |session: &str, argv: &[&str]| world.run(&[&["session", "exec", session, "--"], argv].concat()).code;
    let sandboxed = create(&world, &["--level", "sandboxed"]);
    assert_eq!(code(&sandboxed, &["sh", "-c", ":"]), 126);
    assert_eq!(code(&sandboxed, &["python3", "-c", "pass"]), 0);
    assert_eq!(code(&sandboxed, &["git", "--version"]), 0);
    let run = "import subprocess; subprocess.run(['sh', '-c', ':'])";
    assert_eq!(code(&sandboxed, &["python3", "-c", run]), 1);
    // An additional allowlist only removes programs.
    let narrower = create(&world, &["--level", "sandboxed", "--programs", "git,sh"]);
    assert_eq!(["git", "sh", "python3"].map(|name| code(&narrower, &[name, "--version"])), [0, 126, 126]);
    // The controls.
    let standard = create(&world, &["--level", "standard"]);
    assert_eq!(
        ["sh -c :", "ls", "ssh -V"].map(|line| code(&standard, &line.split(' ').collect::<Vec<_>>())),
        [0, 0, 126]
    );
    let elevated = create(&world, &["--level", "elevated"]);
    assert_eq!(code(&elevated, &["ssh", "-V"]), 0);
}

#[test]
fn client_gets_the_reason_why_a_program_is_not_started() {
    let world = World::new(BELLJAR);
    let _sessions = SessionCleanup(&world);
    let mut talk = McpConversation::begin(&world, &["--programs", "true"]);
    assert_eq!(talk.done("run", &json!({ "argv": ["true"] }))["exit_code"], 0);
    let ran = talk.done("run", &json!({ "argv": ["env"] }));
    assert_eq!(ran["exit_code"], 126, "{ran}");
    let told = ran["stderr"].as_str().unwrap();
    assert!(
        told.contains("can't run env") && told.contains("hint: it is not on this sandbox's list"),
        "{told}"
    );
}

#[test]
fn file_tools_work_for_an_agent_without_a_terminal() {
    let world = World::new(BELLJAR);
    let _sessions = SessionCleanup(&world);
    let mut talk = McpConversation::begin(&world, &["--level", "sandboxed"]);
    let session = talk.open();
    talk.done("write", &json!({ "session": session, "path": "a/file", "content": "written\n" }));
    let read = talk.done("read", &json!({ "session": session, "path": "a/file" }));
    assert!(read.to_string().contains("written"), "{read}");
    let list = talk.done("list", &json!({ "session": session, "path": "a" }));
    assert!(list.to_string().contains("file"), "{list}");
}
