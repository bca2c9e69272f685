//! Options that a call may set for Ollama.
//!
//! It is an allowlist, like the one of members. Some options take memory or threads of the provider's machine, or have it
//! reload the model: those are bounded.

use crate::inference::members::Members;
use crate::inference::refusal::Refusal;
use belljar_contract::inference::Excerpt;
use std::ops::RangeInclusive;

/// Integers that decide how much of the provider's machine a call takes, each with its bounds.
const BOUNDED: &[(&str, RangeInclusive<i64>)] = &[
    ("main_gpu", 0..=64),
    ("num_batch", 1..=2_048),
    ("num_ctx", 1..=LARGEST_CONTEXT),
    ("num_gpu", -1..=1_024),
    ("num_keep", -1..=LARGEST_CONTEXT),
    ("num_thread", 0..=128),
    ("repeat_last_n", -1..=LARGEST_CONTEXT),
];

/// Maximum context that a call may ask for, in tokens. Ollama allocates memory for all of it.
const LARGEST_CONTEXT: i64 = 262_144;

/// Options for sampling, or that are true or false. The limit `num_predict` is counted with the tokens.
const OTHERS: &[&str] = &[
    "f16_kv",
    "frequency_penalty",
    "low_vram",
    "min_p",
    "mirostat",
    "mirostat_eta",
    "mirostat_tau",
    "num_predict",
    "numa",
    "penalize_newline",
    "presence_penalty",
    "repeat_penalty",
    "seed",
    "stop",
    "temperature",
    "tfs_z",
    "top_k",
    "top_p",
    "typical_p",
    "use_mlock",
    "use_mmap",
];

const UNKNOWN: &str = "the option is unknown, and so are the resources that it takes of the provider";

/// Checks the options of a call.
pub(super) fn check(members: &Members<'_>) -> Result<(), Refusal> {
    let Some(options) = members.get("options").filter(|options| *options != "null") else { return Ok(()) };
    let options = Members::parse(options.as_bytes()).map_err(|error| Refusal::not_json(&error))?;
    for name in options.names() {
        match BOUNDED.iter().find(|(bounded, _)| *bounded == name) {
            Some((_, bounds)) => check_number(name, options.get(name).unwrap_or("null"), bounds)?,
            None if OTHERS.contains(&name) => {}
            None => {
                let member = Excerpt::of(&format!("options.{name}"));
                return Err(Refusal::Forbidden { member, why: UNKNOWN });
            }
        }
    }
    Ok(())
}

fn check_number(name: &str, value: &str, bounds: &RangeInclusive<i64>) -> Result<(), Refusal> {
    if value == "null" || value.parse().is_ok_and(|number| bounds.contains(&number)) {
        return Ok(());
    }
    let why = format!("`options.{name}` is not a whole number from {} to {}", bounds.start(), bounds.end());
    Err(Refusal::NotJson { why: Excerpt::of(&why) })
}
