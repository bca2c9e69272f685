//! Tests of paths that require an approval, and of those that don't.

use super::rows::{PathCondition, ROWS};
use super::*;

fn file(is_executable: bool) -> Option<ChangeEntryKind> {
    Some(ChangeEntryKind::File { is_executable })
}

pub(super) fn kinds(path: &str) -> Vec<&'static str> {
    let found = review([ChangedPath::new(path, None, file(false))]);
    found.into_iter().map(|finding| finding.kind.code()).collect()
}

#[test]
fn executed_and_trust_granting_files_require_approval() {
    for (path, kind) in [
        (".git/hooks/pre-commit", "git"),
        (".gitmodules", "git"),
        ("a/.gitattributes", "git"),
        (".husky/pre-push", "git"),
        (".pre-commit-config.yaml", "git"),
        (".github/workflows/ci.yml", "ci"),
        (".gitlab-ci.yml", "ci"),
        ("Jenkinsfile", "ci"),
        (".circleci/config.yml", "ci"),
        (".github/CODEOWNERS", "review"),
        (".vscode/tasks.json", "editor"),
        (".idea/workspace.xml", "editor"),
        ("x.code-workspace", "editor"),
        (".claude/settings.json", "agent"),
        (".cursor/mcp.json", "agent"),
        (".mcp.json", "agent"),
        ("AGENTS.md", "agent"),
        ("a/CLAUDE.md", "agent"),
        (".envrc", "shell"),
        ("package.json", "package"),
        (".npmrc", "package"),
        ("setup.py", "build"),
        ("build.rs", "build"),
        ("Makefile", "build"),
        ("tests/conftest.py", "build"),
        (".cargo/config.toml", "build"),
        ("vite.config.ts", "build"),
        ("GITMOD~1", "alias"),
    ] {
        assert!(kinds(path).contains(&kind), "{path}: {:?}", kinds(path));
    }
}

#[test]
fn case_and_invisible_characters_do_not_hide_trusted_names() {
    for path in [
        ".GitHub/WORKFLOWS/ci.yml",
        ".git\u{200d}hub/workflows/ci.yml",
        ".github./workflows /ci.yml",
        ".ｇithub/workflows/ci.yml",
        "JENKINSFILE",
        "jenkins\u{fb01}le",
    ] {
        assert_eq!(kinds(path), ["ci"], "{path}");
    }
    assert_eq!(kinds("ma\u{212a}efile"), ["build"], "the sign for kelvins is a k");
}

#[test]
fn ordinary_files_need_no_approval() {
    for path in [
        "src/main.rs",
        "README.md",
        "docs/ci.md",
        "github/workflows.md",
        "a/b.py",
        ".gitkeep",
        "docs/.nojekyll",
        "git.rs",
        "é.txt",
    ] {
        assert!(kinds(path).is_empty(), "{path}: {:?}", kinds(path));
    }
}

#[test]
fn newly_executable_file_requires_approval() {
    let executable = |before, after| {
        let found = review([ChangedPath::new("a.sh", before, after)]);
        found.iter().any(|finding| finding.kind == TrustKind::Executable)
    };
    assert!(executable(None, file(true)));
    assert!(executable(file(false), file(true)));
    assert!(!executable(file(true), file(true)));
    assert!(!executable(file(true), file(false)));
    assert!(!executable(file(true), None));
}

#[test]
fn removed_trusted_file_requires_approval() {
    let found = review([ChangedPath::new("CODEOWNERS", file(false), None)]);
    assert_eq!(found.len(), 1);
    let directory = ChangedPath::new(".vscode", None, Some(ChangeEntryKind::Other));
    assert!(review([directory]).is_empty(), "what is in it is told by itself");
}

#[test]
fn link_replacing_a_trusted_directory_requires_approval() {
    let link = |path, target: &str| {
        review([ChangedPath::new(path, None, Some(ChangeEntryKind::Link { target: target.to_owned() }))])
    };
    assert_eq!(link(".vscode", "docs")[0].kind, TrustKind::Editor);
    assert_eq!(link(".github", "docs")[0].kind, TrustKind::Ci);
    assert_eq!(link("docs/x", "../../../etc/passwd")[0].kind, TrustKind::Link);
    assert!(link("docs/x", "../README.md").is_empty());
    for name in ["renv", "a/project", "requirements", "config", "a/features"] {
        assert!(!link(name, "x").is_empty(), "{name}");
        let plain = review([ChangedPath::new(name, None, file(false))]);
        assert!(plain.is_empty(), "a file in its place brings nothing along: {name}");
    }
}

#[test]
fn each_trust_kind_of_a_path_is_reported_once() {
    let touched = |path, before, after| {
        review([ChangedPath::new(path, before, after)])
            .into_iter()
            .map(|found| found.kind.code())
            .collect::<Vec<_>>()
    };
    assert_eq!(touched(".husky/pre-push", None, file(true)), ["git", "executable"]);
    assert_eq!(touched(".husky/pre-push", None, file(false)), ["git"]);
    // Two rows match, and both belong to git.
    assert_eq!(touched(".husky/.gitmodules", None, file(false)), ["git"]);
    assert_eq!(touched(".husky/.vscode/a~1", None, file(true)), ["git", "editor", "alias", "executable"]);
    assert_eq!(touched("src/main.rs", None, file(false)), [""; 0]);
}

#[test]
fn branch_named_like_a_trusted_file_needs_no_approval() {
    for path in
        [".git/refs/heads/makefile", ".git/refs/heads/fix/cleanup", ".git/logs/refs/heads/package.json"]
    {
        assert_eq!(kinds(path), ["git"], "{path}");
    }
    // Control.
    assert_eq!(kinds("refs/heads/makefile"), ["build"]);
}

#[test]
fn git_internal_files_share_one_finding() {
    let file = || Some(ChangeEntryKind::File { is_executable: false });
    let paths =
        [".git/index", ".git/HEAD", ".git/refs/heads/a", ".git/logs/HEAD", "a.txt", ".git/hooks/update"];
    let found = review(paths.map(|path| ChangedPath::new(path, None, file())));
    let found: Vec<_> = found.iter().map(|finding| (finding.path.as_str(), finding.kind.code())).collect();
    assert_eq!(found, [(".git", "git"), (".git/hooks/update", "git")]);
    let link = Some(ChangeEntryKind::Link { target: "../a.txt".into() });
    let found = review([ChangedPath::new(".git/COMMIT_EDITMSG", None, link)]);
    assert!(found.iter().any(|finding| finding.path == ".git/COMMIT_EDITMSG"), "{found:?}");
}

#[test]
fn possible_dos_short_name_requires_approval() {
    for short in ["GITMOD~1", "a~1", "ABCDEF~1.TXT", "ab~12.js", "src/a~1/b", "ABCD~123"] {
        assert_eq!(kinds(short), ["alias"], "{short}");
    }
    for long in ["ABCDEFG~1", "a~1.jpeg", "~1", "a~", "a~x", "a~1x", "a1", "a~1.b~2.c", "a.b~1", "a~.1"] {
        assert_eq!(kinds(long), [""; 0], "{long}");
    }
}

#[test]
fn each_trust_kind_displays_its_code() {
    use TrustKind::{
        Agent, Alias, Belljar, Build, Ci, Editor, Executable, Git, Link, Package, Review, Shell,
    };
    let codes: Vec<String> =
        [Git, Ci, Review, Editor, Agent, Shell, Package, Build, Belljar, Executable, Link, Alias]
            .iter()
            .map(ToString::to_string)
            .collect();
    assert_eq!(
        codes.join(" "),
        "git ci review editor agent shell package build belljar executable link alias"
    );
}

#[test]
fn approving_more_paths_keeps_earlier_ones_and_never_approves_all() {
    let strings = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect::<Vec<_>>();
    let trust = ApprovedPaths::in_paths(strings(&[".envrc"])).and_in(strings(&[".vscode/", ".envrc"]));
    assert!(
        !trust.is_in_all() && !ApprovedPaths::default().is_in_all() && ApprovedPaths::in_all().is_in_all()
    );
    assert_eq!(trust.paths().collect::<Vec<_>>(), [".envrc", ".vscode/"]);
    assert_eq!(ApprovedPaths::in_all().paths().count(), 0);
    let all = [".envrc", ".vscode/a", "Makefile"];
    let all = all.map(|path| ChangedPath::new(path, None, file(false)));
    let left = trust.without(review(all.clone()));
    assert_eq!(left.iter().map(|finding| finding.path.as_str()).collect::<Vec<_>>(), ["Makefile"]);
    assert!(ApprovedPaths::in_all().and_in(strings(&["a"])).is_in_all());
    assert_eq!(ApprovedPaths::default().without(review(all)).len(), 3);
}

#[test]
fn approval_covers_only_the_named_paths() {
    let all =
        || review([".envrc", ".vscode/a", ".vscode/b"].map(|path| ChangedPath::new(path, None, file(false))));
    let left = |paths: &[&str]| {
        let trust = ApprovedPaths::in_paths(paths.iter().map(|path| (*path).to_owned()));
        trust.without(all()).into_iter().map(|finding| finding.path).collect::<Vec<_>>()
    };
    assert_eq!(left(&[]), [".envrc", ".vscode/a", ".vscode/b"]);
    assert_eq!(left(&[".vscode/a"]), [".envrc", ".vscode/b"]);
    assert_eq!(left(&[".vscode/"]), [".envrc"]);
    assert_eq!(left(&[".vscode", ".ENVRC", "."]), [".envrc", ".vscode/a", ".vscode/b"]);
    assert!(ApprovedPaths::in_all().without(all()).is_empty());
}

#[test]
fn table_names_are_in_folded_form() {
    for row in ROWS.into_iter().flatten() {
        let names: Vec<&str> = match row.at {
            PathCondition::Named(names) | PathCondition::In(names) | PathCondition::Under(names) => {
                names.to_vec()
            }
            PathCondition::Below(one, other) => vec![one, other],
            // Parts of names are at least in lower case: only the end of a whole name has ignored characters.
            PathCondition::Begins(begin) => vec![begin.trim_end_matches('.')],
            PathCondition::Wraps(begin, end) => vec![begin.trim_end_matches('.'), end],
            PathCondition::Ends(ends) => ends.to_vec(),
            PathCondition::Inside(directory, ends) => [&[directory], ends].concat(),
            PathCondition::Shaped(_) => Vec::new(),
        };
        for name in names {
            assert_eq!(folded(name), name);
        }
    }
}

#[test]
fn file_replacing_a_directory_is_reviewed_as_both() {
    let file = || Some(ChangeEntryKind::File { is_executable: false });
    let asks = |path: &str, before, after| !review([ChangedPath::new(path, before, after)]).is_empty();
    for (path, is_asked) in [(".git/objects/ab", true), (".git/index", true), ("docs", false)] {
        assert_eq!(asks(path, None, file()), is_asked, "{path}");
        assert_eq!(asks(path, Some(ChangeEntryKind::Directory), file()), is_asked, "{path}");
        assert_eq!(asks(path, file(), Some(ChangeEntryKind::Directory)), is_asked, "{path}");
    }
    // Control: the directory alone.
    assert!(!asks(".git/objects/ab", None, Some(ChangeEntryKind::Directory)));
}
