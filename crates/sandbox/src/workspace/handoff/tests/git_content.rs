//! Tests of what the index, commits and references of the tree's own repository would write to its paths.

use super::*;

impl ReviewTrees {
    /// Returns the paths that need an approval after work in the copy.
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
        // A change that the review of the file itself shows is not asked about twice.
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

/// An index of version 4 with such paths: how many bytes of the path before are left out, and what follows.
fn index_of(paths: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut bytes = [&b"DIRC"[..], &4_u32.to_be_bytes(), &(paths.len() as u32).to_be_bytes()].concat();
    let mut path = Vec::new();
    for (cut, rest) in paths {
        path.truncate(path.len() - usize::from(*cut));
        path.extend_from_slice(rest);
        let mut entry = [0; 62];
        entry[24..28].copy_from_slice(&0o100_644_u32.to_be_bytes());
        entry[60..].copy_from_slice(&(path.len().min(0xfff) as u16).to_be_bytes());
        bytes.extend_from_slice(&entry);
        bytes.push(*cut);
        bytes.extend_from_slice(rest);
        bytes.push(0);
    }
    [bytes, vec![0; 20]].concat()
}

#[test]
fn index_of_longer_or_more_paths_than_there_can_be_takes_a_yes_and_no_memory() {
    let deep = |depth: usize| "a/".repeat(depth).into_bytes();
    let mut many = vec![(0, deep(2_000))];
    many.extend((0..20_000_u32).map(|at| (u8::from(at > 0) * 5, format!("{at:05}").into_bytes())));
    many[0].1.extend_from_slice(b"!");
    let few = vec![(0, b"a/b".to_vec()), (1, b"c".to_vec())];
    for (paths, can_be_read) in [
        (few, true),
        (vec![(0, [deep(2_000), b"f".to_vec()].concat())], true),
        (vec![(0, [deep(3_000), b"f".to_vec()].concat())], false),
        (vec![(0, vec![b'n'; 256])], false),
        (many, false),
    ] {
        let bytes = index_of(&paths);
        assert!(bytes.len() < 2 << 20);
        let index = index::Index::read(&bytes, index::ObjectFormat::Sha1);
        assert_eq!(index.is_some(), can_be_read, "{} paths, the first {:?}", paths.len(), paths[0].1.len());
    }
}

#[test]
fn index_that_hides_changes_from_git_status_takes_a_yes_unless_it_did_before() {
    for hidden in [["--assume-unchanged", "a.txt"], ["--skip-worktree", "a.txt"], ["--untracked-cache", "."]]
    {
        let trees = committed();
        trees.git("copy", &["update-index", "--index-version", "3"]);
        assert_eq!(trees.asked_of_copy(), [""; 0], "the control");
        trees.git("copy", &["update-index", hidden[0], hidden[1]]);
        assert_eq!(trees.asked_of_copy(), [".git/index git"], "{hidden:?}");
        std::fs::copy(trees.path("copy/.git/index"), trees.path("tree/.git/index")).unwrap();
        trees.write("copy/a.txt", "b\n");
        trees.write("copy/new.txt", "new\n");
        trees.git("copy", &["add", "new.txt"]);
        assert_eq!(trees.asked_of_copy(), [""; 0], "{hidden:?} before");
    }
}

#[test]
fn commit_with_another_content_of_a_trusted_path_takes_a_yes() {
    type GitArguments = &'static [&'static str];
    let ways: [GitArguments; 2] = [&["commit", "--quiet", "-a", "-m", "two"], &["stash"]];
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
fn name_of_a_branch_that_a_command_takes_for_an_option_takes_a_yes() {
    for (name, is_asked) in [
        ("heads/a-x/b+c", false),
        ("heads/v1.2", false),
        ("heads/--output=.envrc", true),
        ("heads/a/-x", true),
        ("heads/+main", true),
        ("heads/a..b", true),
        ("../../evil", true),
        ("heads//x", true),
    ] {
        let trees = committed();
        trees.write("copy/.git/HEAD", format!("ref: refs/{name}\n"));
        assert_eq!(trees.asked_of_copy(), [".git/HEAD git"][..is_asked.into()], "{name}");
    }
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
    // A packed reference counts again once the loose one is gone.
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
fn log_that_names_a_commit_that_was_there_takes_a_yes() {
    let trees = committed();
    let known = trees.git("tree", &["rev-parse", "HEAD"]);
    trees.write("tree/Makefile", "all:\n\tgood\n");
    trees.git("tree", &["commit", "--quiet", "-a", "-m", "two"]);
    let head = trees.git("tree", &["rev-parse", "HEAD"]);
    let none = "0".repeat(40);
    for name in ["HEAD", "refs/heads/main", "refs/stash"] {
        let log = format!(".git/logs/{name}");
        let before = std::fs::read_to_string(trees.path("tree").join(&log)).unwrap_or_default();
        let asked = |from: &str, to: &str| {
            let line =
                format!("{from} {to} A <a@example.com> 1700000000 +0000\tcheckout: moving from x to main\n");
            let _ = std::fs::remove_dir_all(trees.path("layer"));
            trees.write(&format!("layer/{log}"), format!("{before}{line}"));
            trees.asked()
        };
        for (from, to) in [
            (&known, &head),
            (&head, &known),
            (&none, &known),
            (&head, &"ab".repeat(20)),
            (&head, &"x".to_owned()),
        ] {
            assert_eq!(asked(from, to), [format!("{log} git")], "{from} {to}");
        }
        assert_eq!(asked(&none, &head), [""; 0], "the control: {name}");
        assert_eq!(asked(&head, &head), [""; 0], "the control: {name}");
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
