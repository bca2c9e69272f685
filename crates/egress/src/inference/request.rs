//! Prepares a request's body for the provider.

mod known;
mod options;

use super::members::Members;
use super::models::{Model, Models, ProviderKind};
use super::outbound_parts;
use super::refusal::Refusal;
use super::route::{Call, Operation};
use crate::identity::Identity;
use belljar_contract::inference::{ApiDialect, Excerpt};
use serde::{Deserialize, Serialize};

/// Request that may be sent.
pub(crate) struct PreparedRequest {
    pub(crate) body: Vec<u8>,
    pub(crate) model: Model,
    /// True if the answer is streamed.
    pub(crate) streams: bool,
}

/// Options of a streamed answer.
#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StreamOptions {
    #[serde(skip_serializing_if = "Option::is_none")]
    include_usage: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    include_obfuscation: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    continuous_usage_stats: Option<bool>,
}

const UNKNOWN: &str = "the member is unknown, and so is its effect at the provider";

/// Members that state a user's identity, besides those that are set.
const WHO: &[&str] = &["safety_identifier"];

/// Checks a body and makes the one that is sent to the provider.
pub(crate) fn prepare(
    body: Vec<u8>,
    call: Call,
    models: &Models,
    identity: &Identity,
) -> Result<PreparedRequest, Refusal> {
    let mut members = Members::parse(&body).map_err(|error| Refusal::not_json(&error))?;
    let model = model(&members, call, models)?.clone();
    outbound_parts::check(&members, call.surface, call.operation)?;
    known(&members, call)?;
    if call.surface == ApiDialect::Ollama {
        options::check(&members)?;
    }
    let streams = streams(&members, call.operation)?;
    members.set("model", text(&model.upstream_name));
    identify(&mut members, call, &model, identity);
    if streams && call.operation == Operation::Completion {
        include_usage(&mut members)?;
    }
    let changed = members.changed();
    Ok(PreparedRequest { body: changed.unwrap_or(body), model, streams })
}

fn model<'m>(members: &Members<'_>, call: Call, models: &'m Models) -> Result<&'m Model, Refusal> {
    let asked: String = members.read("model").ok_or(Refusal::NoModel)?;
    let Some(model) = models.get(&asked) else {
        let allowed = models.names().into_iter().map(str::to_owned).collect();
        return Err(Refusal::ModelNotAllowed { asked: Excerpt::of(&asked), allowed });
    };
    match model.provider.kind.speaks(call.surface) {
        true => Ok(model),
        false => Err(Refusal::wrong_surface(model, call.path)),
    }
}

fn known(members: &Members<'_>, call: Call) -> Result<(), Refusal> {
    let stranger = members.names().find(|name| !known::may_have(call, name)).map(str::to_owned);
    let stranger = match stranger {
        None => known::unknown_limit_within(members).map_err(|error| Refusal::not_json(&error))?,
        stranger => stranger,
    };
    match stranger {
        Some(member) => Err(Refusal::Forbidden { member: Excerpt::of(&member), why: UNKNOWN }),
        None => Ok(()),
    }
}

fn streams(members: &Members<'_>, operation: Operation) -> Result<bool, Refusal> {
    let asked = match members.get("stream") {
        None | Some("null") => None,
        Some("true") => Some(true),
        Some("false") => Some(false),
        Some(_) => return Err(Refusal::NotJson { why: Excerpt::of("`stream` must be true or false") }),
    };
    Ok(match operation {
        Operation::Embedding | Operation::CountTokens => false,
        Operation::Generation => asked.unwrap_or(true),
        Operation::Completion | Operation::Responses | Operation::Messages => asked.unwrap_or(false),
    })
}

/// Sets the identity of the caller, whatever the client states.
fn identify(members: &mut Members<'_>, call: Call, model: &Model, identity: &Identity) {
    for name in WHO {
        members.remove(name);
    }
    match (call.surface, call.operation) {
        (ApiDialect::Openai, _) => {
            members.set("user", text(&identity.billing_account_id));
            members.remove("metadata");
            // Nothing is stored with the provider that another user of the same account could read.
            if matches!(call.operation, Operation::Responses) || members.get("store").is_some() {
                members.set("store", "false".to_owned());
            }
        }
        (ApiDialect::Anthropic, Operation::Messages) => {
            members.remove("user");
            let user = text(&identity.billing_account_id);
            members.set("metadata", format!("{{\"user_id\":{user}}}"));
        }
        (ApiDialect::Anthropic, _) => {
            members.remove("user");
            members.remove("metadata");
        }
        // Other users of the provider must not wait for this model, nor have theirs unloaded.
        (ApiDialect::Ollama, _) => members.remove("keep_alive"),
    }
    if model.provider.kind == ProviderKind::Ollama {
        members.remove("user");
    }
}

/// Requests the usage report in the last event of a streamed answer.
fn include_usage(members: &mut Members<'_>) -> Result<(), Refusal> {
    const WHERE: &str = "stream_options";
    let not_json = |error: serde_json::Error| Refusal::not_json(&error);
    let options = match members.get(WHERE) {
        None | Some("null") => StreamOptions::default(),
        Some(options) => serde_json::from_str(options).map_err(not_json)?,
    };
    let options = StreamOptions { include_usage: Some(true), ..options };
    members.set(WHERE, serde_json::to_string(&options).map_err(not_json)?);
    Ok(())
}

/// Returns a string as JSON.
fn text(text: &str) -> String {
    // Text can always be written.
    serde_json::to_string(text).unwrap_or_default()
}

#[cfg(test)]
mod tests;
