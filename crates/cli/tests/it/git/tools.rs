//! `git_clone` and `git_push`: the host fetches into an agent's session and pushes from it, and none of the host's
//! credentials get in.

use super::rig::{GitFixture, PASSWORD, holding};
use crate::session::{SessionCleanup, create, exec};
use belljar_testkit::git::{git, refs, updates};
use serde_json::{Value, json};
use std::path::PathBuf;

/// Returns a rig with a repository that the configuration permits to agents.
pub(super) fn rig(test: &str) -> Option<GitFixture> {
    let rig = GitFixture::start(test)?;
    configure(&rig, &rig.url);
    Some(rig)
}

fn configure(rig: &GitFixture, remotes: &str) {
    let config = format!("git: {{networks: [127.0.0.0/8], remotes: ['{remotes}']}}\n");
    rig.world.write(".config/belljar/config.yaml", config);
}

pub(super) fn call(
    rig: &GitFixture,
    session: &str,
    (tool, arguments): (&str, &Value),
    options: &[&str],
) -> (i32, Value) {
    let arguments = arguments.to_string();
    let call = ["tools", "call", tool, &arguments, "--json", "--session", session];
    let ran = rig.world.run(&[&call, options].concat());
    (ran.code, if ran.stdout.is_empty() { json!({ "message": ran.stderr }) } else { ran.json() })
}

pub(super) fn done(rig: &GitFixture, session: &str, tool: &str, arguments: &Value) -> Value {
    let (code, told) = call(rig, session, (tool, arguments), &[]);
    assert_eq!(code, 0, "{tool} {arguments}: {told}");
    told["data"].clone()
}

pub(super) fn refused(rig: &GitFixture, session: &str, tool: &str, arguments: &Value) -> (String, String) {
    let (code, told) = call(rig, session, (tool, arguments), &[]);
    assert_ne!(code, 0, "{tool} {arguments}: {told}");
    let text = |name: &str| told[name].as_str().unwrap_or_default().to_owned();
    (text("domain_code"), text("message"))
}

/// Returns the host's folder of a session.
pub(super) fn folder(rig: &GitFixture, session: &str) -> PathBuf {
    rig.world.path().join("state/runs").join(session)
}

#[test]
fn agents_clone_is_pushed_as_one_commit_and_a_repeated_push_does_nothing() {
    let Some(rig) = rig("agents_clone_is_pushed_as_one_commit_and_a_repeated_push_does_nothing") else {
        return;
    };
    let session = create(&rig.world, &[]);
    let _ended = SessionCleanup(&rig.world);
    let clone = json!({ "url": rig.url, "directory": "lib/app" });
    let cloned = done(&rig, &session, "git_clone", &clone);
    let main = git(&rig.bare, &["rev-parse", "main"]).trim().to_owned();
    assert_eq!((&cloned["commit"], &cloned["directory"]), (&json!(main), &json!("lib/app")), "{cloned}");
    assert!(cloned["size_bytes"].as_u64() > Some(0) && cloned["files"].as_u64() > Some(2), "{cloned}");
    // It is a repository with its history and its remote.
    let at = json!({ "directory": "lib/app" });
    assert_eq!(
        done(&rig, &session, "git_status", &json!({ "directory": "lib/app", "short": true }))["output"],
        "nothing has changed\n"
    );
    let log = done(&rig, &session, "git_log", &at);
    assert!(log["output"].as_str().unwrap().contains("first"), "{log}");
    let config = exec(&rig.world, &session, "cat /workspace/lib/app/.git/config").succeeded().stdout;
    assert!(config.contains(&format!("url = \"{}\"", rig.url)), "{config}");
    let leaked =
        exec(&rig.world, &session, &format!("grep -r '{PASSWORD}' /workspace /tmp; env | grep '{PASSWORD}'"));
    assert_eq!(leaked.stdout, "");
    // A second clone doesn't overwrite it.
    assert_eq!(refused(&rig, &session, "git_clone", &clone).0, "conflict");
    // The agent's changes, including its own commits, are pushed as they are.
    done(&rig, &session, "write_file", &json!({ "path": "lib/app/src/b.txt", "content": "b\n" }));
    let commit = json!({ "directory": "lib/app", "message": "mine", "paths": ["src/b.txt"] });
    done(&rig, &session, "git_commit", &commit);
    let push = json!({ "directory": "lib/app", "branch": "belljar/one", "message": "Fix it" });
    let pushed = done(&rig, &session, "git_push", &push);
    assert_eq!(
        (&pushed["outcome"], &pushed["ref"]),
        (&json!("pushed"), &json!("refs/heads/belljar/one")),
        "{pushed}"
    );
    assert_eq!(pushed["files"], json!([{ "path": "src/b.txt", "change": "added" }]));
    let said = git(&rig.bare, &["log", "-1", "--format=%H %P %an%n%B", "belljar/one"]);
    let commit = pushed["commit"].as_str().unwrap();
    assert_eq!(said.trim(), format!("{commit} {main} Person\nFix it\n\nBelljar-Run: {session}"));
    assert_eq!(rig.tree("belljar/one"), ["100644 README.md", "100644 src/a.txt", "100644 src/b.txt"]);
    let again = done(&rig, &session, "git_push", &push);
    assert_eq!((&again["outcome"], &again["commit"]), (&json!("already_there"), &pushed["commit"]));
    // No existing branch is overwritten, and other work requires another branch.
    done(&rig, &session, "write_file", &json!({ "path": "lib/app/src/c.txt", "content": "c\n" }));
    assert_eq!(refused(&rig, &session, "git_push", &push).0, "conflict");
    assert_eq!(updates(&rig.bare, "belljar/one"), 1);
    assert_eq!(refs(&rig.bare), ["refs/heads/belljar/one", "refs/heads/main"]);
    assert!(!rig.has_run(), "a program of the user's settings ran");
    // The host stores the password nowhere, and keeps no files after the session's end.
    assert_eq!(holding(&rig.world.path().join("state"), PASSWORD), Vec::<PathBuf>::new());
    let kept = folder(&rig, &session).join("clones");
    assert_eq!(std::fs::read_dir(&kept).unwrap().count(), 1);
    rig.world.run(&["session", "end", "--discard", &session]).succeeded();
    assert!(!kept.exists());
}

#[test]
fn clone_and_push_are_audited_as_tool_calls_and_git_operations() {
    let Some(rig) = rig("clone_and_push_are_audited_as_tool_calls_and_git_operations") else { return };
    let session = create(&rig.world, &[]);
    let _ended = SessionCleanup(&rig.world);
    done(&rig, &session, "git_clone", &json!({ "url": rig.url }));
    done(&rig, &session, "write_file", &json!({ "path": "origin/b.txt", "content": "b\n" }));
    let push = json!({ "directory": "origin", "branch": "belljar/one", "message": "Fix it" });
    done(&rig, &session, "git_push", &push);
    let shown = rig.world.run(&["audit", "show", "--json"]).succeeded().stdout;
    let records = shown.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let kinds: Vec<String> = records.filter_map(|record| Some(record["kind"].as_str()?.to_owned())).collect();
    let of_git: Vec<_> = kinds.iter().filter(|kind| kind.starts_with("git_")).collect();
    assert_eq!(of_git, ["git_fetch_begun", "git_fetch", "git_push_begun", "git_push"], "{shown}");
    assert_eq!(kinds.iter().filter(|kind| *kind == "tool_called").count(), 3, "{shown}");
    assert_eq!(kinds.iter().filter(|kind| *kind == "tool_begun").count(), 3, "{shown}");
    assert_eq!(rig.world.run(&["audit", "verify"]).code, 0);
}

#[test]
fn local_git_level_cannot_clone_and_read_level_cannot_push() {
    let Some(rig) = rig("local_git_level_cannot_clone_and_read_level_cannot_push") else { return };
    // The agent's own setting instead of its level's, and a changed level.
    let levels =
        "restricted: {network: open, git: local_only}, standard: {network: open, git: read_and_branch}";
    let access = format!(
        "tool_access: {{levels: {{{levels}}}, agents: [{{name: reader, level: elevated, sub_constraints: {{git: read_and_branch}}}}, \
         {{name: local, level: elevated, sub_constraints: {{git: local_only}}}}, {{name: whole, level: elevated}}, \
         {{name: reads, level: standard, autonomy: full}}, {{name: stays, level: restricted, autonomy: full}}]}}\n"
    );
    let config = rig.world.read(".config/belljar/config.yaml") + &access;
    rig.world.write(".config/belljar/config.yaml", config);
    let clone = json!({ "url": rig.url });
    let push = json!({ "directory": "origin", "branch": "belljar/one", "message": "Fix it" });
    let _ended = SessionCleanup(&rig.world);
    for (agent, clones, pushes) in [
        ("local", false, false),
        ("stays", false, false),
        ("reader", true, false),
        ("reads", true, false),
        ("whole", true, true),
    ] {
        let session = create(&rig.world, &[]);
        let whose = ["--agent", agent];
        let before = rig.server.requests().len();
        let (code, told) = call(&rig, &session, ("git_clone", &clone), &whose);
        assert_eq!(code == 0, clones, "{agent}: {told}");
        assert_eq!(rig.server.requests().len() > before, clones, "{agent}: {told}");
        if clones {
            done(&rig, &session, "write_file", &json!({ "path": "origin/b.txt", "content": "b\n" }));
        }
        let (code, told) = call(&rig, &session, ("git_push", &push), &whose);
        assert_eq!(code, if pushes { 0 } else { 3 }, "{agent}: {told}");
        assert_eq!(updates(&rig.bare, "belljar/one"), usize::from(pushes), "{agent}");
    }
    assert!(git(&rig.bare, &["log", "-1", "--format=%B", "belljar/one"]).contains("Belljar-Agent: whole"));
}

#[test]
fn push_waits_for_approval_of_its_branch_and_is_made_once() {
    let Some(rig) = rig("push_waits_for_approval_of_its_branch_and_is_made_once") else {
        return;
    };
    let access = "tool_access: {agents: [{name: asker, level: elevated, autonomy: full, human_approval: ['vcs:push']}]}\n";
    let config = rig.world.read(".config/belljar/config.yaml") + access;
    rig.world.write(".config/belljar/config.yaml", config);
    let session = create(&rig.world, &[]);
    let _ended = SessionCleanup(&rig.world);
    let whose = ["--agent", "asker"];
    assert_eq!(call(&rig, &session, ("git_clone", &json!({ "url": rig.url })), &whose).0, 0);
    done(&rig, &session, "write_file", &json!({ "path": "origin/b.txt", "content": "b\n" }));
    let push = |branch: &str| json!({ "directory": "origin", "branch": branch, "message": "Fix it" });
    let waits = |branch: &str| {
        let (code, told) = call(&rig, &session, ("git_push", &push(branch)), &whose);
        assert_eq!((code, &told["domain_code"]), (3, &json!("approval_required")), "{told}");
        told["message"].as_str().unwrap().split("Approval ").nth(1).unwrap()[..36].to_owned()
    };
    let one = waits("belljar/one");
    crate::approval::approve(&rig.world, &one, &[]).succeeded();
    // The approval is for that branch only.
    assert_ne!(waits("belljar/two"), one);
    assert_eq!((updates(&rig.bare, "belljar/one"), updates(&rig.bare, "belljar/two")), (0, 0));
    let (code, told) = call(&rig, &session, ("git_push", &push("belljar/one")), &whose);
    assert_eq!((code, updates(&rig.bare, "belljar/one")), (0, 1), "{told}");
    // The push consumes it.
    assert_ne!(waits("belljar/one"), one);
    assert_eq!(updates(&rig.bare, "belljar/one"), 1);
}

#[test]
fn approved_push_sends_the_approved_files_to_the_shown_remote() {
    const NAME: &str = "approved_push_sends_the_approved_files_to_the_shown_remote";
    let Some(rig) = rig(NAME) else { return };
    let other = rig.repositories.make("other.git", &[("a.txt", "a\n")]);
    configure(&rig, rig.url.trim_end_matches("origin.git"));
    let access = "tool_access: {agents: [{name: asker, level: elevated, autonomy: full, human_approval: ['vcs:push']}]}\n";
    let config = rig.world.read(".config/belljar/config.yaml") + access;
    rig.world.write(".config/belljar/config.yaml", config);
    let session = create(&rig.world, &[]);
    let _ended = SessionCleanup(&rig.world);
    let push = json!({ "directory": "app", "branch": "belljar/one", "message": "Fix it" });
    let pushed = || call(&rig, &session, ("git_push", &push), &["--agent", "asker"]);
    let waits = || {
        let (code, told) = pushed();
        assert_eq!((code, &told["domain_code"]), (3, &json!("approval_required")), "{told}");
        told["message"].as_str().unwrap().split("Approval ").nth(1).unwrap()[..36].to_owned()
    };
    let cloned_from = |url: &str| {
        exec(&rig.world, &session, "rm -rf /workspace/app").succeeded();
        done(&rig, &session, "git_clone", &json!({ "url": url, "directory": "app" }));
    };
    let write = |content: &str| {
        done(&rig, &session, "write_file", &json!({ "path": "app/b.txt", "content": content }));
    };
    cloned_from(&rig.url);
    // There is no approval request for a push that would be refused.
    assert_eq!(pushed().1["domain_code"], "conflict");
    write("reviewed\n");
    let id = waits();
    assert_eq!(waits(), id, "equal files make one approval request");
    let shown = rig.world.run(&["approval", "show", &id, "--json"]).succeeded().json();
    let plan = &shown["scope"]["push"];
    let base = git(&rig.bare, &["rev-parse", "main"]);
    assert_eq!((&plan["remote"], &plan["base"]), (&json!(rig.url), &json!(base.trim())), "{shown}");
    assert_eq!((&plan["ref"], &plan["files"]), (&json!("refs/heads/belljar/one"), &json!(["added b.txt"])));
    assert!(rig.world.run(&["approval", "show", &id]).succeeded().stdout.contains(&rig.url));
    crate::approval::approve(&rig.world, &id, &[]).succeeded();
    // Other files require another approval, and so does a clone of another repository.
    write("other\n");
    assert_ne!(waits(), id);
    cloned_from(&rig.url.replace("origin.git", "other.git"));
    write("reviewed\n");
    assert_ne!(waits(), id);
    assert_eq!((updates(&rig.bare, "belljar/one"), updates(&other, "belljar/one")), (0, 0));
    // The control: the approved content is pushed.
    cloned_from(&rig.url);
    write("reviewed\n");
    let (code, told) = pushed();
    assert_eq!((code, updates(&rig.bare, "belljar/one")), (0, 1), "{told}");
    assert_eq!(git(&rig.bare, &["rev-parse", "belljar/one^{tree}"]).trim(), plan["tree"].as_str().unwrap());
}

#[test]
fn git_reaches_only_repositories_in_the_configuration() {
    let Some(rig) = rig("git_reaches_only_repositories_in_the_configuration") else { return };
    rig.repositories.make("other.git", &[("a.txt", "a\n")]);
    let session = create(&rig.world, &[]);
    let _ended = SessionCleanup(&rig.world);
    let other = rig.url.replace("origin.git", "other.git");
    let (code, message) = refused(&rig, &session, "git_clone", &json!({ "url": other }));
    assert!(code == "permission_denied" && message.contains("git.remotes"), "{message}");
    let secret = rig.url.replace("https://", "https://user:hush@");
    for url in
        [&secret, "file:///etc", "/etc", "ext::sh -c true", "http://git.example/a", "git://git.example/a"]
    {
        let (code, message) = refused(&rig, &session, "git_clone", &json!({ "url": url }));
        assert_eq!(code, "invalid_argument", "{url}: {message}");
        assert!(!message.contains("hush"), "{message}");
    }
    assert_eq!(rig.server.requests(), Vec::<String>::new());
    // The control: a permitted repository can be cloned, also by a prefix for several.
    configure(&rig, rig.url.trim_end_matches("origin.git"));
    done(&rig, &session, "git_clone", &json!({ "url": other }));
    // A repository that is no longer permitted can't be pushed to.
    configure(&rig, &rig.url);
    done(&rig, &session, "write_file", &json!({ "path": "other/b.txt", "content": "b\n" }));
    let push = json!({ "directory": "other", "branch": "belljar/one", "message": "Fix it" });
    assert_eq!(refused(&rig, &session, "git_push", &push).0, "permission_denied");
    // Without permitted repositories there are no such tools.
    let names = || {
        let listed = rig.world.run(&["tools", "list", "--json"]).succeeded().json();
        let names = listed.as_array().unwrap().iter().map(|tool| tool["name"].as_str().unwrap().to_owned());
        names.filter(|name| name == "git_clone" || name == "git_push").collect::<Vec<_>>()
    };
    assert_eq!(names(), ["git_clone", "git_push"]);
    rig.world.write(".config/belljar/config.yaml", "git: {networks: [127.0.0.0/8]}\n");
    assert_eq!(names(), Vec::<String>::new());
}

#[test]
fn git_reaches_a_private_address_of_a_configured_host() {
    let Some(rig) = rig("git_reaches_a_private_address_of_a_configured_host") else {
        return;
    };
    let session = create(&rig.world, &[]);
    let _ended = SessionCleanup(&rig.world);
    let url = rig.url.replace("127.0.0.1", "localhost");
    let clone = |hosts: &str| {
        let config = format!("git: {{remotes: ['{url}'], hosts: [{hosts}]}}\n");
        rig.world.write(".config/belljar/config.yaml", config);
        call(&rig, &session, ("git_clone", &json!({ "url": url })), &[])
    };
    for others in ["", "git.house.test", "127.0.0.1"] {
        let (code, told) = clone(others);
        assert_ne!(code, 0, "{others}: {told}");
        assert!(told["message"].as_str().unwrap().contains("loopback"), "{others}: {told}");
    }
    assert_eq!(rig.server.requests(), Vec::<String>::new());
    let (code, told) = clone("git.house.test, localhost");
    assert_eq!(code, 0, "{told}");
}

#[test]
fn agents_files_are_pushed_as_plain_files_or_refused() {
    let Some(rig) = rig("agents_files_are_pushed_as_plain_files_or_refused") else { return };
    let session = create(&rig.world, &[]);
    let _ended = SessionCleanup(&rig.world);
    done(&rig, &session, "git_clone", &json!({ "url": rig.url, "directory": "app" }));
    let push = |branch: &str| json!({ "directory": "app", "branch": branch, "message": "Fix it" });
    let leave =
        |script: &str| exec(&rig.world, &session, &format!("cd /workspace/app && {script}")).succeeded();
    assert_eq!(refused(&rig, &session, "git_push", &push("belljar/none")).0, "conflict", "no difference");
    for branch in ["main", "master", "release/1", "-x", "a..b"] {
        assert_eq!(refused(&rig, &session, "git_push", &push(branch)).0, "invalid_argument", "{branch}");
    }
    // A repository that the agent has turned into a trap, and links that lead out.
    leave("printf '[core]\\n\\tfsmonitor = touch /tmp/ran\\n\\thooksPath = /tmp\\n' >> .git/config");
    leave(
        "ln -s /etc/passwd link && mkfifo pipe && mkdir -p sub/.git && echo x > sub/.git/config && echo y > sub/y",
    );
    let (code, message) = refused(&rig, &session, "git_push", &push("belljar/one"));
    assert!(
        code == "permission_denied" && message.contains("link") && message.contains("--trust"),
        "{message}"
    );
    let (code, told) = call(&rig, &session, ("git_push", &push("belljar/one")), &["--trust", "link"]);
    assert_eq!(code, 0, "{told}");
    let left_out = told["data"]["left_out"].as_array().unwrap().clone();
    assert!(left_out.contains(&json!("pipe")) && left_out.contains(&json!("sub/.git")), "{told}");
    let counts = (&told["data"]["file_count"], &told["data"]["left_out_count"]);
    assert_eq!(counts, (&json!(2), &json!(left_out.len())), "{told}");
    let tree = rig.tree("belljar/one");
    assert_eq!(tree, ["100644 README.md", "120000 link", "100644 src/a.txt", "100644 sub/y"]);
    assert_eq!(git(&rig.bare, &["show", "belljar/one:link"]), "/etc/passwd");
    // Names that some file system treats as `.git` aren't pushed, nor is a folder that the host hasn't cloned.
    leave("rm link && mkdir .GIT && echo x > .GIT/config");
    assert_eq!(refused(&rig, &session, "git_push", &push("belljar/two")).0, "permission_denied");
    exec(&rig.world, &session, "mkdir /workspace/own && cp -r /workspace/app/.git /workspace/own/")
        .succeeded();
    let own = json!({ "directory": "own", "branch": "belljar/two", "message": "Fix it" });
    assert_eq!(refused(&rig, &session, "git_push", &own).0, "not_found");
    assert_eq!(refs(&rig.bare), ["refs/heads/belljar/one", "refs/heads/main"]);
}

#[test]
fn push_works_from_a_shallow_clone_and_from_a_users_clone() {
    let Some(rig) = rig("push_works_from_a_shallow_clone_and_from_a_users_clone") else {
        return;
    };
    let tree = git(&rig.bare, &["rev-parse", "main^{tree}"]);
    let second = git(&rig.bare, &["commit-tree", tree.trim(), "-p", "main", "-m", "second"]);
    git(&rig.bare, &["update-ref", "refs/heads/main", second.trim()]);
    rig.clone().succeeded();
    let session = create(&rig.world, &["--workspace-copy", "work"]);
    let _ended = SessionCleanup(&rig.world);
    let clone = json!({ "url": rig.url, "directory": "part", "branch": "main", "depth": 1 });
    done(&rig, &session, "git_clone", &clone);
    let log = done(&rig, &session, "git_log", &json!({ "directory": "part" }));
    let log = log["output"].as_str().unwrap();
    assert!(log.contains("second") && !log.contains("first"), "{log}");
    done(&rig, &session, "write_file", &json!({ "path": "part/b.txt", "content": "b\n" }));
    let push = json!({ "directory": "part", "branch": "belljar/part", "message": "Fix it" });
    done(&rig, &session, "git_push", &push);
    assert_eq!(git(&rig.bare, &["rev-list", "--count", "belljar/part"]).trim(), "3");
    // The workspace itself is a copy of a person's clone.
    exec(&rig.world, &session, "rm -r /workspace/part && echo c > /workspace/c.txt").succeeded();
    done(&rig, &session, "git_push", &json!({ "branch": "belljar/whole", "message": "Fix it" }));
    assert_eq!(rig.tree("belljar/whole"), ["100644 README.md", "100644 c.txt", "100644 src/a.txt"]);
    git(&rig.bare, &["fsck", "--strict", "--no-dangling"]);
}
