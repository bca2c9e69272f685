//! What one job's sandbox has by the level of its agent, held against what the job asks for.

use crate::images::Image;
use belljar_contract::job::step::Action;
use belljar_contract::programs::{ParseProgramsError, ProgramList};
use belljar_contract::worker::assignment::SandboxOrder;
use belljar_gateway::access::Stood;
use belljar_policy::access::compiled::{Compiled, GitTerms, ProgramTerms, WebTerms, WorkspaceTerms};
use belljar_tools::caller::Identity;
use std::fmt;
use std::path::Path;

/// What a sandbox has.
#[derive(Debug, Clone)]
pub(crate) struct Terms {
    whose: Whose,
    compiled: Compiled,
    programs: Option<ProgramList>,
}

/// Somebody, as they are told of themselves.
#[derive(Debug, Clone)]
pub(crate) struct Whose(Identity);

/// More is asked for than an agent has. Each says where, and what would be right.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TooMuch {
    #[error("{place}: {whose} reaches nothing of the web (`network: none`): {right}")]
    Web { place: &'static str, whose: Whose, right: &'static str },
    #[error(
        "$.sandbox.image: {image}, and {whose} may start listed programs alone (`terminal`), which only the node's own sandboxes \
         hold: `native`"
    )]
    Image { image: String, whose: Whose },
    #[error(
        "{place}: {program:?} is none of the programs that {whose} may start (`terminal`, `commands`): {listed}"
    )]
    Program { place: String, program: String, whose: Whose, listed: String },
    #[error("the programs that {whose} may start are no list of programs")]
    Listed {
        whose: Whose,
        #[source]
        source: ParseProgramsError,
    },
}

/// So many names of programs are told.
const SHOWN: usize = 12;

// === impl Terms ===

impl Terms {
    /// Those of somebody who stands so.
    pub(super) fn of(identity: Identity, stood: &Stood, sandbox: &SandboxOrder) -> Result<Self, TooMuch> {
        let whose = Whose(identity);
        let compiled = of_job(Compiled::of(stood.agent.permissions.constraints()), sandbox.wants_web());
        let programs = match &compiled.programs {
            ProgramTerms::All => None,
            ProgramTerms::Only { names } => {
                let listed = ProgramList::new(names.iter().cloned());
                Some(listed.map_err(|source| TooMuch::Listed { whose: whose.clone(), source })?)
            }
        };
        Ok(Self { whose, compiled, programs })
    }

    /// As whom it was made.
    pub(super) fn identity(&self) -> &Identity {
        &self.whose.0
    }

    /// What a sandbox has by them.
    pub(crate) fn compiled(&self) -> &Compiled {
        &self.compiled
    }

    /// The only programs that can be started in it, if not all can.
    pub(crate) fn programs(&self) -> Option<&ProgramList> {
        self.programs.as_ref()
    }

    /// Whether a job asks for nothing else. Its workspace begins empty and is lent nothing, and its sandbox has a root of its own:
    /// more than that no level takes away.
    pub(super) fn admit(&self, sandbox: &SandboxOrder, image: &Image) -> Result<(), TooMuch> {
        let whose = || self.whose.clone();
        if sandbox.wants_web() && self.compiled.web == WebTerms::None {
            let (place, right) = match sandbox.job_spec {
                Some(_) => ("$.sandbox.job_spec.constraints.ext_net_allowed", "expected false"),
                None => ("$.sandbox.network_policy", "expected `none`"),
            };
            return Err(TooMuch::Web { place, whose: whose(), right });
        }
        let Some(listed) = &self.programs else { return Ok(()) };
        if *image != Image::Native {
            return Err(TooMuch::Image { image: image.name(), whose: whose() });
        }
        let refused = programs(sandbox).find(|(_, program)| !listed.has(name(program)));
        refused.map_or(Ok(()), |(place, program)| {
            let program = program.to_owned();
            Err(TooMuch::Program { place, program, whose: whose(), listed: shown(listed) })
        })
    }
}

/// What of a level there is in a job's sandbox: its workspace begins empty, and it goes by the web or not at all.
fn of_job(level: Compiled, wants_web: bool) -> Compiled {
    let level = Compiled { workspace: WorkspaceTerms::Empty, is_lent_to: false, ..level };
    match wants_web {
        true => level,
        false => Compiled { web: WebTerms::None, git: GitTerms { fetches: false, pushes: false }, ..level },
    }
}

/// The programs that a job itself starts, and where it says so.
fn programs(sandbox: &SandboxOrder) -> impl Iterator<Item = (String, &str)> {
    let command =
        sandbox.command.first().map(|program| ("$.sandbox.command[0]".to_owned(), program.as_str()));
    let steps = sandbox.job_spec.iter().flat_map(|spec| spec.job.steps.iter().enumerate());
    let of_steps = steps.filter_map(|(index, step)| match &step.action {
        Action::RunCommand(run) => {
            Some((format!("$.sandbox.job_spec.steps[{index}]"), run.argv.first()?.as_str()))
        }
        _ => None,
    });
    command.into_iter().chain(of_steps)
}

fn name(program: &str) -> &str {
    Path::new(program).file_name().and_then(|name| name.to_str()).unwrap_or(program)
}

fn shown(listed: &ProgramList) -> String {
    let (names, count): (Vec<&str>, _) = (listed.names().take(SHOWN).collect(), listed.names().count());
    match (names.join(", "), count.saturating_sub(SHOWN)) {
        (_, _) if names.is_empty() => "none".to_owned(),
        (names, 0) => names,
        (names, more) => format!("{names} and {more} more"),
    }
}

// === impl Whose ===

impl fmt::Display for Whose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Identity::Agent(agent) => write!(f, "the agent {agent}"),
            Identity::Level(level) => write!(f, "a job without `agent_id`, at the level {level},"),
        }
    }
}
