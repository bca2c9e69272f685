//! `belljar trust list`, `show`

use crate::command::printing::{aligned, print, print_json};
use crate::error::{BAD_INPUT, CliError};
use crate::trust::Book;
use anstyle::Style;
use belljar_contract::id::AgentId;
use belljar_contract::trust::{TrustChange, TrustState};
use belljar_policy::trust::Replay;
use serde_json::{Value, json};
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
    pub(super) fn run(&self, book: &Book) -> Result<ExitCode, CliError> {
        let states: Vec<TrustState> = book
            .agents()?
            .iter()
            .map(|agent| Ok(book.of(agent)?.trust.state(&book.config)))
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
    pub(super) fn run(&self, book: &Book) -> Result<ExitCode, CliError> {
        let replayed = book.of(&self.agent)?;
        let state = replayed.trust.state(&book.config);
        if state.created_at.is_none() {
            anstream::eprintln!("belljar: nobody has hired {}", self.agent);
            return Ok(ExitCode::from(BAD_INPUT));
        }
        match self.json {
            true => print_json(&as_json(&state, &replayed))?,
            false => tell(&state, &replayed),
        }
        Ok(ExitCode::SUCCESS)
    }
}

fn as_json(state: &TrustState, replayed: &Replay) -> Value {
    let ignored: Vec<_> = replayed
        .ignored
        .iter()
        .map(|(event_id, why)| json!({ "event_id": event_id, "why": why.to_string() }))
        .collect();
    json!({ "state": state, "changes": replayed.changes, "ignored": ignored })
}

fn tell(state: &TrustState, replayed: &Replay) {
    let bold = Style::new().bold();
    anstream::println!("{bold}{}{bold:#}  {}", state.agent_id, state.global_level);
    for (category, level) in &state.category_levels {
        anstream::println!("  {category}  {level}");
    }
    if let Some(score) = state.score {
        anstream::println!("score  {score}");
    }
    for TrustChange { old, new, reason, at, .. } in &replayed.changes {
        anstream::println!("{at}  {old} -> {new}  {reason}");
    }
    for proposed in &state.pending {
        anstream::println!(
            "\nProposed: {}; `belljar trust approve {} {}` says yes to it",
            proposed.transition,
            state.agent_id,
            proposed.proposal_id
        );
    }
    if !replayed.ignored.is_empty() {
        anstream::println!("\n{} events change nothing; --json tells which, and why", replayed.ignored.len());
    }
}
