//! Table tests.

//! Tests of which of several preferences is effective, by examples and by properties.

use super::*;
use belljar_contract::id::UserId;
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::json;

const TASK: &str = "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e";

fn scope(text: &str) -> Scope {
    Scope::parse(text).unwrap()
}

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

fn entry(id: u64, scope_text: &str, name: &str, value: Value) -> Preference {
    let value_type = ValueType::ALL.into_iter().find(|one| one.is_of(&value)).unwrap();
    Preference {
        id,
        scope: scope(scope_text),
        key: key(name),
        value,
        value_type,
        version: id + 10,
        updated_at: Timestamp::UNIX_EPOCH,
        updated_by: UserId::parse("ada").unwrap(),
    }
}

fn all_scopes() -> Scopes {
    let mut scopes = Scopes::default();
    for text in SCOPES {
        match scope(text) {
            Scope::System => {}
            Scope::Group(id) => _ = scopes.groups.insert(id),
            Scope::User(id) => scopes.user = Some(id),
            Scope::Project(id) => scopes.project = Some(id),
            Scope::Task(id) => scopes.task = Some(id),
        }
    }
    scopes
}

/// Scopes, the farthest first.
const SCOPES: [&str; 6] =
    ["system", "group:a", "group:b", "user:u", "project:p", "task:0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e"];

fn value(entries: &[Preference], name: &str) -> Option<Value> {
    effective(entries, &all_scopes()).get(&key(name)).cloned()
}

#[test]
fn nearer_preference_scope_wins_in_any_order() {
    for (near, nearer) in SCOPES.iter().enumerate() {
        for further in &SCOPES[..near] {
            let mut entries =
                vec![entry(1, nearer, "a.b", json!("near")), entry(2, further, "a.b", json!("far"))];
            // Neither age nor position compensates for distance.
            entries[1].updated_at = "2030-01-01T00:00:00Z".parse().unwrap();
            assert_eq!(value(&entries, "a.b"), Some(json!("near")), "{nearer} {further}");
            entries.reverse();
            assert_eq!(value(&entries, "a.b"), Some(json!("near")), "{nearer} {further}");
        }
    }
}

#[test]
fn effective_preference_names_its_source() {
    let held =
        effective(&[entry(1, "system", "a.b", json!(1)), entry(2, "user:u", "a.b", json!(2))], &all_scopes());
    assert_eq!(
        held.values[&key("a.b")],
        EffectiveValue { value: json!(2), scope: scope("user:u"), version: 12 }
    );
}

#[test]
fn newest_preference_wins_within_a_scope() {
    let mut entries = [entry(2, "user:u", "a.b", json!("old")), entry(1, "user:u", "a.b", json!("young"))];
    entries[1].updated_at = "2030-01-01T00:00:00Z".parse().unwrap();
    assert_eq!(value(&entries, "a.b"), Some(json!("young")));
    entries[1].updated_at = entries[0].updated_at;
    assert_eq!(value(&entries, "a.b"), Some(json!("old")));
}

#[test]
fn null_preference_hides_farther_scopes_only() {
    let entries = [entry(1, "system", "a.b", json!(1)), entry(2, "project:p", "a.b", Value::Null)];
    assert_eq!(value(&entries, "a.b"), None);
    let held = effective(&entries, &all_scopes());
    assert_eq!(held.values[&key("a.b")].scope, scope("project:p"));
    let nearer = entry(3, SCOPES[5], "a.b", json!(3));
    assert_eq!(value(&[entries.as_slice(), &[nearer]].concat(), "a.b"), Some(json!(3)));
}

#[test]
fn mistyped_preference_is_skipped_and_hides_nothing() {
    for value_type in ValueType::ALL {
        for wrong in [json!("a"), json!(1), json!(true), json!({}), json!([])] {
            let wrong = Preference { value_type, ..entry(2, "user:u", "a.b", wrong) };
            let is_right = value_type.is_of(&wrong.value);
            let entries = [entry(1, "system", "a.b", json!("below")), wrong.clone()];
            let held = effective(&entries, &all_scopes());
            let expected = if is_right { wrong.value.clone() } else { json!("below") };
            assert_eq!(held.get(&key("a.b")), Some(&expected));
            let skipped: Vec<_> =
                held.skipped.iter().map(|skipped| (skipped.id, skipped.value_type)).collect();
            assert_eq!(skipped, if is_right { vec![] } else { vec![(2, value_type)] });
        }
    }
}

#[test]
fn preferences_of_other_scopes_are_ignored() {
    let scopes = Scopes { user: UserId::parse("u").ok(), ..Scopes::default() };
    for other in ["group:a", "user:U", "project:p", SCOPES[5]] {
        let held = effective(&[entry(1, other, "a.b", json!(1))], &scopes);
        assert_eq!(held, EffectivePreferences::default(), "{other}");
    }
    assert_eq!(effective(&[entry(1, "user:u", "a.b", json!(1))], &scopes).values.len(), 1);
}

#[test]
fn task_scope_ignores_the_case_of_the_id() {
    let upper = format!("task:{}", TASK.to_uppercase());
    assert_eq!(value(&[entry(1, &upper, "a.b", json!(1))], "a.b"), Some(json!(1)));
}

#[test]
fn additional_context_is_taken_from_the_nearest_scope_only() {
    let name = ContextAgent::Sandbox.key();
    let told =
        |entries: &[Preference]| effective(entries, &all_scopes()).additional_context(ContextAgent::Sandbox);
    assert_eq!(told(&[]), None);
    let system = entry(1, "system", name, json!("s"));
    assert_eq!(told(std::slice::from_ref(&system)), Some("s".to_owned()));
    let user = entry(2, "user:u", name, json!(["one", "two"]));
    assert_eq!(told(&[system.clone(), user]), Some("one\n\ntwo".to_owned()));
    for wrong in [json!(["one", 2]), json!(7), json!({"a": "b"})] {
        let entries = [system.clone(), entry(2, "user:u", name, wrong)];
        assert_eq!(told(&entries), Some("s".to_owned()));
        assert_eq!(effective(&entries, &all_scopes()).skipped.len(), 1);
    }
    assert_eq!(told(&[system.clone(), entry(2, "user:u", name, Value::Null)]), None);
    assert_eq!(told(&[entry(2, "user:u", name, json!([]))]), None);
    let of_another = entry(3, "user:u", ContextAgent::ProjectManager.key(), json!("m"));
    assert_eq!(told(&[system, of_another]), Some("s".to_owned()));
}

/// Entries of all scopes and of an unrelated one, some with values of a wrong type.
fn entries() -> impl Strategy<Value = Vec<Preference>> {
    let values = prop::sample::select(vec![
        Value::Null,
        json!(1),
        json!("a"),
        json!([1]),
        json!({"a": 1}),
        json!(true),
    ]);
    let one = (0..=SCOPES.len(), 0..3_usize, values, prop::sample::select(ValueType::ALL.to_vec()), 0..4_i64);
    prop::collection::vec(one, 0..24).prop_map(|all| {
        let numbered = all.into_iter().zip(1..);
        numbered
            .map(|((scope_index, name, value, value_type, second), id)| Preference {
                value_type,
                updated_at: Timestamp::from_second(second).unwrap(),
                ..entry(
                    id,
                    SCOPES.get(scope_index).unwrap_or(&"user:another user"),
                    ["a.a", "a.b", "a.c"][name],
                    value,
                )
            })
            .collect()
    })
}

proptest! {
    #[test]
    fn preference_order_makes_no_difference(shuffled in entries().prop_flat_map(|all| {
        (Just(all.clone()), Just(all).prop_shuffle())
    })) {
        let (all, shuffled) = shuffled;
        prop_assert_eq!(effective(&all, &all_scopes()), effective(&shuffled, &all_scopes()));
    }

    #[test]
    fn effective_preference_is_the_nearest_newest_valid_entry(all in entries()) {
        let held = effective(&all, &all_scopes());
        let near = |entry: &Preference| SCOPES.iter().position(|one| scope(one) == entry.scope);
        for name in ["a.a", "a.b", "a.c"] {
            let valid = all.iter().filter(|one| {
                one.key == key(name) && near(one).is_some() && one.value_type.is_of(&one.value)
            });
            let greatest = valid.max_by_key(|one| (near(one), one.updated_at, one.id));
            let expected = greatest.map(|one| (one.value.clone(), one.scope.clone(), one.version));
            let found = held.values.get(&key(name)).map(|one| (one.value.clone(), one.scope.clone(), one.version));
            prop_assert_eq!(found, expected);
        }
        let invalid = all.iter().filter(|one| near(one).is_some() && !one.value_type.is_of(&one.value));
        prop_assert_eq!(held.skipped.len(), invalid.count());
    }

    #[test]
    fn skipped_preferences_do_not_change_the_result(all in entries()) {
        let held = effective(&all, &all_scopes());
        let valid: Vec<_> =
            all.iter().filter(|one| held.skipped.iter().all(|skipped| skipped.id != one.id)).cloned().collect();
        prop_assert_eq!(effective(&valid, &all_scopes()).values, held.values);
    }
}
