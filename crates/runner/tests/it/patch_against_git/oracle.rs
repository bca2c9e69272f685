//! The real `git apply`.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use super::world::{File, World};

/// A directory in which git is run, outside any repository. In memory where that is possible.
pub(super) struct Git {
    home: tempfile::TempDir,
}

/// Result of git for a patch.
pub(super) struct GitApplyResult {
    pub(super) is_accepted: bool,
    pub(super) message: String,
    pub(super) after: World,
}

impl Git {
    pub(super) fn new() -> Self {
        let memory = Path::new("/dev/shm");
        let home = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        Self { home: home.unwrap() }
    }

    /// Runs `git apply` on a copy of `world`.
    pub(super) fn apply(&self, world: &World, diff: &[u8]) -> GitApplyResult {
        let tree = self.fresh("tree", world);
        let output = self.run(&["apply", "-"], &tree, diff);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        GitApplyResult { is_accepted: output.status.success(), message, after: read_world(&tree) }
    }

    /// The diff between two worlds, made by git with the given flags.
    pub(super) fn diff(&self, before: &World, after: &World, flags: &[&str]) -> Vec<u8> {
        self.fresh("a", before);
        self.fresh("b", after);
        let fixed = ["-c", "diff.renameLimit=0", "diff", "--no-index", "--no-prefix", "--no-color"];
        let output = self.run(&[&fixed, flags, &["a", "b"]].concat(), self.home.path(), b"");
        output.stdout
    }

    fn run(&self, arguments: &[&str], directory: &Path, input: &[u8]) -> Output {
        let mut child = Command::new("git")
            .args(arguments)
            .current_dir(directory)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", "/nonexistent")
            .env("LC_ALL", "C")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_CEILING_DIRECTORIES", self.home.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("git must be installed");
        // Git may refuse before it has read everything.
        let _ = child.stdin.take().unwrap().write_all(input);
        child.wait_with_output().unwrap()
    }

    fn fresh(&self, name: &str, world: &World) -> PathBuf {
        let root = self.home.path().join(name);
        if root.exists() {
            fs::remove_dir_all(&root).unwrap();
        }
        fs::create_dir(&root).unwrap();
        for directory in &world.directories {
            fs::create_dir_all(root.join(directory)).unwrap();
        }
        for (path, file) in &world.files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, &file.bytes).unwrap();
            if file.executable {
                fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            }
        }
        root
    }
}

fn read_world(root: &Path) -> World {
    let mut world = World::default();
    read_directory(root, "", &mut world);
    world
}

fn read_directory(directory: &Path, prefix: &str, world: &mut World) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            read_directory(&entry.path(), &format!("{name}/"), world);
        } else if kind.is_file() {
            let executable = entry.metadata().unwrap().permissions().mode() & 0o100 != 0;
            world.files.insert(name, File { executable, bytes: fs::read(entry.path()).unwrap() });
        } else {
            // This shows up as a difference, as it should: our plans never make a link.
            world.directories.insert(format!("{name} (a link)"));
        }
    }
}
