//! `belljar grant list`

use super::GrantStore;
use crate::command::plain;
use crate::command::printing::{aligned, print, print_json};
use crate::error::CliError;
use belljar_contract::grant::ExecutionGrant;
use belljar_contract::id::GrantId;
use belljar_store::grants::GrantRecord;
use belljar_store::page;
use jiff::Timestamp;
use serde_json::{Value, json};

#[derive(Debug, clap::Args)]
pub(super) struct ListArguments {
    /// Print the grants as JSON
    #[arg(long)]
    json: bool,
}

// === impl ListArguments ===

impl ListArguments {
    pub(super) fn run(&self, kept: &GrantStore) -> Result<(), CliError> {
        let grants = &kept.grants;
        let page = move |after: Option<GrantId>| async move { grants.list(after.as_ref(), page::MOST).await };
        let all: Vec<GrantRecord> = kept.runtime.block_on(page::all(page))?;
        match self.json {
            true => print_json(&json!({ "grants": all.iter().map(document).collect::<Vec<_>>() })),
            false if all.is_empty() => print("No grants.\n"),
            false => {
                let head = ["GRANT", "STATUS", "SUBJECT", "ACCOUNT", "SCOPES", "SANDBOX", "EXPIRES"];
                let rows: Vec<_> =
                    std::iter::once(head.map(str::to_owned)).chain(all.iter().map(row)).collect();
                print(&aligned(&rows))
            }
        }
    }
}

fn document(GrantRecord { grant, issued_at, .. }: &GrantRecord) -> Value {
    json!({ "grant": grant, "issued_at": issued_at, "status": status(grant) })
}

fn status(grant: &ExecutionGrant) -> &'static str {
    let is_expired = grant.expires_at.is_some_and(|expires_at| expires_at <= Timestamp::now());
    match (grant.revoked_at, is_expired) {
        (Some(_), _) => "revoked",
        (None, true) => "expired",
        (None, false) => "valid",
    }
}

fn row(GrantRecord { grant, .. }: &GrantRecord) -> [String; 7] {
    let scopes: Vec<String> = grant.scopes.iter().map(ToString::to_string).collect();
    let time = |time: Timestamp| time.strftime("%Y-%m-%d %H:%M:%S").to_string();
    [
        grant.id.to_string(),
        status(grant).to_owned(),
        plain(&grant.subject.to_string()),
        plain(&grant.billing_account_id),
        plain(&scopes.join(" ")),
        if grant.allow_sandbox { "yes" } else { "no" }.to_owned(),
        grant.expires_at.map_or_else(|| "-".to_owned(), time),
    ]
}
