//! Tests with repositories whose settings make git run programs: none of them may run, but all do with plain git.

use super::Case;
use super::git::repository;
use super::rig::{WorkbenchFactory, WorkbenchRig, run};
use serde_json::json;
use std::collections::BTreeSet;

pub(crate) const CASES: &[Case] = &[
    ("programs_named_by_git_settings_are_not_run", programs),
    ("programs_named_by_submodules_are_not_run", submodules),
    ("missing_git_objects_are_not_fetched", promised),
];

/// Hooks that the steps of the five tools would run.
const HOOKS: &str = "pre-commit prepare-commit-msg commit-msg post-commit post-checkout post-index-change reference-transaction";

/// Creates programs that record in a file that they ran, and configures them in the repository wherever possible.
async fn set_traps(bench: &WorkbenchRig) {
    let script = format!(
        r#"set -e; mkdir -p /tmp/marks; T=/workspace/.git/traps; mkdir $T
        trap_of() {{ printf '#!/bin/sh\n: >/tmp/marks/%s\n%s\n' "$1" "$2" >$T/$1; chmod 755 $T/$1; }}
        for hook in {HOOKS}; do trap_of hook-$hook ''; cp $T/hook-$hook .git/hooks/$hook; done
        trap_of fsmonitor 'exit 1'; trap_of clean cat; trap_of smudge cat; trap_of textconv 'cat "$1"'
        trap_of external ''; trap_of driver ''; trap_of pager cat; trap_of editor 'echo m >"$1"'; trap_of gpg 'exit 1'
        trap_of process 'exit 1'; trap_of column ''
        git config core.fsmonitor $T/fsmonitor
        git config filter.odd.name.clean $T/clean; git config filter.odd.name.smudge $T/smudge
        git config filter.odd.name.required true
        git config filter.long.process $T/process
        git config diff.conv.textconv $T/textconv; git config diff.drv.command $T/driver
        git config diff.external $T/external; git config core.pager $T/pager; git config core.editor $T/editor
        git config gpg.program $T/gpg; git config log.showSignature true; git config format.pretty '%G? %h'
        git config commit.gpgSign true
        printf 'a filter=odd.name\nd/* filter=long\n*.c diff=conv\n*.d diff=drv\n' >.git/info/attributes
        echo x >e.c; echo x >e.d; git -c core.hooksPath=/dev/null -c core.fsmonitor=false -c filter.long.process= add e.c e.d
        rm -f /tmp/marks/*"#
    );
    bench.shell(&script).await;
}

/// Names of the programs that ran since the last call.
async fn marks(bench: &WorkbenchRig) -> BTreeSet<String> {
    let marks = bench.shell("ls /tmp/marks; rm -f /tmp/marks/*").await;
    marks.lines().map(str::to_owned).collect()
}

async fn touch(bench: &WorkbenchRig) {
    bench.shell("echo y >>a; echo y >>d/b; echo y >>e.c; echo y >>e.d").await;
}

fn programs(benches: &WorkbenchFactory) -> Result<(), String> {
    let bench = benches.native();
    run(async {
        repository(&bench).await;
        // A signed commit, so that there is a signature to check.
        bench
            .shell(
                r"printf 'gpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n' >/tmp/sig
                  git cat-file commit HEAD | sed '/^committer/r /tmp/sig' | git hash-object -t commit -w --stdin >/tmp/id
                  git reset -q --soft $(cat /tmp/id)",
            )
            .await;
        set_traps(&bench).await;
        touch(&bench).await;
        let calls = [
            ("git_status", json!({})),
            ("git_status", json!({ "porcelain": true })),
            ("git_diff", json!({})),
            ("git_diff", json!({ "stat": true })),
            ("git_diff", json!({ "staged": true })),
            ("git_diff", json!({ "ref1": "HEAD~1", "ref2": "HEAD" })),
            ("git_log", json!({})),
            ("git_log", json!({ "oneline": true, "paths": ["a"] })),
            ("git_branch", json!({ "action": "list" })),
            ("git_branch", json!({ "action": "create", "name": "t", "start_point": "HEAD~1" })),
            ("git_commit", json!({ "message": "m", "all": true, "paths": ["e.c"] })),
            ("git_branch", json!({ "action": "switch", "name": "t" })),
            ("git_branch", json!({ "action": "switch", "name": "main", "force": true })),
            ("git_branch", json!({ "action": "delete", "name": "t", "force": true })),
        ];
        for (name, arguments) in calls {
            let answer = bench.call(name, arguments.clone()).await;
            assert!(answer.is_ok(), "{name} {arguments}: {answer:?}");
            assert_eq!(marks(&bench).await, BTreeSet::new(), "{name} {arguments}");
        }
        controls(&bench).await;
    });
    Ok(())
}

/// Control: the same operations by plain git in the same sandbox run each of the programs.
async fn controls(bench: &WorkbenchRig) {
    touch(bench).await;
    let mut ran = BTreeSet::new();
    for plainly in [
        "git status",
        "git diff",
        "git -c filter.long.process= diff",
        "git config --unset diff.external; git -c filter.long.process= diff",
        "git log",
        "git branch plain",
        "git add a d e.c e.d",
        "git -c commit.gpgSign=false commit -m m -- a",
        "git -c commit.gpgSign=false -c filter.long.process= commit -m m -- a",
        "git -c filter.long.process= switch -f plain~1 --detach",
        "git -c commit.gpgSign=false -c filter.long.process= commit --allow-empty",
        "script -qec 'git -c filter.long.process= log' /dev/null",
    ] {
        bench.run(&["sh", "-c", plainly]).await;
        ran.extend(marks(bench).await);
    }
    let hooks = HOOKS.split(' ').map(|hook| format!("hook-{hook}"));
    let others =
        ["fsmonitor", "clean", "smudge", "process", "textconv", "driver", "external", "gpg", "editor"];
    let expected: BTreeSet<String> = hooks.chain(others.map(str::to_owned)).collect();
    let missing: Vec<_> = expected.difference(&ran).collect();
    assert!(missing.is_empty(), "git itself has not run {missing:?}");
}

fn submodules(benches: &WorkbenchFactory) -> Result<(), String> {
    let bench = benches.native();
    run(async {
        repository(&bench).await;
        bench
            .shell(
                r#"mkdir -p /tmp/marks sub && cd sub && git init -q -b main && git config user.name a && git config user.email a@b.example
                echo x >f && git add f && git commit -q -m s && cd ..
                printf '[submodule "sub"]\n\tpath = sub\n\turl = ./sub\n\tignore = none\n' >.gitmodules
                git add .gitmodules sub 2>/dev/null && git commit -q -m sub
                printf '#!/bin/sh\n: >/tmp/marks/inner\nexit 1\n' >sub/.git/run; chmod 755 sub/.git/run
                git -C sub config core.fsmonitor /workspace/sub/.git/run
                git -C sub config filter.inner.clean 'touch /tmp/marks/inner; cat'
                echo 'f filter=inner' >sub/.git/info/attributes; echo y >>sub/f; echo y >>a; rm -f /tmp/marks/*"#,
            )
            .await;
        for (name, arguments) in [
            ("git_status", json!({})),
            ("git_diff", json!({})),
            ("git_commit", json!({ "message": "m", "all": true })),
            ("git_commit", json!({ "message": "m", "paths": [".gitignore", "sub"] })),
            ("git_commit", json!({ "message": "m" })),
            ("git_branch", json!({ "action": "create", "name": "t", "start_point": "HEAD~1" })),
            ("git_branch", json!({ "action": "switch", "name": "t" })),
        ] {
            // Some calls have nothing to do.
            let _ = bench.call(name, arguments.clone()).await;
            assert_eq!(marks(&bench).await, BTreeSet::new(), "{name} {arguments}");
        }
        assert_eq!(bench.shell("git log -1 --format=%s t; git log -1 --format=%s main").await, "sub\nm\n");
        // Control.
        bench.run(&["git", "status"]).await;
        assert_eq!(marks(&bench).await, BTreeSet::from(["inner".to_owned()]));
    });
    Ok(())
}

fn promised(benches: &WorkbenchFactory) -> Result<(), String> {
    let bench = benches.native();
    run(async {
        repository(&bench).await;
        bench
            .shell(
                "mkdir -p /tmp/marks; git config extensions.partialClone origin; git config core.repositoryFormatVersion 1
                 git config remote.origin.promisor true
                 git config remote.origin.url 'ext::sh -c touch% /tmp/marks/fetched'
                 git config protocol.ext.allow always
                 id=$(git rev-parse HEAD:a); rm -f .git/objects/$(echo $id | cut -c1-2)/$(echo $id | cut -c3-); echo z >a",
            )
            .await;
        for (name, arguments) in [("git_diff", json!({})), ("git_status", json!({})), ("git_log", json!({}))]
        {
            let _ = bench.call(name, arguments).await;
            assert_eq!(marks(&bench).await, BTreeSet::new(), "{name}");
        }
        // Control.
        bench.run(&["git", "diff"]).await;
        assert_eq!(marks(&bench).await, BTreeSet::from(["fetched".to_owned()]));
    });
    Ok(())
}
