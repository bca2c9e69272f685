//! Calls of a node's tools by its operator, for the subcommands that keep what agents are told.

use crate::access::whoever_runs_this;
use crate::client::{Client, NodeRequest};
use crate::error::{BAD_INPUT, CliError, DENIED};
use crate::output::UntrustedLines;
use belljar_contract::tool::{DomainCode, Envelope};
use belljar_contract::worker::tool_call::CallToolResponse;
use serde_json::{Value, json};
use std::process::ExitCode;

/// So many entries of a list are asked for at once.
const PAGE: usize = 200;

/// Calls a tool, and returns its answer.
pub(super) fn call(client: &Client, tool: &str, arguments: &Value) -> Result<Envelope, CliError> {
    let wanted =
        json!({ "version": 1, "tool": tool, "arguments": arguments, "user_id": whoever_runs_this()? });
    let wanted = wanted.to_string();
    let ask = NodeRequest {
        is_post: true,
        path: "/tools:call",
        body: Some(wanted.as_bytes()),
        ..NodeRequest::default()
    };
    Ok(client.document::<CallToolResponse>(&ask)?.known.answer)
}

/// Calls a tool that lists something until it has listed all, and shows the entries.
pub(super) fn list(
    client: &Client,
    (tool, mut arguments): (&str, Value),
    show: impl FnOnce(&[Value]) -> Result<(), CliError>,
) -> Result<ExitCode, CliError> {
    let mut entries = Vec::new();
    arguments["limit"] = json!(PAGE);
    loop {
        arguments["offset"] = json!(entries.len());
        let answer = call(client, tool, &arguments)?;
        let Envelope::Ok { data: Value::Array(page), pagination, .. } = answer else {
            return settle(answer, |_| Ok(()));
        };
        let is_last = page.is_empty();
        entries.extend(page);
        if is_last || pagination.is_none_or(|pagination| entries.len() >= pagination.total) {
            show(&entries)?;
            return Ok(ExitCode::SUCCESS);
        }
    }
}

/// Shows what came of a call, or says why nothing did.
pub(super) fn settle(
    answer: Envelope,
    show: impl FnOnce(&Value) -> Result<(), CliError>,
) -> Result<ExitCode, CliError> {
    match answer {
        Envelope::Ok { data, .. } => show(&data).map(|()| ExitCode::SUCCESS),
        Envelope::Error { domain_code, message, .. } => {
            crate::output::errln!("belljar: {}: {}", domain_code.as_str(), UntrustedLines(&message));
            Ok(match domain_code {
                DomainCode::InvalidArgument | DomainCode::NotFound | DomainCode::Conflict => {
                    ExitCode::from(BAD_INPUT)
                }
                DomainCode::PermissionDenied | DomainCode::GuardrailViolated => ExitCode::from(DENIED),
                _ => ExitCode::FAILURE,
            })
        }
    }
}
