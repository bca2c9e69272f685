//! What a program may use of the host, and where the directories are that callers name as everywhere else.

use crate::backend::BackendError;
use crate::directory::{Directory, DirectoryError};
use std::path::{Path, PathBuf};

/// Programs, libraries, and what they need of the host's settings and of its `/proc`: whom a user is, where libraries
/// are, whom to trust, which time it is. No secret is in any of it, and nothing of any process.
const SYSTEM: [&str; 44] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc/alternatives",
    "/etc/bash.bashrc",
    "/etc/ca-certificates",
    "/etc/debian_version",
    "/etc/fonts",
    "/etc/group",
    "/etc/hosts",
    "/etc/inputrc",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/locale.alias",
    "/etc/locale.conf",
    "/etc/localtime",
    "/etc/lsb-release",
    "/etc/magic",
    "/etc/mime.types",
    "/etc/nsswitch.conf",
    "/etc/os-release",
    "/etc/passwd",
    "/etc/pki/tls/certs",
    "/etc/profile",
    "/etc/python3",
    "/etc/shells",
    "/etc/ssl/certs",
    "/etc/ssl/openssl.cnf",
    "/etc/terminfo",
    "/etc/timezone",
    "/proc/cpuinfo",
    "/proc/filesystems",
    "/proc/meminfo",
    "/proc/stat",
    "/proc/sys/kernel/ngroups_max",
    "/proc/sys/kernel/osrelease",
    "/proc/sys/vm/overcommit_memory",
    "/proc/version",
    "/sys/devices/system/cpu",
];

/// The devices that are everybody's. `/dev/tty` is whichever terminal a program has for its own.
const DEVICES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// The files of the system that may be read and run.
pub(super) fn system() -> Vec<String> {
    SYSTEM.map(str::to_owned).into()
}

/// The devices that may be used.
pub(super) fn devices() -> Vec<String> {
    DEVICES.map(str::to_owned).into()
}

/// The directories of one sandbox.
#[derive(Debug)]
pub(super) struct View {
    workspace: Room,
    home: Room,
    temporary: Room,
}

/// A directory of the host that has another name for callers.
#[derive(Debug)]
pub(super) struct Room {
    name: &'static str,
    pub(super) path: PathBuf,
    pub(super) directory: Directory,
}

/// A place that a caller has named.
#[derive(Debug)]
pub(super) struct Found<'v> {
    pub(super) directory: &'v Directory,
    /// Below the directory; empty for the directory itself.
    pub(super) path: PathBuf,
}

// === impl View ===

impl View {
    /// The workspace, which is at a path of its own, and the other two, which are in the run's folder.
    pub(super) fn open(
        (workspace, directory): (&Path, Directory),
        home: &Path,
        temporary: &Path,
    ) -> Result<Self, DirectoryError> {
        let room = |name, path: &Path, directory| Room { name, path: path.to_owned(), directory };
        Ok(Self {
            workspace: room("/workspace", workspace, directory),
            home: room("/home/agent", home, Directory::open_host(home)?),
            temporary: room("/tmp", temporary, Directory::open_host(temporary)?),
        })
    }

    pub(super) fn workspace(&self) -> &Room {
        &self.workspace
    }

    /// The directories that programs may write in.
    pub(super) fn rooms(&self) -> [&Room; 3] {
        [&self.workspace, &self.home, &self.temporary]
    }

    /// Finds a place that is named as in any sandbox.
    pub(super) fn find(&self, inside: &str) -> Result<Found<'_>, BackendError> {
        let failed = |errno: rustix::io::Errno| crate::archive::failed(inside)(errno.into());
        let plain =
            crate::archive::relative(Path::new(inside)).ok_or_else(|| failed(rustix::io::Errno::XDEV))?;
        let plain = Path::new("/").join(plain);
        let found = self.rooms().into_iter().find_map(|room| {
            let path = plain.strip_prefix(room.name).ok()?.to_owned();
            Some(Found { directory: &room.directory, path })
        });
        found.ok_or_else(|| failed(rustix::io::Errno::NOENT))
    }

    /// A working directory as the supervisor takes it: below the workspace, for the kernel to say whether it really is.
    /// The workspace may be named as in any sandbox or as what it is on the host.
    pub(super) fn working_directory(&self, inside: &str) -> PathBuf {
        let path = Path::new(inside);
        let below = [Path::new(self.workspace.name), &self.workspace.path]
            .into_iter()
            .find_map(|workspace| path.strip_prefix(workspace).ok());
        match below {
            Some(below) if below.as_os_str().is_empty() => PathBuf::from("."),
            Some(below) => below.to_owned(),
            None => path.to_owned(),
        }
    }
}

// === impl Found ===

impl Found<'_> {
    /// The same as a path that can be opened.
    pub(super) fn openable(&self) -> &Path {
        if self.path.as_os_str().is_empty() { Path::new(".") } else { &self.path }
    }
}
