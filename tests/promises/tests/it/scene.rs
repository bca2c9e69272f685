//! The host's state for the attempts of one test: secrets, listeners, a process, and folders to mount.
//!
//! Every name and number is different in each run, so that no code can be prepared for it.

use crate::belljar::PROBE;
use crate::listeners::Listeners;
use crate::way::{AttemptPlace, StartMethod};
use belljar_testkit::foreign_root::{Docker, IMAGE};
use belljar_testkit::world::{ProgramOutput, User, World};
use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The prepared host.
pub(crate) struct PreparedHost<'w> {
    pub(crate) world: &'w World,
    /// The engine that makes the sandboxes, if they are containers.
    pub(crate) engine: Option<&'w Docker>,
    /// The ways into a sandbox that are tried.
    pub(crate) ways: &'static [StartMethod],
    /// A mark in every name that an attempt creates: if it turns up on the host, the attempt got through.
    pub(crate) mark: String,
    /// The content of every file of the host that a sandbox must not read: 32 random bytes in hexadecimal digits.
    pub(crate) canary: String,
    /// The files that contain the canary.
    pub(crate) secrets: Vec<PathBuf>,
    pub(crate) listeners: Listeners,
    /// Environment variables for belljar, in addition to those of the world.
    pub(crate) environment: Vec<(String, String)>,
    victim: Child,
}

/// Directories of the host, outside of the world, in which a secret is planted where that is permitted.
const PLANTED_IN: [&str; 4] = ["/var/tmp", "/dev/shm", "/run", "/root"];

/// The operations on a file that must not change, each with a file of its own.
pub(crate) const CHANGES: [&str; 16] = [
    "append", "write", "truncate", "cut", "unlink", "rename", "replace", "chmod", "chown", "xattr", "times",
    "create", "mkdir", "symlink", "mknod", "link",
];

/// Names of set-id programs: one for a user, one for a group.
const SET_ID: [&str; 2] = ["set-uid", "set-gid"];

/// The user inside of a container. Any user is possible.
const OF_CONTAINERS: u32 = 1000;

const ROOT: u32 = 0;
/// A user that exists on every system and owns no files.
const DAEMON: u32 = 1;

// === impl PreparedHost ===

impl<'w> PreparedHost<'w> {
    pub(crate) fn lay(world: &'w World) -> Self {
        Self::lay_for(world, None, StartMethod::ALL)
    }

    /// Prepares a host for sandboxes with a hatch to the web.
    pub(crate) fn lay_for_web(world: &'w World) -> Self {
        let scene = Self::lay_for(world, None, &[StartMethod::Web]);
        scene.world.write("egress.yaml", "rules: [{host: allowed.example}]\n");
        for socket in ["web.sock", "other.sock"] {
            scene.world.write(&format!("outside/web-sock/{socket}"), "");
        }
        scene
    }

    /// Prepares a host for sandboxes that are containers.
    pub(crate) fn lay_for_containers(
        world: &'w World,
        engine: &'w Docker,
        ways: &'static [StartMethod],
    ) -> Self {
        let scene = Self::lay_for(world, Some(engine), ways);
        scene.give_away(StartMethod::Direct.folder().unwrap());
        scene
    }

    fn lay_for(world: &'w World, engine: Option<&'w Docker>, ways: &'static [StartMethod]) -> Self {
        let (mark, canary) = (format!("mark{}", random(8)), random(32));
        let mut scene = Self {
            world,
            engine,
            ways,
            listeners: Listeners::open(&mark, world),
            victim: victim(world),
            secrets: Vec::new(),
            environment: Vec::new(),
            mark,
            canary,
        };
        scene.plant_secrets();
        scene.make_set_id_programs();
        scene.fill_lent();
        for way in StartMethod::GIVEN {
            scene.fill_given(way.folder().unwrap());
        }
        scene.fill_outside();
        scene
    }

    /// Returns a path of the world, as text.
    pub(crate) fn path(&self, below: &str) -> String {
        self.world.path().join(below).display().to_string()
    }

    /// Returns the options that select the backend of a sandbox.
    pub(crate) fn backend(&self) -> Vec<String> {
        let Some(engine) = self.engine else { return Vec::new() };
        let socket = engine.socket().display().to_string();
        ["--backend", "docker", "--image", IMAGE, "--docker-socket", &socket].map(str::to_owned).into()
    }

    /// Returns the belljar command that makes a sandbox with these options.
    pub(crate) fn making(&self, command: &[&str], options: &[&str], program: &[&str]) -> Command {
        let backend = self.backend();
        let backend: Vec<&str> = backend.iter().map(String::as_str).collect();
        let program = if program.is_empty() { Vec::new() } else { [&["--"], program].concat() };
        self.world.command(&[command, &backend, options, &program].concat())
    }

    /// Runs that command and waits for its end.
    pub(crate) fn make(&self, command: &[&str], options: &[&str], program: &[&str]) -> ProgramOutput {
        ProgramOutput::from(self.making(command, options, program).output().unwrap())
    }

    /// Returns the host as the place of controls.
    pub(crate) fn outside(&self) -> AttemptPlace {
        AttemptPlace::outside(&self.world.path().join("outside"))
    }

    /// Returns the id of a process on the host, of the user who starts the sandbox, that must survive.
    pub(crate) fn victim(&self) -> u32 {
        self.victim.id()
    }

    /// Returns true if that process is alive.
    pub(crate) fn victim_lives(&mut self) -> bool {
        self.victim.try_wait().unwrap().is_none()
    }

    /// Returns a command of the world with a careless parent: it inherits an open directory of the host and an ignored
    /// signal.
    pub(crate) fn leaking(&self, program: &Path, arguments: &[&str]) -> Command {
        let program = program.display().to_string();
        let (script, folder) = ("trap '' USR2; exec 7<\"$0\"; exec \"$@\"", self.path("home"));
        let arguments = [&["-c", script, &folder, &program], arguments].concat();
        let mut command = self.world.command_of(Path::new("/bin/sh"), &arguments);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }

    fn plant_secrets(&mut self) {
        for name in [
            "home/.ssh/id_ed25519",
            "home/.netrc",
            "home/secret",
            "state/belljar.db",
            "state/runs/other/job/job.json",
            "other/workspace/secret",
        ] {
            self.secrets.push(self.world.write(name, &self.canary));
        }
        for directory in PLANTED_IN {
            let path = Path::new(directory).join(format!("belljar-{}", self.mark));
            if fs::write(&path, &self.canary).is_ok() {
                fs::set_permissions(&path, Permissions::from_mode(0o644)).unwrap();
                self.secrets.push(path);
            }
        }
    }

    /// Fills the folder that every sandbox mounts read-only: the probe, and files to change.
    fn fill_lent(&self) {
        let probe = self.world.write("lent/belljar-probe", fs::read(PROBE).unwrap());
        fs::set_permissions(&probe, Permissions::from_mode(0o755)).unwrap();
        self.fill_changeable("lent");
        self.fill_traps("lent");
    }

    /// Creates files to change, each for one attempt.
    fn fill_changeable(&self, below: &str) {
        for change in CHANGES {
            self.world.write(&format!("{below}/{change}/file"), "as it was");
            self.world.write(&format!("{below}/{change}/other"), "as it was, too");
        }
    }

    /// Creates links to a secret, and set-id programs.
    fn fill_traps(&self, below: &str) {
        self.lead_out(below);
        for kind in SET_ID {
            fs::hard_link(self.world.path().join(kind), self.world.path().join(below).join(kind)).unwrap();
        }
    }

    /// Creates set-id programs. Root gives them to a user other than the one who starts the sandbox.
    fn make_set_id_programs(&self) {
        for (kind, mode) in SET_ID.into_iter().zip([0o4755, 0o2755]) {
            let path = self.world.write(kind, fs::read(PROBE).unwrap());
            if rustix::process::geteuid().is_root() {
                let owner = if self.world.user() == User::Own { DAEMON } else { ROOT };
                std::os::unix::fs::chown(&path, Some(owner), Some(owner)).unwrap();
            }
            fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        }
    }

    /// Creates links that lead to a secret.
    fn lead_out(&self, below: &str) {
        let secret = self.path("home/secret");
        let folder = self.world.path().join(below);
        symlink(&secret, folder.join("to-secret")).unwrap();
        symlink("to-secret", folder.join("to-link")).unwrap();
        symlink(self.path("home"), folder.join("to-folder")).unwrap();
        symlink("../".repeat(12) + secret.trim_start_matches('/'), folder.join("to-secret-by-dots")).unwrap();
    }

    fn fill_given(&self, folder: &str) {
        self.world.write(&format!("{folder}/kept/file"), "as it was");
        self.fill_traps(folder);
    }

    /// Gives a folder to the user of the containers, who must own a directory that it works in directly. Set-id programs keep
    /// their owner.
    fn give_away(&self, folder: &str) {
        let mut pending = vec![self.world.path().join(folder)];
        while let Some(path) = pending.pop() {
            lchown(&path, Some(OF_CONTAINERS), Some(OF_CONTAINERS)).unwrap();
            if fs::symlink_metadata(&path).unwrap().is_dir() {
                let entries = fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path());
                pending.extend(entries.filter(|path| !SET_ID.iter().any(|name| path.ends_with(name))));
            }
        }
    }

    /// Creates a directory that looks like a sandbox's root, without restrictions.
    fn fill_outside(&self) {
        self.fill_changeable("outside/lent");
        self.world.write("outside/workspace/kept/file", "as it was");
        for folder in ["outside/lent", "outside/workspace"] {
            self.fill_traps(folder);
        }
        for name in [
            "etc/passwd",
            "etc/resolv.conf",
            "etc/hosts",
            "etc/nsswitch.conf",
            "etc/group",
            "usr/bin/sh",
            "usr/bin/true",
            "usr/file",
            "usr/bin/env",
            "dev/file",
            "tmp/file",
            "home/agent/file",
            "run/belljar/cynode-sba",
            "job/job.json",
            "job/result.json",
            "dev/shm/file",
            "mnt/file",
        ] {
            self.world.write(&format!("outside/{name}"), "as it was");
        }
    }
}

impl Drop for PreparedHost<'_> {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
        for secret in &self.secrets {
            let _ = fs::remove_file(secret);
        }
    }
}

/// Returns random bytes in hexadecimal digits.
pub(crate) fn random(bytes: usize) -> String {
    let mut random = vec![0; bytes];
    fs::File::open("/dev/urandom").unwrap().read_exact(&mut random).unwrap();
    random.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Starts a process with an id that is larger than those in any sandbox here, so that no number means two processes.
fn victim(world: &World) -> Child {
    const SMALLEST: u32 = 3000;
    loop {
        let mut command = world.command_of(Path::new("/bin/sleep"), &["600"]);
        let mut child = command.stdout(Stdio::null()).spawn().unwrap();
        if child.id() > SMALLEST {
            return child;
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
