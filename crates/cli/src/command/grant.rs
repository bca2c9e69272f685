//! `belljar grant`: grants that let services run agents and call models on an account: issue, list, revoke.

mod issue;
mod list;

use super::Subcommand;
use crate::error::CliError;
use crate::{approvals, grants};
use belljar_contract::id::GrantId;
use belljar_execution::grant::GRANT_REVOKED;
use belljar_store::audit::{AuditLog, Event};
use belljar_store::grants::Grants;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::json;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::runtime::Runtime;

#[derive(Debug, clap::Args)]
#[command(about = Self::ABOUT, after_help = AFTER_HELP)]
pub(crate) struct GrantArguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Issue a grant, and print its secret, which is shown this once
    Issue(issue::IssueArguments),
    /// List grants, the first issued first
    List(list::ListArguments),
    /// Revoke a grant: from then on it allows nothing
    Revoke(RevokeArguments),
}

#[derive(Debug, clap::Args)]
struct RevokeArguments {
    /// The grant's id
    #[arg(value_parser = parse_id)]
    id: GrantId,
}

/// The grants of this machine, and its audit.
struct GrantStore {
    grants: Grants,
    audit: Arc<AuditLog>,
    runtime: Runtime,
}

const AFTER_HELP: &str = "\
These are the grants of this machine's state directory (BELLJAR_STATE_DIR). A grant is used by `belljar agent` and `belljar exec`, \
with --grant ID and its secret in BELLJAR_GRANT_SECRET or --grant-secret-file, or with --grant FILE. Of the secret only a digest is kept.

Example:
  belljar grant issue --subject service:scheduler --billing-account account-7 --scope graph:execute:sandbox:codex --allow-sandbox";

impl Subcommand for GrantArguments {
    const NAME: &'static str = "grant";
    const ABOUT: &'static str = "Grants that let services run agents and call models on an account";

    fn run(&self) -> Result<ExitCode, CliError> {
        match &self.command {
            Command::Issue(arguments) => arguments.run(&GrantStore::open()?)?,
            Command::List(arguments) => arguments.run(&GrantStore::open()?)?,
            Command::Revoke(arguments) => arguments.run(&GrantStore::open()?)?,
        }
        Ok(ExitCode::SUCCESS)
    }
}

// === impl RevokeArguments ===

impl RevokeArguments {
    fn run(&self, kept: &GrantStore) -> Result<(), CliError> {
        let Self { id } = self;
        if kept.runtime.block_on(kept.grants.find(id))?.is_none() {
            return Err(CliError::usage(format!("there is no grant {id}; `belljar grant list` lists them")));
        }
        let told = match kept.runtime.block_on(kept.grants.revoke(id, Timestamp::now()))? {
            true => {
                kept.record(GRANT_REVOKED, &json!({ "grant_id": id }))?;
                "is revoked"
            }
            false => "was revoked before",
        };
        super::printing::print(&format!("grant {id} {told}\n"))
    }
}

// === impl GrantStore ===

impl GrantStore {
    fn open() -> Result<Self, CliError> {
        let runtime = approvals::runtime()?;
        let grants = runtime.block_on(grants::open())?;
        Ok(Self { grants, audit: approvals::audit()?, runtime })
    }

    /// Records something, and waits until it is on the disk.
    fn record(&self, kind: &str, event: &impl Serialize) -> Result<(), CliError> {
        let event = Event::new(kind, None, event).map_err(belljar_journal::RunJournalError::from)?;
        self.audit.append(event)?;
        Ok(())
    }
}

/// An id as it is typed.
fn parse_id(text: &str) -> Result<GrantId, String> {
    GrantId::parse(text).map_err(|error| error.to_string())
}
