//! What a call must say besides what its schema asks for, and what of it is recorded.

use belljar_contract::tool::DomainCode;
use belljar_sandbox::shipping::Redactor;
use belljar_tools::Arguments;
use belljar_tools::answer::Failure;
use belljar_tools::caller::Caller;
use belljar_tools::definition::{Definition, SECRET_MARK};
use serde_json::{Map, Value, json};

/// As much of a text is recorded, in bytes.
const LONGEST_RECORDED: usize = 256;

/// As many entries of a list or an object.
const MOST_RECORDED: usize = 32;

/// So deep what is recorded may lie.
const DEEPEST_RECORDED: usize = 6;

/// Refuses ids of other tasks, jobs and projects than the caller is bound to, however they are spelled.
pub(crate) fn within_bounds(caller: &Caller, arguments: &Arguments) -> Result<(), &'static str> {
    let is_outside = |(name, bound): &(&'static str, &str)| {
        arguments
            .get(*name)
            .is_some_and(|value| !value.as_str().is_some_and(|text| text.eq_ignore_ascii_case(bound)))
    };
    caller.bounds().find(is_outside).map_or(Ok(()), |(name, _)| Err(name))
}

/// Refuses what can't be undone without somebody who is known, a yes and a reason (`spec/3 §MCP Integration`, guardrails).
pub(crate) fn guarded(
    caller: &Caller,
    definition: &Definition,
    arguments: &Arguments,
) -> Result<(), Failure> {
    if !definition.is_guarded {
        return Ok(());
    }
    let has_actor = caller.actor.is_some() || caller.user_id.is_some();
    let has_reason =
        arguments.get("reason").and_then(Value::as_str).is_some_and(|text| !text.trim().is_empty());
    let missing = [
        (!has_actor, "missing_actor: whoever asks for this must be known by name"),
        (arguments.get("confirm") != Some(&Value::Bool(true)), "missing_confirm: `confirm` must be true"),
        (!has_reason, "missing_reason: `reason` must say why"),
    ];
    match missing.into_iter().find(|(is_missing, _)| *is_missing) {
        Some((_, message)) => Err(Failure::new(DomainCode::GuardrailViolated, message)),
        None => Ok(()),
    }
}

/// The schema as this caller is told it: what they are bound to has its one value.
pub(crate) fn told_schema(caller: &Caller, schema: &Value) -> Map<String, Value> {
    let mut told = schema.as_object().cloned().unwrap_or_default();
    if let Some(properties) = told.get_mut("properties").and_then(Value::as_object_mut) {
        for (name, bound) in caller.bounds() {
            if let Some(property) = properties.get_mut(name) {
                *property = json!({ "type": "string", "const": bound });
            }
        }
    }
    told
}

/// What of arguments is recorded: nothing that is marked, nothing that looks like a secret, nothing long.
pub(crate) fn recorded(redactor: &Redactor, schema: Option<&Value>, arguments: &Arguments) -> Value {
    let bare = bare(schema, &Value::Object(arguments.clone()), DEEPEST_RECORDED);
    redactor.value(&bare)
}

fn bare(schema: Option<&Value>, value: &Value, depth: usize) -> Value {
    if schema.is_some_and(|schema| schema[SECRET_MARK] == true) {
        return Value::from("***");
    }
    let of = |name: &str| schema.and_then(|schema| schema.get("properties")?.get(name));
    match value {
        Value::Object(_) | Value::Array(_) if depth == 0 => Value::from("…"),
        Value::Object(members) => {
            let kept = members.iter().take(MOST_RECORDED);
            let kept = kept.map(|(name, member)| (short(name), bare(of(name), member, depth - 1)));
            let left_out = members.len().saturating_sub(MOST_RECORDED);
            let rest = (left_out > 0).then(|| ("…".to_owned(), Value::from(left_out)));
            kept.chain(rest).collect()
        }
        Value::Array(items) => {
            let of_items = schema.and_then(|schema| schema.get("items"));
            items.iter().take(MOST_RECORDED).map(|item| bare(of_items, item, depth - 1)).collect()
        }
        Value::String(text) => Value::from(short(text)),
        plain => plain.clone(),
    }
}

fn short(text: &str) -> String {
    match text.len() {
        0..=LONGEST_RECORDED => text.to_owned(),
        length => format!("{}… ({length} bytes)", &text[..text.floor_char_boundary(LONGEST_RECORDED)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_contract::id::TaskId;
    use belljar_contract::tool::AgentKind;

    const TASK: &str = "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e";

    fn arguments(value: &Value) -> Arguments {
        value.as_object().unwrap().clone()
    }

    fn bound() -> Caller {
        Caller { task_id: Some(TaskId::parse(TASK).unwrap()), ..Caller::of(AgentKind::Sandbox) }
    }

    #[test]
    fn an_id_of_another_task_is_refused_in_every_spelling() {
        let check = |value| within_bounds(&bound(), &arguments(&json!({ "task_id": value })));
        assert_eq!(check(json!(TASK)), Ok(()));
        assert_eq!(check(json!(TASK.to_uppercase())), Ok(()));
        let others =
            ["0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0f", "", "*", " 0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e"];
        for other in others {
            assert_eq!(check(json!(other)), Err("task_id"), "{other}");
        }
        for other in [json!(null), json!([TASK]), json!({ "a": 1 }), json!(1)] {
            assert_eq!(check(other.clone()), Err("task_id"), "{other}");
        }
    }

    #[test]
    fn what_is_recorded_has_no_secret_and_no_length() {
        let schema = json!({ "properties": {
            "key": { SECRET_MARK: true },
            "inner": { "properties": { "pin": { SECRET_MARK: true } } },
            "list": { "items": { SECRET_MARK: true } }
        }});
        let given = json!({
            "key": "hunter2", "inner": { "pin": 1234, "kept": 1 }, "list": ["hunter2"], "header": "Bearer abcdefghijklmnop",
            "password": "hunter2", "long": "x".repeat(5000)
        });
        let recorded = recorded(&Redactor::new(), Some(&schema), &arguments(&given));
        let text = recorded.to_string();
        assert!(!text.contains("hunter2") && !text.contains("1234") && !text.contains("abcdefgh"), "{text}");
        assert_eq!(recorded["inner"]["kept"], 1);
        assert!(text.len() < 1000, "{text}");
    }
}
