//! `git_clone` and `git_push` for an agent at work on a node's job: the host's git works on the workspace of the running job.

use super::rig::{GitFixture, PASSWORD};
use crate::models::recorded;
use crate::node::tools::{job_of, told};
use belljar_testkit::git::{git, refs};
use belljar_testkit::node::Node;
use serde_json::{Value, json};

/// Starts a node whose configuration names these remotes for agents.
fn node<'w>(rig: &'w GitFixture, remotes: &str) -> Node<'w> {
    let config = format!(
        "git: {{networks: [127.0.0.0/8], remotes: ['{remotes}']}}\negress: {{rules: [{{host: example.org}}]}}\n"
    );
    rig.world.write("node.yaml", config);
    Node::start(&rig.world, &["--config", "node.yaml"])
}

/// Returns a job that runs this script, and whose tools may reach out.
fn networked(script: &str) -> Value {
    let mut job = job_of(None, script);
    job["sandbox"]["job_spec"]["constraints"]["ext_net_allowed"] = json!(true);
    job
}

fn url(rig: &GitFixture) -> String {
    json!(rig.url).to_string()
}

#[test]
fn agent_of_a_job_clones_into_its_workspace_and_pushes_its_changes() {
    let Some(rig) = GitFixture::start("agent_of_a_job_clones_into_its_workspace_and_pushes_its_changes")
    else {
        return;
    };
    let node = node(&rig, &rig.url);
    let script = r#"
URL = __URL__
tell(call("git_clone", url=URL, directory="lib/app"))
app = "/workspace/lib/app"
tell({"read": open(app + "/README.md").read(), "git": os.path.isdir(app + "/.git"), "owner": os.stat(app).st_uid == os.getuid()})
tell(call("git_clone", url=URL, directory="lib/app"))
open(app + "/src/b.txt", "w").write("b\n")
os.mkfifo(app + "/pipe")
tell(call("git_push", directory="lib/app", branch="work/one", message="Add b"))
tell(call("git_push", directory="lib/app", branch="work/one", message="Add b"))
tell(call("git_push", directory="lib", branch="work/two", message="None"))
found = os.popen("grep -rl '__PASSWORD__' /workspace /tmp 2>/dev/null; env | grep '__PASSWORD__'").read()
tell({"leaked": found})
"#;
    let script = script.replace("__URL__", &url(&rig)).replace("__PASSWORD__", PASSWORD);
    let job = networked(&script);
    let [cloned, seen, again, pushed, repeated, other, leaked] = &told(&node, &job)[..] else { panic!() };
    let main = git(&rig.bare, &["rev-parse", "main"]).trim().to_owned();
    assert_eq!(cloned["data"]["commit"], json!(main), "{cloned}");
    assert_eq!(seen, &json!({ "read": "hello\n", "git": true, "owner": true }));
    assert_eq!(again["domain_code"], "conflict", "{again}");
    let branch = git(&rig.bare, &["rev-parse", "work/one"]).trim().to_owned();
    assert_eq!((&pushed["data"]["outcome"], &pushed["data"]["commit"]), (&json!("pushed"), &json!(branch)));
    assert_eq!(pushed["data"]["left_out"], json!(["pipe"]), "{pushed}");
    assert_eq!(repeated["data"]["outcome"], "already_there", "{repeated}");
    assert_eq!(other["domain_code"], "not_found", "{other}");
    assert_eq!(leaked["leaked"], "");
    assert_eq!(
        rig.tree("work/one"),
        ["100644 README.md", "100644 src/a.txt", "100644 src/b.txt"],
        "the pushed files"
    );
    let audit = rig.world.path().join("state/node/audit");
    for kind in ["git_fetch", "git_push"] {
        let records = recorded(&audit, kind);
        assert!(records.iter().any(|record| record["outcome"]["kind"] != "denied"), "{kind}: {records:?}");
    }
}

#[test]
fn job_without_network_permission_and_other_remotes_are_denied() {
    let Some(rig) = GitFixture::start("job_without_network_permission_and_other_remotes_are_denied") else {
        return;
    };
    let clone = format!(r#"tell(call("git_clone", url={}, directory="app"))"#, url(&rig));
    {
        let node = node(&rig, "https://elsewhere.example/");
        let [other] = &told(&node, &networked(&clone))[..] else { panic!() };
        assert_eq!(other["domain_code"], "permission_denied", "{other}");
    }
    let node = node(&rig, &rig.url);
    let [sealed] = &told(&node, &job_of(None, &clone))[..] else { panic!() };
    assert_eq!(sealed["error"]["data"]["reason"], "no_reach", "{sealed}");
    // Control: with both permissions the clone succeeds.
    let [cloned] = &told(&node, &networked(&clone))[..] else { panic!() };
    assert_eq!(cloned["status"], "ok", "{cloned}");
}

#[test]
fn links_in_the_workspace_redirect_neither_clone_nor_push() {
    let Some(rig) = GitFixture::start("links_in_the_workspace_redirect_neither_clone_nor_push") else {
        return;
    };
    let node = node(&rig, &rig.url);
    let before = refs(&rig.bare);
    let script = r#"
URL = __URL__
os.symlink("/tmp", "/workspace/out")
os.symlink("/job", "/workspace/job")
for directory in ["out/app", "out", "job/app", "../tmp/app", ".git/app", "."]:
    tell(call("git_clone", url=URL, directory=directory))
tell(call("git_clone", url=URL, directory="app"))
os.rename("/workspace/app", "/workspace/moved")
os.symlink("/job", "/workspace/app")
tell(call("git_push", directory="app", branch="work/one", message="x"))
tell({"tmp": os.listdir("/tmp")})
"#;
    let answers = told(&node, &networked(&script.replace("__URL__", &url(&rig))));
    let (redirected, rest) = answers.split_at(6);
    for answer in redirected {
        assert_ne!(answer["status"], "ok", "{answer}");
    }
    let [cloned, pushed, left] = rest else { panic!("{rest:?}") };
    assert_eq!(cloned["status"], "ok", "{cloned}");
    assert_ne!(pushed["status"], "ok", "{pushed}");
    assert_eq!(left["tmp"], json!([]));
    assert_eq!(refs(&rig.bare), before);
}
