//! `belljar usage`: what calls of models have used, from the audit, and whether those who bill them have it written down so.

mod compared;
mod list;

use super::Subcommand;
use super::node::usual_state;
use crate::error::CliError;
use crate::models;
use crate::sandbox_args::parse_duration;
use crate::state;
use belljar_contract::id::RunId;
use belljar_contract::inference::{BEGUN, CALL, CallRecord, CallStartRecord, Excerpt};
use belljar_egress::inference::config::InferenceConfig;
use belljar_egress::inference::models::Provider;
use belljar_egress::spend::{self, Days};
use belljar_journal::usage::RecordedCalls;
use belljar_journal::usage::reconcile::{Reconciliation, reconcile};
use belljar_store::audit::verify::{Verdict, VerifyRequirements};
use belljar_store::audit::{self, AuditError};
use jiff::{SignedDuration, Timestamp};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

#[derive(Debug, clap::Args)]
#[command(about = Self::ABOUT)]
pub(crate) struct UsageArguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Show what each call has used, and the sums
    List(ListArguments),
    /// Hold that against a LiteLLM's spend logs; exit code 1 if something differs
    Reconcile(ReconcileArguments),
}

#[derive(Debug, clap::Args)]
struct ListArguments {
    #[command(flatten)]
    source: SourceArguments,
    /// Print the reports as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct ReconcileArguments {
    #[command(flatten)]
    source: SourceArguments,
    /// The provider, as the configuration names it
    #[arg(long, value_name = "NAME")]
    provider: String,
    /// The configuration that says where it is [default: as for exec --model]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Only calls that this account pays for
    #[arg(long, value_name = "ACCOUNT")]
    billing_account: Option<String>,
    /// How long after its end a call may be missing from the spend logs, which LiteLLM writes from time to time
    #[arg(long, value_name = "DURATION", default_value = "2m", value_parser = parse_duration)]
    grace: Duration,
    /// Print what was found as JSON
    #[arg(long)]
    json: bool,
}

/// Which calls, and whether what is known of them must be proven.
#[derive(Debug, clap::Args)]
struct SourceArguments {
    /// Only calls of this run
    #[arg(long, value_name = "ID", value_parser = RunId::parse)]
    run: Option<RunId>,
    /// Also from an audit log that is not as it was written, up to where that is seen: no basis for a bill
    #[arg(long)]
    unverified: bool,
}

/// Exit code when the reports and the books don't agree.
const DIFFERENT: u8 = 1;

/// A call's row may be of another day than the call, by its own clock.
const BESIDE: SignedDuration = SignedDuration::from_hours(1);

impl Subcommand for UsageArguments {
    const NAME: &'static str = "usage";
    const ABOUT: &'static str = "List the usage of model calls, and compare it with the provider's billing";

    fn run(&self) -> Result<ExitCode, CliError> {
        match &self.action {
            Action::List(arguments) => arguments.list(),
            Action::Reconcile(arguments) => arguments.reconcile(),
        }
    }
}

// === impl ListArguments ===

impl ListArguments {
    fn list(&self) -> Result<ExitCode, CliError> {
        let calls = self.source.calls(|_, _| true)?;
        let state = state::open();
        match self.json {
            true => list::print_json(&calls, state.path())?,
            false => list::print_table(&calls)?,
        }
        if calls.is_empty() {
            crate::output::errln!("belljar: {}", empty(state.path()));
        }
        Ok(ExitCode::SUCCESS)
    }
}

// === impl ReconcileArguments ===

impl ReconcileArguments {
    fn reconcile(&self) -> Result<ExitCode, CliError> {
        let provider = self.provider()?;
        let calls = self.source.calls(|provider, account| {
            // One that was denied has none; its run may be in the books all the same.
            provider.is_none_or(|name| name.as_str() == self.provider)
                && self.billing_account.as_ref().is_none_or(|one| account.as_str() == one)
        })?;
        let compared = self.compare(&provider, &calls)?;
        match self.json {
            true => compared::print_json(&self.provider, &compared)?,
            false => compared::print_text(&self.provider, &compared)?,
        }
        Ok(if compared.agrees() { ExitCode::SUCCESS } else { ExitCode::from(DIFFERENT) })
    }

    fn provider(&self) -> Result<Arc<Provider>, CliError> {
        let (path, InferenceConfig { models, .. }) = models::configuration(self.config.as_ref())?;
        let unknown = |known: Vec<&str>| {
            let known = known.join(", ");
            let (path, name) = (crate::output::path(&path), &self.provider);
            CliError::usage(format!("{path} has no model of a provider {name:?}; it has those of: {known}"))
        };
        let providers = models.providers();
        let found = providers.iter().find(|provider| provider.name == self.provider);
        found.cloned().cloned().ok_or_else(|| {
            let mut known: Vec<&str> = providers.iter().map(|provider| provider.name.as_str()).collect();
            known.sort_unstable();
            known.dedup();
            unknown(known)
        })
    }

    fn compare(&self, provider: &Provider, calls: &RecordedCalls) -> Result<Reconciliation, CliError> {
        let Some((begin, end)) = calls.time() else {
            let state = state::open();
            let message = format!("no calls of {} are recorded: {}", self.provider, empty(state.path()));
            return Err(CliError::usage(message));
        };
        let days = Days::between(
            begin.saturating_sub(BESIDE).unwrap_or(Timestamp::MIN),
            end.saturating_add(BESIDE).unwrap_or(Timestamp::MAX),
        )?;
        let accounts: Vec<&str> = calls.accounts().iter().map(String::as_str).collect();
        let rows = spend::ask(provider, &accounts, days)?;
        let grace = SignedDuration::try_from(self.grace).unwrap_or(SignedDuration::MAX);
        let settled_until = Timestamp::now().saturating_sub(grace).unwrap_or(Timestamp::MIN);
        Ok(reconcile(calls, &rows, settled_until))
    }
}

/// Says which state has no calls, and where a node's are.
fn empty(state: &Path) -> String {
    let read = format!("no calls are found in the state directory {}", crate::output::path(state));
    let node = usual_state();
    let hint = match audit::folder_in(node.path()).exists() {
        true => format!("a node keeps its own in {}", crate::output::path(node.path())),
        false => "a node keeps its own in its --state-dir".to_owned(),
    };
    format!("{read}; {hint}: BELLJAR_STATE_DIR says which is read")
}

// === impl SourceArguments ===

impl SourceArguments {
    /// The calls that are recorded and wanted, by their provider and who pays.
    fn calls(&self, wants: impl Fn(Option<&Excerpt>, &Excerpt) -> bool) -> Result<RecordedCalls, CliError> {
        let folder = audit::folder_in(state::open().path());
        let mut calls = RecordedCalls::default();
        if !folder.exists() {
            return Ok(calls);
        }
        if !self.unverified
            && let Verdict::Broken(finding) = audit::verify::verify(&folder, &VerifyRequirements::default())?
        {
            return Err(CliError::NoBasis { source: AuditError::Damaged { finding } });
        }
        let mut unreadable = None;
        let read = audit::reading::each(&folder, &mut |record, _| {
            if self.run.as_ref().is_some_and(|run| record.run != Some(run.as_str())) || unreadable.is_some() {
                return;
            }
            let read = match record.kind {
                CALL => serde_json::from_str::<CallRecord>(record.event).map(|call| {
                    if wants(call.provider.as_ref(), &call.billing_account_id) {
                        calls.add(&call);
                    }
                }),
                BEGUN => serde_json::from_str::<CallStartRecord>(record.event).map(|call| {
                    if wants(Some(&call.provider), &call.billing_account_id) {
                        calls.begin(&call);
                    }
                }),
                _ => return,
            };
            unreadable = read.err().map(|source| CliError::Call { sequence: record.sequence, source });
        });
        match (unreadable, read) {
            (Some(error), _) => Err(error),
            (None, Err(error)) if self.unverified => {
                crate::output::errln!("belljar: {error}: what comes behind that is not looked at");
                Ok(calls)
            }
            (None, read) => read.map(|()| calls).map_err(CliError::from),
        }
    }
}
