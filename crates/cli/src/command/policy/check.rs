//! `belljar policy check`: what was recorded of calls, judged again.

use crate::access::{self, works_in};
use crate::command::audit::{parse_since, records_since};
use crate::command::printing::print_json;
use crate::error::CliError;
use crate::progress::harmless;
use crate::trust;
use anstyle::Style;
use belljar_contract::access::AccessLevel;
use belljar_contract::category::Category;
use belljar_contract::id::AgentId;
use belljar_contract::tool::{JudgementRecord, TOOL_CALLED, ToolCallRecord, ToolDecision, ToolName};
use belljar_contract::trust::TrustEvent;
use belljar_policy::access::{AccessRules, EarnedLevels};
use belljar_policy::constraint::ExecutionLocation;
use belljar_policy::permission::ToolFacts;
use belljar_policy::trust::{History, TrustConfig};
use belljar_policy::verdict::{Rule, Verdict};
use belljar_store::database::Location;
use belljar_tools::caller::Identity;
use jiff::Timestamp;
use serde::Serialize;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
pub(super) struct CheckArguments {
    /// The configuration that is tried
    file: PathBuf,
    /// Only what was recorded from this time on, such as 2026-01-31T12:00:00Z, or so long ago: 90s, 5m, 1h
    #[arg(long, value_name = "TIME", value_parser = parse_since)]
    since: Option<Timestamp>,
    /// The database of a node whose record this is: what its agents had earned is in there, and callers without a name are those of
    /// `default_level`
    #[arg(long, value_name = "URL", value_parser = Location::parse)]
    database: Option<Location>,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

/// Report of recorded calls that were judged again.
#[derive(Debug, Default, Serialize)]
struct ReplayReport {
    /// Calls that were judged by rules of agents.
    calls: u64,
    /// Calls that would end otherwise, by what they were.
    changes: Vec<VerdictChange>,
}

/// Calls of one kind that would end otherwise.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
struct VerdictChange {
    agent: String,
    tool: String,
    was: Verdict,
    was_by: String,
    would_be: Verdict,
    would_be_by: String,
    calls: u64,
    /// The last of them.
    decision: String,
}

/// Identity of a kind of change: agent or level, tool, verdict and rule before, verdict and rule now.
type VerdictChangeKey = (String, String, Verdict, String, Verdict, String);

/// Rules that recorded calls are judged by again.
struct CandidateRules<'e> {
    rules: AccessRules,
    /// At which level those are judged who have no name; at that of the record, if nothing is said.
    level_of_unnamed: Option<AccessLevel>,
    works_in: BTreeMap<Category, ExecutionLocation>,
    config: &'e TrustConfig,
    recorded: &'e BTreeMap<AgentId, Vec<TrustEvent>>,
    histories: BTreeMap<AgentId, History<'e>>,
}

/// Exit code when something would change.
const CHANGES: u8 = 1;

// === impl CheckArguments ===

impl CheckArguments {
    pub(super) fn run(&self) -> Result<ExitCode, CliError> {
        let candidate = crate::configuration::read(&self.file)?;
        let config = candidate.trust.unwrap_or_default();
        let recorded = trust::recorded(&config, self.database.as_ref())?;
        let mut tried = CandidateRules {
            works_in: works_in(&candidate.sandboxing),
            level_of_unnamed: self.database.is_some().then(|| candidate.access.default_level()),
            rules: candidate.access,
            histories: BTreeMap::new(),
            recorded: &recorded,
            config: &config,
        };
        let mut calls = 0;
        let mut changes = BTreeMap::<VerdictChangeKey, (u64, String)>::new();
        records_since(self.since, TOOL_CALLED, &mut |at, event| {
            let Ok(record) = serde_json::from_str::<ToolCallRecord>(event) else { return };
            let (Some(judged), Ok(at)) = (&record.judged, at.parse()) else { return };
            calls += 1;
            if let Some(kind) = tried.changed(at, &record, judged) {
                let (count, last) = changes.entry(kind).or_default();
                *count += 1;
                *last = record.call_id.to_string();
            }
        })?;
        let changes = changes.into_iter().map(|(kind, (calls, decision))| {
            let (agent, tool, was, was_by, would_be, would_be_by) = kind;
            VerdictChange { agent, tool, was, was_by, would_be, would_be_by, calls, decision }
        });
        let replayed = ReplayReport { calls, changes: changes.collect() };
        replayed.print(self.json)?;
        Ok(if replayed.changes.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(CHANGES) })
    }
}

// === impl CandidateRules ===

impl<'e> CandidateRules<'e> {
    /// Returns the change of a call's verdict, if any, at the trust that its agent would have earned when the call was made.
    fn changed(
        &mut self,
        at: Timestamp,
        record: &ToolCallRecord,
        judged: &JudgementRecord,
    ) -> Option<VerdictChangeKey> {
        let name = ToolName::parse(&record.tool_name).ok()?;
        let identity = match &judged.agent_id {
            Some(agent) => Identity::Agent(agent.clone()),
            None => Identity::Level(self.level_of_unnamed.unwrap_or(judged.level)),
        };
        let earned = judged.agent_id.as_ref().and_then(|agent| self.earned(agent, at));
        let standing = access::standing(&self.rules, &identity, earned.as_ref());
        let facts = ToolFacts {
            name: &name,
            category: judged.category,
            action: &judged.action_type,
            reaches_out: judged.reaches_out,
        };
        let works_in = self.works_in.get(&judged.category).copied().unwrap_or(ExecutionLocation::Container);
        let now = self.rules.judging(&standing).judge(&facts, works_in);
        let was = verdict_of(record.decision, judged);
        (was != now.verdict).then(|| {
            (
                access::name(&identity),
                record.tool_name.clone(),
                was,
                judged.rule.clone(),
                now.verdict,
                now.rule.code(),
            )
        })
    }

    fn earned(&mut self, agent: &AgentId, at: Timestamp) -> Option<EarnedLevels> {
        let history = match self.histories.entry(agent.clone()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => {
                let events = self.recorded.get(agent).map(Vec::as_slice).unwrap_or_default();
                new.insert(History::new(self.config, agent, events))
            }
        };
        history.at(at).earned(self.config).or_else(|| self.config.of_newcomer())
    }
}

/// How a call was judged.
fn verdict_of(decision: ToolDecision, judged: &JudgementRecord) -> Verdict {
    match decision {
        // It was put before a person before, and would be again.
        // The tool has asked, and no rule of agents.
        ToolDecision::Escalate if judged.rule == Rule::Tool.code() => Verdict::Allow,
        ToolDecision::Allow if judged.rule == Rule::Approved.code() => Verdict::Escalate,
        ToolDecision::Deny if judged.rule == Rule::NoApprover.code() => Verdict::Escalate,
        ToolDecision::Allow => Verdict::Allow,
        ToolDecision::Escalate => Verdict::Escalate,
        ToolDecision::Deny => Verdict::Deny,
    }
}

// === impl ReplayReport ===

impl ReplayReport {
    fn print(&self, is_json: bool) -> Result<(), CliError> {
        if is_json {
            return print_json(self);
        }
        crate::output::out!("{}", self.as_text());
        Ok(())
    }

    fn as_text(&self) -> String {
        let head = Style::new().bold();
        let mut text = String::new();
        if !self.changes.is_empty() {
            let _ = writeln!(
                text,
                "{head}{:>6}  {:<20} {:<24} WAS, AND WOULD BE{head:#}",
                "CALLS", "AGENT", "TOOL"
            );
        }
        for VerdictChange { agent, tool, was, was_by, would_be, would_be_by, calls, decision } in
            &self.changes
        {
            let _ = writeln!(
                text,
                "{calls:>6}  {:<20} {:<24} {} ({}) → {} ({}); the last is {decision}",
                harmless(agent),
                harmless(tool),
                was.as_str(),
                harmless(was_by),
                would_be.as_str(),
                harmless(would_be_by)
            );
        }
        let changed: u64 = self.changes.iter().map(|change| change.calls).sum();
        let _ = writeln!(text, "{changed} of {} calls would end otherwise", self.calls);
        text
    }
}
