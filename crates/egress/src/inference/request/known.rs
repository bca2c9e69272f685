//! The members that a request may have.
//!
//! A list of what may be, not of what may not: LiteLLM alone knows some two hundred members by which a caller decides where
//! a call goes, what it costs and who hears of it, and has more with each release. And some providers take `Model` for
//! `model`.

use crate::inference::members::Members;
use crate::inference::route::{Call, Operation};
use belljar_contract::inference::Surface;

/// How words are chosen: the same nearly everywhere.
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

/// Who calls, and what is kept: taken, and set anew.
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

/// Each interface has the members that limit or multiply its output in a list of its own: what one of them doesn't know another
/// one may obey behind it, and no such member is counted there ([`crate::inference::demand`]).
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

/// Parts of names of limits.
const OF_LIMITS: &[&str] = &["budget", "length", "limit", "max", "token"];

/// Whether a request may have a member of that name.
pub(super) fn may_have(call: Call, name: &str) -> bool {
    let own: &[&[&str]] = match (call.operation, call.surface) {
        (Operation::Completion, _) if call.is_chat() => &[SAMPLING, TOOLS, CHAT, COMPLETION, CHAT_LIMITS],
        (Operation::Completion, _) => &[SAMPLING, TOOLS, CHAT, COMPLETION, COMPLETION_LIMITS],
        (Operation::Responses, _) => &[SAMPLING, TOOLS, RESPONSES],
        (Operation::Embedding, Surface::Ollama) => &[EMBEDDING, &["keep_alive", "options"]],
        (Operation::Embedding, _) => &[EMBEDDING],
        (Operation::Messages | Operation::CountTokens, _) => &[MESSAGES],
        (Operation::Generation, _) => &[GENERATION, &["tools"]],
    };
    SET_HERE.contains(&name) || own.iter().any(|names| names.contains(&name))
}

/// The first member of `reasoning` or `thinking` that looks like a limit and isn't the one that is counted.
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
