//! `belljar grant issue`

use super::GrantStore;
use crate::command::printing::{print, print_json};
use crate::error::CliError;
use crate::sandbox_args::parse_duration;
use crate::state;
use belljar_contract::grant::{ExecutionGrant, GrantScope, GrantSubject, SignedGrant};
use belljar_contract::id::{GrantId, UserId};
use belljar_egress::identity::is_plain;
use belljar_execution::grant::GRANT_ISSUED;
use belljar_store::grants::{GrantKey, GrantSecret};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Debug, clap::Args)]
pub(super) struct IssueArguments {
    /// The holder of the grant: `service:NAME`, or `user:NAME`; agents in sandboxes are started by services alone
    #[arg(long, value_name = "SUBJECT", value_parser = parse_subject)]
    subject: GrantSubject,
    /// Billing account of the grant, by its id at the model provider
    #[arg(long, value_name = "ACCOUNT", value_parser = parse_account)]
    billing_account: String,
    /// Allowed execution: `graph:execute:sandbox:AGENT`, `graph:execute:sandbox:exec` for `belljar exec`, or `graph:execute:*`;
    /// may be given more than once
    #[arg(long = "scope", value_name = "SCOPE", value_parser = parse_scope, required = true)]
    scopes: Vec<GrantScope>,
    /// Allow execution in sandboxes; no scope implies it
    #[arg(long)]
    allow_sandbox: bool,
    /// User on whose behalf the grant is used, as providers record it
    #[arg(long, value_name = "USER", value_parser = parse_user)]
    user_id: Option<UserId>,
    /// How long it is valid [default: until it is revoked]
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    expires_in: Option<Duration>,
    /// Also write the grant to this file, signed by this deployment's key; with the file no secret is needed
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Print the grant and its secret as JSON
    #[arg(long)]
    json: bool,
}

// === impl IssueArguments ===

impl IssueArguments {
    pub(super) fn run(&self, kept: &GrantStore) -> Result<(), CliError> {
        let now = Timestamp::now();
        let grant = self.grant(now)?;
        let (secret, record) = kept.runtime.block_on(kept.grants.issue(grant, now))?;
        kept.record(GRANT_ISSUED, &json!({ "grant": record.grant }))?;
        if let Some(path) = &self.file {
            write(path, &record.grant)?;
        }
        match self.json {
            true => print_json(&json!({ "grant": record.grant, "secret": secret.reveal() })),
            false => print(&told(&record.grant.id, &secret)),
        }
    }

    fn grant(&self, now: Timestamp) -> Result<ExecutionGrant, CliError> {
        let too_long = || CliError::usage("--expires-in: it must end before the year 9999".to_owned());
        let end = |life: Duration| {
            let life = SignedDuration::try_from(life).map_err(|_| too_long())?;
            now.checked_add(life).map_err(|_| too_long())
        };
        Ok(ExecutionGrant {
            id: GrantId::from_uuid(uuid::Uuid::now_v7()),
            subject: self.subject.clone(),
            billing_account_id: self.billing_account.clone(),
            user_id: self.user_id.clone(),
            scopes: self.scopes.clone(),
            allow_sandbox: self.allow_sandbox,
            expires_at: self.expires_in.map(end).transpose()?,
            revoked_at: None,
        })
    }
}

fn told(id: &GrantId, secret: &GrantSecret) -> String {
    format!("grant   {id}\nsecret  {}\nThe secret is shown only this once.\n", secret.reveal())
}

/// Writes the signed grant, for its user alone. A file that is there stays as it is.
fn write(path: &Path, grant: &ExecutionGrant) -> Result<(), CliError> {
    let key = GrantKey::open_or_create(state::open().path())?;
    let signed = SignedGrant { grant: grant.clone(), signature: key.sign(grant) };
    let text = crate::output::json(&signed) + "\n";
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()));
    written.map_err(|error| CliError::usage(format!("can't write {}: {error}", crate::output::path(path))))
}

fn parse_subject(text: &str) -> Result<GrantSubject, String> {
    GrantSubject::parse(text).map_err(|error| error.to_string())
}

fn parse_scope(text: &str) -> Result<GrantScope, String> {
    GrantScope::parse(text).map_err(|error| error.to_string())
}

fn parse_user(text: &str) -> Result<UserId, String> {
    UserId::parse(text)
        .ok()
        .filter(|user| is_plain(user.as_str()))
        .ok_or_else(|| "expected 1 to 128 visible characters of ASCII".to_owned())
}

fn parse_account(text: &str) -> Result<String, String> {
    let account = is_plain(text).then(|| text.to_owned());
    account.ok_or_else(|| "expected 1 to 256 visible characters of ASCII".to_owned())
}
