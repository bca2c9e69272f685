//! `belljar trust approve`, `deny`, `assess`, `set`, `verify`: a person's word.

use super::{happening, record};
use crate::access::whoever_runs_this;
use crate::error::{BAD_INPUT, CliError};
use crate::trust::{TrustEventStore, parse_category};
use belljar_contract::category::Category;
use belljar_contract::id::{AgentId, JobId};
use belljar_contract::trust::{MeasureError, ProposedPromotion, Quality, Share, TrustEventKind, TrustLevel};
use std::process::ExitCode;
use uuid::Uuid;

#[derive(Debug, clap::Args)]
pub(super) struct ApproveArguments {
    /// The agent
    #[arg(value_parser = AgentId::parse)]
    agent: AgentId,
    /// The proposal, or the beginning of its id, as `show` tells it
    proposal: String,
}

#[derive(Debug, clap::Args)]
pub(super) struct DenyArguments {
    /// The agent
    #[arg(value_parser = AgentId::parse)]
    agent: AgentId,
    /// The proposal, or the beginning of its id, as `show` tells it
    proposal: String,
}

#[derive(Debug, clap::Args)]
#[command(group(clap::ArgGroup::new("said").required(true).multiple(true).args(["quality", "difficulty"])))]
pub(super) struct AssessArguments {
    /// The agent
    #[arg(value_parser = AgentId::parse)]
    agent: AgentId,
    /// The job
    #[arg(value_parser = JobId::parse)]
    job: JobId,
    /// How well it was done, from 0 to 10
    #[arg(long, value_name = "NUMBER", value_parser = parse_measure::<Quality>)]
    quality: Option<Quality>,
    /// How hard it was, from 0 to 1
    #[arg(long, value_name = "NUMBER", value_parser = parse_measure::<Share>)]
    difficulty: Option<Share>,
}

#[derive(Debug, clap::Args)]
pub(super) struct SetArguments {
    /// The agent
    #[arg(value_parser = AgentId::parse)]
    agent: AgentId,
    /// sandboxed, restricted, standard, elevated
    #[arg(value_parser = parse_level)]
    level: TrustLevel,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: String,
    /// For tools of this category alone, where each has a level of its own
    #[arg(long, value_name = "CATEGORY", value_parser = parse_category)]
    category: Option<Category>,
}

#[derive(Debug, clap::Args)]
pub(super) struct VerifyArguments {
    /// The agent
    #[arg(value_parser = AgentId::parse)]
    agent: AgentId,
}

fn parse_measure<T: TryFrom<f64, Error = MeasureError>>(text: &str) -> Result<T, String> {
    let number: f64 = text.parse().map_err(|_| format!("{text:?} is no number"))?;
    T::try_from(number).map_err(|error| error.to_string())
}

fn parse_level(text: &str) -> Result<TrustLevel, String> {
    let known = TrustLevel::ALL.map(TrustLevel::as_str);
    TrustLevel::named(text)
        .ok_or_else(|| format!("{text:?} is no level of trust; there are {}", known.join(", ")))
}

// === impl ApproveArguments ===

impl ApproveArguments {
    pub(super) fn run(&self, book: &TrustEventStore) -> Result<ExitCode, CliError> {
        let Some(proposed) = proposed(book, &self.agent, &self.proposal)? else {
            return Ok(ExitCode::from(BAD_INPUT));
        };
        record(book, &happening(&self.agent, proposed.approved(Uuid::now_v7())))
    }
}

// === impl DenyArguments ===

impl DenyArguments {
    pub(super) fn run(&self, book: &TrustEventStore) -> Result<ExitCode, CliError> {
        let Some(proposed) = proposed(book, &self.agent, &self.proposal)? else {
            return Ok(ExitCode::from(BAD_INPUT));
        };
        record(book, &happening(&self.agent, proposed.denied(Uuid::now_v7())))
    }
}

// === impl AssessArguments ===

impl AssessArguments {
    pub(super) fn run(&self, book: &TrustEventStore) -> Result<ExitCode, CliError> {
        let Self { agent, job, quality, difficulty } = self;
        let (job_id, by) = (job.clone(), whoever_runs_this()?);
        let assessed = TrustEventKind::JobAssessed { job_id, quality: *quality, difficulty: *difficulty, by };
        record(book, &happening(agent, assessed))
    }
}

// === impl SetArguments ===

impl SetArguments {
    pub(super) fn run(&self, book: &TrustEventStore) -> Result<ExitCode, CliError> {
        let Self { level, category, reason, .. } = self;
        let (reason, by) = (reason.clone(), whoever_runs_this()?);
        let set = TrustEventKind::LevelSet { level: *level, category: *category, reason, by };
        record(book, &happening(&self.agent, set))
    }
}

// === impl VerifyArguments ===

impl VerifyArguments {
    pub(super) fn run(&self, book: &TrustEventStore) -> Result<ExitCode, CliError> {
        record(book, &happening(&self.agent, TrustEventKind::ReVerified { by: whoever_runs_this()? }))
    }
}

/// The proposal that is meant, if it is the only one whose id begins so.
fn proposed(
    book: &TrustEventStore,
    agent: &AgentId,
    begins: &str,
) -> Result<Option<ProposedPromotion>, CliError> {
    let pending = book.of(agent)?.trust.state(book.config()).pending;
    let is_meant = |one: &ProposedPromotion| one.proposal_id.to_string().starts_with(begins);
    let mut meant = pending.into_iter().filter(is_meant);
    match (meant.next(), meant.next()) {
        (Some(one), None) => Ok(Some(one)),
        _ => {
            crate::output::errln!(
                "belljar: no promotion of {agent} is proposed by that id, or several are; `belljar trust show {agent}` tells which"
            );
            Ok(None)
        }
    }
}
