//! Preferences, on both engines.

use crate::jobs::on_both_engines;
use crate::jobs::world::{StoreFixture, now, task_id};
use belljar_contract::id::{GroupId, UserId};
use belljar_contract::key::Key;
use belljar_contract::preference::ValueType;
use belljar_contract::scope::{Scope, Scopes};
use belljar_store::edit::{Edit, VersionConflict};
use belljar_store::preferences::{
    NewPreference, PreferenceError, PreferenceLimit, PreferenceLimits, Preferences,
};
use serde_json::{Value, json};

const LIMITS: PreferenceLimits = PreferenceLimits { entries: 3, value_bytes: 20, total_characters: 30 };

fn edit() -> Edit {
    Edit { by: UserId::parse("ada").unwrap(), at: now() }
}

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

fn scope(text: &str) -> Scope {
    Scope::parse(text).unwrap()
}

fn wish(scope_text: &str, name: &str, value: Value) -> NewPreference {
    let value_type = ValueType::ALL.into_iter().find(|one| one.is_of(&value)).unwrap();
    NewPreference { scope: scope(scope_text), key: key(name), value, value_type }
}

fn of(world: &StoreFixture) -> Preferences {
    Preferences::new(world.database.clone(), LIMITS)
}

fn of_ada() -> Scopes {
    Scopes { user: UserId::parse("ada").ok(), ..Scopes::default() }
}

on_both_engines! {
    async fn a_preference_is_made_once_changed_by_versions_and_removed(world: StoreFixture) {
        let preferences = of(&world);
        let made = preferences.create(wish("user:ada", "a.b", json!({"x": [1, 2.5, null]})), edit()).await.unwrap();
        assert_eq!(made.version, 1);
        assert_eq!(preferences.find(&scope("user:ada"), &key("a.b")).await.unwrap(), Some(made.clone()));
        let again = preferences.create(wish("user:ada", "a.b", json!(1)), edit()).await;
        assert!(matches!(again, Err(PreferenceError::Exists { .. })));
        let changed = preferences.update(wish("user:ada", "a.b", json!("\0ü")), Some(1), edit()).await.unwrap();
        assert_eq!((&changed.before, changed.after.version, changed.after.id), (&made, 2, made.id));
        assert_eq!((changed.after.value_type, &changed.after.value), (ValueType::String, &json!("\0ü")));
        assert_eq!(preferences.find(&scope("user:ada"), &key("a.b")).await.unwrap().unwrap().value, json!("\0ü"));
        let late = preferences.update(wish("user:ada", "a.b", json!(1)), Some(1), edit()).await;
        let conflict = VersionConflict { expected: 1, found: Some(2) };
        assert!(matches!(late, Err(PreferenceError::Version(found)) if found == conflict));
        assert!(matches!(preferences.delete(&scope("user:ada"), &key("a.b"), Some(1)).await, Err(PreferenceError::Version(_))));
        preferences.update(wish("user:ada", "a.b", Value::Null), None, edit()).await.unwrap();
        assert_eq!(preferences.delete(&scope("user:ada"), &key("a.b"), Some(3)).await.unwrap().value, Value::Null);
        let missing = preferences.delete(&scope("user:ada"), &key("a.b"), None).await;
        assert!(matches!(missing, Err(PreferenceError::Missing { .. })));
        let missing = preferences.update(wish("user:ada", "a.b", json!(1)), None, edit()).await;
        assert!(matches!(missing, Err(PreferenceError::Missing { .. })));
    }

    async fn keys_and_people_differ_by_case_and_tasks_do_not(world: StoreFixture) {
        let preferences = of(&world);
        let task = task_id();
        let upper = format!("task:{}", task.as_str().to_uppercase());
        for (scope, name) in [("user:ada", "a.b"), ("user:Ada", "a.b"), ("user:ada", "a.B"), (&upper, "a.b"), ("system", "a.b")] {
            preferences.create(wish(scope, name, json!(1)), edit()).await.unwrap();
        }
        let lower = preferences.create(wish(&format!("task:{task}"), "a.b", json!(2)), edit()).await;
        assert!(matches!(lower, Err(PreferenceError::Exists { .. })));
        let again = preferences.create(wish("system", "a.b", json!(2)), edit()).await;
        assert!(matches!(again, Err(PreferenceError::Exists { .. })));
    }

    async fn what_holds_is_what_is_nearest_of_what_is_theirs(world: StoreFixture) {
        let preferences = of(&world);
        for (scope, name, value) in [
            ("system", "a.a", json!("s")),
            ("system", "a.b", json!("s")),
            ("group:g", "a.b", json!("g")),
            ("group:h", "a.b", json!("h")),
            ("user:ada", "a.c", json!("u")),
            ("user:bob", "a.a", json!("not theirs")),
        ] {
            preferences.create(wish(scope, name, value), edit()).await.unwrap();
        }
        let groups = ["g", "h"].map(|id| GroupId::parse(id).unwrap()).into();
        let held = preferences.effective(&Scopes { groups, ..of_ada() }).await.unwrap();
        let found: Vec<_> = held.values.iter().map(|(key, one)| format!("{key} {} {}", one.value, one.scope)).collect();
        assert_eq!(found, ["a.a \"s\" system", "a.b \"h\" group:h", "a.c \"u\" user:ada"]);
        assert_eq!(held.skipped, []);
    }

    async fn pages_have_every_entry_of_theirs_once(world: StoreFixture) {
        let preferences = of(&world);
        for (scope, name) in [("user:ada", "b.a"), ("system", "b.a"), ("user:ada", "B.a"), ("user:bob", "b.a"), ("system", "c.a")] {
            preferences.create(wish(scope, name, json!(1)), edit()).await.unwrap();
        }
        let mut after = None;
        let mut all = Vec::new();
        loop {
            let page = preferences.list(&of_ada(), after.as_ref(), 2).await.unwrap();
            all.extend(page.entries.iter().map(|one| format!("{} {}", one.key, one.scope)));
            after = page.next;
            if after.is_none() { break }
        }
        assert_eq!(all, ["B.a user:ada", "b.a system", "b.a user:ada", "c.a system"]);
    }

    async fn there_is_no_more_than_there_may_be_of_a_scope(world: StoreFixture) {
        let preferences = of(&world);
        let limit = |error: PreferenceError| match error {
            PreferenceError::TooMuch { limit, would_be, .. } => (limit, would_be),
            other => panic!("{other}"),
        };
        let large = preferences.create(wish("system", "a.a", json!("x".repeat(19))), edit()).await;
        assert_eq!(limit(large.unwrap_err()), (PreferenceLimit::ValueBytes, 21));
        preferences.create(wish("system", "a.a", json!("x".repeat(18))), edit()).await.unwrap();
        let more = preferences.create(wish("system", "a.b", json!("x".repeat(9))), edit()).await;
        assert_eq!(limit(more.unwrap_err()), (PreferenceLimit::TotalCharacters, 31));
        preferences.create(wish("system", "a.b", json!("x")), edit()).await.unwrap();
        let more = preferences.update(wish("system", "a.b", json!("x".repeat(9))), None, edit()).await;
        assert_eq!(limit(more.unwrap_err()), (PreferenceLimit::TotalCharacters, 31));
        preferences.create(wish("system", "a.c", json!(1)), edit()).await.unwrap();
        let many = preferences.create(wish("system", "a.d", json!(1)), edit()).await;
        assert_eq!(limit(many.unwrap_err()), (PreferenceLimit::Entries, 4));
        preferences.create(wish("user:ada", "a.d", json!(1)), edit()).await.unwrap();
    }

    async fn those_who_come_at_once_do_not_go_past_a_limit_together(world: StoreFixture) {
        let all = world.at_once(12, |number, database| {
            let wish = wish("user:ada", &format!("a.k{number}"), json!(1));
            async move { Preferences::new(database, LIMITS).create(wish, edit()).await }
        });
        let mut made = 0;
        for one in all.await {
            match one {
                Ok(_) => made += 1,
                Err(error) => assert!(matches!(error, PreferenceError::TooMuch { .. }), "{error}"),
            }
        }
        assert_eq!(made, 3);
    }

    async fn what_is_not_what_it_is_said_to_be_or_can_not_be_read_again_is_not_written(world: StoreFixture) {
        let preferences = of(&world);
        let wrong = NewPreference { value_type: ValueType::Number, ..wish("system", "a.a", json!("1")) };
        assert!(matches!(preferences.create(wrong, edit()).await, Err(PreferenceError::OtherType { .. })));
        let nested = |depth: usize| (0..depth).fold(json!([]), |inside, _| json!([inside]));
        let deep = preferences.create(wish("system", "a.a", nested(200)), edit()).await;
        assert!(matches!(deep, Err(PreferenceError::Unwritable)));
        preferences.create(wish("system", "a.a", nested(5)), edit()).await.unwrap();
    }
}
