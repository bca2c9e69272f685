//! Maximum that a call may take of a token budget, and the output limit that fits what is left.
//!
//! Members that multiply the usage are read here: `n`, `best_of`, the number of prompts. Those of other APIs
//! (`num_completions`, `candidateCount`, beams) are refused ([`super::request`]).

mod attachments;

use super::members::Members;
use super::models::{Price, ProviderKind};
use super::outbound_parts::is_dated;
use super::refusal::Refusal;
use super::route::{Call, Operation};
use belljar_contract::inference::{ApiDialect, Excerpt};
use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// Maximum usage of a call, as its request states it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Demand {
    /// Input tokens: the bytes of the request, and an allowance for each file and image.
    input: u64,
    /// Output limit for one choice that the request names, including thinking; `None` if it names no effective one.
    output: Option<u64>,
    /// Tokens for thinking, in addition to the output limit or within it.
    thinking: u64,
    /// Number of generated answers: `n` × `best_of` × prompts; 0 for calls that generate nothing and aren't charged.
    choices: u64,
    /// True if there is output.
    generates: bool,
}

/// Minimum output limit that a call is lowered to, because APIs refuse smaller ones. A call may ask for less.
pub(super) const LEAST_OUTPUT: u64 = 16;
/// Minimum for thinking in tokens (Anthropic's).
const LEAST_THINKING: u64 = 1_024;

const MAX_TOKENS: &str = "max_tokens";
const MAX_COMPLETION_TOKENS: &str = "max_completion_tokens";
const MAX_OUTPUT_TOKENS: &str = "max_output_tokens";
const OPTIONS: &str = "options";
const NUM_PREDICT: &str = "num_predict";
/// Members by which a request limits thinking, each with the limit within it.
const THOUGHTS: [(&str, &str); 2] = [("thinking", "budget_tokens"), ("reasoning", MAX_TOKENS)];
const TEMPLATE: &str = "template";

/// Edits of a conversation by the provider that need no further model call; each name continues with a date.
const CLEARING: &[&str] = &["clear_thinking_", "clear_tool_uses_"];

const CALLS_AGAIN: &str =
    "it may make the provider call the model again, beyond the output limit, and tokens or costs are limited";
const MULTIPLIES: &str = "it can turn a small request into any number of tokens, and tokens are limited";

/// Member that limits a call's output, and others with the same meaning at that provider.
struct LimitMembers {
    main: &'static str,
    others: &'static [&'static str],
    /// True if the provider may ignore the others, so that the main one has to be set.
    needs_main: bool,
}

/// Tokens of the output that a request wants for thinking.
struct ThinkingLimit<'m> {
    member: &'static str,
    limit: &'static str,
    within: Members<'m>,
    tokens: u64,
}

/// Number of elements of an array, and whether all are numbers.
struct Elements {
    count: u64,
    are_numbers: bool,
}

// === impl Demand ===

impl Demand {
    /// Reads the body that is sent to a provider. Files in it count as `file_tokens`.
    pub(crate) fn read(
        body: &[u8],
        (call, kind): (Call, ProviderKind),
        file_tokens: u64,
    ) -> Result<Self, Refusal> {
        let members = Members::parse(body).map_err(|error| Refusal::not_json(&error))?;
        if said(&members, TEMPLATE).is_some() {
            return Err(Refusal::Forbidden { member: Excerpt::of(TEMPLATE), why: MULTIPLIES });
        }
        let bytes = (body.len() as u64).saturating_add(attachments::allowance(body, file_tokens)?);
        if call.operation == Operation::CountTokens {
            return Ok(Self::default());
        }
        check_edits(&members)?;
        let generates = call.operation != Operation::Embedding;
        let thinking = thoughts(&members)?.map_or(0, |thoughts| thoughts.tokens);
        let limit = match call.surface {
            ApiDialect::Ollama => num_predict(&members)?,
            _ => limit_members(call, kind).largest(&members),
        };
        // Predicted output that isn't used is charged as output.
        let predicted = if members.get("prediction").is_some() { body.len() as u64 } else { 0 };
        let choices = [count(&members, "n")?, count(&members, "best_of")?, prompts(&members)?];
        Ok(Self {
            input: bytes.saturating_add(predicted),
            output: limit.map(|limit| limit.saturating_add(thinking)).filter(|_| generates),
            thinking: if generates { thinking } else { 0 },
            choices: choices.into_iter().fold(1, u64::saturating_mul),
            generates,
        })
    }

    /// Demand of a call whose tokens aren't limited.
    pub(crate) fn unread(call: Call) -> Self {
        Self { choices: u64::from(call.operation != Operation::CountTokens), ..Self::default() }
    }

    /// Returns the output limit for each choice that the call wants. A call that names none gets `usual` plus its thinking.
    pub(super) fn wanted_output(&self, usual: u64) -> u64 {
        match self.generates {
            true => self.output.unwrap_or(usual.saturating_add(self.thinking)),
            false => 0,
        }
    }

    /// Returns the total in tokens with that output limit.
    fn total(&self, output: u64) -> u64 {
        self.input.saturating_add(output).saturating_mul(self.choices)
    }

    /// Returns the total with that output limit, where each token costs `rate`.
    pub(super) fn takes(&self, output: u64, rate: Price) -> u64 {
        rate.nano_dollars(self.input, output).saturating_mul(self.choices)
    }

    /// Returns the output limit with which the total is at most `left`; `None` if the input alone takes more.
    pub(super) fn affordable_output(&self, left: u64, rate: Price) -> Option<u64> {
        let of_each = left.checked_div(self.choices)?;
        let of_output = of_each.checked_sub(rate.nano_dollars(self.input, 0))?;
        Some(of_output.checked_div(rate.output).unwrap_or(u64::MAX)).filter(|_| self.generates)
    }

    pub(super) fn has_output(&self) -> bool {
        self.generates
    }

    /// Returns true if providers charge for the call.
    pub(super) fn is_charged(&self) -> bool {
        self.choices > 0
    }

    /// Sets the granted output limit, if the body names none or a larger one. Returns `None` if the body stays unchanged.
    pub(crate) fn limit(
        &self,
        body: &[u8],
        (call, kind): (Call, ProviderKind),
        granted: u64,
    ) -> Result<Option<Vec<u8>>, Refusal> {
        if self.output.is_some_and(|wanted| wanted <= granted) {
            return Ok(None);
        }
        let mut members = Members::parse(body).map_err(|error| Refusal::not_json(&error))?;
        let is_lowered = self.output.is_some();
        let thinking = match self.thinking {
            wanted if is_lowered || wanted >= granted => wanted.min((granted / 2).saturating_sub(1)),
            wanted => wanted,
        };
        if self.thinking > 0 && thinking < LEAST_THINKING.min(self.thinking) {
            let least = self.total(2 * (LEAST_THINKING + 1));
            return Err(Refusal::BudgetTooSmall { left: self.total(granted), least });
        }
        if thinking < self.thinking {
            set_thinking(&mut members, thinking)?;
        }
        let limit = if is_lowered { granted.saturating_sub(thinking) } else { granted };
        match call.surface {
            ApiDialect::Ollama => set_num_predict(&mut members, limit)?,
            _ => limit_members(call, kind).set(&mut members, limit),
        }
        Ok(members.changed())
    }
}

fn limit_members(call: Call, kind: ProviderKind) -> LimitMembers {
    let (main, others): (_, &[_]) = match (call.operation, kind) {
        (Operation::Responses, _) => (MAX_OUTPUT_TOKENS, &[]),
        (Operation::Completion, ProviderKind::OpenAi) if call.is_chat() => {
            (MAX_COMPLETION_TOKENS, &[MAX_TOKENS])
        }
        (Operation::Completion, _) if call.is_chat() => (MAX_TOKENS, &[MAX_COMPLETION_TOKENS]),
        _ => (MAX_TOKENS, &[]),
    };
    LimitMembers { main, others, needs_main: kind == ProviderKind::Ollama }
}

// === impl LimitMembers ===

impl LimitMembers {
    fn names(&self) -> impl Iterator<Item = &'static str> {
        std::iter::once(self.main).chain(self.others.iter().copied())
    }

    /// Returns the largest limit; `None` if one of them is not effective ([`limit_of`]).
    fn largest(&self, members: &Members<'_>) -> Option<u64> {
        if !self.is_there(members) {
            return None;
        }
        let there: Vec<&str> = self.names().filter_map(|name| said(members, name)).collect();
        let limits: Option<Vec<u64>> = there.iter().map(|text| limit_of(text)).collect();
        limits?.into_iter().max()
    }

    /// Returns true if there is a limit that the provider obeys.
    fn is_there(&self, members: &Members<'_>) -> bool {
        let mut obeyed = self.names().filter(|name| *name == self.main || !self.needs_main);
        obeyed.any(|name| said(members, name).is_some())
    }

    /// Lowers each limit to at most this, and sets the main one if there is none that the provider obeys.
    fn set(&self, members: &mut Members<'_>, limit: u64) {
        let is_there = self.is_there(members);
        for name in self.names() {
            let own = said(members, name).map(|text| limit_of(text).unwrap_or(u64::MAX));
            match own {
                Some(own) if own > limit => members.set(name, limit.to_string()),
                None if !is_there && name == self.main => members.set(name, limit.to_string()),
                _ => {}
            }
        }
    }
}

/// Parses an effective output limit. 0, negative numbers and anything but integers are none: Ollama reads the first two as
/// "unlimited", and a provider may read the rest as anything.
fn limit_of(text: &str) -> Option<u64> {
    text.parse().ok().filter(|limit| *limit > 0)
}

/// Returns the JSON of a member that isn't null.
fn said<'m>(members: &'m Members<'_>, name: &str) -> Option<&'m str> {
    members.get(name).filter(|text| *text != "null")
}

/// Reads a member that multiplies the usage. Default: 1.
fn count(members: &Members<'_>, name: &'static str) -> Result<u64, Refusal> {
    let Some(text) = said(members, name) else { return Ok(1) };
    match text.parse() {
        Ok(count @ 1..) => Ok(count),
        _ => Err(not_json(&format!("`{name}` is not a positive whole number"))),
    }
}

/// Returns the number of prompts. An array of numbers is one prompt, given as tokens.
fn prompts(members: &Members<'_>) -> Result<u64, Refusal> {
    let Some(prompt) = said(members, "prompt").filter(|prompt| !prompt.starts_with('"')) else {
        return Ok(1);
    };
    let elements: Elements = serde_json::from_str(prompt).map_err(|error| Refusal::not_json(&error))?;
    Ok(if elements.are_numbers { 1 } else { elements.count.max(1) })
}

/// Finds the member by which a request limits thinking with a number.
fn thoughts<'m>(members: &'m Members<'_>) -> Result<Option<ThinkingLimit<'m>>, Refusal> {
    let mut found = None;
    for (member, limit) in THOUGHTS {
        let Some(within) = object(members, member, limit)? else { continue };
        let tokens = match said(&within, limit).map(str::parse::<u64>) {
            None => continue,
            // 0 means "no thinking" to one provider, and may mean any number to another.
            Some(Ok(0)) => {
                return Err(not_json(&format!("`{member}.{limit}` is 0: leave `{member}` out instead")));
            }
            Some(tokens) => tokens.unwrap_or(u64::MAX),
        };
        if found.replace(ThinkingLimit { member, limit, within, tokens }).is_some() {
            return Err(not_json("both `thinking` and `reasoning` limit the tokens of thinking"));
        }
    }
    Ok(found)
}

fn set_thinking(members: &mut Members<'_>, tokens: u64) -> Result<(), Refusal> {
    let changed = thoughts(members)?.and_then(|mut thoughts| {
        thoughts.within.set(thoughts.limit, tokens.to_string());
        Some((thoughts.member, thoughts.within.changed()?))
    });
    match changed {
        Some((member, object)) => set_object(members, member, Some(object)),
        None => Ok(()),
    }
}

/// Refuses edits of the conversation for which the provider makes another model call: its size is neither known nor limited.
fn check_edits(members: &Members<'_>) -> Result<(), Refusal> {
    const MEMBER: &str = "context_management";
    let not_json = |error: serde_json::Error| Refusal::not_json(&error);
    let refused = |within: &str| Refusal::Forbidden {
        member: Excerpt::of(&format!("{MEMBER}.{within}")),
        why: CALLS_AGAIN,
    };
    let Some(text) = said(members, MEMBER) else { return Ok(()) };
    let management = Members::parse(text.as_bytes()).map_err(not_json)?;
    if let Some(other) = management.names().find(|name| *name != "edits") {
        return Err(refused(other));
    }
    let edits = said(&management, "edits").unwrap_or("[]");
    let edits: Vec<Members<'_>> = serde_json::from_str(edits).map_err(not_json)?;
    let calls_again =
        |edit: &Members<'_>| edit.read::<String>("type").is_none_or(|kind| !is_dated(&kind, CLEARING));
    match edits.iter().position(calls_again) {
        Some(at) => Err(refused(&format!("edits[{at}].type"))),
        None => Ok(()),
    }
}

/// Returns Ollama's `options.num_predict`, if it is an effective limit.
fn num_predict(members: &Members<'_>) -> Result<Option<u64>, Refusal> {
    let options = object(members, OPTIONS, NUM_PREDICT)?;
    Ok(options.and_then(|options| limit_of(said(&options, NUM_PREDICT)?)))
}

/// Returns a member that is an object, of which `inner` is read. An object that spells `inner` in another case is refused: some
/// providers ignore the case of names.
fn object<'m>(members: &'m Members<'_>, name: &str, inner: &str) -> Result<Option<Members<'m>>, Refusal> {
    let Some(text) = said(members, name) else { return Ok(None) };
    let object = Members::parse(text.as_bytes()).map_err(|error| Refusal::not_json(&error))?;
    let is_in_other_case = object.names().any(|own| own != inner && own.eq_ignore_ascii_case(inner));
    match is_in_other_case {
        true => Err(not_json(&format!("`{inner}` in `{name}` is written in another case"))),
        false => Ok(Some(object)),
    }
}

fn not_json(why: &str) -> Refusal {
    Refusal::NotJson { why: Excerpt::of(why) }
}

fn set_num_predict(members: &mut Members<'_>, limit: u64) -> Result<(), Refusal> {
    let options = said(members, OPTIONS).unwrap_or("{}");
    let mut options = Members::parse(options.as_bytes()).map_err(|error| Refusal::not_json(&error))?;
    options.set(NUM_PREDICT, limit.to_string());
    let changed = options.changed();
    set_object(members, OPTIONS, changed)
}

fn set_object(members: &mut Members<'_>, name: &'static str, object: Option<Vec<u8>>) -> Result<(), Refusal> {
    let Some(object) = object else { return Ok(()) };
    let text = String::from_utf8(object).map_err(|_| not_json("not UTF-8"))?;
    members.set(name, text);
    Ok(())
}

// === impl Elements ===

impl<'de> Deserialize<'de> for Elements {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ElementsVisitor;
        impl<'de> Visitor<'de> for ElementsVisitor {
            type Value = Elements;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("an array")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Elements, A::Error> {
                let mut elements = Elements { count: 0, are_numbers: true };
                while let Some(element) = array.next_element::<&RawValue>()? {
                    let is_number = element.get().starts_with(|first: char| first.is_ascii_digit());
                    elements.count += 1;
                    elements.are_numbers &= is_number;
                }
                Ok(elements)
            }
        }
        deserializer.deserialize_seq(ElementsVisitor)
    }
}

#[cfg(test)]
mod tests;
