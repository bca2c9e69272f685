//! The members that a request may have.
//!
//! A list of what may be, not of what may not: LiteLLM alone knows some two hundred members by which a caller decides where
//! a call goes, what it costs and who hears of it, and has more with each release. And some providers take `Model` for
//! `model`.

use crate::inference::route::{Call, Operation};
use belljar_contract::inference::Surface;

/// How words are chosen: the same nearly everywhere.
const SAMPLING: &[&str] = &[
    "frequency_penalty",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "min_p",
    "n",
    "presence_penalty",
    "reasoning",
    "reasoning_effort",
    "repetition_penalty",
    "seed",
    "service_tier",
    "stop",
    "temperature",
    "thinking",
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
const MESSAGES: &[&str] =
    &["context_management", "messages", "output_config", "output_format", "stop_sequences", "system"];
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

/// Whether a request may have a member of that name.
pub(super) fn may_have(call: Call, name: &str) -> bool {
    let own: &[&[&str]] = match (call.operation, call.surface) {
        (Operation::Completion, _) => &[SAMPLING, TOOLS, CHAT, COMPLETION],
        (Operation::Responses, _) => &[SAMPLING, TOOLS, RESPONSES],
        (Operation::Embedding, Surface::Ollama) => &[EMBEDDING, &["keep_alive", "options"]],
        (Operation::Embedding, _) => &[EMBEDDING],
        (Operation::Messages | Operation::CountTokens, _) => &[SAMPLING, TOOLS, MESSAGES],
        (Operation::Generation, _) => &[GENERATION, &["tools"]],
    };
    SET_HERE.contains(&name) || own.iter().any(|names| names.contains(&name))
}
