//! Reviews of change sets that lie beside their trees, as they do in an overlay.

mod git_content;
mod links;

use super::*;
use belljar_testkit::skip::skip;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;

/// A tree of a person's, and a layer with what was changed in it.
pub(super) struct ReviewTrees {
    folder: tempfile::TempDir,
}

impl ReviewTrees {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("tree")).unwrap();
        std::fs::create_dir(folder.path().join("layer")).unwrap();
        Self { folder }
    }

    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file into `tree/` or `layer/`.
    pub(super) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Returns the paths that need an approval, as `PATH KIND`, without Git's data.
    pub(super) fn asked(&self) -> Vec<String> {
        asked_in(self.folder.path())
    }

    /// Runs Git in a directory, without settings of the user; returns its output.
    pub(super) fn git(&self, place: &str, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=A", "-c", "user.email=a@b.example"]).args(arguments);
        command.envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_SYSTEM", "/dev/null")]);
        let ran = command.current_dir(self.path(place)).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap().trim().to_owned()
    }
}

pub(super) fn asked_in(folder: &Path) -> Vec<String> {
    let [tree, layer] = ["tree", "layer"].map(|name| Directory::open_host(&folder.join(name)).unwrap());
    let set = ChangeSet::read(&tree, &layer).unwrap();
    let findings = review(&set, &layer, &tree).unwrap().findings;
    let others = findings.iter().filter(|finding| !is_of_data(finding));
    others.map(|finding| format!("{} {}", finding.path, finding.kind)).collect()
}

fn is_of_data(finding: &Finding) -> bool {
    finding.path == ".git" && finding.reason.starts_with("git acts on its index")
}

fn object_of(name: &str) -> String {
    format!(".git/objects/{}/{}", &name[..2], &name[2..])
}

/// A tree with one commit of `Makefile` and `a.txt`, and a copy of it.
fn committed() -> ReviewTrees {
    let trees = ReviewTrees::new();
    trees.write("tree/Makefile", "all:\n");
    trees.write("tree/a.txt", "a\n");
    trees.git("tree", &["init", "--quiet", "--initial-branch=main", "."]);
    trees.git("tree", &["add", "."]);
    trees.git("tree", &["commit", "--quiet", "-m", "one"]);
    trees.git("", &["clone", "--quiet", "--no-hardlinks", "tree", "copy"]);
    std::fs::copy(trees.path("tree/.git/config"), trees.path("copy/.git/config")).unwrap();
    std::fs::remove_file(trees.path("copy/.git/packed-refs")).unwrap();
    trees
}

/// Copies a tree as far as it is another one, as a layer would hold it.
fn lay_over(from: &Path, tree: &Path, layer: &Path) {
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        let name = entry.file_name();
        let (from, tree, layer) = (entry.path(), tree.join(&name), layer.join(&name));
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir_all(&layer).unwrap();
            lay_over(&from, &tree, &layer);
        } else if std::fs::read(&tree).ok() != std::fs::read(&from).ok() {
            std::fs::copy(&from, &layer).unwrap();
        }
    }
}

#[test]
fn what_git_goes_by_takes_one_yes_and_a_new_object_alone_takes_none() {
    let trees = committed();
    std::fs::remove_dir_all(trees.path("copy")).unwrap();
    let copied = Command::new("cp").args(["-a", "tree", "copy"]).current_dir(trees.path("")).status();
    assert!(copied.unwrap().success());
    let found = || {
        let [tree, layer] = ["tree", "layer"].map(|name| Directory::open_host(&trees.path(name)).unwrap());
        review(&ChangeSet::read(&tree, &layer).unwrap(), &layer, &tree).unwrap().findings
    };
    let all = || {
        let findings = found();
        assert!(findings.iter().all(is_of_data), "{findings:?}");
        findings.into_iter().map(|finding| finding.path).collect::<Vec<_>>()
    };
    trees.write("copy/b.txt", "b\n");
    trees.git("copy", &["hash-object", "-w", "b.txt"]);
    lay_over(&trees.path("copy"), &trees.path("tree"), &trees.path("layer"));
    assert_eq!(all(), [""; 0], "an object that nothing names");
    trees.git("copy", &["add", "."]);
    trees.git("copy", &["commit", "--quiet", "-m", "two"]);
    lay_over(&trees.path("copy"), &trees.path("tree"), &trees.path("layer"));
    assert!(trees.path("layer/.git/refs/heads/main").exists());
    assert_eq!(all(), [".git"]);
    for path in
        ["index", "HEAD", "refs/heads/other", "logs/HEAD", "ORIG_HEAD", "COMMIT_EDITMSG", "refs/tags/v1"]
    {
        std::fs::remove_dir_all(trees.path("layer")).unwrap();
        let known = trees.path("tree/.git").join(path);
        let content = std::fs::read(&known).unwrap_or_default();
        trees.write(&format!("layer/.git/{path}"), [content.as_slice(), b"\n"].concat());
        let findings = found();
        assert_eq!(findings.iter().filter(|finding| is_of_data(finding)).count(), 1, "{path}: {findings:?}");
    }
    std::fs::remove_dir_all(trees.path("layer/.git")).unwrap();
    std::fs::create_dir_all(trees.path("layer/.git")).unwrap();
    symlink("../Makefile", trees.path("layer/.git/COMMIT_EDITMSG")).unwrap();
    assert_eq!(trees.asked(), [".git/COMMIT_EDITMSG git"], "a link");
}

#[test]
fn an_object_that_is_there_keeps_its_content_and_a_new_one_has_its_hash_as_name() {
    let trees = ReviewTrees::new();
    trees.git("tree", &["init", "--quiet", "."]);
    trees.write("tree/a.txt", "a\n");
    let known = object_of(&trees.git("tree", &["hash-object", "-w", "a.txt"]));
    trees.git("layer", &["init", "--quiet", "../other"]);
    trees.write("other/a.txt", "b\n");
    let other = object_of(&trees.git("other", &["hash-object", "-w", "a.txt"]));
    let bytes = std::fs::read(trees.path("other").join(&other)).unwrap();
    // The control: its content matches its name.
    trees.write(&format!("layer/{other}"), &bytes);
    assert_eq!(trees.asked(), [""; 0]);
    // Under another name, known or not yet known, it needs an approval; so does a pack, which may have any names in it.
    trees.write(&format!("layer/{known}"), &bytes);
    assert_eq!(trees.asked(), [format!("{known} git")]);
    std::fs::remove_file(trees.path("layer").join(&known)).unwrap();
    let unknown = object_of(&"ab".repeat(20));
    trees.write(&format!("layer/{unknown}"), &bytes);
    assert_eq!(trees.asked(), [format!("{unknown} git")]);
    std::fs::remove_file(trees.path("layer").join(&unknown)).unwrap();
    trees.write("layer/.git/objects/pack/pack-1.pack", "x");
    assert_eq!(trees.asked(), [".git/objects/pack/pack-1.pack git"]);
}

#[test]
fn program_that_is_replaced_by_a_compiled_one_takes_a_yes() {
    for (content, asked) in [("#!/bin/sh\n", vec![]), ("\x7fELF evil", vec!["app executable".to_owned()])] {
        let trees = ReviewTrees::new();
        for (name, content) in [("tree/app", "#!/bin/sh\nold\n"), ("layer/app", content)] {
            trees.write(name, content);
            std::fs::set_permissions(trees.path(name), PermissionsExt::from_mode(0o755)).unwrap();
        }
        assert_eq!(trees.asked(), asked);
    }
}

#[test]
fn compiled_code_takes_a_yes_whatever_its_name_and_its_permissions_are() {
    for (name, content, asked) in [
        ("lib/data", "\x7fELF evil", vec!["lib/data build".to_owned()]),
        ("lib/libx.so.1", "\x7fELF evil", vec!["lib/libx.so.1 build".to_owned()]),
        ("assets/x.wasm", "\0asm\x01\0\0\0", vec!["assets/x.wasm build".to_owned()]),
        ("lib/data", "\x7fELF old", vec![]),
        ("lib/data", "a text", vec![]),
        ("lib/data", "\0\x01 data", vec![]),
    ] {
        let trees = ReviewTrees::new();
        trees.write(&format!("tree/{name}"), "\x7fELF old");
        trees.write(&format!("layer/{name}"), content);
        assert_eq!(trees.asked(), asked, "{name} {content:?}");
    }
}

#[test]
fn new_source_of_a_file_that_is_there_takes_a_yes() {
    let trees = ReviewTrees::new();
    for name in ["run-tests.sh", "deploy.sh", "web/server.js", "docs.sh"] {
        trees.write(&format!("layer/{name}"), "evil\n");
    }
    std::fs::create_dir_all(trees.path("tree/docs")).unwrap();
    assert_eq!(trees.asked(), [""; 0], "nothing is beside them");
    trees.write("tree/run-tests", "#!/bin/sh\n");
    trees.write("tree/web/package.json", "{}\n");
    assert_eq!(trees.asked(), ["run-tests.sh build", "web/server.js build"]);
    // The control: a change of what make has made it of before.
    trees.write("tree/run-tests.sh", "#!/bin/sh\n");
    assert_eq!(trees.asked(), ["web/server.js build"]);
}

#[test]
fn what_is_in_a_bare_repository_of_the_tree_takes_a_yes() {
    let trees = ReviewTrees::new();
    trees.git("tree", &["init", "--quiet", "--bare", "fixtures/a"]);
    trees.write("layer/fixtures/a/config", "[core]\n");
    trees.write("layer/fixtures/b/config", "[core]\n");
    assert_eq!(trees.asked(), ["fixtures/a/config git"]);
}

#[test]
fn what_is_trusted_by_a_directory_above_the_tree_takes_a_yes() {
    let trees = ReviewTrees::new();
    for (place, file) in
        [(".github/workflows", "ci.yml"), (".git/hooks", "update"), ("a.git/hooks", "update")]
    {
        trees.write("a.git/HEAD", "ref: refs/heads/main\n");
        for directory in ["a.git/objects", "a.git/refs"] {
            std::fs::create_dir_all(trees.path(directory)).unwrap();
        }
        for (folder, is_asked) in [(place, true), ("plain", false)] {
            trees.write(&format!("{folder}/layer/{file}"), "evil\n");
            std::fs::create_dir_all(trees.path(&format!("{folder}/tree"))).unwrap();
            assert_eq!(!asked_in(&trees.path(folder)).is_empty(), is_asked, "{folder}/{file}");
        }
    }
}

/// Variable that names the trees for the test that is started below.
const MOUNTED: &str = "BELLJAR_TEST_MOUNTED";

#[test]
fn a_directory_that_is_mounted_at_a_trusted_place_has_its_trust() {
    const NAME: &str = "a_directory_that_is_mounted_at_a_trusted_place_has_its_trust";
    if let Some(folder) = std::env::var_os(MOUNTED) {
        let asked = asked_in(Path::new(&folder));
        return assert_eq!(asked, ["editor/tasks.json editor", "rules.txt build"]);
    }
    let trees = ReviewTrees::new();
    std::fs::create_dir(trees.path("tree/.vscode")).unwrap();
    std::fs::create_dir(trees.path("other")).unwrap();
    trees.write("tree/editor/a.txt", "a\n");
    trees.write("tree/rules.txt", "all:\n");
    symlink(trees.path("other/rules.txt"), trees.path("tree/Makefile")).unwrap();
    trees.write("layer/editor/tasks.json", "{}\n");
    trees.write("layer/rules.txt", "evil\n");
    assert_eq!(trees.asked(), [""; 0], "nothing is mounted");
    let script =
        "mount --bind tree/editor tree/.vscode && mount --bind tree other || exit 77; \"$0\" --exact \"$1\"";
    let name = format!("workspace::handoff::tests::{NAME}");
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script]).arg(std::env::current_exe().unwrap()).arg(name);
    let ran = command.env(MOUNTED, trees.path("")).current_dir(trees.path("")).output().unwrap();
    match ran.status.code() {
        Some(0) if String::from_utf8_lossy(&ran.stdout).contains("1 passed") => {}
        Some(1 | 77) if !rustix::process::geteuid().is_root() => skip(NAME, "nothing can be mounted here"),
        _ => panic!("{ran:?}"),
    }
}

#[test]
fn link_to_a_program_takes_a_yes() {
    let trees = ReviewTrees::new();
    trees.write("tree/scripts/x", "#!/bin/sh\n");
    trees.write("tree/doc/x", "");
    trees.write("layer/scripts/y", "#!/bin/sh\n");
    let link = |target: &str, name: &str| symlink(target, trees.path(&format!("layer/{name}"))).unwrap();
    link("scripts/x", "one");
    link("scripts", "all");
    link("scripts/y", "new");
    link("doc/x", "text");
    link("doc", "texts");
    // The control: none of them can be run.
    assert_eq!(trees.asked(), [""; 0]);
    for name in ["tree/scripts/x", "layer/scripts/y"] {
        std::fs::set_permissions(trees.path(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let of_links = ["all executable", "new executable", "one executable"];
    assert_eq!(trees.asked(), [&of_links[..], &["scripts/y executable"]].concat());
}

#[test]
fn paths_that_are_not_utf_8_take_a_yes_each() {
    let trees = ReviewTrees::new();
    let below = |bytes: &[u8]| trees.path("layer").join(OsStr::from_bytes(bytes)).join("Makefile");
    for name in [&b"d\xff"[..], b"d\xfe", b"d\\x{ff}"] {
        let path = below(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "x").unwrap();
    }
    let asked: BTreeSet<String> = trees.asked().into_iter().collect();
    let kind = TrustKind::Build;
    let of = |name: &str| format!("{name}/Makefile {kind}");
    assert_eq!(asked, BTreeSet::from([of("d\\x{fe}"), of("d\\x{ff}"), of("d\\u{5c}x{ff}")]));
    // An approval of one doesn't cover the others.
    let [tree, layer] = ["tree", "layer"].map(|name| Directory::open_host(&trees.path(name)).unwrap());
    let set = ChangeSet::read(&tree, &layer).unwrap();
    let findings = review(&set, &layer, &tree).unwrap().findings;
    let left = policy::ApprovedPaths::in_paths(["d\\x{ff}/Makefile".to_owned()]).without(findings);
    assert_eq!(left.len(), 2, "{left:?}");
}

#[test]
fn no_two_paths_have_one_name_for_programs() {
    let of = |bytes: &[u8]| untrusted::name(Path::new(OsStr::from_bytes(bytes)));
    let all: [&[u8]; 10] = [
        b"d\xff/M",
        b"d\xfe/M",
        b"d\\x{ff}/M",
        b"d\\u{5c}x{ff}/M",
        "d\u{fffd}/M".as_bytes(),
        b"d\\xff/M",
        b"\xff\\x{ff}",
        b"d\\u{5c}u{5c}x{ff}/M",
        b"d\\u{202e}",
        "d\u{202e}".as_bytes(),
    ];
    let names = all.map(of);
    assert_eq!(names[0], "d\\x{ff}/M");
    // Valid UTF-8 that spells no escape stays as it is.
    assert_eq!((names[4].as_str(), names[5].as_str()), ("d\u{fffd}/M", "d\\xff/M"));
    for told in [names.clone(), names.map(|name| untrusted::named(&name))] {
        let distinct: BTreeSet<_> = told.iter().collect();
        assert_eq!(distinct.len(), all.len(), "{told:?}");
    }
}
