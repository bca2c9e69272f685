//! Arguments in one form, whatever the order of their members.

use crate::Arguments;
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The SHA-256 of arguments, in hexadecimal.
pub fn digest(arguments: &Arguments) -> String {
    let mut text = Vec::new();
    members(arguments, &mut text);
    Sha256::digest(&text).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn canonical(value: &Value, into: &mut Vec<u8>) {
    match value {
        Value::Object(object) => members(object, into),
        Value::Array(items) => {
            into.push(b'[');
            for item in items {
                canonical(item, into);
                into.push(b',');
            }
            into.push(b']');
        }
        plain => into.extend_from_slice(plain.to_string().as_bytes()),
    }
}

fn members(object: &Arguments, into: &mut Vec<u8>) {
    let mut names: Vec<_> = object.iter().collect();
    names.sort_by(|one, other| one.0.cmp(other.0));
    into.push(b'{');
    for (name, member) in names {
        into.extend_from_slice(Value::from(name.as_str()).to_string().as_bytes());
        into.push(b':');
        canonical(member, into);
        into.push(b',');
    }
    into.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_of_what_is_said_and_not_of_its_order() {
        let of = |text: &str| digest(&serde_json::from_str(text).unwrap());
        assert_eq!(of(r#"{"a":1,"b":[1,{"c":2,"d":3}]}"#), of(r#"{"b":[1,{"d":3,"c":2}],"a":1}"#));
        assert_ne!(of(r#"{"a":[1,2]}"#), of(r#"{"a":[2,1]}"#));
        assert_ne!(of(r#"{"a":"1"}"#), of(r#"{"a":1}"#));
    }
}
