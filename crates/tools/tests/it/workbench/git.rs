//! Tests of git tools.

use super::Case;
use super::rig::{WorkbenchFactory, WorkbenchRig, run};
use belljar_contract::tool::DomainCode;
use serde_json::{Value, json};

pub(crate) const CASES: &[Case] = &[
    ("git_tools_show_branch_and_commit", whole_life),
    ("git_arguments_like_flags_are_rejected_everywhere", flags),
    ("git_uses_only_the_named_directory_not_its_parents", place),
    ("git_commit_contains_named_paths_and_rejects_empty_commits", committing),
    ("merge_conflict_is_reported_and_can_be_resolved", merging),
];

/// Creates a repository with two commits.
pub(super) async fn repository(bench: &WorkbenchRig) {
    bench
        .shell(
            "git init -q -b main && git config user.name a && git config user.email a@b.example
             echo one >a && mkdir d && echo two >d/b && git add -A && git commit -q -m first
             echo more >>a && git commit -q -am 'second, of a'",
        )
        .await;
}

async fn output(bench: &WorkbenchRig, name: &str, arguments: Value) -> String {
    let answer = bench.done(name, arguments).await;
    assert_eq!(answer["truncated"], false);
    answer["output"].as_str().unwrap().to_owned()
}

fn whole_life(benches: &WorkbenchFactory) -> Result<(), String> {
    let bench = benches.native();
    run(async {
        repository(&bench).await;
        assert_eq!(output(&bench, "git_status", json!({ "short": true })).await, "nothing has changed\n");
        assert_eq!(output(&bench, "git_diff", json!({})).await, "No changes\n");
        bench.done("write_file", json!({ "path": "a", "content": "changed\n" })).await;
        bench.done("write_file", json!({ "path": "new", "content": "new\n" })).await;
        assert_eq!(output(&bench, "git_status", json!({ "porcelain": true })).await, " M a\n?? new\n");
        assert!(output(&bench, "git_status", json!({})).await.contains("Untracked files"));
        let diff = output(&bench, "git_diff", json!({ "paths": ["a"] })).await;
        assert!(diff.contains("--- a/a\n+++ b/a\n") && diff.ends_with("-one\n-more\n+changed\n"), "{diff}");
        assert!(
            output(&bench, "git_diff", json!({ "stat": true }))
                .await
                .contains("1 insertion(+), 2 deletions(-)")
        );
        let made = bench
            .done("git_commit", json!({ "message": "third\n\n# kept", "all": true, "paths": ["new"] }))
            .await;
        assert_eq!((&made["summary"], &made["files_changed"]), (&json!("third"), &json!(2)));
        assert_eq!(
            bench.shell("git log -1 --format='%an <%ae> %cn%n%B'").await,
            "An Agent <agent@example.org> An Agent\nthird\n\n# kept\n\n"
        );
        let log = output(&bench, "git_log", json!({ "oneline": true })).await;
        assert_eq!(log.lines().count(), 3, "{log}");
        assert!(log.lines().next().unwrap().ends_with("(HEAD -> main) third"), "{log}");
        for (arguments, count) in [
            (json!({ "max_count": 1 }), 1),
            (json!({ "ref": "HEAD~1" }), 2),
            (json!({ "author": "An Agent" }), 1),
            (json!({ "paths": ["d"] }), 1),
            (json!({ "since": "2001-01-01" }), 3),
            (json!({ "until": "2001-01-01" }), 0),
        ] {
            let log = output(&bench, "git_log", arguments.clone()).await;
            assert_eq!(log.matches("\nAuthor: ").count(), count, "{arguments}: {log}");
        }
        bench
            .done("git_branch", json!({ "action": "create", "name": "topic/x", "start_point": "HEAD~1" }))
            .await;
        bench.done("git_branch", json!({ "action": "switch", "name": "topic/x" })).await;
        assert_eq!(bench.done("read_file", json!({ "path": "a" })).await["content"], "one\nmore\n");
        assert!(output(&bench, "git_branch", json!({ "action": "list" })).await.contains("* topic/x"));
        let diff =
            output(&bench, "git_diff", json!({ "ref1": "topic/x", "ref2": "main", "stat": true })).await;
        assert!(diff.contains("2 files changed"), "{diff}");
        let (code, said) =
            bench.refused("git_branch", json!({ "action": "delete", "name": "topic/x" })).await;
        assert_eq!(code, DomainCode::ToolFailed, "{said}");
        bench.done("git_branch", json!({ "action": "switch", "name": "main" })).await;
        bench.done("git_branch", json!({ "action": "delete", "name": "topic/x" })).await;
        // Detached head.
        bench.shell("git switch -q --detach HEAD~1").await;
        assert!(output(&bench, "git_status", json!({})).await.contains("HEAD detached"));
        assert!(output(&bench, "git_branch", json!({ "action": "list" })).await.contains("detached"));
    });
    Ok(())
}

fn flags(benches: &WorkbenchFactory) -> Result<(), String> {
    let bench = benches.native();
    run(async {
        repository(&bench).await;
        for flag in ["--output=/workspace/owned", "-x", "--upload-pack=touch owned", "a\nb", "\u{1b}[2J"] {
            for (name, arguments) in [
                ("git_log", json!({ "ref": flag })),
                ("git_log", json!({ "author": flag })),
                ("git_log", json!({ "since": flag })),
                ("git_log", json!({ "until": flag })),
                ("git_log", json!({ "paths": [flag] })),
                ("git_diff", json!({ "ref1": flag })),
                ("git_diff", json!({ "ref1": "HEAD", "ref2": flag })),
                ("git_diff", json!({ "paths": [flag] })),
                ("git_branch", json!({ "action": "create", "name": flag })),
                ("git_branch", json!({ "action": "create", "name": "x", "start_point": flag })),
                ("git_branch", json!({ "action": "switch", "name": flag })),
                ("git_branch", json!({ "action": "delete", "name": flag })),
                ("git_commit", json!({ "message": "m", "paths": [flag] })),
                ("git_status", json!({ "directory": flag })),
            ] {
                let refused = bench.call(name, arguments.clone()).await.err().map(|failure| failure.code);
                // A directory may have any name, but no directory has this one.
                let is_refused = matches!(refused, Some(DomainCode::InvalidArgument | DomainCode::NotFound));
                assert!(is_refused, "{name} {arguments}: {refused:?}");
            }
        }
        assert_eq!(bench.shell("ls; git branch --format='%(refname)'").await, "a\nd\nrefs/heads/main\n");
        for (name, arguments) in [
            ("git_diff", json!({ "ref2": "HEAD" })),
            ("git_branch", json!({ "action": "create" })),
            ("git_branch", json!({ "action": "switch", "name": "main", "start_point": "HEAD" })),
        ] {
            assert_eq!(
                bench.refused(name, arguments.clone()).await.0,
                DomainCode::InvalidArgument,
                "{arguments}"
            );
        }
        for arguments in [json!({ "max_count": 0 }), json!({ "remote": "x" })] {
            assert!(!bench.lets_through("git_log", &arguments), "{arguments}");
        }
        assert!(!bench.lets_through("git_branch", &json!({ "action": "rename", "name": "x" })));
        assert!(bench.lets_through("git_log", &json!({ "max_count": 5000 })));
    });
    Ok(())
}

fn place(benches: &WorkbenchFactory) -> Result<(), String> {
    let bench = benches.native();
    run(async {
        let (code, said) = bench.refused("git_status", json!({})).await;
        assert_eq!(code, DomainCode::NotFound, "{said}");
        assert_eq!(said, ". is not the root of a git repository");
        bench.shell("mkdir -p r/below && cd r && git init -q -b main && echo x >f").await;
        assert_eq!(output(&bench, "git_status", json!({ "directory": "r", "short": true })).await, "?? f\n");
        // Control: git itself searches the parent directories.
        bench.shell("cd r/below && git status").await;
        let (code, _) = bench.refused("git_status", json!({ "directory": "r/below" })).await;
        assert_eq!(code, DomainCode::NotFound);
        assert_eq!(
            bench.refused("git_status", json!({ "directory": "../x" })).await.0,
            DomainCode::PermissionDenied
        );
        // A repository can't redirect to another directory. Control: with plain git it can.
        bench.shell("git -C r config core.worktree /etc; git -C r status --short | grep -q passwd").await;
        assert_eq!(output(&bench, "git_status", json!({ "directory": "r", "short": true })).await, "?? f\n");
        bench.shell("git -C r config --unset core.worktree").await;
        // An empty repository has no commits, branches or changes.
        let there = json!({ "directory": "r" });
        assert_eq!(output(&bench, "git_log", there.clone()).await, "there are no commits yet\n");
        assert_eq!(output(&bench, "git_diff", there).await, "No changes\n");
        let (code, _) = bench.refused("git_commit", json!({ "directory": "r", "message": "m" })).await;
        assert_eq!(code, DomainCode::Conflict);
        let made =
            bench.done("git_commit", json!({ "directory": "r", "message": "m", "paths": ["."] })).await;
        assert_eq!(made["files_changed"], 1);
    });
    Ok(())
}

fn committing(benches: &WorkbenchFactory) -> Result<(), String> {
    let bench = benches.native();
    run(async {
        repository(&bench).await;
        bench.shell("echo 1 >a; rm d/b; echo x >n1; echo x >'n 2'; echo '*.log' >.gitignore; echo x >x.log; ln -s a link").await;
        let commit = |paths: &[&str]| json!({ "message": "m", "paths": paths });
        assert_eq!(bench.refused("git_commit", json!({ "message": "m" })).await.0, DomainCode::Conflict);
        assert_eq!(bench.refused("git_commit", commit(&["nothing"])).await.0, DomainCode::NotFound);
        assert_eq!(bench.refused("git_commit", commit(&["x.log"])).await.0, DomainCode::NotFound);
        assert_eq!(
            bench.refused("git_commit", commit(&["/etc/passwd"])).await.0,
            DomainCode::InvalidArgument
        );
        assert_eq!(bench.done("git_commit", commit(&["d/b", "n 2", "link"])).await["files_changed"], 3);
        let files = "git ls-tree -r --name-only HEAD; git status --short";
        assert_eq!(bench.shell(files).await, "a\nlink\nn 2\n M a\n?? .gitignore\n?? n1\n");
        assert_eq!(
            bench.done("git_commit", json!({ "message": "m", "all": true })).await["files_changed"],
            1
        );
        // Git's pathspec patterns are literal names here.
        bench.shell("echo x >'*'").await;
        assert_eq!(bench.done("git_commit", commit(&["*"])).await["files_changed"], 1);
        assert_eq!(bench.shell(files).await, "*\na\nlink\nn 2\n?? .gitignore\n?? n1\n");
        assert!(!bench.lets_through("git_commit", &json!({ "message": "  " })));
    });
    Ok(())
}

fn merging(benches: &WorkbenchFactory) -> Result<(), String> {
    let bench = benches.native();
    run(async {
        repository(&bench).await;
        bench
            .shell(
                "git switch -q -c other HEAD~1 && echo theirs >a && git commit -q -am theirs && git switch -q main
                 ! git merge -q other >/dev/null 2>&1",
            )
            .await;
        assert_eq!(output(&bench, "git_status", json!({ "porcelain": true })).await, "UU a\n");
        assert!(output(&bench, "git_diff", json!({})).await.contains("++<<<<<<<"));
        bench.done("write_file", json!({ "path": "a", "content": "both\n" })).await;
        bench.done("git_commit", json!({ "message": "merged", "paths": ["a"] })).await;
        assert_eq!(bench.shell("git log -1 --format=%P | wc -w; git status --short").await.trim(), "2");
    });
    Ok(())
}
