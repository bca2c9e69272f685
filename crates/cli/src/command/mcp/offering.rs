//! Offer to clients, from the command line: directories, provision of sessions, and the agent or level of the rules that apply.

use super::log_shipping::ProgramLogShipper;
use super::mcp_sessions::{McpSessions, ServedIdentity, SessionOffer, WorkspaceRoot};
use super::session_requests::PROGRAMS;
use super::tools::ToolSet;
use crate::access::{self, AccessArguments};
use crate::backend::{BackendArguments, works_in_session};
use crate::command::session::policy_file;
use crate::error::CliError;
use crate::sandbox_args::{AllowanceArguments, directory, parse_duration};
use crate::state;
use crate::trust_review::TrustArguments;
use crate::web::WebArguments;
use belljar_contract::category::Category;
use belljar_gateway::access::RuleBasedAccess;
use belljar_policy::constraint::ExecutionLocation;
use belljar_sandbox::correlation::{Correlation, CorrelationId};
use belljar_sandbox::run::WorkspaceChoice;
use belljar_sandbox::session::{self, Session};
use belljar_tools::caller::Identity;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, clap::Args)]
pub(crate) struct SessionOfferArguments {
    /// A directory that sessions may begin with a copy of; of several the first is meant when a client names none. Without any,
    /// sessions begin empty
    #[arg(long, value_name = "DIR")]
    workspace: Vec<PathBuf>,
    #[command(flatten)]
    allowance: AllowanceArguments,
    #[command(flatten)]
    backend: BackendArguments,
    #[command(flatten)]
    web: WebArguments,
    #[command(flatten)]
    access: AccessArguments,
    /// End a session when nothing has run in it for this long
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "1h", help_heading = HEADING)]
    idle: Duration,
    /// A session that was made before, and that clients may use, too: its name, or the beginning of its id. The built-in tools work
    /// in it, if it is the only one
    #[arg(long, value_name = "SESSION", help_heading = HEADING)]
    session: Vec<String>,
    /// Leave the sessions that were opened when this ends, instead of ending them
    #[arg(long, help_heading = HEADING)]
    keep: bool,
    /// Let clients write a session's changes into the directory that was copied
    #[arg(long, help_heading = HEADING)]
    allow_approve: bool,
    #[command(flatten)]
    trust: TrustArguments,
}

/// Sessions and tools that are offered, and the identity that they are offered to.
pub(crate) struct ToolService {
    pub(crate) desk: Arc<McpSessions>,
    pub(super) identity: Option<Identity>,
    /// Access rules for the served identity, if there are any.
    pub(super) house: Option<Arc<RuleBasedAccess>>,
    pub(super) set: ToolSet,
}

const HEADING: &str = "Sessions";

// === impl SessionOfferArguments ===

impl SessionOfferArguments {
    /// Returns the service with the given arguments and tools.
    ///
    /// # Errors
    /// A usage error if the arguments are invalid; and errors of preparing sessions.
    pub(crate) fn offered(&self, set: ToolSet) -> Result<ToolService, CliError> {
        let identity = self.access.identity();
        let (offer, named) = (self.offer(set)?, self.named()?);
        // Tools work in the session that was named, if there is one.
        let works_in = match named.as_slice() {
            [one] => works_in_session(one),
            _ => offer.quarters.works_in(),
        };
        let house = identity.as_ref().map(|identity| house(identity, works_in)).transpose()?;
        let rules =
            house.clone().zip(identity.clone()).map(|(house, identity)| ServedIdentity { house, identity });
        let desk = McpSessions::new(offer, rules, named.into_iter().map(|session| session.id).collect());
        Ok(ToolService { desk, identity, house, set })
    }

    /// Refuses directories where the caller's workspaces begin empty: one call would leave them out without a word.
    ///
    /// # Errors
    /// Usage.
    pub(crate) fn admit_workspaces(&self) -> Result<(), CliError> {
        let (Some(identity), Some(first)) = (self.access.identity(), self.workspace.first()) else {
            return Ok(());
        };
        let workspace = WorkspaceChoice::Copy(directory(first)?);
        access::compiled(&identity, (None, false, None), &workspace).map(drop)
    }

    /// Returns the offer to clients.
    fn offer(&self, set: ToolSet) -> Result<SessionOffer, CliError> {
        let config = match set {
            ToolSet::Sessions => None,
            ToolSet::Builtin | ToolSet::All => access::configuration(None)?,
        };
        let servers = config.as_ref().map_or(0, |config| config.mcp.servers.0.len());
        if servers > 0 {
            super::tell(&format!(
                "{servers} servers of mcp.servers are not asked here: `belljar node` alone offers their tools"
            ));
        }
        let quarters = self.backend.quarters(config.as_ref(), &self.allowance)?;
        let root = |said: &PathBuf| {
            let path = directory(said)?;
            // A policy that a client could change by what it commits is told of now, and not when it opens something.
            policy_file(&self.web, &WorkspaceChoice::Copy(path.clone()))?;
            Ok::<_, CliError>(WorkspaceRoot { said: said.clone(), real: path.as_path().to_owned() })
        };
        let roots = self.workspace.iter().map(root).collect::<Result<Vec<_>, _>>()?;
        let (lent, egress) = (self.allowance.lent()?, policy_file(&self.web, &WorkspaceChoice::Empty)?);
        let asked = (None, !lent.is_empty(), egress.as_deref());
        // Whatever directories there are: who has an empty workspace is refused those when they are asked for.
        let compiled = |identity| access::compiled(&identity, asked, &WorkspaceChoice::Empty);
        let access = self.access.identity().map(compiled).transpose()?;
        let (listed, isolation) = (
            self.allowance.programs.listed_for(access.as_ref())?,
            access.as_ref().map(|access| access.isolation),
        );
        let quarters = quarters.holding(listed.as_ref(), isolation)?;
        quarters.notice().iter().for_each(|notice| super::tell(notice));
        let correlation = correlation(self.access.identity().as_ref());
        Ok(SessionOffer {
            lent,
            env: self.allowance.env(),
            shipping: ProgramLogShipper::new(
                config.map(|config| config.sandboxing.log_shipping).unwrap_or_default(),
                correlation.clone(),
            ),
            correlation,
            idle_limit: self.idle,
            lifetime_limit: self.allowance.timeout(),
            egress,
            programs: self.allowance.programs.clone(),
            own_programs: match set {
                ToolSet::Builtin => &[],
                ToolSet::Sessions | ToolSet::All => &PROGRAMS,
            },
            approves: self.allow_approve.then(|| self.trust.trust()),
            pushes: self.trust.trust(),
            keeps: self.keep,
            quarters,
            roots,
        })
    }

    /// The sessions that were named.
    fn named(&self) -> Result<Vec<Session>, CliError> {
        let state = state::open();
        let found = |name: &String| Ok(session::find(&state, name)?.session().clone());
        self.session.iter().map(found).collect()
    }
}

/// Returns the correlation ids that are known before a session exists: the agent's.
fn correlation(identity: Option<&Identity>) -> Correlation {
    let Some(Identity::Agent(agent)) = identity else { return Correlation::default() };
    Correlation { agent_id: CorrelationId::parse(agent.as_str()).ok(), ..Correlation::default() }
}

/// Returns the access rules, with the trust that the agent has earned so far.
fn house(
    identity: &Identity,
    works_in: BTreeMap<Category, ExecutionLocation>,
) -> Result<Arc<RuleBasedAccess>, CliError> {
    let house = RuleBasedAccess::new(access::rules_of(None)?, works_in);
    if let Identity::Agent(agent) = identity {
        house.set_earned(agent, access::earned(None, identity)?);
    }
    Ok(Arc::new(house))
}
