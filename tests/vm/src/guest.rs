//! The content of the machine: busybox, a few files that every system has, programs, and the list of tasks.

use crate::archive::Archive;
use crate::kernel::{Kernel, KernelError};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A guest under construction.
#[derive(Debug, Default)]
pub struct Guest {
    programs: Vec<(String, Vec<u8>)>,
    tasks: Vec<Task>,
}

/// A task that runs in the machine.
#[derive(Debug, Clone)]
pub struct Task {
    /// Its name, without spaces.
    pub name: &'static str,
    /// The user that runs it.
    pub user: User,
    /// A command line for the shell.
    pub command: String,
    /// Time limit, after which it is killed.
    pub timeout: Duration,
}

/// A user that runs tasks in the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// Root.
    Root,
    /// An ordinary user.
    Ordinary,
}

/// The reason why a guest can't be made.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// There is no static busybox to make a small system of.
    #[error("there is no static busybox here")]
    NoBusybox,
    /// A file for the guest can't be read.
    #[error("can't read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// The cause.
        #[source]
        source: std::io::Error,
    },
    /// The kernel lacks a required module.
    #[error(transparent)]
    Kernel(#[from] KernelError),
}

/// Modules for the disk, and for overlay file systems.
const MODULES: [&str; 3] = ["virtio_pci", "virtio_blk", "overlay"];

const DIRECTORIES: [&str; 12] =
    ["dev", "disk", "etc", "home", "home/user", "mnt", "proc", "programs", "root", "run", "sys", "tmp"];

const FILES: [(&str, &str); 3] = [
    ("etc/passwd", "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000:user:/home/user:/bin/sh\n"),
    ("etc/group", "root:x:0:\nuser:x:1000:\n"),
    ("etc/hosts", "127.0.0.1 localhost guest\n"),
];

const BOOT: &str = include_str!("guest/boot.sh");
const RUN: &str = include_str!("guest/run.sh");

/// Returns the path of a busybox that needs no library.
pub fn busybox() -> Option<&'static Path> {
    let busybox = Path::new("/usr/bin/busybox");
    let bytes = std::fs::read(busybox).ok()?;
    // A dynamic one has the loader's name in its first page.
    let needs_a_loader = bytes.get(..4096)?.windows(8).any(|window| window == b"ld-linux");
    (!needs_a_loader).then_some(busybox)
}

// === impl Guest ===

impl Guest {
    /// Adds a program at `/programs/<name>`. It must be static.
    ///
    /// # Errors
    /// [`GuestError::Read`].
    pub fn program(&mut self, name: &str, path: &Path) -> Result<(), GuestError> {
        self.programs.push((name.to_owned(), read(path)?));
        Ok(())
    }

    /// Adds a task after the existing ones.
    pub fn task(&mut self, task: Task) {
        self.tasks.push(task);
    }

    /// Returns the tasks.
    pub fn tasks(&self) -> &[Task] {
        &self.tasks
    }

    /// Returns the archive that the kernel unpacks at boot.
    pub(crate) fn archive(&self, kernel: &Kernel) -> Result<Vec<u8>, GuestError> {
        let busybox = read(busybox().ok_or(GuestError::NoBusybox)?)?;
        let mut archive = Archive::default();
        for directory in ["bin", "dev", "disk", "modules", "proc", "tree"] {
            archive.directory(directory);
        }
        archive.file("bin/busybox", 0o755, &busybox);
        archive.file("init", 0o755, BOOT.as_bytes());
        let mut order = String::new();
        for module in kernel.modules(&MODULES)? {
            let name = module.file_name().unwrap_or_default().to_string_lossy().into_owned();
            archive.file(&format!("modules/{name}"), 0o644, &read(&module)?);
            order.push_str(&name);
            order.push('\n');
        }
        archive.file("modules/order", 0o644, order.as_bytes());
        self.add_tree(&mut archive, &busybox);
        Ok(archive.finish())
    }

    /// Adds the files of the disk.
    fn add_tree(&self, archive: &mut Archive, busybox: &[u8]) {
        for directory in DIRECTORIES {
            archive.directory(&format!("tree/{directory}"));
        }
        for directory in ["usr", "usr/bin", "usr/sbin"] {
            archive.directory(&format!("tree/{directory}"));
        }
        archive.link("tree/bin", "usr/bin");
        archive.link("tree/sbin", "usr/sbin");
        archive.file("tree/usr/bin/busybox", 0o755, busybox);
        archive.file("tree/run.sh", 0o755, RUN.as_bytes());
        for (path, content) in FILES {
            archive.file(&format!("tree/{path}"), 0o644, content.as_bytes());
        }
        for (name, content) in &self.programs {
            archive.file(&format!("tree/programs/{name}"), 0o755, content);
        }
        archive.file("tree/list", 0o644, self.list().as_bytes());
    }

    fn list(&self) -> String {
        let line = |Task { name, user, command, timeout }: &Task| {
            format!("{} {name} {} {command}\n", user.as_str(), timeout.as_secs())
        };
        self.tasks.iter().map(line).collect()
    }
}

fn read(path: &Path) -> Result<Vec<u8>, GuestError> {
    std::fs::read(path).map_err(|source| GuestError::Read { path: path.to_owned(), source })
}

// === impl User ===

impl User {
    /// Returns the user's name in the machine.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Ordinary => "user",
        }
    }
}
