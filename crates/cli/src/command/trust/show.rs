//! `belljar trust list`, `show`

use crate::command::printing::{aligned, print, print_json};
use crate::error::{BAD_INPUT, CliError};
use crate::trust::TrustEventStore;
use anstyle::Style;
use belljar_contract::id::AgentId;
use belljar_contract::trust::{AgentTrust, TrustChange, TrustState};
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub(super) struct ListArguments {
    /// Print them as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
pub(super) struct ShowArguments {
    /// The agent
    #[arg(value_parser = AgentId::parse)]
    agent: AgentId,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

// === impl ListArguments ===

impl ListArguments {
    pub(super) fn run(&self, book: &TrustEventStore) -> Result<ExitCode, CliError> {
        let states: Vec<TrustState> = book
            .agents()?
            .iter()
            .map(|agent| Ok(book.of(agent)?.trust.state(book.config())))
            .collect::<Result<_, CliError>>()?;
        if self.json {
            print_json(&states)?;
            return Ok(ExitCode::SUCCESS);
        }
        let heading = ["AGENT", "LEVEL", "SCORE", "PROPOSED"].map(str::to_owned);
        let rows: Vec<_> = std::iter::once(heading).chain(states.iter().map(row)).collect();
        print(&aligned(&rows))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn row(state: &TrustState) -> [String; 4] {
    [
        state.agent_id.to_string(),
        state.global_level.to_string(),
        state.score.map_or_else(|| "-".to_owned(), |score| score.to_string()),
        state.pending.len().to_string(),
    ]
}

// === impl ShowArguments ===

impl ShowArguments {
    pub(super) fn run(&self, book: &TrustEventStore) -> Result<ExitCode, CliError> {
        let replayed = book.of(&self.agent)?;
        let told = replayed.told(book.config());
        if told.state.created_at.is_none() {
            crate::output::errln!("belljar: no hiring of {} is recorded", self.agent);
            return Ok(ExitCode::from(BAD_INPUT));
        }
        match self.json {
            true => print_json(&told)?,
            false => tell(&told),
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn tell(AgentTrust { state, changes, ignored }: &AgentTrust) {
    let bold = Style::new().bold();
    crate::output::outln!("{bold}{}{bold:#}  {}", state.agent_id, state.global_level);
    for (category, level) in &state.category_levels {
        crate::output::outln!("  {category}  {level}");
    }
    if let Some(score) = state.score {
        crate::output::outln!("score  {score}");
    }
    for TrustChange { old, new, reason, at, .. } in changes {
        crate::output::outln!("{at}  {old} -> {new}  {reason}");
    }
    for proposed in &state.pending {
        crate::output::outln!(
            "\nProposed: {}; `belljar trust approve {} {}` approves it",
            proposed.transition,
            state.agent_id,
            proposed.proposal_id
        );
    }
    if !ignored.is_empty() {
        crate::output::outln!("\n{} events change nothing; --json tells which, and why", ignored.len());
    }
}
