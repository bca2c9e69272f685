//! Looks at the items of a conversation of OpenAI's newer kind (Responses), one after the other.
//!
//! A list of what an item may be, not of what it may not: an item may also hand in tools, approve what a provider's tool wants to do,
//! or have the provider do something by itself, and there are more kinds with each release.

use super::{REACHES_OUT, tools};
use crate::inference::members::Members;
use crate::inference::refusal::Refusal;
use belljar_contract::inference::Excerpt;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// What is said, what models have thought and called, and what clients have answered to that.
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
    let mut look = Look { found: None };
    let mut reader = serde_json::Deserializer::from_str(text);
    let looked = (&mut look).deserialize(&mut reader).and_then(|()| reader.end());
    match (look.found, looked) {
        (Some(member), _) => Err(Refusal::Forbidden { member: Excerpt::of(&member), why: REACHES_OUT }),
        (None, Err(error)) if error.is_data() => {
            Err(Refusal::NotJson { why: Excerpt::of("`input` is no list of objects") })
        }
        (None, Err(error)) => Err(Refusal::not_json(&error)),
        (None, Ok(())) => Ok(()),
    }
}

/// A look at them; the first of a kind that isn't known is found.
struct Look {
    found: Option<String>,
}

// === impl Look ===

impl<'de> DeserializeSeed<'de> for &mut Look {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for &mut Look {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of items")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        for at in 0.. {
            let Some(item) = elements.next_element::<Members<'de>>()? else { break };
            if !is_known(&item) {
                self.found = Some(format!("input[{at}].type"));
                // It is refused for this one, whatever follows.
                while elements.next_element::<IgnoredAny>()?.is_some() {}
                break;
            }
        }
        Ok(())
    }
}

/// Whether an item is of a known kind by each member that could be taken for its type. One without any is a message.
fn is_known(item: &Members<'_>) -> bool {
    let mut types = item.names().filter(|name| name.eq_ignore_ascii_case(tools::TYPE));
    types.all(|name| match item.get(name) {
        None | Some("null") => true,
        Some(kind) => {
            serde_json::from_str::<Cow<'_, str>>(kind).is_ok_and(|kind| ITEMS.contains(&kind.as_ref()))
        }
    })
}
