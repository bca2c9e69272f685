//! Tests for malicious schemas, each with a similar valid one as a control.

use super::*;
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

fn arguments(value: &Value) -> Arguments {
    value.as_object().unwrap().clone()
}

#[test]
fn schema_mistakes_have_a_position_and_hide_the_value() {
    let schema = ArgumentSchema::new(&json!({
        "type": "object", "required": ["path"], "additionalProperties": false,
        "properties": { "path": { "type": "string", "maxLength": 3 }, "count": { "type": "integer" } }
    }))
    .unwrap();
    assert_eq!(schema.check(&arguments(&json!({ "path": "abc" }))), Ok(()));
    let mistakes = schema.check(&arguments(&json!({ "path": "hunter2", "count": true }))).unwrap_err();
    assert_eq!(mistakes.len(), 2, "{mistakes:?}");
    assert!(mistakes.iter().any(|mistake| mistake.starts_with("/path: ")), "{mistakes:?}");
    assert!(!mistakes.concat().contains("hunter2"), "{mistakes:?}");
    assert!(schema.check(&arguments(&json!({}))).is_err());
    assert!(schema.check(&arguments(&json!({ "path": "a", "Path": "a" }))).is_err());
}

#[test]
fn mistake_is_described_in_words_instead_of_a_regular_expression() {
    let of = |property: Value| {
        let schema = json!({ "type": "object", "properties": { "a": property } });
        let mistakes = ArgumentSchema::new(&schema).unwrap().check(&arguments(&json!({ "a": "hunter2" })));
        mistakes.unwrap_err().join("; ")
    };
    let text = |more: Value| {
        let mut property = json!({ "type": "string", "pattern": "^/[^\\u0000]+$" });
        property.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        of(property)
    };
    let marked = json!({ "x-belljar-expected": "an absolute path", "description": "Where." });
    assert_eq!(text(marked), "/a: expected an absolute path");
    assert!(text(json!({ "format": "uuid" })).starts_with("/a: expected a UUID such as "));
    assert_eq!(text(json!({ "description": "Where." })), "/a: not of the required form: Where.");
    assert_eq!(text(json!({})), "/a: does not match the pattern that the tool's schema requires");
    let not = of(json!({ "not": { "pattern": "^hunter" } }));
    assert_eq!(not, "/a: does not match the pattern that the tool's schema requires");
    // Control: mistakes without such a description are reported as before.
    assert!(of(json!({ "enum": ["b"] })).contains("\"b\""));
}

#[test]
fn schema_makes_no_requests_and_patterns_match_in_linear_time() {
    assert!(ArgumentSchema::new(&json!({ "$ref": "http://127.0.0.1:9/schema.json" })).is_err());
    assert!(ArgumentSchema::new(&json!({ "type": "wrong" })).is_err());
    let slow = json!({ "type": "object", "properties": { "a": { "type": "string", "pattern": "^(a+)+$" } } });
    let schema = ArgumentSchema::new(&slow).unwrap();
    let hostile = format!("{}!", "a".repeat(10_000));
    assert!(schema.check(&arguments(&json!({ "a": hostile }))).is_err());
}

/// A chain of definitions, each built from the previous one; the last one is the schema.
fn chain(length: usize, first: Value, next: impl Fn(Value) -> Value) -> Value {
    let name = |index: usize| format!("a{index}");
    let mut all = serde_json::Map::from_iter([(name(0), first)]);
    for index in 1..=length {
        let before = json!({ "$ref": format!("#/$defs/{}", name(index - 1)) });
        all.insert(name(index), next(before));
    }
    json!({ "type": "object", "$defs": all, "$ref": format!("#/$defs/{}", name(length)) })
}

#[test]
fn schema_with_exponential_references_is_rejected() {
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let doubling = |length, first| chain(length, first, |before| json!({ keyword: [before, before] }));
        for first in [json!({ "type": "object" }), json!({ "type": "string" })] {
            let refused = CheckedSchema::new(&doubling(30, first.clone())).unwrap_err();
            assert!(matches!(refused, InvalidSchemaError::Work { .. }), "{keyword}: {refused}");
            // Control: a few levels are allowed.
            assert!(ArgumentSchema::new(&doubling(5, first)).is_ok(), "{keyword}");
        }
    }
    let unevaluated = |length| {
        chain(
            length,
            json!({ "type": "object" }),
            |before| json!({ "allOf": [before], "unevaluatedProperties": false }),
        )
    };
    assert!(matches!(CheckedSchema::new(&unevaluated(15)), Err(InvalidSchemaError::Work { .. })));
    assert!(ArgumentSchema::new(&unevaluated(2)).is_ok());
}

#[test]
fn overlong_or_cyclic_in_place_reference_chain_is_rejected() {
    for keyword in ["allOf", "not"] {
        let long = |length| {
            chain(length, json!({ "type": "object" }), |before| match keyword {
                "not" => json!({ "not": before }),
                _ => json!({ keyword: [before] }),
            })
        };
        assert!(
            matches!(CheckedSchema::new(&long(1_300)), Err(InvalidSchemaError::Chain { .. })),
            "{keyword}"
        );
        assert!(ArgumentSchema::new(&long(20)).is_ok(), "{keyword}");
    }
    let itself = json!({ "type": "object", "allOf": [{ "$ref": "#" }] });
    assert!(matches!(CheckedSchema::new(&itself), Err(InvalidSchemaError::Endless)));
    // Control: a reference that descends a level may be recursive.
    let nested = json!({ "type": "object", "properties": { "child": { "$ref": "#" } } });
    assert!(ArgumentSchema::new(&nested).is_ok());
}

#[test]
fn deeply_nested_schema_compiles_and_drops_without_stack_overflow() {
    let deep = |inner| (0..40).fold(inner, |inner, _| json!({ "properties": { "a": inner } }));
    let schema = ArgumentSchema::new(&chain(12, json!({ "type": "object" }), deep)).unwrap();
    assert_eq!(schema.check(&arguments(&json!({ "a": { "a": {} } }))), Ok(()));
}

#[test]
fn schema_reference_must_point_into_the_schema() {
    let with =
        |reference: &str| json!({ "$defs": { "a": {} }, "properties": { "x": { "$ref": reference } } });
    for reference in ["a.json", "#/$defs/b", "#a", "#/$defs/%61", "http://127.0.0.1:9/s#/$defs/a"] {
        let refused = CheckedSchema::new(&with(reference)).unwrap_err();
        assert!(matches!(refused, InvalidSchemaError::Reference { .. }), "{reference}: {refused}");
    }
    for reference in ["#", "#/$defs/a"] {
        assert!(ArgumentSchema::new(&with(reference)).is_ok(), "{reference}");
    }
    let renamed = json!({ "properties": { "x": { "$id": "http://a/", "$ref": "#" } } });
    assert!(matches!(CheckedSchema::new(&renamed), Err(InvalidSchemaError::Renaming { .. })));
    // Controls: the id of the whole schema, and members with such names.
    let named = json!({ "$id": "http://a/", "$schema": "http://json-schema.org/draft-07/schema#",
        "properties": { "$id": { "type": "string" } } });
    assert!(ArgumentSchema::new(&named).is_ok());
}

#[test]
fn validation_with_exponential_work_is_refused() {
    let schema = ArgumentSchema::new(&json!({
        "anyOf": [{ "properties": { "a": { "$ref": "#" } } }, { "properties": { "a": { "$ref": "#" } } }],
    }))
    .unwrap();
    let nested = |depth| (0..depth).fold(json!({}), |inner, _| json!({ "a": inner }));
    let refused = schema.check(&arguments(&nested(60))).unwrap_err();
    assert!(refused[0].contains("evaluations"), "{refused:?}");
    assert_eq!(schema.check(&arguments(&nested(5))), Ok(()));
    // Chains applied again at each level of the arguments must not exceed the stack.
    let chained =
        chain(20, json!({ "properties": { "a": { "$ref": "#" } } }), |before| json!({ "allOf": [before] }));
    let chained = ArgumentSchema::new(&chained).unwrap();
    assert!(chained.check(&arguments(&nested(90))).unwrap_err()[0].contains("evaluations"));
    assert_eq!(chained.check(&arguments(&nested(9))), Ok(()));
    // Control: with one subschema per level, all levels are checked.
    let plain =
        json!({ "type": "object", "properties": { "a": { "$ref": "#" } }, "additionalProperties": false });
    let plain = ArgumentSchema::new(&plain).unwrap();
    assert_eq!(plain.check(&arguments(&nested(90))), Ok(()));
}

#[test]
fn unique_items_with_equal_hashes_count_as_pairwise_comparisons() {
    let schema = ArgumentSchema::new(&json!({ "properties": { "a": { "uniqueItems": true } } })).unwrap();
    let check = |items: Vec<Value>| schema.check(&arguments(&json!({ "a": items })));
    let pairs = |begin: u64, most: u64| -> Vec<Value> {
        (0..most * most).map(|i| json!({ "x": begin + i / most, "y": begin + i % most })).collect()
    };
    let grouped = |i: usize| json!([vec![1; i], vec![1; 15 - i]]);
    for alike in [
        pairs(1 << 63, 35),
        (0..2_000).map(|i| json!((1_u64 << 63) + i)).collect(),
        (0..=15).map(grouped).cycle().take(500).collect(),
    ] {
        let refused = check(alike).unwrap_err();
        assert!(refused[0].contains("evaluations"), "{refused:?}");
    }
    // Controls: a few of them, and many with distinct hashes.
    assert_eq!(check(pairs(1 << 63, 10)), Ok(()));
    assert_eq!(check((0..5_000).map(|i| json!(i)).collect()), Ok(()));
    assert_eq!(check((0..5_000).map(|i| json!(f64::from(i) + 0.5)).collect()), Ok(()));
    assert_eq!(check((0..5_000).map(|i| json!(format!("item {i}"))).collect()), Ok(()));
}

#[test]
fn schema_patterns_are_limited_in_number_and_size() {
    let with = |patterns: &[String]| {
        let all = patterns.iter().map(|pattern| (pattern.clone(), json!({}))).collect();
        json!({ "type": "object", "patternProperties": Value::Object(all) })
    };
    let refused = ArgumentSchema::new(&with(&[r"^\p{L}{240}7$".to_owned()])).unwrap_err();
    assert!(matches!(refused, InvalidSchemaError::Schema { .. }), "{refused}");
    let many: Vec<_> = (0..65).map(|index| format!("^a[0-9]{index}$")).collect();
    assert!(matches!(CheckedSchema::new(&with(&many)), Err(InvalidSchemaError::Patterns { .. })));
    let long = "a".repeat(2_000);
    assert!(matches!(CheckedSchema::new(&with(&[long])), Err(InvalidSchemaError::LongPattern { .. })));
    // Controls: typical patterns of tools.
    let known = [
        r"^[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[1-8][0-9a-fA-F]{3}-[89abAB][0-9a-fA-F]{3}-[0-9a-fA-F]{12}$",
        r"^[\w.+-]+@[\w-]+(\.[\w-]+)+$",
        r"^(?:(?:\d\d[2468][048]|\d\d[13579][26]|\d\d0[48]|[02468][048]00|[13579][26]00)-02-29|\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)|(?:02)-(?:0[1-9]|1\d|2[0-8])))T(?:(?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d+)?)?(?:Z))$",
        r"^[A-Za-z0-9+/]*={0,2}$",
        r"^.{1,255}$",
        r"^\p{L}+$",
        r"^https?://[^\s/$.?#].[^\s]*$",
    ];
    for pattern in known {
        if let Err(error) = ArgumentSchema::new(&with(&[pattern.to_owned()])) {
            panic!("{pattern}: {error}");
        }
    }
}

#[test]
fn long_texts_are_not_matched_against_patterns() {
    let schema = json!({ "properties": { "a": { "pattern": "^[ab]{1,200}(a|b)*c$" }, "b": { "pattern": "\\S" }, "c": { "type": "string" } } });
    let schema = ArgumentSchema::new(&schema).unwrap();
    let long = "a".repeat(200_000);
    assert!(schema.check(&arguments(&json!({ "a": long }))).unwrap_err()[0].contains("evaluations"));
    assert!(schema.check(&arguments(&json!({ "a": "aac" }))).is_ok());
    // Controls: text matched by a small pattern, or by none, may be longer.
    assert!(schema.check(&arguments(&json!({ "b": long }))).is_ok());
    assert!(schema.check(&arguments(&json!({ "c": long }))).is_ok());
}

/// Counts evaluations by the library.
struct Counter(Arc<AtomicU64>);

impl<'i> jsonschema::Keyword<'i> for Counter {
    fn validate(&self, instance: &'i Value) -> Result<(), jsonschema::ValidationError<'i>> {
        let _ = self.is_valid(instance);
        Ok(())
    }

    fn is_valid(&self, _: &'i Value) -> bool {
        self.0.fetch_add(1, Ordering::Relaxed);
        true
    }
}

#[test]
fn library_evaluations_do_not_exceed_the_computed_work() {
    let leaf = json!({ "x": 1, "type": "string" });
    let shapes: [fn(Value) -> Value; 8] = [
        |inner| json!({ "anyOf": [inner, inner] }),
        |inner| json!({ "oneOf": [inner, inner] }),
        |inner| json!({ "allOf": [inner, { "not": inner }] }),
        |inner| json!({ "if": inner, "then": inner, "else": inner }),
        |inner| json!({ "allOf": [inner], "unevaluatedProperties": inner }),
        |inner| json!({ "properties": { "a": inner }, "additionalProperties": inner, "propertyNames": inner }),
        |inner| json!({ "items": inner, "contains": inner, "anyOf": [{ "properties": { "a": inner } }, inner] }),
        |inner| json!({ "patternProperties": { "a": inner, "^b": inner }, "unevaluatedProperties": inner }),
    ];
    let mut compared = 0;
    let value = json!({ "a": { "a": { "a": [1, "b"], "b": 7 }, "c": [{ "a": 1 }] }, "b": ["x", { "a": 2 }] });
    for (outer, first) in shapes.iter().enumerate() {
        for (inner, second) in shapes.iter().enumerate() {
            let schema = first(second(first(leaf.clone())));
            let counted = Arc::new(AtomicU64::new(0));
            let counter = Arc::clone(&counted);
            let validator = jsonschema::draft202012::options()
                .with_keyword("x", move |_, _, _| Ok(Box::new(Counter(Arc::clone(&counter))) as Box<_>))
                .build(&schema)
                .unwrap();
            let _ = validator.iter_errors(&value).count();
            let evaluations = counted.load(Ordering::Relaxed);
            let Ok(graph) = Graph::of(&schema) else { continue };
            if let Ok(work) = work::of(&graph, &value) {
                assert!(evaluations <= work, "{outer} of {inner}: {evaluations} > {work}");
                compared += u32::from(evaluations > 0);
            }
        }
    }
    assert!(compared > 50, "{compared}");
}
