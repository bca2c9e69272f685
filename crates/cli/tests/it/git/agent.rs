//! The run of an agent in a sandbox ends as a branch at a real server, and no credential of the server was inside.

use super::rig::{GitFixture, PASSWORD};
use crate::BELLJAR;
use crate::agents::small::{SmallAgentWorld, records};
use belljar_testkit::git::{git, refs, updates};
use belljar_testkit::world::{ProgramOutput, World};

/// Searches everything that an agent can read for the password and the server.
const LOOKS: &str = "grep -rIs -e 'pw-[9]sVn4Tq7' -e 'origin[.]git' / --exclude-dir=proc --exclude-dir=sys --exclude-dir=usr; \
    env | grep -e 'pw-[9]s' -e 'GI[T]_'; cat /proc/*/environ /proc/*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -e 'pw-[9]s' -e 'origin[.]git'; \
    git remote -v; git log --format=%s; echo work >work.txt; echo more >>README.md; git add -A; git commit -qm agents; echo end";

fn run(rig: &GitFixture, options: &[&str]) -> ProgramOutput {
    let all = ["agent", "small", "--model", "small", "--config", "config.yaml", "--clone", &rig.url];
    let allowed = ["--allow-network", "127.0.0.0/8"];
    rig.world.run(&[&all[..], &allowed, options, &["--", "hi"]].concat())
}

#[test]
fn agent_run_is_pushed_as_an_attributed_branch_without_credentials_inside() {
    let test = "agent_run_is_pushed_as_an_attributed_branch_without_credentials_inside";
    let Some(rig) = GitFixture::with(test, World::new(BELLJAR), &[("README.md", "hello\n")]) else { return };
    let _small = SmallAgentWorld::shell(&rig.world, LOOKS);
    let result = run(&rig, &["--push", "--json"]).succeeded().json();
    assert_eq!(result["stdout"], "first\nend\n", "{result:#}");
    assert_eq!(
        (result["changes"]["state"].as_str(), result["push"]["outcome"].as_str()),
        (Some("pushed"), Some("pushed"))
    );
    let run_id = result["run_id"].as_str().unwrap();
    let branch = format!("belljar/{run_id}");
    assert_eq!(refs(&rig.bare), [format!("refs/heads/{branch}"), "refs/heads/main".to_owned()]);
    assert_eq!(rig.tree(&branch), ["100644 README.md", "100644 work.txt"]);
    let said = git(&rig.bare, &["log", "-1", "--format=%an%n%B", &branch]);
    assert_eq!(
        said.trim(),
        format!(
            "Person\nWork of a sandbox\n\nBelljar-Run: {run_id}\nBelljar-Agent: small\nBelljar-Model: small"
        )
    );
    assert_eq!(records(&rig.world, "git_push_begun").len(), 1);
    assert_eq!(std::fs::read_dir(rig.world.path().join("state/runs")).unwrap().count(), 0, "run not removed");
    // The control: a process outside of the sandbox finds it.
    let found = rig.world.command_of("sh".as_ref(), &["-c", "grep -l pw-9s .gitconfig"]).output().unwrap();
    assert!(found.status.success());
}

#[test]
fn changes_that_need_approval_are_kept_until_a_user_pushes_them() {
    let test = "changes_that_need_approval_are_kept_until_a_user_pushes_them";
    let Some(rig) = GitFixture::with(test, World::new(BELLJAR), &[("README.md", "hello\n")]) else { return };
    let _small = SmallAgentWorld::shell(&rig.world, "echo x >.envrc; echo end");
    let ran = run(&rig, &["--push", "--json"]);
    let result = ran.json();
    assert_eq!((ran.code, result["push"]["reason"].as_str()), (3, Some("handoff_not_trusted")), "{result:#}");
    assert_eq!(result["push"]["handoff"][0]["path"], ".envrc");
    assert_eq!(refs(&rig.bare), ["refs/heads/main"]);
    let run_id = result["run_id"].as_str().unwrap();
    let push = ["git", "push", run_id, "--allow-network", "127.0.0.0/8", "--trust", ".envrc"];
    rig.world.run(&push).succeeded();
    assert_eq!(updates(&rig.bare, &format!("belljar/{run_id}")), 1);
    rig.world.run(&push).succeeded();
    assert_eq!(updates(&rig.bare, &format!("belljar/{run_id}")), 1);
}

#[test]
fn unpushable_branch_is_reported_before_anything_runs() {
    let test = "unpushable_branch_is_reported_before_anything_runs";
    let Some(rig) = GitFixture::with(test, World::new(BELLJAR), &[("README.md", "hello\n")]) else { return };
    let small = SmallAgentWorld::shell(&rig.world, "echo ran");
    let ran = run(&rig, &["--push", "--branch", "main"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    let with_password = format!("https://user:{PASSWORD}@127.0.0.1/a");
    let ran = run(&rig, &["--push-to", &with_password]);
    assert!(ran.code == 125 && !ran.stderr.contains(PASSWORD), "{ran:?}");
    assert!(rig.server.requests().is_empty() && small.server.request_count() == 0);
}
