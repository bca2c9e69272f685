//! Settings of the system, and images that were added, on both engines.

use crate::jobs::on_both_engines;
use crate::jobs::world::{StoreFixture, now};
use belljar_contract::id::UserId;
use belljar_contract::image::ImageReference;
use belljar_contract::key::Key;
use belljar_contract::label::Label;
use belljar_store::edit::Edit;
use belljar_store::images::{ImageAddition, Images};
use belljar_store::settings::{LONGEST_VALUE, SettingError, Settings};
use serde_json::json;

fn edit() -> Edit {
    Edit { by: UserId::parse("root").unwrap(), at: now() }
}

fn key(text: &str) -> Key {
    Key::parse(text).unwrap()
}

fn image(text: &str) -> ImageReference {
    ImageReference::parse(text).unwrap()
}

on_both_engines! {
    async fn a_setting_is_written_by_versions_and_removed(world: StoreFixture) {
        let settings = Settings::new(world.database.clone());
        let disabled = key("mcp.tools.disabled");
        assert_eq!(settings.find(&disabled).await.unwrap(), None);
        let early = settings.set(&disabled, json!([]), Some(1), edit()).await;
        assert!(matches!(early, Err(SettingError::Version(conflict)) if conflict.found.is_none()));
        let set = settings.set(&disabled, json!(["web.fetch"]), None, edit()).await.unwrap();
        assert_eq!((set.before.as_ref(), set.after.version), (None, 1));
        assert_eq!(settings.find(&disabled).await.unwrap(), Some(set.after.clone()));
        let again = settings.set(&disabled, json!(null), Some(1), edit()).await.unwrap();
        assert_eq!((again.before, again.after.version), (Some(set.after), 2));
        let late = settings.set(&disabled, json!(1), Some(1), edit()).await;
        assert!(matches!(late, Err(SettingError::Version(_))));
        assert!(matches!(settings.delete(&disabled, Some(1)).await, Err(SettingError::Version(_))));
        assert_eq!(settings.delete(&disabled, Some(2)).await.unwrap(), again.after);
        assert!(matches!(settings.delete(&disabled, None).await, Err(SettingError::Missing { .. })));
    }

    async fn settings_are_listed_by_their_keys_and_no_larger_than_they_may_be(world: StoreFixture) {
        let settings = Settings::new(world.database.clone());
        for name in ["b.a", "B.a", "a.a"] {
            settings.set(&key(name), json!(true), None, edit()).await.unwrap();
        }
        let first = settings.list(None, 2).await.unwrap();
        let second = settings.list(first.next.as_ref(), 2).await.unwrap();
        let all: Vec<_> = first.entries.iter().chain(&second.entries).map(|one| one.key.as_str()).collect();
        assert_eq!((all, second.next), (vec!["B.a", "a.a", "b.a"], None));
        let fits = json!("x".repeat(LONGEST_VALUE - 2));
        settings.set(&key("a.b"), fits, None, edit()).await.unwrap();
        let large = settings.set(&key("a.b"), json!("x".repeat(LONGEST_VALUE - 1)), None, edit()).await;
        assert!(matches!(large, Err(SettingError::Value)));
    }

    async fn of_many_who_write_one_version_at_once_one_does(world: StoreFixture) {
        let settings = Settings::new(world.database.clone());
        settings.set(&key("a.b"), json!(0), None, edit()).await.unwrap();
        let all = world.at_once(12, |number, database| async move {
            Settings::new(database).set(&key("a.b"), json!(number), Some(1), edit()).await.is_ok()
        });
        let written = all.await.into_iter().filter(|&is_written| is_written).count();
        assert_eq!((written, settings.find(&key("a.b")).await.unwrap().unwrap().version), (1, 2));
    }

    async fn an_image_is_added_once_however_it_is_named_and_removed(world: StoreFixture) {
        let images = Images::new(world.database.clone());
        let name = Label::parse("Debian").ok();
        let added = images.add(image("debian"), name.clone(), edit()).await.unwrap();
        let ImageAddition::New(added) = added else { panic!("{added:?}") };
        let again = images.add(image("docker.io/library/debian:latest"), None, edit()).await.unwrap();
        assert_eq!(again, ImageAddition::Known(added.clone()));
        assert_eq!(images.find(&image("index.docker.io/library/debian")).await.unwrap(), Some(added));
        assert_eq!(images.find(&image("debian:12")).await.unwrap(), None);
        assert!(images.remove(&image("debian:latest")).await.unwrap());
        assert!(!images.remove(&image("debian")).await.unwrap());
        assert_eq!(images.find(&image("debian")).await.unwrap(), None);
    }

    async fn pages_have_every_image_once(world: StoreFixture) {
        let images = Images::new(world.database.clone());
        let digest = format!("a.example/b@sha256:{}", "0".repeat(64));
        for text in ["debian:12", "alpine", &digest] {
            images.add(image(text), None, edit()).await.unwrap();
        }
        let first = images.list(None, 2).await.unwrap();
        let second = images.list(first.next.as_ref(), 2).await.unwrap();
        let all: Vec<_> = first.entries.iter().chain(&second.entries).map(|one| one.image.to_string()).collect();
        assert_eq!(all, [digest.as_str(), "docker.io/library/alpine:latest", "docker.io/library/debian:12"]);
        assert_eq!(second.next, None);
    }
}
