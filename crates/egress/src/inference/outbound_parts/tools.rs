//! Checks the tools that a request offers to a model, wherever they stand in the request.

use super::REACHES_OUT;
use crate::inference::members::Members;
use crate::inference::refusal::Refusal;
use belljar_contract::inference::Excerpt;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, SeqAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

/// Types of tools that the client runs; the provider only names them.
const OF_CLIENTS: &[&str] = &["function", "custom", "local_shell", "apply_patch"];
/// Group of tools, each of which is checked.
const GROUP: &str = "namespace";
const GROUP_MEMBERS: &[&str] = &["description", "name", TOOLS, TYPE];
/// Search among tools, which the client runs.
const SEARCH: &str = "tool_search";
const SEARCH_MEMBERS: &[&str] = &["description", EXECUTION, "parameters", TYPE];
const EXECUTION: &str = "execution";

/// Choice among the tools that a request offers, by its type.
const CHOICES: &[&str] = &["allowed_tools", "any", "auto", "none", "required", "tool"];
const CHOICE_MEMBERS: &[&str] =
    &["allowed_tools", "custom", "disable_parallel_tool_use", "function", "mode", "name", TOOLS, TYPE];

pub(super) const TOOLS: &str = "tools";
pub(super) const TYPE: &str = "type";

/// Maximum depth of nested groups.
const DEEPEST: usize = 4;

/// Prefixes of such tool types; each is followed by a date.
const OF_CLIENTS_BY_DATE: &[&str] = &["bash_", "text_editor_", "computer_", "memory_"];

/// Members of a tool that a client runs. Some providers decide by a member's name alone.
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

/// Members of the inner object of a tool in OpenAI's Chat Completions.
const MEMBERS_WITHIN: &[&str] = &["description", "format", "name", "parameters", "strict"];

/// Refuses tools that a provider runs by itself. `place` is the position of the list in the request.
pub(super) fn check(place: &str, text: &str) -> Result<(), Refusal> {
    check_below(place, text, 0)
}

fn check_below(place: &str, text: &str, depth: usize) -> Result<(), Refusal> {
    let mut look = ProviderToolSearch { found: None, depth };
    let mut reader = serde_json::Deserializer::from_str(text);
    let looked = (&mut look).deserialize(&mut reader).and_then(|()| reader.end());
    match (look.found, looked) {
        (Some(member), _) => Err(forbidden(&format!("{place}{member}"))),
        (None, Err(error)) if error.is_data() => {
            Err(Refusal::NotJson { why: Excerpt::of(&format!("`{place}` is not a list of objects")) })
        }
        (None, Err(error)) => Err(Refusal::not_json(&error)),
        (None, Ok(())) => Ok(()),
    }
}

/// Refuses a choice of tools that a provider runs by itself. A plain word chooses among the tools that were checked.
pub(super) fn check_choice(text: &str) -> Result<(), Refusal> {
    if text == "null" || text.starts_with('"') {
        return Ok(());
    }
    let choice = Members::parse(text.as_bytes()).map_err(|error| Refusal::not_json(&error))?;
    let is_known = |kind: &str| CHOICES.contains(&kind) || is_of_clients(kind);
    if !choice.get(TYPE).is_none_or(|kind| is_text(kind, is_known)) {
        return Err(forbidden("tool_choice.type"));
    }
    if let Some(name) = choice.names().find(|name| !CHOICE_MEMBERS.contains(name)) {
        return Err(forbidden(&format!("tool_choice.{name}")));
    }
    if let Some(tools) = choice.get(TOOLS) {
        check("tool_choice.tools", tools)?;
    }
    match choice.get("allowed_tools").map(|allowed| Members::parse(allowed.as_bytes())) {
        Some(Ok(allowed)) => {
            allowed.get(TOOLS).map_or(Ok(()), |tools| check("tool_choice.allowed_tools.tools", tools))
        }
        Some(Err(error)) => Err(Refusal::not_json(&error)),
        None => Ok(()),
    }
}

fn forbidden(member: &str) -> Refusal {
    Refusal::Forbidden { member: Excerpt::of(member), why: REACHES_OUT }
}

/// Finds the first tool that is not the client's.
struct ProviderToolSearch {
    found: Option<String>,
    /// Number of groups around the tools.
    depth: usize,
}

// === impl ProviderToolSearch ===

impl<'de> DeserializeSeed<'de> for &mut ProviderToolSearch {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut ProviderToolSearch {
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
            if let Some(member) = not_a_clients(&tool, self.depth) {
                self.found = Some(format!("[{at}].{}", Excerpt::of(&member).as_str()));
                // The request is refused because of this tool, whatever follows.
                while elements.next_element::<IgnoredAny>()?.is_some() {}
                break;
            }
        }
        Ok(())
    }
}

/// Returns true if a name is one of these with a date after it: `bash_20250124`, but not `bash_code_execution_20250825`.
pub(in crate::inference) fn is_dated(name: &str, beginnings: &[&str]) -> bool {
    let is_date = |rest: &str| rest.len() == 8 && rest.bytes().all(|byte| byte.is_ascii_digit());
    beginnings.iter().any(|beginning| name.strip_prefix(beginning).is_some_and(is_date))
}

fn is_of_clients(kind: &str) -> bool {
    OF_CLIENTS.contains(&kind) || is_dated(kind, OF_CLIENTS_BY_DATE)
}

/// Returns true if that JSON is a text which fulfils a condition.
fn is_text(json: &str, holds: impl Fn(&str) -> bool) -> bool {
    serde_json::from_str::<Cow<'_, str>>(json).is_ok_and(|text| holds(&text))
}

/// Returns the member that makes a tool one which the client does not run.
fn not_a_clients<'t>(tool: &'t Members<'_>, depth: usize) -> Option<Cow<'t, str>> {
    let kind = tool.get(TYPE).filter(|kind| *kind != "null");
    let is = |other: &str| kind.is_some_and(|kind| is_text(kind, |kind| kind == other));
    let (is_group, is_search) = (is(GROUP), is(SEARCH));
    let is_clients = is_group || is_search || kind.is_none_or(|kind| is_text(kind, is_of_clients));
    if !is_clients {
        return Some(TYPE.into());
    }
    let members = match (is_group, is_search) {
        (true, _) => GROUP_MEMBERS,
        (_, true) => SEARCH_MEMBERS,
        _ => MEMBERS,
    };
    if let Some(name) = tool.names().find(|name| !members.contains(name)) {
        return Some(name.into());
    }
    if is_search && !tool.get(EXECUTION).is_some_and(|by| is_text(by, |by| by == "client")) {
        return Some(EXECUTION.into());
    }
    if let Some(tools) = tool.get(TOOLS) {
        return not_all_clients(tools, depth).map(Cow::Owned);
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

/// Returns the member that makes a tool of a group one which the client does not run.
fn not_all_clients(tools: &str, depth: usize) -> Option<String> {
    if depth == DEEPEST {
        return Some(TOOLS.to_owned());
    }
    match check_below(TOOLS, tools, depth + 1) {
        Ok(()) => None,
        Err(Refusal::Forbidden { member, .. }) => Some(member.as_str().to_owned()),
        Err(_) => Some(TOOLS.to_owned()),
    }
}
