//! Shared by `git` and `agent`: hosts that git on the host may connect to, and the author of its commits.

use crate::configuration::{self, Configuration, found};
use crate::error::CliError;
use belljar_egress::api::Connections;
use belljar_git::pull_request::{PullRequestPlan, PullRequestTexts};
use belljar_git::{Author, HostEnv, author_or_default};
use belljar_policy::egress::{HostPattern, Network};
use belljar_policy::git::{GitRules, Remote};
use std::path::Path;

/// Where the host's git may go besides the open internet.
#[derive(Debug, clap::Args)]
pub(crate) struct RemoteArguments {
    /// Let the host's git connect to addresses of this network, such as 10.0.0.0/8; otherwise only addresses of the open internet
    /// are allowed
    #[arg(long, value_name = "NETWORK", value_parser = network, help_heading = "Git")]
    allow_network: Vec<Network>,
    /// Let the host's git connect to any address of this host, such as git.example or `**.corp.example`
    #[arg(long, value_name = "HOST", value_parser = host, help_heading = "Git")]
    allow_host: Vec<HostPattern>,
}

/// The pull request that is wanted for what is pushed.
#[derive(Debug, clap::Args)]
pub(crate) struct PullRequestArguments {
    /// Open a pull request for the branch, at the forge that the configuration names for its host (`git.forges`)
    #[arg(long, help_heading = "Git")]
    pub(crate) pr: bool,
    /// Title of the pull request [default: the first line of the commit message]
    #[arg(long, value_name = "TEXT", requires = "pr", help_heading = "Git")]
    pr_title: Option<String>,
    /// Description of the pull request [default: the rest of the commit message]
    #[arg(long, value_name = "TEXT", requires = "pr", help_heading = "Git")]
    pr_body: Option<String>,
    /// Target branch of the pull request [default: the branch that was cloned]
    #[arg(long, value_name = "NAME", requires = "pr", help_heading = "Git")]
    pr_base: Option<String>,
    /// Open it as a draft
    #[arg(long, requires = "pr", help_heading = "Git")]
    pr_draft: bool,
}

/// Hosts that git on the host may connect to, and the connections to their forges.
#[derive(Debug, Default)]
pub(crate) struct GitHostAccess {
    pub(crate) rules: GitRules,
    pub(crate) connections: Connections,
}

// === impl RemoteArguments ===

impl RemoteArguments {
    /// Returns the permitted hosts, from the configuration and the arguments.
    pub(crate) fn reach(&self, config: Option<&Path>) -> Result<GitHostAccess, CliError> {
        let mut reach = match found(config) {
            Some(path) => {
                let Configuration { git, egress, .. } = configuration::read(&path)?;
                let connections = egress.map(|egress| egress.connections).unwrap_or_default();
                GitHostAccess { rules: git, connections }
            }
            None => GitHostAccess::default(),
        };
        reach.rules.networks.extend(&self.allow_network);
        reach.rules.hosts.extend(self.allow_host.iter().cloned());
        Ok(reach)
    }
}

// === impl PullRequestArguments ===

impl PullRequestArguments {
    /// Returns the requested pull request, if any. An impossible one is an error here, before anything is pushed.
    pub(crate) fn plan(
        &self,
        remote: &Remote,
        reach: &GitHostAccess,
    ) -> Result<Option<PullRequestPlan>, CliError> {
        if !self.pr {
            return Ok(None);
        }
        let words = PullRequestTexts {
            title: self.pr_title.clone(),
            body: self.pr_body.clone(),
            base: self.pr_base.clone(),
            is_draft: self.pr_draft,
        };
        Ok(Some(PullRequestPlan::plan(remote, (&reach.rules, &reach.connections), words)?))
    }
}

/// Returns the author of commits: the named one, else git's configured user, else belljar.
pub(crate) fn author_of(named: Option<&str>, env: &HostEnv) -> Result<Author, CliError> {
    match named {
        Some(text) => Author::parse(text).map_err(|error| CliError::usage(error.to_string())),
        None => author_or_default(env)
            .map_err(|source| CliError::Clone(belljar_git::BaseError::from(source).into())),
    }
}

fn network(text: &str) -> Result<Network, String> {
    Network::parse(text).ok_or_else(|| "a network is an address with its bits, such as 10.0.0.0/8".to_owned())
}

fn host(text: &str) -> Result<HostPattern, String> {
    HostPattern::parse(text).map_err(|error| error.to_string())
}
