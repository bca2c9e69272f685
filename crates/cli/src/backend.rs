//! The arguments that say which backend makes a sandbox; the same for `exec` and `session create`. Where agents' tools work, a
//! configuration says, if they don't.

mod quarters;

pub(crate) use quarters::{Quarter, Quarters, works_in_session};

use crate::configuration::Configuration;
use crate::error::CliError;
use crate::lending::AllowanceArguments;
use belljar_sandbox::backends::chosen::Chosen;
use belljar_sandbox::backends::here::Here;
use belljar_sandbox::config::BackendName;
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

// === impl BackendArguments ===

impl BackendArguments {
    /// The sandboxes for the tools of agents: what was said here, else what a configuration says.
    pub(crate) fn quarters(
        &self,
        config: Option<&Configuration>,
        allowance: &AllowanceArguments,
    ) -> Result<Quarters, CliError> {
        let Some(config) = config.filter(|config| self.backend.is_none() && config.has_sandboxing) else {
            return Quarters::of_one(self.chosen()?, allowance);
        };
        if self.image.is_some() {
            return Err(CliError::usage("--image is for --backend docker".to_owned()));
        }
        let quarters = Quarters::configured(&config.sandboxing.sandboxing, &self.socket()?, allowance)?;
        match self.docker_socket.is_some() && !quarters.have(BackendName::Docker) {
            true => Err(CliError::usage("--docker-socket is for the docker backend".to_owned())),
            false => Ok(quarters),
        }
    }

    /// The engine's socket. Whoever makes the sandbox may work in another directory.
    fn socket(&self) -> Result<PathBuf, CliError> {
        let socket = self.docker_socket.as_deref().unwrap_or(Path::new(Here::DOCKER_SOCKET));
        std::path::absolute(socket).map_err(|source| CliError::read(socket, source))
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
            (Kind::Subprocess, _) => without_docker(Chosen::subprocess()),
            (Kind::Docker, None) => Err(CliError::usage("--backend docker needs an --image".to_owned())),
            (Kind::Docker, Some(image)) => Ok(Chosen::docker(image, self.socket()?)),
        }
    }
}

fn parse_image(text: &str) -> Result<ImageName, String> {
    ImageName::parse(text).map_err(|error| error.to_string())
}
