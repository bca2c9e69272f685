//! Access rules of the level or agent named on the command line, as the configuration defines them.

use crate::configuration::{self, Configuration, found};
use crate::error::CliError;
use crate::trust;
use belljar_contract::access::AccessLevel;
use belljar_contract::category::Category;
use belljar_contract::id::{AgentId, UserId};
use belljar_policy::access::compiled::{SandboxAccess, WebAccess, WorkspaceAccess};
use belljar_policy::access::{AccessRules, AgentAuthority, EarnedLevels};
use belljar_policy::constraint::ExecutionLocation;
use belljar_sandbox::config::{BackendName, Config};
use belljar_sandbox::run::WorkspaceChoice;
use belljar_tools::caller::Identity;
use std::collections::BTreeMap;
use std::path::Path;

/// Access level or agent whose rules apply.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct AccessArguments {
    /// Work at this level of access: sandboxed, restricted, standard, elevated, custom
    #[arg(long, value_name = "LEVEL", value_parser = parse_level, conflicts_with = "agent", help_heading = "Access")]
    level: Option<AccessLevel>,
    /// Work as this agent, with the permissions that the configuration gives it (`tool_access.agents`)
    #[arg(long, value_name = "NAME", value_parser = AgentId::parse, help_heading = "Access")]
    agent: Option<AgentId>,
}

// === impl AccessArguments ===

impl AccessArguments {
    /// Returns the identity that `--agent` or `--level` names; `None` if neither is given.
    pub(crate) fn identity(&self) -> Option<Identity> {
        let agent = self.agent.clone().map(Identity::Agent);
        agent.or(self.level.map(Identity::Level))
    }
}

fn parse_level(text: &str) -> Result<AccessLevel, String> {
    AccessLevel::named(text).ok_or_else(|| {
        let known: Vec<_> = AccessLevel::ALL.iter().map(|level| level.as_str()).collect();
        format!("{text:?} is no level; there are {}", known.join(", "))
    })
}

/// Returns the access rules of the configuration in use; the default rules if there is no configuration.
pub(crate) fn rules_of(named: Option<&Path>) -> Result<AccessRules, CliError> {
    Ok(configuration(named)?.map(|configuration| configuration.access).unwrap_or_default())
}

/// Reads the named configuration, or else the first one found; `None` if there is none.
pub(crate) fn configuration(named: Option<&Path>) -> Result<Option<Configuration>, CliError> {
    found(named).map(|path| configuration::read(&path)).transpose()
}

/// Returns the standing of an agent with this earned trust, or of a level, under these rules. Levels ignore earned trust.
pub(crate) fn standing(
    rules: &AccessRules,
    identity: &Identity,
    earned: Option<&EarnedLevels>,
) -> AgentAuthority {
    match identity {
        Identity::Agent(agent) => rules.of_agent(agent, earned),
        Identity::Level(level) => rules.of_level(*level),
    }
}

/// Returns the trust that an agent has earned so far; `None` for a level.
pub(crate) fn earned(config: Option<&Path>, identity: &Identity) -> Result<Option<EarnedLevels>, CliError> {
    match identity {
        Identity::Agent(agent) => trust::earned(config, agent),
        Identity::Level(_) => Ok(None),
    }
}

/// Rejects an agent that neither the rules nor the trust records mention: a misspelled name would get the default level. A configuration
/// that sets `default_level`, or in which new agents earn their levels, covers unknown agents, so none is rejected.
///
/// # Errors
/// Usage error for an unknown agent; it may suggest the intended name.
pub(crate) fn check_known(config: Option<&Path>, identity: &Identity) -> Result<(), CliError> {
    let Identity::Agent(agent) = identity else { return Ok(()) };
    let rules = rules_of(config)?;
    if rules.covers(agent) || trust::covers(config, agent)? {
        return Ok(());
    }
    Err(CliError::usage(format!("--agent: {}", rules.unknown(agent))))
}

/// Compiles the access rules of an identity for its sandboxes and checks the requested options against them: mounts of the host
/// (`is_lent_to`), the web rules (`egress`) and the workspace.
///
/// # Errors
/// Usage error if an option requests more than the rules permit, or if the agent is unknown.
pub(crate) fn compiled(
    identity: &Identity,
    (config, is_lent_to, egress): (Option<&Path>, bool, Option<&Path>),
    workspace: &WorkspaceChoice,
) -> Result<SandboxAccess, CliError> {
    check_known(config, identity)?;
    let earned = earned(config, identity)?;
    let standing = standing(&rules_of(config)?, identity, earned.as_ref());
    let compiled = SandboxAccess::of_agent(&standing.permissions);
    let asked = [
        (is_lent_to && !compiled.is_lent_to, "--ro", "is lent nothing of the host"),
        (egress.is_some() && compiled.web == WebAccess::None, "--egress", "reaches nothing"),
        (
            compiled.workspace == WorkspaceAccess::Empty && !matches!(workspace, WorkspaceChoice::Empty),
            "--workspace",
            "has a workspace of its own, which begins empty",
        ),
        (
            matches!(workspace, WorkspaceChoice::Direct(_)),
            "--workspace",
            "works on copies (--workspace-copy)",
        ),
    ];
    match asked.into_iter().find(|(is_too_much, ..)| *is_too_much) {
        None => Ok(compiled),
        Some((_, option, instead)) => Err(CliError::usage(format!("{option}: {} {instead}", name(identity)))),
    }
}

/// Returns the display name of an identity: the agent's id or the level's name.
pub(crate) fn name(identity: &Identity) -> String {
    match identity {
        Identity::Agent(agent) => agent.to_string(),
        Identity::Level(level) => level.to_string(),
    }
}

/// Returns for each category whether its tools run in a plain process (subprocess backend) or in a container.
pub(crate) fn works_in(sandboxing: &Config) -> BTreeMap<Category, ExecutionLocation> {
    let works_in = |category| match sandboxing.sandboxing.backend_for(category) {
        BackendName::Subprocess => ExecutionLocation::Process,
        _ => ExecutionLocation::Container,
    };
    Category::ALL.into_iter().map(|category| (category, works_in(category))).collect()
}

/// Returns the user that runs this process as `uid:N`, from the kernel: any program can set the user names in the environment.
pub(crate) fn whoever_runs_this() -> Result<UserId, CliError> {
    let name = format!("uid:{}", rustix::process::getuid().as_raw());
    UserId::parse(&name).map_err(|error| CliError::usage(error.to_string()))
}
