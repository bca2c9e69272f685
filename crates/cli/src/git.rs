//! What `git` and `agent` have in common: where the host's git may go, and whose its commits are.

use crate::configuration::{Configuration, found};
use crate::error::CliError;
use belljar_node::git::{Author, HostEnv, author};
use belljar_policy::egress::{HostPattern, Network};
use belljar_policy::git::GitRules;
use std::path::Path;

/// Where the host's git may go besides the open internet.
#[derive(Debug, clap::Args)]
pub(crate) struct RemoteArguments {
    /// Let the host's git go to addresses of this network, such as 10.0.0.0/8; without it they are refused if they aren't of the
    /// open internet
    #[arg(long, value_name = "NETWORK", value_parser = network, help_heading = "Git")]
    allow_network: Vec<Network>,
    /// Let the host's git go wherever this host leads, such as git.example or `**.corp.example`
    #[arg(long, value_name = "HOST", value_parser = host, help_heading = "Git")]
    allow_host: Vec<HostPattern>,
}

// === impl RemoteArguments ===

impl RemoteArguments {
    /// Where it may go, by the configuration and by what was said.
    pub(crate) fn rules(&self, config: Option<&Path>) -> Result<GitRules, CliError> {
        let mut rules = match found(config) {
            Some(path) => Configuration::read(&path)?.git,
            None => GitRules::default(),
        };
        rules.networks.extend(&self.allow_network);
        rules.hosts.extend(self.allow_host.iter().cloned());
        Ok(rules)
    }
}

/// Whose commits are: who was named, or who the user is for git, or belljar.
pub(crate) fn author_of(named: Option<&str>, env: &HostEnv) -> Result<Author, CliError> {
    const NOBODY: &str = "belljar <belljar@localhost.invalid>";
    let users = match named {
        Some(_) => None,
        None => author(env)
            .map_err(|source| CliError::Clone(belljar_node::git::BaseError::from(source).into()))?,
    };
    let parse = |text: &str| Author::parse(text).map_err(|error| CliError::usage(error.to_string()));
    users.map_or_else(|| parse(named.unwrap_or(NOBODY)), Ok)
}

fn network(text: &str) -> Result<Network, String> {
    Network::parse(text).ok_or_else(|| "a network is an address with its bits, such as 10.0.0.0/8".to_owned())
}

fn host(text: &str) -> Result<HostPattern, String> {
    HostPattern::parse(text).map_err(|error| error.to_string())
}
