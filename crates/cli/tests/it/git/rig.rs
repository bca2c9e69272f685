//! A repository at a server over TLS, a user with its password, and a clone.

use crate::BELLJAR;
use belljar_testkit::forge::Forge;
use belljar_testkit::git::{HttpsServer, HttpsSite, Repositories, git};
use belljar_testkit::skip::skip;
use belljar_testkit::world::{ProgramOutput, World};
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

/// The password that only the host sends to the server.
pub(crate) const PASSWORD: &str = "pw-9sVn4Tq7YcE2hK";

/// The world with the clone, the server, and the access to it.
pub(crate) struct GitFixture {
    pub(crate) world: World,
    pub(crate) server: HttpsServer,
    pub(crate) repositories: Repositories,
    pub(crate) bare: PathBuf,
    pub(crate) url: String,
    forge: Option<Forge>,
}

// === impl GitFixture ===

impl GitFixture {
    /// Starts a rig with a repository of a few files. Returns `None` and counts a skip if that isn't possible.
    pub(crate) fn start(test: &str) -> Option<Self> {
        Self::with(test, World::new(BELLJAR), &[("README.md", "hello\n"), ("src/a.txt", "a\n")])
    }

    pub(crate) fn with(test: &str, world: World, files: &[(&str, &str)]) -> Option<Self> {
        Self::of(test, world, ("origin.git", files), None)
    }

    /// Starts a rig with a team's repository, and with a forge that requires the token.
    pub(crate) fn beside_a_forge(test: &str, world: World, token: &str) -> Option<Self> {
        Self::of(test, world, ("team/origin.git", &[("README.md", "hello\n")]), Some(token))
    }

    fn of(
        test: &str,
        world: World,
        (name, files): (&str, &[(&str, &str)]),
        token: Option<&str>,
    ) -> Option<Self> {
        let repositories = Repositories::in_world(&world);
        let bare = repositories.make(name, files);
        let forge = token.map(|token| Forge::start(token, repositories.root()));
        let names = ["localhost", "127.0.0.1", "git.house.test"];
        let site = HttpsSite {
            address: Ipv4Addr::LOCALHOST,
            names: &names,
            password: PASSWORD,
            forge: forge.as_ref().map(Forge::address),
        };
        let served = HttpsServer::start_beside(&world, repositories.root(), &site);
        let server = served.map_err(|why| skip(test, &why)).ok()?;
        let url = format!("https://127.0.0.1:{}/{name}", server.port());
        // A typical user configuration, with many settings that must be ignored.
        let ran = world.path().join("ran").display().to_string();
        world.write(
            ".gitconfig",
            format!(
                "[user]\n\tname = Person\n\temail = person@house.example\n\
                 [credential]\n\thelper = \"!f() {{ echo username=user; echo password={PASSWORD}; }}; f\"\n\
                 [http]\n\tsslCAInfo = {}\n\tproxy = http://127.0.0.1:1\n\
                 [url \"https://elsewhere.invalid/\"]\n\tinsteadOf = https://127.0.0.1\n\
                 [core]\n\tfsmonitor = touch {ran}\n\thooksPath = {ran}.hooks\n[push]\n\tfollowTags = true\n\
                 [filter \"evil\"]\n\tclean = touch {ran}; cat\n\tsmudge = touch {ran}; cat\n\trequired = true\n",
                server.authority().display()
            ),
        );
        Some(Self { world, server, repositories, bare, url, forge })
    }

    /// Returns the forge.
    pub(crate) fn forge(&self) -> &Forge {
        self.forge.as_ref().unwrap()
    }

    /// Clones into `work`.
    pub(crate) fn clone(&self) -> ProgramOutput {
        self.clone_from(&self.url)
    }

    pub(crate) fn clone_from(&self, url: &str) -> ProgramOutput {
        self.world.run(&["git", "clone", url, "work", "--allow-network", "127.0.0.0/8"])
    }

    /// Pushes the clone's changes, with a proxy in the environment that must not be used.
    pub(crate) fn push(&self, options: &[&str]) -> ProgramOutput {
        let all = [&["git", "push", "work", "--allow-network", "127.0.0.0/8"], options].concat();
        let mut command = self.world.command(&all);
        command.env("https_proxy", "http://127.0.0.1:1").env("ALL_PROXY", "http://127.0.0.1:1");
        ProgramOutput::from(command.output().unwrap())
    }

    /// Returns a path in the clone.
    pub(crate) fn work(&self, path: &str) -> PathBuf {
        self.world.path().join("work").join(path)
    }

    /// Writes a file like an agent.
    pub(crate) fn leaves(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.work(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// Returns the server's tree of a branch: a line for each path, with its mode.
    pub(crate) fn tree(&self, branch: &str) -> Vec<String> {
        let listed = git(&self.bare, &["ls-tree", "-r", "-z", branch]);
        let lines = listed.split('\0').filter_map(|line| line.split_once('\t'));
        lines.map(|(head, path)| format!("{} {path}", &head[..6])).collect()
    }

    /// Returns true if git ran any of the programs that it must not run.
    pub(crate) fn has_run(&self) -> bool {
        self.world.path().join("ran").exists()
    }
}

/// Returns every file below a folder that contains a text.
pub(crate) fn holding(below: &Path, text: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut pending = vec![below.to_owned()];
    while let Some(path) = pending.pop() {
        let metadata = std::fs::symlink_metadata(&path).unwrap();
        if metadata.is_dir() {
            pending.extend(std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if metadata.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            if bytes.windows(text.len()).any(|window| window == text.as_bytes()) {
                found.push(path);
            }
        }
    }
    found
}
