//! The ways into a sandbox, and the places of controls: where a batch of attempts is made.

use crate::case::ControlPlacement;
use crate::scene::PreparedHost;
use belljar_promises::attempt::{Attempt, AttemptResult};
use belljar_testkit::job::job;
use belljar_testkit::wait;
use belljar_testkit::world::{ProgramOutput, User};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A way to start a program in a sandbox. Each builds the sandbox differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StartMethod {
    /// `belljar exec` with an empty workspace.
    Empty,
    /// `belljar exec` with an empty workspace and a hatch to the web.
    Web,
    /// `belljar exec` on a directory as it is.
    Direct,
    /// `belljar exec` on a copy.
    Copy,
    /// A step of a job, on a copy: the runner starts it with further restrictions.
    Job,
    /// A further program in a session's sandbox, on a copy.
    Session,
}

/// The place of an attempt, as far as its paths depend on it.
#[derive(Debug, Clone)]
pub(crate) struct AttemptPlace {
    /// Prefix of a path that begins in the sandbox's root.
    root: PathBuf,
}

/// The results of a batch.
#[derive(Debug)]
pub(crate) struct BatchResult {
    /// The answers, by case.
    pub(crate) answers: BTreeMap<String, AttemptResult>,
    /// The complete output.
    pub(crate) output: String,
}

/// Path of the probe inside.
pub(crate) const PROBE: &str = "/lent/belljar-probe";

// === impl StartMethod ===

impl StartMethod {
    pub(crate) const ALL: &'static [Self] =
        &[Self::Empty, Self::Direct, Self::Copy, Self::Job, Self::Session];
    /// The ways into a container: no job runs in one yet.
    pub(crate) const OF_CONTAINERS: &'static [Self] = &[Self::Empty, Self::Direct, Self::Copy, Self::Session];
    /// The ways that are enough for cases that don't depend on the workspace.
    pub(crate) const COPY_AND_SESSION: &'static [Self] = &[Self::Copy, Self::Session];
    /// Ways with a directory of the host as workspace.
    pub(crate) const GIVEN: &'static [Self] = &[Self::Direct, Self::Copy, Self::Job, Self::Session];
    /// Ways in which belljar lives as long as the program, and relays its input.
    pub(crate) const EXEC: &'static [Self] = &[Self::Empty, Self::Direct, Self::Copy];
    /// Ways with a copy of such a directory.
    pub(crate) const COPIES: &'static [Self] = &[Self::Copy, Self::Job, Self::Session];

    /// Returns true if belljar lives as long as the program, and relays its input.
    pub(crate) fn is_exec(self) -> bool {
        self == Self::Web || Self::EXEC.contains(&self)
    }

    /// Returns this way without a hatch.
    pub(crate) fn without_hatch(self) -> Self {
        if self == Self::Web { Self::Empty } else { self }
    }

    /// Returns the folder of the world that is its workspace.
    pub(crate) fn folder(self) -> Option<&'static str> {
        match self {
            Self::Empty | Self::Web => None,
            Self::Direct => Some("given/direct"),
            Self::Copy => Some("given/copy"),
            Self::Job => Some("given/job"),
            Self::Session => Some("given/session"),
        }
    }

    /// Returns the options for the mounts that every sandbox here has.
    fn options(self, scene: &PreparedHost<'_>) -> Vec<String> {
        let option = match self {
            Self::Empty | Self::Web => None,
            Self::Direct => Some("--workspace"),
            Self::Copy | Self::Job | Self::Session => Some("--workspace-copy"),
        };
        let given = option.zip(self.folder()).map(|(option, folder)| [option.to_owned(), scene.path(folder)]);
        let lent = ["--ro".to_owned(), format!("{}:/lent", scene.path("lent"))];
        let web = (self == Self::Web).then(|| ["--egress".to_owned(), scene.path("egress.yaml")]);
        let options = scene.backend().into_iter().chain(given.into_iter().flatten());
        options.chain(lent).chain(web.into_iter().flatten()).collect()
    }

    /// Returns belljar's arguments that run a program this way; for a session, those that create it.
    fn arguments(self, scene: &PreparedHost<'_>, program: &[&str]) -> Vec<String> {
        let given = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let options = self.options(scene);
        match self {
            Self::Job => {
                let step = json!({ "type": "run_command", "args": { "argv": program } });
                let mut document = job(&json!([step]));
                document["constraints"]["max_output_bytes"] = json!(64 << 20);
                scene.world.write("job.json", document.to_string());
                [given(&["run", "--json"]), options, given(&["job.json"])].concat()
            }
            Self::Session => [given(&["session", "create"]), options].concat(),
            _ => [given(&["exec"]), options, given(&["--"]), given(program)].concat(),
        }
    }

    /// Returns the command that runs a program this way, if a single command is enough.
    pub(crate) fn command(self, scene: &PreparedHost<'_>, program: &[&str]) -> Command {
        assert_ne!(self, Self::Session, "a session takes more commands than one");
        let arguments = self.arguments(scene, program);
        scene.leaking(scene.world.program(), &arguments.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Runs a program this way, and returns its output.
    pub(crate) fn run(self, scene: &PreparedHost<'_>, program: &[&str]) -> String {
        let belljar = |arguments: &[&str]| {
            let ran = ProgramOutput::from(scene.leaking(scene.world.program(), arguments).output().unwrap());
            assert_eq!(ran.code, 0, "{arguments:?}: {ran:?}");
            ran
        };
        let arguments = self.arguments(scene, program);
        let ran = belljar(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        match self {
            Self::Job => ran.json()["steps"][0]["result"]["stdout"].as_str().unwrap().to_owned(),
            Self::Session => {
                let session = ran.stdout.trim();
                let told = belljar(&[&["session", "exec", session, "--"], program].concat());
                end_session(scene, session);
                told.stdout
            }
            _ => ran.stdout,
        }
    }

    /// Makes attempts this way.
    pub(crate) fn attempt(self, scene: &PreparedHost<'_>, attempts: &[Attempt]) -> BatchResult {
        scene.world.write("lent/attempts.json", serde_json::to_string(attempts).unwrap());
        BatchResult::read(self.run(scene, &[PROBE, "run", "/lent/attempts.json"]))
    }
}

/// Ends a session, and waits until it is gone.
pub(crate) fn end_session(scene: &PreparedHost<'_>, session: &str) {
    // Other tests check the command's output; here only the session's end matters.
    let _ = scene.world.run(&["session", "end", "--discard", session]);
    wait::until(|| !scene.world.run(&["session", "list"]).stdout.contains(session));
}

impl ControlPlacement {
    /// Makes attempts where they must succeed. Returns `None` if this test can't act as that user.
    pub(crate) fn attempt(self, scene: &PreparedHost<'_>, attempts: &[Attempt]) -> Option<BatchResult> {
        let file = scene.world.write("outside/attempts.json", serde_json::to_string(attempts).unwrap());
        let probe = scene.world.path().join("lent/belljar-probe");
        let arguments = [if self == Self::Free { "free" } else { "run" }, file.to_str().unwrap()];
        let is_root = rustix::process::geteuid().is_root();
        let mut command = match self {
            Self::Root if scene.world.user() == User::Ordinary && is_root => {
                let mut command = Command::new(&probe);
                command.args(arguments).current_dir("/").env_clear().stdin(Stdio::null());
                command
            }
            Self::Root if !is_root => return None,
            _ => scene.leaking(&probe, &arguments),
        };
        Some(BatchResult::read(ProgramOutput::from(command.output().unwrap()).succeeded().stdout))
    }
}

// === impl AttemptPlace ===

impl AttemptPlace {
    pub(crate) fn inside() -> Self {
        Self { root: PathBuf::new() }
    }

    /// Returns a directory of the host with the same paths, where nothing is forbidden.
    pub(crate) fn outside(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    /// Returns the path for a path that begins in the sandbox's root.
    pub(crate) fn path(&self, inside: &str) -> String {
        format!("{}{inside}", self.root.display())
    }
}

// === impl BatchResult ===

impl BatchResult {
    fn read(output: String) -> Self {
        let answers = output.lines().filter_map(|line| serde_json::from_str::<AttemptResult>(line).ok());
        Self { answers: answers.map(|answer| (answer.case.clone(), answer)).collect(), output }
    }
}
