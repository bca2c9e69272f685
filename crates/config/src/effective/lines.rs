//! The effective configuration as YAML, with the source of each value as a comment.

use super::{EffectiveValue, ShownValue, ValueSource};
use belljar_contract::yaml::{Node, Value};
use serde_json::Value as Json;
use std::fmt::Write;

/// Column of the comments, if the value ends before it.
const COLUMN: usize = 44;

/// Returns the lines. `file` is the name of the configuration file.
pub fn lines(values: &[EffectiveValue], file: &str) -> String {
    let mut text = String::new();
    for (index, EffectiveValue { path, value, source }) in values.iter().enumerate() {
        let depth = path.matches(['.', '[']).count();
        let indent = " ".repeat(2 * depth);
        let name = path.rsplit('.').next().unwrap_or_default();
        let is_empty = !values[index + 1..].iter().any(|below| is_below(path, below));
        let source = match source {
            ValueSource::Default => "default".to_owned(),
            ValueSource::File { line } => format!("{file}:{line}"),
            ValueSource::Variable(name) | ValueSource::Flag(name) => (*name).to_owned(),
        };
        // Writing to a String can't fail.
        let _ = match value {
            ShownValue::Value { yaml, .. } => {
                let value = format!("{indent}{name}: {yaml}");
                writeln!(text, "{value:COLUMN$}  # {source}")
            }
            ShownValue::Described(words) => writeln!(text, "{indent}# {name}: {words} ({source})"),
            ShownValue::Secret => writeln!(text, "{indent}# {name}: not shown ({source})"),
            ShownValue::Members if is_empty => writeln!(text, "{indent}{name}: {{}}"),
            ShownValue::Items if is_empty => writeln!(text, "{indent}{name}: []"),
            ShownValue::Item if is_empty => writeln!(text, "{indent}- {{}}"),
            ShownValue::Members | ShownValue::Items => writeln!(text, "{indent}{name}:"),
            ShownValue::Item => writeln!(text, "{indent}-"),
        };
    }
    text
}

/// Returns true if a value is below a path, and has a line that isn't a comment.
fn is_below(path: &str, value: &EffectiveValue) -> bool {
    let rest = value.path.strip_prefix(path);
    let is_comment = matches!(value.value, ShownValue::Described(_) | ShownValue::Secret);
    rest.is_some_and(|rest| rest.starts_with(['.', '['])) && !is_comment
}

/// Returns a value as YAML in one line.
pub(super) fn written(node: &Node) -> String {
    match &node.value {
        Value::Plain(text) if is_simple(text) => text.clone(),
        Value::Plain(text) | Value::Text(text) => quoted(text),
        Value::Sequence(items) => {
            format!("[{}]", items.iter().map(written).collect::<Vec<_>>().join(", "))
        }
        Value::Mapping(members) => {
            let member = |name: &str, node| match is_simple(name) {
                true => format!("{name}: {}", written(node)),
                false => format!("{}: {}", quoted(name), written(node)),
            };
            let members: Vec<String> = members.iter().map(|(key, node)| member(&key.name, node)).collect();
            format!("{{{}}}", members.join(", "))
        }
    }
}

/// Returns true if a text without quotes means the same in a list or mapping in one line.
fn is_simple(text: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '+' | '-');
    text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/') && text.chars().all(is_plain)
}

/// Strings of JSON are texts of YAML, with control characters escaped. Beyond those of JSON, YAML has escapes for some more.
fn quoted(text: &str) -> String {
    let mut quoted = String::new();
    for character in Json::from(text).to_string().chars() {
        match character.is_control() || matches!(character, '\u{2028}' | '\u{2029}' | '\u{feff}') {
            true => quoted.push_str(&format!("\\u{:04x}", u32::from(character))),
            false => quoted.push(character),
        }
    }
    quoted
}
