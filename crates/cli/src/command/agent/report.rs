//! Report of an agent's run, for people and for programs (docs/reference/agents.md).

use super::workspace::AgentChangesOutcome;
use crate::command::git::outcome::PushReport;
use crate::command::printing::print_json;
use crate::error::CliError;
use crate::kept::not_pushed_kept_as;
use crate::progress::harmless;
use crate::terminal::begin_review;
use crate::{summary, usage_text, web};
use anstyle::{AnsiColor, Style};
use belljar_agent::outcome::GraphFinal;
use belljar_contract::agent::{AgentChanges, AgentResult, AuditSpan};
use belljar_contract::egress::WebUsage;
use belljar_contract::result::WorkspaceChanges;
use belljar_contract::usage::{UsageReport, UsageTotals};
use belljar_execution::run_once::OnceResult;
use belljar_journal::AuditRange;
use belljar_sandbox::workspace::diff;
use std::fmt::Write as _;
use std::time::Duration;

/// Report of an agent's run.
pub(super) struct AgentRunReport {
    agent: String,
    told: GraphFinal,
    exit_code: i32,
    stdout: String,
    stderr: String,
    output_truncated: bool,
    calls: u64,
    unlisted_calls: u64,
    web: Option<WebUsage>,
    audit: Option<AuditRange>,
    changes: WorkspaceChanges,
    duration: Duration,
}

// === impl AgentRunReport ===

impl AgentRunReport {
    pub(super) fn of(agent: &str, result: &OnceResult, told: &GraphFinal) -> Result<Self, CliError> {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let changes = match &result.changes {
            Some(changes) => diff::render(&changes.set, &changes.source, &changes.upper)?,
            None => WorkspaceChanges::default(),
        };
        Ok(Self {
            agent: agent.to_owned(),
            told: told.clone(),
            exit_code: result.exit_code,
            stdout: text(&result.stdout),
            stderr: text(&result.stderr),
            output_truncated: result.output_truncated,
            calls: result.calls.listed.len() as u64,
            unlisted_calls: result.calls.unlisted,
            web: result.web.clone(),
            audit: result.audit.clone(),
            changes,
            duration: result.duration,
        })
    }

    /// Of a run for which there was no leave.
    pub(super) fn of_refused(agent: &str, told: GraphFinal) -> Self {
        Self {
            agent: agent.to_owned(),
            told,
            exit_code: -1,
            stdout: String::new(),
            stderr: String::new(),
            output_truncated: false,
            calls: 0,
            unlisted_calls: 0,
            web: None,
            audit: None,
            changes: WorkspaceChanges::default(),
            duration: Duration::ZERO,
        }
    }

    pub(super) fn print_json(&self, settled: &AgentChangesOutcome) -> Result<(), CliError> {
        print_json(&self.as_contract(settled))
    }

    fn as_contract(&self, settled: &AgentChangesOutcome) -> AgentResult {
        let fate = &settled.fate;
        let changes = AgentChanges {
            id: fate.id().cloned(),
            state: fate.state,
            conflicts: fate.conflicts.clone(),
            changed_in_source: fate.changed_in_source.clone(),
        };
        let told = self.told.clone();
        AgentResult {
            agent: self.agent.clone(),
            ok: told.is_ok(),
            finish_reason: told.finish_reason(),
            totals: told.totals,
            run_id: told.run_id,
            graph_id: told.graph_id,
            failure: told.failure,
            content: told.content,
            usage: told.usage,
            exit_code: self.exit_code,
            stdout: self.stdout.clone(),
            stderr: self.stderr.clone(),
            output_truncated: self.output_truncated,
            unlisted_calls: self.unlisted_calls,
            files: self.changes.files.clone(),
            diff: self.changes.diff.clone(),
            diff_truncated: self.changes.truncated,
            changes,
            kept_in: settled.kept_in.as_deref().map(belljar_policy::untrusted::name),
            web: self.web.clone(),
            push: settled.push.as_ref().map(PushReport::as_contract),
            audit: self.audit.as_ref().map(|AuditRange { first, last }| AuditSpan {
                first: *first,
                last: last.sequence,
                head: last.hash.to_string(),
            }),
            duration_ms: u64::try_from(self.duration.as_millis()).unwrap_or(u64::MAX),
        }
    }

    /// Tells it on standard error; what the agent has said is on standard output already.
    pub(super) fn tell(&self) {
        let mut text = String::new();
        if let Some(failure) = &self.told.failure {
            let bad = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
            let _ = writeln!(text, "{bad}{}{bad:#}: {}", failure.code, harmless(&failure.message));
            for line in self.stderr.lines().rev().take(10).collect::<Vec<_>>().into_iter().rev() {
                let _ = writeln!(text, "  | {}", harmless(line));
            }
        }
        if !self.changes.files.is_empty() {
            begin_review();
            text += &summary::changes(&self.changes);
        }
        text += &usage(&self.told.usage, &self.told.totals);
        if self.calls == 0 && self.told.is_ok() {
            text += "  The agent has called no model.\n";
        }
        if self.unlisted_calls > 0 {
            let _ = writeln!(text, "  {} more calls are in the audit alone.", self.unlisted_calls);
        }
        self.web.iter().for_each(web::tell_denied);
        if let Some(AuditRange { first, last }) = &self.audit {
            let last = last.sequence;
            let run = &self.told.run_id;
            let _ = writeln!(
                text,
                "  Recorded as {first} to {last}: `belljar audit show --run {run}`, `belljar audit verify`"
            );
        }
        crate::output::err!("{text}");
    }

    /// Tells what became of the changes.
    pub(super) fn tell_fate(&self, settled: &AgentChangesOutcome) {
        match (&settled.push, &settled.kept_in) {
            (Some(outcome), _) if outcome.is_done() => {
                outcome.tell();
                let left = settled.fate.kept.as_ref().map(not_pushed_kept_as);
                crate::output::err!("{}", left.unwrap_or_default());
            }
            (Some(outcome), Some(path)) => {
                outcome.tell();
                let run = &self.told.run_id;
                crate::output::errln!(
                    "The changes are kept in {}: `belljar git push {run}` pushes them.",
                    crate::output::path(path)
                );
            }
            (Some(outcome), None) => outcome.tell(),
            (None, _) => settled.fate.tell(),
        }
    }
}

/// Calls by model, and their sum.
fn usage(reports: &[UsageReport], totals: &UsageTotals) -> String {
    if reports.is_empty() {
        return String::new();
    }
    let head = Style::new().bold();
    let mut text = format!("  {head}{:24}  {:>8}  {:>8}  COST{head:#}\n", "MODEL", "INPUT", "OUTPUT");
    for report in reports {
        let cost = report.cost_usd.as_ref();
        let cost = cost.map_or_else(|| "unknown".to_owned(), |cost| format!("${}", cost.to_total()));
        let (input, output) =
            (usage_text::tokens(report.input_tokens), usage_text::tokens(report.output_tokens));
        let _ = writeln!(text, "  {:24}  {input:>8}  {output:>8}  {cost}", harmless(report.model.as_str()));
    }
    let (all, cost) = (usage_text::calls(totals), usage_text::cost(totals));
    let cost = match (&totals.cost_usd, totals.degraded_calls) {
        (None, _) => "unknown".to_owned(),
        (Some(_), 0) => format!("${cost}"),
        (Some(_), unknown) => format!("${cost}, and {unknown} of unknown cost"),
    };
    let (input_tokens, output_tokens) =
        (usage_text::tokens(totals.input_tokens), usage_text::tokens(totals.output_tokens));
    let _ = writeln!(text, "  {all:24}  {input_tokens:>8}  {output_tokens:>8}  {cost}");
    text
}
