//! What lies on the host for the attempts of one test: secrets, listeners, a process, and folders to lend.
//!
//! Every name and number is another one in each run, so that nothing can be prepared for it.

use crate::belljar::PROBE;
use crate::listeners::Listeners;
use crate::way::{Place, Way};
use belljar_testkit::foreign_root::{Docker, IMAGE};
use belljar_testkit::world::{Ran, User, World};
use std::fs::{self, Permissions};
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, lchown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The host, laid out.
pub(crate) struct Scene<'w> {
    pub(crate) world: &'w World,
    /// Whose containers the sandboxes are, if they are containers.
    pub(crate) engine: Option<&'w Docker>,
    /// The ways into a sandbox that are tried.
    pub(crate) ways: &'static [Way],
    /// In every name that an attempt makes: where it turns up on the host, something got through.
    pub(crate) mark: String,
    /// In every file of the host that nobody inside may read: 32 random bytes, in hexadecimal digits.
    pub(crate) canary: String,
    /// The files with the canary in them.
    pub(crate) secrets: Vec<PathBuf>,
    pub(crate) listeners: Listeners,
    /// Variables that belljar is started with, beside those of the world.
    pub(crate) environment: Vec<(String, String)>,
    victim: Child,
}

/// Directories of the host, outside of the world, in which a secret is planted where that is allowed.
const PLANTED_IN: [&str; 4] = ["/var/tmp", "/dev/shm", "/run", "/root"];

/// The operations on a file that is not to be changed, each with a file of its own.
pub(crate) const CHANGES: [&str; 16] = [
    "append", "write", "truncate", "cut", "unlink", "rename", "replace", "chmod", "chown", "xattr", "times",
    "create", "mkdir", "symlink", "mknod", "link",
];

/// The names of programs that lend rights: a user's, a group's.
const SET_ID: [&str; 2] = ["set-uid", "set-gid"];

/// The user inside of a container that may be anybody.
const OF_CONTAINERS: u32 = 1000;

const ROOT: u32 = 0;
/// A user that owns nothing, on every system.
const DAEMON: u32 = 1;

// === impl Scene ===

impl<'w> Scene<'w> {
    pub(crate) fn lay(world: &'w World) -> Self {
        Self::lay_for(world, None, Way::ALL)
    }

    /// The same, with sandboxes that have a hatch to the web.
    pub(crate) fn lay_for_web(world: &'w World) -> Self {
        let scene = Self::lay_for(world, None, &[Way::Web]);
        scene.world.write("egress.yaml", "rules: [{host: allowed.example}]\n");
        for socket in ["web.sock", "other.sock"] {
            scene.world.write(&format!("outside/web-sock/{socket}"), "");
        }
        scene
    }

    /// The same, with sandboxes that are containers.
    pub(crate) fn lay_for_containers(world: &'w World, engine: &'w Docker, ways: &'static [Way]) -> Self {
        let scene = Self::lay_for(world, Some(engine), ways);
        scene.give_away(Way::Direct.folder().unwrap());
        scene
    }

    fn lay_for(world: &'w World, engine: Option<&'w Docker>, ways: &'static [Way]) -> Self {
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
        for way in Way::GIVEN {
            scene.fill_given(way.folder().unwrap());
        }
        scene.fill_outside();
        scene
    }

    /// A path of the world, as text.
    pub(crate) fn path(&self, below: &str) -> String {
        self.world.path().join(below).display().to_string()
    }

    /// The options that say which backend makes a sandbox.
    pub(crate) fn backend(&self) -> Vec<String> {
        let Some(engine) = self.engine else { return Vec::new() };
        let socket = engine.socket().display().to_string();
        ["--backend", "docker", "--image", IMAGE, "--docker-socket", &socket].map(str::to_owned).into()
    }

    /// The command of belljar that makes a sandbox, with these options of it.
    pub(crate) fn making(&self, command: &[&str], options: &[&str], program: &[&str]) -> Command {
        let backend = self.backend();
        let backend: Vec<&str> = backend.iter().map(String::as_str).collect();
        let program = if program.is_empty() { Vec::new() } else { [&["--"], program].concat() };
        self.world.command(&[command, &backend, options, &program].concat())
    }

    /// Runs it to its end.
    pub(crate) fn make(&self, command: &[&str], options: &[&str], program: &[&str]) -> Ran {
        Ran::from(self.making(command, options, program).output().unwrap())
    }

    /// The host, for controls.
    pub(crate) fn outside(&self) -> Place {
        Place::outside(&self.world.path().join("outside"))
    }

    /// A process of the host, of whoever starts the sandbox, that only wants to live.
    pub(crate) fn victim(&self) -> u32 {
        self.victim.id()
    }

    /// Whether it does.
    pub(crate) fn victim_lives(&mut self) -> bool {
        self.victim.try_wait().unwrap().is_none()
    }

    /// A command of the world that is started as by a careless parent: a directory of the host is open, and a signal is
    /// ignored.
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

    /// What every sandbox is lent: the probe, and things to change.
    fn fill_lent(&self) {
        let probe = self.world.write("lent/belljar-probe", fs::read(PROBE).unwrap());
        fs::set_permissions(&probe, Permissions::from_mode(0o755)).unwrap();
        self.fill_changeable("lent");
        self.fill_traps("lent");
    }

    /// Files to be changed, each of them by one attempt alone.
    fn fill_changeable(&self, below: &str) {
        for change in CHANGES {
            self.world.write(&format!("{below}/{change}/file"), "as it was");
            self.world.write(&format!("{below}/{change}/other"), "as it was, too");
        }
    }

    /// Links that lead to a secret, and programs that lend rights.
    fn fill_traps(&self, below: &str) {
        self.lead_out(below);
        for kind in SET_ID {
            fs::hard_link(self.world.path().join(kind), self.world.path().join(below).join(kind)).unwrap();
        }
    }

    /// Programs that lend their owner's rights: those of somebody other than who acts here, where root makes them.
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

    /// Links that lead to a secret.
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

    /// Gives a folder to the user that containers have: who works in a directory as it is, is its owner. What lends
    /// rights stays what it is.
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

    /// A directory that looks like a sandbox's root, with nothing in the way.
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

impl Drop for Scene<'_> {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
        for secret in &self.secrets {
            let _ = fs::remove_file(secret);
        }
    }
}

/// Random bytes, in hexadecimal digits.
pub(crate) fn random(bytes: usize) -> String {
    let mut random = vec![0; bytes];
    fs::File::open("/dev/urandom").unwrap().read_exact(&mut random).unwrap();
    random.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Its pid is larger than those of any sandbox here, so that no number means two processes.
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
