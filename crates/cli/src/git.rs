//! What `git` and `agent` have in common: where the host's git may go, what somebody has said yes to, and how that is asked.

use crate::configuration::{Configuration, found};
use crate::error::CliError;
use crate::progress::harmless;
use anstyle::{AnsiColor, Style};
use belljar_node::git::{Author, HostEnv, author};
use belljar_policy::egress::{HostPattern, Network};
use belljar_policy::git::GitRules;
use belljar_policy::handoff::{Finding, Trust};
use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};
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

/// What somebody has said yes to.
#[derive(Debug, clap::Args)]
pub(crate) struct TrustArguments {
    /// Say yes to this path, which runs something or is trusted where it goes; with a slash at its end, to all below it
    #[arg(long, value_name = "PATH", help_heading = "Trust")]
    trust: Vec<String>,
    /// Say yes to all such paths
    #[arg(long, conflicts_with = "trust", help_heading = "Trust")]
    trust_all: bool,
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

// === impl TrustArguments ===

impl TrustArguments {
    pub(crate) fn trust(&self) -> Trust {
        match self.trust_all {
            true => Trust::in_all(),
            false => Trust::in_paths(self.trust.iter().cloned()),
        }
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

/// The paths that gain trust, each with its reason.
pub(crate) fn listed(findings: &[Finding]) -> String {
    let bold = Style::new().bold().fg_color(Some(AnsiColor::Yellow.into()));
    let mut text = String::new();
    for Finding { path, kind, reason } in findings {
        let _ = writeln!(text, "  {bold}{:10}{bold:#}  {}  ({reason})", kind.code(), harmless(path));
    }
    text
}

/// Asks the person at the terminal for a yes; without one there is none.
pub(crate) fn is_trusted(findings: &[Finding]) -> bool {
    let (input, output) = (std::io::stdin(), std::io::stderr());
    if !(input.is_terminal() && output.is_terminal()) {
        return false;
    }
    anstream::eprintln!("These run something, or are trusted, where they go:\n{}", listed(findings));
    loop {
        anstream::eprint!("Let them go there? [y/n] ");
        let mut answer = String::new();
        let _ = output.lock().flush();
        match input.read_line(&mut answer) {
            Ok(0) | Err(_) => return false,
            Ok(_) => {}
        }
        match answer.trim() {
            "y" | "yes" => return true,
            "n" | "no" => return false,
            _ => {}
        }
    }
}

fn network(text: &str) -> Result<Network, String> {
    Network::parse(text).ok_or_else(|| "a network is an address with its bits, such as 10.0.0.0/8".to_owned())
}

fn host(text: &str) -> Result<HostPattern, String> {
    HostPattern::parse(text).map_err(|error| error.to_string())
}
