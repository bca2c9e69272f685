//! Looks at the tools that a request offers a model, one after the other.

use super::REACHES_OUT;
use crate::inference::members::Members;
use crate::inference::refusal::Refusal;
use belljar_contract::inference::Excerpt;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// Types of tools that a provider only talks about, and the client runs.
const OF_CLIENTS: &[&str] = &["function", "custom", "local_shell", "apply_patch"];
/// The same, by how they begin: each has a date behind it.
const OF_CLIENTS_BY_DATE: &[&str] = &["bash_", "text_editor_", "computer_", "memory_"];

/// Members of a tool that a client runs. Some providers go by the name of a member alone.
const MEMBERS: &[&str] = &[
    "allowed_callers",
    "cache_control",
    "custom",
    "defer_loading",
    "description",
    "display_height_px",
    "display_number",
    "display_width_px",
    "eager_input_streaming",
    "format",
    "function",
    "input_examples",
    "input_schema",
    "max_characters",
    "name",
    "parameters",
    "strict",
    "type",
];

/// Members of what OpenAI's older kind has within a tool.
const MEMBERS_WITHIN: &[&str] = &["description", "format", "name", "parameters", "strict"];

/// Refuses what a provider runs by itself.
pub(super) fn check(text: &str) -> Result<(), Refusal> {
    let mut look = Look { found: None };
    let mut reader = serde_json::Deserializer::from_str(text);
    let looked = (&mut look).deserialize(&mut reader).and_then(|()| reader.end());
    match (look.found, looked) {
        (Some(member), _) => Err(Refusal::Forbidden { member: Excerpt::of(&member), why: REACHES_OUT }),
        (None, Err(error)) if error.is_data() => {
            Err(Refusal::NotJson { why: Excerpt::of("`tools` is no list of objects") })
        }
        (None, Err(error)) => Err(Refusal::not_json(&error)),
        (None, Ok(())) => Ok(()),
    }
}

/// A look at them; the first that isn't a client's is found.
struct Look {
    found: Option<String>,
}

// === impl Look ===

impl<'de> DeserializeSeed<'de> for &mut Look {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut Look {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of tools")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        for at in 0.. {
            let Some(tool) = elements.next_element::<Members<'de>>()? else { break };
            if let Some(member) = not_a_clients(&tool) {
                self.found = Some(format!("tools[{at}].{}", Excerpt::of(&member).as_str()));
                // It is refused for this one, whatever follows.
                while elements.next_element::<IgnoredAny>()?.is_some() {}
                break;
            }
        }
        Ok(())
    }
}

/// Whether a name is one of these with a date behind it: `bash_20250124`, and not `bash_code_execution_20250825`.
pub(in crate::inference) fn is_dated(name: &str, beginnings: &[&str]) -> bool {
    let is_date = |rest: &str| rest.len() == 8 && rest.bytes().all(|byte| byte.is_ascii_digit());
    beginnings.iter().any(|beginning| name.strip_prefix(beginning).is_some_and(is_date))
}

/// The member by which a tool isn't one that a client runs.
fn not_a_clients<'t>(tool: &'t Members<'_>) -> Option<Cow<'t, str>> {
    let is_clients = match tool.get("type") {
        None | Some("null") => true,
        Some(kind) => serde_json::from_str::<Cow<'_, str>>(kind)
            .is_ok_and(|kind| OF_CLIENTS.contains(&&*kind) || is_dated(&kind, OF_CLIENTS_BY_DATE)),
    };
    if !is_clients {
        return Some("type".into());
    }
    if let Some(name) = tool.names().find(|name| !MEMBERS.contains(name)) {
        return Some(name.into());
    }
    ["function", "custom"].into_iter().find_map(|name| {
        let within = match tool.get(name)? {
            "null" => return None,
            within => Members::parse(within.as_bytes()),
        };
        let Ok(within) = within else { return Some(name.into()) };
        let stranger = within.names().find(|member| !MEMBERS_WITHIN.contains(member))?;
        Some(format!("{name}.{stranger}").into())
    })
}
