//! Reviews of change sets that lie beside their trees, as they do in an overlay.

use super::*;
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
        let [tree, layer] = ["tree", "layer"].map(|name| Directory::open_host(&self.path(name)).unwrap());
        let set = ChangeSet::read(&tree, &layer).unwrap();
        let findings = review(&set, &layer, &tree).unwrap().findings;
        findings.iter().map(|finding| format!("{} {}", finding.path, finding.kind)).collect()
    }

    /// Runs Git in a directory, without anybody's settings; what it prints.
    fn git(&self, place: &str, arguments: &[&str]) -> String {
        let mut command = Command::new("git");
        command.args(["-c", "user.name=A", "-c", "user.email=a@b.example"]).args(arguments);
        command.envs([("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_CONFIG_SYSTEM", "/dev/null")]);
        let ran = command.current_dir(self.path(place)).output().unwrap();
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        String::from_utf8(ran.stdout).unwrap().trim().to_owned()
    }
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
