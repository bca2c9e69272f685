//! The JSON Schema against the example file and the tables.

use super::schema;
use crate::example::example;
use crate::json;
use crate::reference::{AcceptedValues, Member, MemberDefault, ROOT};
use belljar_contract::yaml::{self, MistakeLog};
use serde_json::{Value, json};

/// Returns the example without one comment mark on each line, so that it has all members.
fn whole() -> Value {
    let text: Vec<String> =
        example().lines().map(|line| line.strip_prefix('#').unwrap_or(line).to_owned()).collect();
    let root = yaml::parse(text.join("\n").as_bytes(), &mut MistakeLog::default()).unwrap();
    json::of_node(&root)
}

#[test]
fn schema_accepts_the_example_with_all_members() {
    let schema = schema();
    assert!(jsonschema::meta::is_valid(&schema));
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let whole = whole();
    let errors: Vec<String> =
        validator.iter_errors(&whole).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

#[test]
fn schema_refuses_unknown_members_and_values_of_another_type() {
    let validator = jsonschema::draft202012::new(&schema()).unwrap();
    for (pointer, wrong) in [
        ("/unknown", json!(1)),
        ("/sandboxing/docker/unknown", json!(1)),
        ("/inference/providers/0/unknown", json!(1)),
        ("/sandboxing/default_backend", json!("kubernetes")),
        ("/sandboxing/native/pids_limit", json!(0)),
        ("/sandboxing/docker/memory_limit", json!("512 megabytes")),
        ("/node/timeouts/max_seconds", json!("1h")),
        ("/sandboxing/overrides/unknown", json!("native")),
        ("/sandboxing/required", json!(["unknown"])),
    ] {
        let mut document = whole();
        let (above, name) = pointer.rsplit_once('/').unwrap();
        document.pointer_mut(above).unwrap().as_object_mut().unwrap().insert(name.to_owned(), wrong);
        assert!(!validator.is_valid(&document), "{pointer}");
    }
    assert!(!validator.is_valid(&json!({})));
}

#[test]
fn schema_has_each_member_with_its_meaning_and_default() {
    fn check(members: &[Member], schema: &Value, path: &str) {
        let properties = schema["properties"].as_object().unwrap();
        assert_eq!(properties.len(), members.len(), "{path}");
        for member in members {
            let (path, found) = (format!("{path}.{}", member.name), &properties[member.name]);
            assert!(found["description"].as_str().unwrap().starts_with(member.meaning), "{path}");
            if let MemberDefault::Value(value) = member.default {
                assert_eq!(found["default"], json::of_text(value), "{path}");
            }
            match member.takes {
                AcceptedValues::Section(below) => check(below, found, &path),
                AcceptedValues::Sections(below) => check(below, &found["items"], &path),
                _ => {}
            }
        }
    }
    check(ROOT, &schema(), "");
}
