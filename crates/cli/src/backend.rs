//! Arguments that select the backend of a sandbox, shared by `exec` and `session create`. Without them the configuration selects it: for
//! the tools of agents, and for commands if it sets a backend for commands.

mod session_sandboxes;

pub(crate) use session_sandboxes::{SandboxSettings, SessionSandboxes, has_sandbox, works_in_session};

use crate::configuration::{self, Configuration};
use crate::error::CliError;
use crate::sandbox_args::AllowanceArguments;
use belljar_contract::category::Category;
use belljar_contract::programs::ProgramList;
use belljar_sandbox::backends::chosen::BackendChoice;
use belljar_sandbox::backends::construction::HostContext;
use belljar_sandbox::config::{BackendName, DockerConfig, Sandboxing};
use belljar_sandbox::docker::ImageName;
use clap::ValueEnum;
use std::path::{Path, PathBuf};

// Each argument names its heading: a heading for the whole struct would also apply to the arguments after it.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct BackendArguments {
    /// Backend that creates the sandbox: this kernel alone, a Docker engine on this machine, or, for programs of low risk, this
    /// kernel without namespaces [default: the configured one for commands (`default_backend`, `overrides.terminal`), else native]
    #[arg(long, value_name = "NAME", value_enum, help_heading = HEADING)]
    backend: Option<BackendKind>,
    /// Image of the container; the engine must already have it
    #[arg(long, value_name = "IMAGE", value_parser = parse_image, required_if_eq("backend", "docker"))]
    #[arg(help_heading = HEADING)]
    image: Option<ImageName>,
    /// The socket of the container engine [default: /var/run/docker.sock]
    #[arg(long, value_name = "PATH", help_heading = HEADING)]
    docker_socket: Option<PathBuf>,
}

/// Name of a backend, without its settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum BackendKind {
    Native,
    Docker,
    Subprocess,
}

const HEADING: &str = "Backend";

// === impl BackendArguments ===

impl BackendArguments {
    /// Returns the sandboxes for the tools of agents: as these arguments select them, else as the configuration does.
    pub(crate) fn quarters(
        &self,
        config: Option<&Configuration>,
        allowance: &AllowanceArguments,
    ) -> Result<SessionSandboxes, CliError> {
        let Some(config) = config.filter(|config| self.backend.is_none() && config.has_sandboxing) else {
            return SessionSandboxes::of_one(self.chosen()?, allowance);
        };
        if self.image.is_some() {
            return Err(CliError::usage("--image is for --backend docker".to_owned()));
        }
        let quarters =
            SessionSandboxes::configured(&config.sandboxing.sandboxing, &self.socket()?, allowance)?;
        match self.docker_socket.is_some() && !quarters.have(BackendName::Docker) {
            true => Err(CliError::usage("--docker-socket is for the docker backend".to_owned())),
            false => Ok(quarters),
        }
    }

    /// Returns the absolute path of the engine's socket. The process that creates the sandbox may have another working directory.
    fn socket(&self) -> Result<PathBuf, CliError> {
        let socket = self.docker_socket.as_deref().unwrap_or(Path::new(HostContext::DOCKER_SOCKET));
        std::path::absolute(socket).map_err(|source| CliError::read(socket, source))
    }

    /// Returns the backend for commands of a user: from these arguments, else from the configuration, else native. A program list overrides
    /// the configuration, because only native sandboxes can enforce one.
    pub(crate) fn for_commands(&self, listed: Option<&ProgramList>) -> Result<BackendChoice, CliError> {
        let written = match self.backend {
            Some(_) => None,
            None => configuration::current()?.and_then(|config| Some((config.backend_for_commands?, config))),
        };
        let Some((backend, config)) = written else { return self.chosen() };
        if backend != BackendName::Native && listed.is_some() {
            crate::output::tell(&format!(
                "belljar: a list of programs (--programs, or a level of access) holds in native sandboxes alone, so this is one (configured: {backend})\n"
            ));
            return self.without_docker(BackendChoice::Native);
        }
        let sandboxing = config.sandboxing.sandboxing;
        match backend {
            BackendName::Native => self.without_docker(BackendChoice::Native),
            BackendName::Subprocess => {
                self.without_docker(BackendChoice::Subprocess(Box::new(sandboxing.subprocess)))
            }
            BackendName::Docker => {
                let runtime = sandboxing.docker.runtime_for(Category::Terminal).map(str::to_owned);
                let image = self.image.as_ref().map(|image| image.as_str().to_owned());
                let image = image.unwrap_or_else(|| sandboxing.docker.image.clone());
                let config = DockerConfig { image, runtime, ..sandboxing.docker };
                Ok(BackendChoice::Docker { config: Box::new(config), socket: self.socket()? })
            }
        }
    }

    /// Rejects container options for a backend without containers.
    fn without_docker(&self, chosen: BackendChoice) -> Result<BackendChoice, CliError> {
        match (&self.image, &self.docker_socket) {
            (None, None) => Ok(chosen),
            (Some(_), _) => Err(CliError::usage("--image is for --backend docker".to_owned())),
            (None, Some(_)) => Err(CliError::usage("--docker-socket is for --backend docker".to_owned())),
        }
    }

    /// Returns the backend that these arguments select (default: native), with its settings from the configuration. Options that it would
    /// ignore are errors.
    pub(crate) fn chosen(&self) -> Result<BackendChoice, CliError> {
        match (self.backend.unwrap_or(BackendKind::Native), &self.image) {
            (BackendKind::Native, _) => self.without_docker(BackendChoice::Native),
            (BackendKind::Subprocess, _) => {
                let configured = configured_sandboxing()?.map(|sandboxing| sandboxing.subprocess);
                self.without_docker(BackendChoice::Subprocess(Box::new(configured.unwrap_or_default())))
            }
            (BackendKind::Docker, None) => {
                Err(CliError::usage("--backend docker needs an --image".to_owned()))
            }
            (BackendKind::Docker, Some(image)) => {
                let configured = configured_sandboxing()?.map(|sandboxing| sandboxing.docker);
                let config =
                    DockerConfig { image: image.as_str().to_owned(), ..configured.unwrap_or_default() };
                Ok(BackendChoice::Docker { config: Box::new(config), socket: self.socket()? })
            }
        }
    }
}

/// Returns the `sandboxing` section of the configuration in use, if there is one.
fn configured_sandboxing() -> Result<Option<Sandboxing>, CliError> {
    let configured = configuration::current()?.filter(|config| config.has_sandboxing);
    Ok(configured.map(|config| config.sandboxing.sandboxing))
}

fn parse_image(text: &str) -> Result<ImageName, String> {
    ImageName::parse(text).map_err(|error| error.to_string())
}
