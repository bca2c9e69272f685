//! Whose rules count: a level or an agent, said on the command line, and what the configuration says of it.

use crate::configuration::{Configuration, found};
use crate::error::CliError;
use crate::trust;
use belljar_contract::access::AccessLevel;
use belljar_contract::category::Category;
use belljar_contract::id::{AgentId, UserId};
use belljar_policy::access::compiled::{Compiled, WebTerms, WorkspaceTerms};
use belljar_policy::access::{AccessRules, AgentStanding, Earned};
use belljar_policy::constraint::WorksIn;
use belljar_sandbox::config::{BackendName, Config};
use belljar_sandbox::run::WorkspaceChoice;
use belljar_tools::caller::Identity;
use std::collections::BTreeMap;
use std::path::Path;

/// Whose rules.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct AccessArguments {
    /// Work at this level of access: sandboxed, restricted, standard, elevated, custom
    #[arg(long, value_name = "LEVEL", value_parser = parse_level, conflicts_with = "agent", help_heading = "Access")]
    level: Option<AccessLevel>,
    /// Work as this agent, of which the configuration says what it may do (`tool_access.agents`)
    #[arg(long, value_name = "NAME", value_parser = AgentId::parse, help_heading = "Access")]
    agent: Option<AgentId>,
}

// === impl AccessArguments ===

impl AccessArguments {
    /// As whom, if anything was said.
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

/// What a configuration says of agents: the one that was named, or that there is, or none.
pub(crate) fn rules_of(named: Option<&Path>) -> Result<AccessRules, CliError> {
    Ok(configuration(named)?.map(|configuration| configuration.access).unwrap_or_default())
}

/// The configuration that was named, or that there is.
pub(crate) fn configuration(named: Option<&Path>) -> Result<Option<Configuration>, CliError> {
    found(named).map(|path| Configuration::read(&path)).transpose()
}

/// What they say of somebody who has earned that.
pub(crate) fn standing(rules: &AccessRules, identity: &Identity, earned: Option<&Earned>) -> AgentStanding {
    match identity {
        Identity::Agent(agent) => rules.of_agent(agent, earned),
        Identity::Level(level) => rules.of_level(*level),
    }
}

/// What somebody has earned by now.
pub(crate) fn earned(config: Option<&Path>, identity: &Identity) -> Result<Option<Earned>, CliError> {
    match identity {
        Identity::Agent(agent) => trust::earned(config, agent),
        Identity::Level(_) => Ok(None),
    }
}

/// Refuses an agent of which nothing is said and nothing is recorded: a name with a slip in it would have the default level. A configuration
/// that writes `default_level` has said what such agents may do, and so has one in which newcomers earn their levels.
///
/// # Errors
/// Usage, with the name that was meant, perhaps.
pub(crate) fn check_known(config: Option<&Path>, identity: &Identity) -> Result<(), CliError> {
    let Identity::Agent(agent) = identity else { return Ok(()) };
    let rules = rules_of(config)?;
    if rules.covers(agent) || trust::covers(config, agent)? {
        return Ok(());
    }
    Err(CliError::usage(format!("--agent: {}", rules.unknown(agent))))
}

/// What somebody's rules mean for their sandboxes, which would be lent that and reach the web by that file.
///
/// # Errors
/// Usage, when more was asked for than they have.
pub(crate) fn compiled(
    identity: &Identity,
    (config, is_lent_to, egress): (Option<&Path>, bool, Option<&Path>),
    workspace: &WorkspaceChoice,
) -> Result<Compiled, CliError> {
    check_known(config, identity)?;
    let earned = earned(config, identity)?;
    let standing = standing(&rules_of(config)?, identity, earned.as_ref());
    let compiled = Compiled::of_agent(&standing.permissions);
    let asked = [
        (is_lent_to && !compiled.is_lent_to, "--ro", "is lent nothing of the host"),
        (egress.is_some() && compiled.web == WebTerms::None, "--egress", "reaches nothing"),
        (
            compiled.workspace == WorkspaceTerms::Empty && !matches!(workspace, WorkspaceChoice::Empty),
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

/// What somebody is called.
pub(crate) fn name(identity: &Identity) -> String {
    match identity {
        Identity::Agent(agent) => agent.to_string(),
        Identity::Level(level) => level.to_string(),
    }
}

/// Where tools of each category work.
pub(crate) fn works_in(sandboxing: &Config) -> BTreeMap<Category, WorksIn> {
    let works_in = |category| match sandboxing.sandboxing.backend_for(category) {
        BackendName::Subprocess => WorksIn::Process,
        _ => WorksIn::Container,
    };
    Category::ALL.into_iter().map(|category| (category, works_in(category))).collect()
}

/// Whoever types this, by the kernel's name for them: what the environment says of names anybody may have written.
pub(crate) fn whoever_runs_this() -> Result<UserId, CliError> {
    let name = format!("uid:{}", rustix::process::getuid().as_raw());
    UserId::parse(&name).map_err(|error| CliError::usage(error.to_string()))
}
