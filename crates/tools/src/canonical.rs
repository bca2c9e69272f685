//! Canonical form of arguments: compact JSON, with members sorted by name.
//!
//! `arguments_sha256` is its digest, approvals store it, and approvers see it, so all three can be compared manually.

use crate::Arguments;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// Returns the arguments as compact JSON, with members sorted by name.
pub fn text(arguments: &Arguments) -> String {
    let mut text = String::new();
    members(arguments, &mut text);
    text
}

/// Returns the SHA-256 of [`text`], in lower-case hexadecimal.
pub fn digest(arguments: &Arguments) -> String {
    digest_of(&text(arguments))
}

/// Returns the SHA-256 of a text, in lower-case hexadecimal.
pub fn digest_of(text: &str) -> String {
    Sha256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn canonical(value: &Value, into: &mut String) {
    match value {
        Value::Object(object) => members(object, into),
        Value::Array(items) => {
            into.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    into.push(',');
                }
                canonical(item, into);
            }
            into.push(']');
        }
        plain => into.push_str(&plain.to_string()),
    }
}

fn members(object: &Arguments, into: &mut String) {
    let mut names: Vec<_> = object.iter().collect();
    names.sort_by(|one, other| one.0.cmp(other.0));
    into.push('{');
    for (at, (name, member)) in names.into_iter().enumerate() {
        if at > 0 {
            into.push(',');
        }
        into.push_str(&Value::from(name.as_str()).to_string());
        into.push(':');
        canonical(member, into);
    }
    into.push('}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn argument_digest_ignores_member_order() {
        let of = |text: &str| digest(&serde_json::from_str(text).unwrap());
        assert_eq!(of(r#"{"a":1,"b":[1,{"c":2,"d":3}]}"#), of(r#"{"b":[1,{"d":3,"c":2}],"a":1}"#));
        assert_ne!(of(r#"{"a":[1,2]}"#), of(r#"{"a":[2,1]}"#));
        assert_ne!(of(r#"{"a":"1"}"#), of(r#"{"a":1}"#));
    }

    #[test]
    fn canonical_text_is_compact_json_with_sorted_members() {
        let given = r#"{"b":[1,{"d":"\"é\n","c":[]}],"a":{}}"#;
        let arguments: Arguments = serde_json::from_str(given).unwrap();
        assert_eq!(text(&arguments), r#"{"a":{},"b":[1,{"c":[],"d":"\"é\n"}]}"#);
        assert_eq!(text(&arguments), Value::Object(arguments.clone()).to_string());
        assert_eq!(digest_of("{}"), "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a");
    }
}
