//! Reviews of change sets that lie beside their trees, as they do in an overlay.

use super::*;
use belljar_testkit::skip::skip;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

/// A tree of a person's, and a layer with what was changed in it.
struct Trees {
    folder: tempfile::TempDir,
}

impl Trees {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("tree")).unwrap();
        std::fs::create_dir(folder.path().join("layer")).unwrap();
        Self { folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file into `tree/` or `layer/`.
    fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// What takes a yes, as `PATH KIND`.
    fn asked(&self) -> Vec<String> {
        asked_in(self.folder.path())
    }

    /// Runs Git in a directory, without settings of the user; returns its output.
    fn git(&self, place: &str, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=A", "-c", "user.email=a@b.example"]).args(arguments);
        command.envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_SYSTEM", "/dev/null")]);
        let ran = command.current_dir(self.path(place)).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap().trim().to_owned()
    }
}

fn asked_in(folder: &Path) -> Vec<String> {
    let [tree, layer] = ["tree", "layer"].map(|name| Directory::open_host(&folder.join(name)).unwrap());
    let set = ChangeSet::read(&tree, &layer).unwrap();
    let findings = review(&set, &layer, &tree).unwrap().findings;
    findings.iter().map(|finding| format!("{} {}", finding.path, finding.kind)).collect()
}

fn object_of(name: &str) -> String {
    format!(".git/objects/{}/{}", &name[..2], &name[2..])
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
fn a_commit_takes_no_yes() {
    let trees = Trees::new();
    trees.write("tree/a.txt", "a\n");
    trees.git("tree", &["init", "--quiet", "--initial-branch=main", "."]);
    trees.git("tree", &["add", "."]);
    trees.git("tree", &["commit", "--quiet", "-m", "one"]);
    trees.git("", &["clone", "--quiet", "--no-hardlinks", "tree", "copy"]);
    std::fs::copy(trees.path("tree/.git/config"), trees.path("copy/.git/config")).unwrap();
    std::fs::remove_file(trees.path("copy/.git/packed-refs")).unwrap();
    trees.write("copy/a.txt", "b\n");
    trees.write("copy/src/b.txt", "b\n");
    trees.git("copy", &["add", "."]);
    trees.git("copy", &["commit", "--quiet", "-m", "two"]);
    lay_over(&trees.path("copy"), &trees.path("tree"), &trees.path("layer"));
    assert!(trees.path("layer/.git/refs/heads/main").exists());
    assert_eq!(trees.asked(), [""; 0]);
}

#[test]
fn an_object_that_is_there_keeps_its_content_and_a_new_one_has_its_hash_as_name() {
    let trees = Trees::new();
    trees.git("tree", &["init", "--quiet", "."]);
    trees.write("tree/a.txt", "a\n");
    let known = object_of(&trees.git("tree", &["hash-object", "-w", "a.txt"]));
    trees.git("layer", &["init", "--quiet", "../other"]);
    trees.write("other/a.txt", "b\n");
    let other = object_of(&trees.git("other", &["hash-object", "-w", "a.txt"]));
    let bytes = std::fs::read(trees.path("other").join(&other)).unwrap();
    // The control: it is what its name says.
    trees.write(&format!("layer/{other}"), &bytes);
    assert_eq!(trees.asked(), [""; 0]);
    // Under another name, known or not yet known, it takes a yes; so does a pack, which may have any names in it.
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
    use std::os::unix::fs::PermissionsExt;
    for (content, asked) in [("#!/bin/sh\n", vec![]), ("\x7fELF evil", vec!["app executable".to_owned()])] {
        let trees = Trees::new();
        for (name, content) in [("tree/app", "#!/bin/sh\nold\n"), ("layer/app", content)] {
            trees.write(name, content);
            std::fs::set_permissions(trees.path(name), PermissionsExt::from_mode(0o755)).unwrap();
        }
        assert_eq!(trees.asked(), asked);
    }
}

/// A tree with one commit of `Makefile` and `a.txt`, and a copy of it.
fn committed() -> Trees {
    let trees = Trees::new();
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

impl Trees {
    /// What takes a yes of what was done in the copy.
    fn asked_of_copy(&self) -> Vec<String> {
        lay_over(&self.path("copy"), &self.path("tree"), &self.path("layer"));
        self.asked()
    }

    /// Stores a content in the copy's repository.
    fn blob(&self, content: &str) -> String {
        self.write("blob", content);
        self.git("copy", &["hash-object", "-w", "../blob"])
    }
}

#[test]
fn index_that_has_another_content_of_a_trusted_path_takes_a_yes() {
    for version in ["2", "3", "4"] {
        let trees = committed();
        let evil = trees.blob("all:\n\techo evil\n");
        trees.git("copy", &["update-index", "--index-version", version]);
        // The control: of a path that nothing trusts.
        trees.git("copy", &["update-index", "--cacheinfo", &format!("100644,{evil},a.txt")]);
        assert_eq!(trees.asked_of_copy(), [""; 0], "{version}");
        trees.git("copy", &["update-index", "--cacheinfo", &format!("100644,{evil},Makefile")]);
        assert_eq!(trees.asked_of_copy(), [".git/index git"], "{version}");
        // What the review of the file itself shows is not asked about twice.
        trees.write("copy/Makefile", "all:\n\techo evil\n");
        assert_eq!(trees.asked_of_copy(), ["Makefile build"], "{version}");
    }
}

#[test]
fn index_with_a_path_that_git_does_not_write_takes_a_yes() {
    for path in
        [".git/hooks/post-checkout", ".git/config", "../escaped", "a/../../b", ".GIT/config", "/etc/x"]
    {
        let trees = committed();
        let evil = trees.blob("evil\n");
        // Git takes none of them, so another one is written over in the index.
        let stand_in = "x".repeat(path.len());
        trees.git("copy", &["update-index", "--add", "--cacheinfo", &format!("100644,{evil},{stand_in}")]);
        assert_eq!(trees.asked_of_copy(), [""; 0], "the control");
        let mut bytes = std::fs::read(trees.path("copy/.git/index")).unwrap();
        let at = bytes.windows(path.len()).position(|part| part == stand_in.as_bytes()).unwrap();
        bytes[at..at + path.len()].copy_from_slice(path.as_bytes());
        std::fs::write(trees.path("copy/.git/index"), bytes).unwrap();
        assert_eq!(trees.asked_of_copy(), [".git/index git"], "{path}");
    }
}

#[test]
fn index_that_can_not_be_read_or_has_other_trees_than_its_entries_takes_a_yes() {
    let trees = committed();
    trees.write("copy/src/b.txt", "b\n");
    trees.git("copy", &["add", "."]);
    trees.git("copy", &["commit", "--quiet", "-m", "two"]);
    assert_eq!(trees.asked_of_copy(), [""; 0], "the control");
    let bytes = std::fs::read(trees.path("copy/.git/index")).unwrap();
    let at = bytes.windows(4).position(|part| part == b"TREE").unwrap();
    let changed = |at: usize| {
        let mut changed = bytes.clone();
        changed[at] ^= 1;
        changed
    };
    // A byte of the hash of the tree; the name of the extension; the number of entries.
    let root = at + 8 + b"\x003 1\n".len();
    for other in [changed(root), changed(at + 3), changed(11), bytes[..bytes.len() - 30].to_vec()] {
        std::fs::write(trees.path("copy/.git/index"), other).unwrap();
        assert_eq!(trees.asked_of_copy(), [".git/index git"]);
    }
}

#[test]
fn commit_with_another_content_of_a_trusted_path_takes_a_yes() {
    type Arguments = &'static [&'static str];
    let ways: [Arguments; 2] = [&["commit", "--quiet", "-a", "-m", "two"], &["stash"]];
    for way in ways {
        let trees = committed();
        trees.write("copy/a.txt", "b\n");
        trees.git("copy", way);
        trees.git("copy", &["reset", "--quiet", "--hard", "HEAD"]);
        assert_eq!(trees.asked_of_copy(), [""; 0], "the control: {way:?}");
        trees.write("copy/Makefile", "all:\n\techo evil\n");
        trees.git("copy", way);
        let commit = trees.git("copy", &["rev-parse", if way.len() > 1 { "HEAD" } else { "stash@{0}" }]);
        // The work tree and the index are as they were.
        trees.write("copy/Makefile", "all:\n");
        trees.git("copy", &["add", "Makefile"]);
        let asked = trees.asked_of_copy();
        assert!(asked.contains(&format!("{} git", object_of(&commit))), "{way:?} {asked:?}");
    }
}

#[test]
fn name_of_a_branch_that_a_shell_may_run_takes_a_yes() {
    let trees = committed();
    trees.git("copy", &["checkout", "--quiet", "-b", "feature/#12_ä+b"]);
    assert_eq!(trees.asked_of_copy(), [""; 0], "the control");
    trees.git("copy", &["checkout", "--quiet", "-b", "$(touch${IFS}x)"]);
    let asked = trees.asked_of_copy();
    assert_eq!(asked, [".git/HEAD git", ".git/refs/heads/$(touch${IFS}x) git"]);
}

#[test]
fn reference_that_moves_to_a_commit_that_was_there_takes_a_yes() {
    let trees = committed();
    let known = trees.git("tree", &["rev-parse", "HEAD"]);
    trees.write("tree/Makefile", "all:\n\tgood\n");
    trees.git("tree", &["commit", "--quiet", "-a", "-m", "two"]);
    trees.git("tree", &["branch", "--quiet", "old", &known]);
    let head = trees.git("tree", &["rev-parse", "HEAD"]);
    let asked = |path: &str, says: &str| {
        let _ = std::fs::remove_dir_all(trees.path("layer"));
        trees.write(&format!("layer/.git/{path}"), format!("{says}\n"));
        trees.asked()
    };
    for (path, says) in [
        ("refs/heads/main", known.as_str()),
        ("refs/heads/new", &known),
        ("refs/tags/v1", &known),
        ("HEAD", &known),
        ("HEAD", "ref: refs/heads/old"),
        ("refs/heads/main", &"ab".repeat(20)),
    ] {
        assert_eq!(asked(path, says), [format!(".git/{path} git")], "{path} {says}");
    }
    for (path, says) in [
        ("refs/heads/new", head.as_str()),
        ("HEAD", &head),
        ("HEAD", "ref: refs/heads/unborn"),
        ("refs/heads/old", &known),
    ] {
        assert_eq!(asked(path, says), [""; 0], "the control: {path} {says}");
    }
    // What was packed counts again once the loose one is gone.
    trees.git("tree", &["pack-refs", "--all"]);
    trees.write("tree/.git/refs/heads/main", format!("{head}\n"));
    let packed = std::fs::read_to_string(trees.path("tree/.git/packed-refs")).unwrap();
    trees.write(
        "tree/.git/packed-refs",
        packed.replace(&format!("{head} refs/heads/main"), &format!("{known} refs/heads/main")),
    );
    trees.write("tree/.git/refs/heads/side", format!("{head}\n"));
    let removed = |name: &str| {
        let _ = std::fs::remove_dir_all(trees.path("layer"));
        let path = trees.path("layer").join(format!(".git/refs/heads/{name}"));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mode = rustix::fs::Mode::empty();
        rustix::fs::mknodat(rustix::fs::CWD, &path, FileType::CharacterDevice, mode, 0).unwrap();
        trees.asked()
    };
    if rustix::process::geteuid().is_root() {
        assert_eq!(removed("main"), [".git/refs/heads/main git"]);
        assert_eq!(removed("side"), [""; 0], "the control");
    }
}

#[test]
fn commit_with_a_tree_that_was_there_takes_a_yes_unless_the_index_has_it() {
    let trees = committed();
    let old = trees.git("tree", &["rev-parse", "HEAD^{tree}"]);
    trees.write("tree/Makefile", "all:\n\tgood\n");
    trees.git("tree", &["commit", "--quiet", "-a", "-m", "two"]);
    std::fs::remove_dir_all(trees.path("copy")).unwrap();
    let copied = Command::new("cp").args(["-a", "tree", "copy"]).current_dir(trees.path("")).status();
    assert!(copied.unwrap().success());
    trees.git("copy", &["commit", "--quiet", "--allow-empty", "-m", "nothing"]);
    assert_eq!(trees.asked_of_copy(), [""; 0], "the control");
    let commit = trees.git("copy", &["commit-tree", "-p", "HEAD", "-m", "back", &old]);
    assert_eq!(trees.asked_of_copy(), [format!("{} git", object_of(&commit))]);
}

/// A tree with `Makefile`, `proj/` being the tree itself, and where it is on the host.
fn with_link(target: impl AsRef<Path>) -> Trees {
    let trees = Trees::new();
    trees.write("tree/rules.txt", "all:\n");
    trees.write("tree/sub/rules.txt", "all:\n");
    std::fs::create_dir(trees.path("tree/sub/dir")).unwrap();
    symlink(target, trees.path("tree/Makefile")).unwrap();
    trees
}

#[test]
fn a_link_counts_whichever_way_it_leads_to_what_was_changed() {
    for (target, changed) in [
        ("rules.txt", "rules.txt"),
        ("../tree/rules.txt", "rules.txt"),
        ("../way/rules.txt", "rules.txt"),
        ("a/../rules.txt", "sub/rules.txt"),
        ("a/../../../tree/sub/rules.txt", "sub/rules.txt"),
        ("b/rules.txt", "sub/rules.txt"),
        ("around/rules.txt", "sub/rules.txt"),
        ("missing/rules.txt", "missing/rules.txt"),
    ] {
        let trees = with_link(target);
        symlink("sub/dir", trees.path("tree/a")).unwrap();
        symlink("../way/sub", trees.path("tree/b")).unwrap();
        symlink("./b/../sub", trees.path("tree/around")).unwrap();
        symlink("tree", trees.path("way")).unwrap();
        trees.write(&format!("layer/{changed}"), "evil\n");
        assert_eq!(trees.asked(), [format!("{changed} build")], "{target}");
        // The control: what the link doesn't lead to.
        let trees = with_link(target);
        symlink("sub/dir", trees.path("tree/a")).unwrap();
        trees.write("layer/other.txt", "other\n");
        assert_eq!(trees.asked(), [""; 0], "{target}");
    }
}

#[test]
fn an_absolute_link_counts_by_whichever_name_of_the_directory() {
    let trees = Trees::new();
    trees.write("tree/rules.txt", "all:\n");
    symlink("tree", trees.path("other")).unwrap();
    symlink(trees.path("other/../other/rules.txt"), trees.path("tree/Makefile")).unwrap();
    trees.write("layer/rules.txt", "evil\n");
    assert_eq!(trees.asked(), ["rules.txt build"]);
    // The control: to another directory.
    std::fs::create_dir(trees.path("third")).unwrap();
    std::fs::remove_file(trees.path("tree/Makefile")).unwrap();
    symlink(trees.path("third/rules.txt"), trees.path("tree/Makefile")).unwrap();
    assert_eq!(trees.asked(), [""; 0]);
}

#[test]
fn a_link_of_which_it_cannot_be_told_where_it_leads_takes_a_yes() {
    let trees = with_link("/proc/self/cwd/rules.txt");
    trees.write("layer/rules.txt", "evil\n");
    assert_eq!(trees.asked(), ["rules.txt link"]);
    // The control: one that leads to nothing.
    std::fs::remove_file(trees.path("tree/Makefile")).unwrap();
    symlink("/none/of/this", trees.path("tree/Makefile")).unwrap();
    assert_eq!(trees.asked(), [""; 0]);
}

#[test]
fn a_new_link_brings_what_it_leads_to_to_its_place() {
    for (link, file) in [
        ("renv", "activate.R"),
        ("project", "Build.scala"),
        ("deps", "build.jl"),
        (".ropeproject", "config.py"),
        ("requirements", "dev.txt"),
    ] {
        let trees = Trees::new();
        trees.write(&format!("layer/x/{file}"), "evil\n");
        // The control.
        assert_eq!(trees.asked(), [""; 0], "{file}");
        symlink("x", trees.path(&format!("layer/{link}"))).unwrap();
        let asked = trees.asked().join("\n");
        assert!(asked.contains(&format!("x/{file} ")) && asked.contains(&format!("{link} ")), "{asked}");
        // What is there already comes to its place by the link alone.
        std::fs::rename(trees.path("layer/x"), trees.path("tree/x")).unwrap();
        let asked = trees.asked();
        assert!(!asked.is_empty() && asked.iter().all(|path| path.starts_with(link)), "{asked:?}");
    }
}

#[test]
fn a_link_through_a_link_of_the_tree_that_leads_out_takes_a_yes() {
    let trees = Trees::new();
    symlink("/etc", trees.path("tree/exist")).unwrap();
    symlink("sub", trees.path("tree/inside")).unwrap();
    symlink("inside/x", trees.path("layer/l")).unwrap();
    assert_eq!(trees.asked(), [""; 0]);
    symlink("exist/passwd", trees.path("layer/m")).unwrap();
    assert_eq!(trees.asked(), ["m link"]);
}

#[test]
fn what_is_in_a_bare_repository_of_the_tree_takes_a_yes() {
    let trees = Trees::new();
    trees.git("tree", &["init", "--quiet", "--bare", "fixtures/a"]);
    trees.write("layer/fixtures/a/config", "[core]\n");
    trees.write("layer/fixtures/b/config", "[core]\n");
    assert_eq!(trees.asked(), ["fixtures/a/config git"]);
}

#[test]
fn what_is_trusted_by_a_directory_above_the_tree_takes_a_yes() {
    let trees = Trees::new();
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

#[test]
fn what_the_settings_of_the_repository_name_takes_a_yes() {
    let trees = Trees::new();
    trees.git("tree", &["init", "--quiet", "."]);
    for path in ["scripts/hooks/pre-commit", "conf/git.inc", "conf/more.inc", "tools/diff.txt", "other/x.txt"]
    {
        trees.write(&format!("layer/{path}"), "x\n");
    }
    assert_eq!(trees.asked(), [""; 0]);
    trees.git("tree", &["config", "core.hooksPath", "scripts/hooks"]);
    trees.git("tree", &["config", "include.path", "../conf/git.inc"]);
    trees.git("tree", &["config", "diff.x.textconv", "sh tools/diff.txt"]);
    trees.write("tree/conf/git.inc", "[include]\n\tpath = more.inc\n");
    assert_eq!(
        trees.asked(),
        ["conf/git.inc git", "conf/more.inc git", "scripts/hooks/pre-commit git", "tools/diff.txt git"]
    );
}

/// Where the test that is started below finds its trees.
const MOUNTED: &str = "BELLJAR_TEST_MOUNTED";

#[test]
fn a_directory_that_is_mounted_at_a_trusted_place_has_its_trust() {
    const NAME: &str = "a_directory_that_is_mounted_at_a_trusted_place_has_its_trust";
    if let Some(folder) = std::env::var_os(MOUNTED) {
        let asked = asked_in(Path::new(&folder));
        return assert_eq!(asked, ["editor/tasks.json editor", "rules.txt build"]);
    }
    let trees = Trees::new();
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
