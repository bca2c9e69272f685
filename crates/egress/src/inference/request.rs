//! What becomes of a request's body before a provider sees it.

use super::members::Members;
use super::models::{Model, Models, ProviderKind};
use super::reach;
use super::refusal::Refusal;
use super::route::{Call, Operation};
use crate::identity::Identity;
use belljar_contract::inference::Surface;
use serde::Deserialize;

/// A request that may be made.
pub(crate) struct Prepared {
    pub(crate) body: Vec<u8>,
    pub(crate) model: Model,
    /// Whether the answer comes piece by piece.
    pub(crate) streams: bool,
}

const DECIDES: &str = "the host decides that";

/// Members by which LiteLLM lets a caller decide where a call goes, what it costs, and who pays for it.
const OF_LITELLM: &[&str] = &[
    "allowed_model_region",
    "api_base",
    "api_key",
    "api_version",
    "base_model",
    "base_url",
    "budget_duration",
    "cache",
    "caching",
    "configurable_clientside_auth_params",
    "context_window_fallbacks",
    "custom_llm_provider",
    "deployment_id",
    "extra_body",
    "extra_headers",
    "fallbacks",
    "guardrail_config",
    "guardrails",
    "headers",
    "max_budget",
    "mock_response",
    "mock_timeout",
    "mock_tool_calls",
    "model_info",
    "model_list",
    "no-log",
    "num_retries",
    "organization",
    "prompt_id",
    "prompt_variables",
    "provider_specific_header",
    "proxy_server_request",
    "region_name",
    "secret_fields",
    "tags",
    "ttl",
    "use_in_pass_through",
    "use_litellm_proxy",
    "user_config",
];
const PREFIXES_OF_LITELLM: &[&str] =
    &["aws_", "azure_", "gcs_", "litellm_", "oci_", "s3_", "sagemaker_", "vertex_", "watsonx_"];

/// Members that say who somebody is, besides those that are set.
const WHO: &[&str] = &["safety_identifier", "litellm_metadata"];

/// Checks a body and makes of it what the provider is sent.
pub(crate) fn prepare(
    body: Vec<u8>,
    call: Call,
    models: &Models,
    identity: &Identity,
) -> Result<Prepared, Refusal> {
    let mut members = Members::parse(&body).map_err(|error| Refusal::NotJson { why: error.to_string() })?;
    let model = model(&members, call, models)?.clone();
    reach::check(&members, call.surface, call.operation)?;
    if model.provider.kind == ProviderKind::LiteLlm {
        not_of_litellm(&members)?;
    }
    let streams = streams(&members, call.operation)?;
    members.set("model", text(&model.upstream_name));
    identify(&mut members, call, &model, identity);
    if streams && call.operation == Operation::Completion {
        include_usage(&mut members)?;
    }
    let changed = members.changed();
    Ok(Prepared { body: changed.unwrap_or(body), model, streams })
}

fn model<'m>(members: &Members<'_>, call: Call, models: &'m Models) -> Result<&'m Model, Refusal> {
    let asked: String = members.read("model").ok_or(Refusal::NoModel)?;
    let Some(model) = models.get(&asked) else {
        let allowed = models.names().into_iter().map(str::to_owned).collect();
        return Err(Refusal::ModelNotAllowed { asked, allowed });
    };
    match model.provider.kind.speaks(call.surface) {
        true => Ok(model),
        false => Err(Refusal::WrongSurface { model: asked, path: call.path }),
    }
}

fn not_of_litellm(members: &Members<'_>) -> Result<(), Refusal> {
    let is_its = |name: &&str| {
        // Taken away or set below.
        !WHO.contains(name)
            && (OF_LITELLM.contains(name)
                || PREFIXES_OF_LITELLM.iter().any(|prefix| name.starts_with(prefix))
                || name.contains("_cost_per_"))
    };
    match members.names().find(is_its) {
        Some(member) => Err(Refusal::Forbidden { member: member.to_owned(), why: DECIDES }),
        None => Ok(()),
    }
}

fn streams(members: &Members<'_>, operation: Operation) -> Result<bool, Refusal> {
    let asked = match members.get("stream") {
        None | Some("null") => None,
        Some("true") => Some(true),
        Some("false") => Some(false),
        Some(_) => return Err(Refusal::NotJson { why: "`stream` is neither true nor false".to_owned() }),
    };
    Ok(match operation {
        Operation::Embedding | Operation::CountTokens => false,
        Operation::Generation => asked.unwrap_or(true),
        Operation::Completion | Operation::Responses | Operation::Messages => asked.unwrap_or(false),
    })
}

/// Says who calls, whatever the caller says.
fn identify(members: &mut Members<'_>, call: Call, model: &Model, identity: &Identity) {
    for name in WHO {
        members.remove(name);
    }
    match (call.surface, call.operation) {
        (Surface::Openai, _) => {
            members.set("user", text(&identity.billing_account_id));
            members.remove("metadata");
            // Nothing is kept with a provider that somebody else of the same account could ask for.
            if call.operation == Operation::Responses || members.get("store").is_some() {
                members.set("store", "false".to_owned());
            }
        }
        (Surface::Anthropic, Operation::Messages) => {
            members.remove("user");
            let user = text(&identity.billing_account_id);
            members.set("metadata", format!("{{\"user_id\":{user}}}"));
        }
        (Surface::Anthropic, _) => {
            members.remove("user");
            members.remove("metadata");
        }
        (Surface::Ollama, _) => {}
    }
    if model.provider.kind == ProviderKind::Ollama {
        members.remove("user");
    }
}

/// Asks for what a streamed answer costs, which its last piece tells then.
fn include_usage(members: &mut Members<'_>) -> Result<(), Refusal> {
    #[derive(Deserialize)]
    struct Options<'o> {
        #[serde(borrow, flatten)]
        all: std::collections::BTreeMap<&'o str, serde_json::Value>,
    }
    let options = match members.get("stream_options") {
        None | Some("null") => "{}",
        Some(options) => options,
    };
    let not_json = |error: serde_json::Error| Refusal::NotJson { why: format!("`stream_options`: {error}") };
    let Options { mut all } = serde_json::from_str(options).map_err(not_json)?;
    all.insert("include_usage", true.into());
    let options = serde_json::to_string(&all).map_err(not_json)?;
    members.set("stream_options", options);
    Ok(())
}

/// A string as JSON.
fn text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests;
