//! Members that a request may have.
//!
//! It is an allowlist: LiteLLM alone knows some two hundred members by which a caller decides where a call goes, what it costs
//! and who gets to see it. Each release adds more. And some providers accept `Model` for `model`.

use crate::inference::members::Members;
use crate::inference::route::{Call, Operation};
use belljar_contract::inference::ApiDialect;

/// Sampling parameters, which nearly all APIs share.
const SAMPLING: &[&str] = &[
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "min_p",
    "presence_penalty",
    "reasoning",
    "reasoning_effort",
    "repetition_penalty",
    "seed",
    "service_tier",
    "stop",
    "temperature",
    "top_k",
    "top_logprobs",
    "top_p",
    "verbosity",
];

/// Identity of the caller, and storage: accepted, and set anew.
const SET_HERE: &[&str] = &[
    "metadata",
    "model",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "store",
    "stream",
    "stream_options",
    "user",
];

const TOOLS: &[&str] = &["function_call", "functions", "parallel_tool_calls", "tool_choice", "tools"];

/// Members that limit or multiply the output, one list for each API. An API that doesn't know a member may be served by a
/// provider that obeys it, and it would not be counted there ([`crate::inference::token_demand`]).
const CHAT_LIMITS: &[&str] = &["max_completion_tokens", "max_tokens", "n", "thinking"];
const COMPLETION_LIMITS: &[&str] = &["best_of", "max_tokens", "n"];

const CHAT: &[&str] = &["audio", "messages", "modalities", "prediction", "response_format"];
const COMPLETION: &[&str] = &["best_of", "echo", "prompt", "suffix"];
const RESPONSES: &[&str] = &[
    "client_metadata",
    "include",
    "input",
    "instructions",
    "max_output_tokens",
    "max_tool_calls",
    "text",
    "truncation",
];
const EMBEDDING: &[&str] = &["dimensions", "encoding_format", "input", "input_type", "truncate"];
const MESSAGES: &[&str] = &[
    "context_management",
    "max_tokens",
    "messages",
    "output_config",
    "output_format",
    "service_tier",
    "stop_sequences",
    "system",
    "temperature",
    "thinking",
    "tool_choice",
    "tools",
    "top_k",
    "top_p",
];
const GENERATION: &[&str] = &[
    "context",
    "format",
    "images",
    "keep_alive",
    "messages",
    "options",
    "prompt",
    "raw",
    "suffix",
    "system",
    "template",
    "think",
];

/// Members that are objects, each with the limit in it that is counted.
const LIMITS_WITHIN: &[(&str, &str)] = &[("reasoning", "max_tokens"), ("thinking", "budget_tokens")];

/// Parts of the names of limits.
const OF_LIMITS: &[&str] = &["budget", "length", "limit", "max", "token"];

/// Returns true if a request may have a member of that name.
pub(super) fn may_have(call: Call, name: &str) -> bool {
    let own: &[&[&str]] = match (call.operation, call.surface) {
        (Operation::Completion, _) if call.is_chat() => &[SAMPLING, TOOLS, CHAT, COMPLETION, CHAT_LIMITS],
        (Operation::Completion, _) => &[SAMPLING, TOOLS, CHAT, COMPLETION, COMPLETION_LIMITS],
        (Operation::Responses, _) => &[SAMPLING, TOOLS, RESPONSES],
        (Operation::Embedding, ApiDialect::Ollama) => &[EMBEDDING, &["keep_alive", "options"]],
        (Operation::Embedding, _) => &[EMBEDDING],
        (Operation::Messages | Operation::CountTokens, _) => &[MESSAGES],
        (Operation::Generation, _) => &[GENERATION, &["tools"]],
    };
    SET_HERE.contains(&name) || own.iter().any(|names| names.contains(&name))
}

/// Returns the first member of `reasoning` or `thinking` that looks like a limit and isn't the counted one.
pub(super) fn unknown_limit_within(members: &Members<'_>) -> Result<Option<String>, serde_json::Error> {
    for (holder, counted) in LIMITS_WITHIN {
        let Some(value) = members.get(holder).filter(|value| value.starts_with('{')) else { continue };
        let within = Members::parse(value.as_bytes())?;
        let is_unknown = |name: &&str| name != counted && looks_like_a_limit(name);
        if let Some(name) = within.names().find(is_unknown) {
            return Ok(Some(format!("{holder}.{name}")));
        }
    }
    Ok(None)
}

fn looks_like_a_limit(name: &str) -> bool {
    let name = name.to_lowercase();
    OF_LIMITS.iter().any(|part| name.contains(part))
}
