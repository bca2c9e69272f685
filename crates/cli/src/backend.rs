//! The arguments that say which backend makes a sandbox; the same for `exec` and `session create`.

use crate::configuration::Configuration;
use crate::error::CliError;
use belljar_contract::category::Category;
use belljar_sandbox::backends::chosen::Chosen;
use belljar_sandbox::backends::here::Here;
use belljar_sandbox::config::{BackendName, Sandboxing};
use belljar_sandbox::docker::ImageName;
use clap::ValueEnum;
use std::path::{Path, PathBuf};

// Each argument names its heading: one for all of them would be that of whatever comes after them, too.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct BackendArguments {
    /// What makes the sandbox: this kernel alone, a Docker engine on this machine, or, for programs of low risk, this
    /// kernel without namespaces [default: native]
    #[arg(long, value_name = "NAME", value_enum, help_heading = HEADING)]
    backend: Option<Kind>,
    /// The image of the container, which the engine must have
    #[arg(long, value_name = "IMAGE", value_parser = parse_image, required_if_eq("backend", "docker"))]
    #[arg(help_heading = HEADING)]
    image: Option<ImageName>,
    /// The socket of the container engine [default: /var/run/docker.sock]
    #[arg(long, value_name = "PATH", help_heading = HEADING)]
    docker_socket: Option<PathBuf>,
}

/// A backend, without what has to be said about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    Native,
    Docker,
    Subprocess,
}

const HEADING: &str = "Backend";

/// What tools in a workspace are of. They work in one sandbox: what one of them writes another finds.
const OF_WORKSPACES: [Category; 4] =
    [Category::FileSystem, Category::CodeExecution, Category::Terminal, Category::VersionControl];

// === impl BackendArguments ===

impl BackendArguments {
    /// The same for the tools of agents: a configuration that has them elsewhere is not passed over in silence.
    pub(crate) fn chosen_for_tools(&self, config: Option<&Configuration>) -> Result<Chosen, CliError> {
        let configured = config.filter(|config| self.backend.is_none() && config.has_sandboxing);
        let backend = configured.map(|config| common(&config.sandboxing.sandboxing)).transpose()?;
        Self { backend: self.backend.or(backend), ..self.clone() }.chosen()
    }

    /// The backend, with what has to be said about it and nothing that would be ignored.
    pub(crate) fn chosen(&self) -> Result<Chosen, CliError> {
        let without_docker = |chosen| match (&self.image, &self.docker_socket) {
            (None, None) => Ok(chosen),
            (Some(_), _) => Err(CliError::usage("--image is for --backend docker".to_owned())),
            (None, Some(_)) => Err(CliError::usage("--docker-socket is for --backend docker".to_owned())),
        };
        match (self.backend.unwrap_or(Kind::Native), &self.image) {
            (Kind::Native, _) => without_docker(Chosen::Native),
            (Kind::Subprocess, _) => without_docker(Chosen::Subprocess),
            (Kind::Docker, None) => Err(CliError::usage("--backend docker needs an --image".to_owned())),
            (Kind::Docker, Some(image)) => {
                let socket = self.docker_socket.as_deref().unwrap_or(Path::new(Here::DOCKER_SOCKET));
                // Whoever makes the sandbox may work in another directory.
                let socket = std::path::absolute(socket).map_err(|source| CliError::read(socket, source))?;
                Ok(Chosen::Docker { image: image.clone(), socket })
            }
        }
    }
}

/// The one backend in which a configuration has all tools that work in a workspace.
fn common(sandboxing: &Sandboxing) -> Result<Kind, CliError> {
    let backends = OF_WORKSPACES.map(|category| (category, sandboxing.backend_for(category)));
    let is_in = |name| backends.iter().all(|(_, backend)| *backend == name);
    if is_in(BackendName::Native) {
        return Ok(Kind::Native);
    }
    if is_in(BackendName::Subprocess) {
        return Ok(Kind::Subprocess);
    }
    let named = backends.map(|(category, backend)| format!("{category} in {}", backend.as_str())).join(", ");
    Err(CliError::usage(format!(
        "the configuration has {named} (sandboxing.default_backend, .overrides), and agents' tools work in one sandbox: --backend says what makes it"
    )))
}

fn parse_image(text: &str) -> Result<ImageName, String> {
    ImageName::parse(text).map_err(|error| error.to_string())
}
