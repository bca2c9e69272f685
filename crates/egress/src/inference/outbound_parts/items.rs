//! Checks the items of a conversation of OpenAI's Responses API one after the other.
//!
//! It is an allowlist: an item may also add tools, approve what a provider's tool wants to do, or have the provider act by
//! itself. Each release adds kinds.

use super::{REACHES_OUT, tools};
use crate::inference::members::Members;
use crate::inference::refusal::Refusal;
use belljar_contract::inference::Excerpt;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// Allowed kinds: messages, reasoning and tool calls of models, and answers of clients to those.
const ITEMS: &[&str] = &[
    "additional_tools",
    "apply_patch_call",
    "apply_patch_call_output",
    "compaction",
    "compaction_summary",
    "computer_call",
    "computer_call_output",
    "custom_tool_call",
    "custom_tool_call_output",
    "function_call",
    "function_call_output",
    "local_shell_call",
    "local_shell_call_output",
    "message",
    "reasoning",
    "tool_search_call",
    "tool_search_output",
];

/// Refuses items of other kinds.
pub(super) fn check(text: &str) -> Result<(), Refusal> {
    if !text.starts_with('[') {
        return Ok(());
    }
    let mut look = UnknownItemSearch { found: None };
    let mut reader = serde_json::Deserializer::from_str(text);
    let looked = (&mut look).deserialize(&mut reader).and_then(|()| reader.end());
    match (look.found, looked) {
        (Some(member), _) => Err(Refusal::Forbidden { member: Excerpt::of(&member), why: REACHES_OUT }),
        (None, Err(error)) if error.is_data() => {
            Err(Refusal::NotJson { why: Excerpt::of("`input` is not a list of objects") })
        }
        (None, Err(error)) => Err(Refusal::not_json(&error)),
        (None, Ok(())) => Ok(()),
    }
}

/// Finds the first item of an unknown kind.
struct UnknownItemSearch {
    found: Option<String>,
}

// === impl UnknownItemSearch ===

impl<'de> DeserializeSeed<'de> for &mut UnknownItemSearch {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for &mut UnknownItemSearch {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of items")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        for at in 0.. {
            let Some(item) = elements.next_element::<Members<'de>>()? else { break };
            if !is_known(&item) {
                self.found = Some(format!("input[{at}].type"));
                // The request is refused because of this item, whatever follows.
                while elements.next_element::<IgnoredAny>()?.is_some() {}
                break;
            }
        }
        Ok(())
    }
}

/// Returns true if each member that could be taken for the item's type has a known kind. An item without a type is a message.
fn is_known(item: &Members<'_>) -> bool {
    let mut types = item.names().filter(|name| name.eq_ignore_ascii_case(tools::TYPE));
    types.all(|name| match item.get(name) {
        None | Some("null") => true,
        Some(kind) => {
            serde_json::from_str::<Cow<'_, str>>(kind).is_ok_and(|kind| ITEMS.contains(&kind.as_ref()))
        }
    })
}
