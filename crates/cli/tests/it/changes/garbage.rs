//! Garbage collection of kept changes: by age and by size, reported, and never more than is announced.

use super::{folders, ids, list};
use crate::BELLJAR;
use belljar_testkit::wait;
use belljar_testkit::world::World;
use serde_json::json;
use std::time::{Duration, Instant};

fn keep(world: &World, script: &str) -> String {
    let before = ids(world);
    world.run(&["exec", "--workspace-copy", "source", "--", "sh", "-c", script]).succeeded();
    ids(world).into_iter().find(|id| !before.contains(id)).unwrap()
}

#[test]
fn largest_changes_are_evicted_first_and_the_eviction_is_reported() {
    World::as_everyone(BELLJAR, |world| {
        world.write("source/file", "before\n");
        let filled = |name: &str| format!("head -c 3000000 /dev/urandom > {name}");
        let (first, second) = (keep(world, &filled("one")), keep(world, &filled("two")));
        let told = world.run(&["changes", "retention", "--max-size", "5m"]).succeeded();
        assert!(told.stdout.contains("14 days"), "{told:?}");
        assert_eq!(ids(world), [first.clone(), second.clone()], "one fits beside the newest");
        let third = keep(world, &filled("three"));
        assert_eq!(
            ids(world),
            [second.clone(), third.clone()],
            "the older of two equally large ones is removed"
        );
        let listed = world.run(&["changes", "list", "--json"]).succeeded().json();
        assert_eq!(
            (&listed["removed"][0]["id"], &listed["removed"][0]["reason"]),
            (&json!(first), &json!("size"))
        );
        let table = world.run(&["changes", "list"]).succeeded().stdout;
        assert!(table.contains(&format!("{first} (sh -c")) && table.contains("was the largest"), "{table}");
    });
}

#[test]
fn large_change_set_evicts_no_smaller_one() {
    let world = World::new(BELLJAR);
    world.write("source/file", "before\n");
    world.run(&["changes", "retention", "--max-size", "5m"]).succeeded();
    let small = keep(&world, "echo after > file");
    // The newest stays, whatever its size, and the others with it.
    let large = keep(&world, "head -c 9000000 /dev/urandom > large");
    assert_eq!(ids(&world), [small.clone(), large]);
    let next = keep(&world, "echo after > file");
    assert_eq!(ids(&world), [small, next]);
}

#[test]
fn sparse_file_evicts_no_other_changes() {
    let world = World::new(BELLJAR);
    world.write("source/file", "before\n");
    let first = keep(&world, "echo after > file");
    let second = keep(&world, "truncate -s 1T holes");
    assert_eq!(ids(&world), [first, second]);
    assert!(list(&world)[1]["bytes"].as_u64().unwrap() < 1 << 20);
}

#[test]
fn changes_are_removed_at_their_maximum_age_and_not_before() {
    World::as_everyone(BELLJAR, |world| {
        world.write("source/file", "before\n");
        let (id, kept_at) = (keep(world, "echo after > file"), Instant::now());
        world.run(&["changes", "retention", "--keep-for", "1h"]).succeeded();
        assert_eq!(ids(world), std::slice::from_ref(&id));
        // A plain number might be meant as days; and change sets beyond a new limit are removed only with confirmation.
        let refused = world.run(&["changes", "retention", "--keep-for", "14"]);
        assert!(refused.code == 125 && refused.stderr.contains("14d for days"), "{refused:?}");
        let short = ["changes", "retention", "--keep-for", "1ms", "--yes"];
        // The up-time clock counts whole seconds.
        wait::until(|| kept_at.elapsed() > Duration::from_secs(2));
        let refused = world.run(&short[..4]);
        assert!(
            refused.code == 125 && refused.stderr.contains(&id) && refused.stderr.contains("--yes"),
            "{refused:?}"
        );
        assert_eq!(ids(world), std::slice::from_ref(&id));
        world.run(&short).succeeded();
        wait::until(|| ids(world).is_empty());
        assert_eq!(folders(world), Vec::<String>::new());
        let listed = world.run(&["changes", "list", "--json"]).succeeded().json();
        assert_eq!(
            (&listed["removed"][0]["id"], &listed["removed"][0]["reason"]),
            (&json!(id), &json!("age"))
        );
    });
}

#[test]
fn changes_with_a_damaged_record_are_reported_and_stay() {
    let world = World::new(BELLJAR);
    world.write("source/file", "before\n");
    let id = keep(&world, "echo after > file");
    let folder = format!("state/kept/{id}");
    world.write(&format!("{folder}/copy.json"), "{");
    let told = world.run(&["changes", "list"]).succeeded();
    assert!(told.stderr.contains(&id) && told.stderr.contains("can't be listed"), "{told:?}");
    // A list of sessions reports the unreadable one, too.
    let told = world.run(&["session", "list", "--all"]).succeeded();
    assert!(told.stderr.contains(&id) && told.stderr.contains("can't be listed"), "{told:?}");
    let told = world.run(&["changes", "list", "--json"]).succeeded().json();
    assert!(told["stranded"][0].as_str().unwrap().ends_with(&folder), "{told}");
    keep(&world, "echo again > file");
    assert!(world.path().join(folder).exists());
}

#[test]
fn retention_limits_that_remove_nothing_need_no_confirmation() {
    let world = World::new(BELLJAR);
    world.write("source/file", "before\n");
    let first = keep(&world, "head -c 3000000 /dev/urandom > one");
    let second = keep(&world, "echo after > file");
    let lower = ["changes", "retention", "--max-size", "1m", "--yes"];
    let refused = world.run(&lower[..4]);
    assert!(refused.code == 125 && refused.stderr.contains(&first), "{refused:?}");
    assert_eq!(ids(&world), [first, second.clone()]);
    world.run(&["changes", "retention", "--max-size", "5m"]).succeeded();
    world.run(&lower).succeeded();
    assert_eq!(ids(&world), [second]);
}

#[test]
fn changes_kept_while_the_clock_was_wrong_are_not_removed_by_age() {
    let world = World::new(BELLJAR);
    world.write("source/file", "before\n");
    let id = keep(&world, "echo after > file");
    let file = format!("state/kept/{id}/kept.json");
    let mut summary: serde_json::Value = serde_json::from_str(&world.read(&file)).unwrap();
    summary["kept_at"] = json!("1970-01-02T00:00:00Z");
    world.write(&file, summary.to_string());
    assert_eq!(ids(&world), std::slice::from_ref(&id));
    // The control: it is too old by both clocks.
    let seconds = summary["kept_at_up_time"]["seconds"].as_i64().unwrap();
    summary["kept_at_up_time"]["seconds"] = json!(seconds - 15 * 86_400);
    world.write(&file, summary.to_string());
    assert_eq!(ids(&world), Vec::<String>::new());
}
