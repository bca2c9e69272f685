//! Garbage collection of kept changes: by age and by size, told of, and never more than is said.

use super::{folders, ids, list};
use crate::BELLJAR;
use belljar_testkit::wait;
use belljar_testkit::world::World;
use serde_json::json;

fn keep(world: &World, script: &str) -> String {
    let before = ids(world);
    world.run(&["exec", "--workspace-copy", "source", "--", "sh", "-c", script]).succeeded();
    ids(world).into_iter().find(|id| !before.contains(id)).unwrap()
}

#[test]
fn the_largest_are_removed_when_all_are_too_large_and_that_is_told() {
    World::as_everyone(BELLJAR, |world| {
        world.write("source/file", "before\n");
        let filled = |name: &str| format!("head -c 3000000 /dev/urandom > {name}");
        let (first, second) = (keep(world, &filled("one")), keep(world, &filled("two")));
        let told = world.run(&["changes", "retention", "--max-size", "5m"]).succeeded();
        assert!(told.stdout.contains("14 days"), "{told:?}");
        assert_eq!(ids(world), [first.clone(), second.clone()], "there is room for one beside the newest");
        let third = keep(world, &filled("three"));
        assert_eq!(
            ids(world),
            [second.clone(), third.clone()],
            "of two that are as large the older one went"
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
fn a_large_change_set_evicts_no_smaller_one() {
    let world = World::new(BELLJAR);
    world.write("source/file", "before\n");
    world.run(&["changes", "retention", "--max-size", "5m"]).succeeded();
    let small = keep(&world, "echo after > file");
    // The newest stays, however large it is, and the others with it.
    let large = keep(&world, "head -c 9000000 /dev/urandom > large");
    assert_eq!(ids(&world), [small.clone(), large]);
    let next = keep(&world, "echo after > file");
    assert_eq!(ids(&world), [small, next]);
}

#[test]
fn a_sparse_file_evicts_no_other_changes() {
    let world = World::new(BELLJAR);
    world.write("source/file", "before\n");
    let first = keep(&world, "echo after > file");
    let second = keep(&world, "truncate -s 1T holes");
    assert_eq!(ids(&world), [first, second]);
    assert!(list(&world)[1]["bytes"].as_u64().unwrap() < 1 << 20);
}

#[test]
fn changes_are_removed_at_their_age_and_not_before() {
    World::as_everyone(BELLJAR, |world| {
        world.write("source/file", "before\n");
        let id = keep(world, "echo after > file");
        world.run(&["changes", "retention", "--keep-for", "1h"]).succeeded();
        assert_eq!(ids(world), std::slice::from_ref(&id));
        world.run(&["changes", "retention", "--keep-for", "1ms"]).succeeded();
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
fn changes_whose_record_is_damaged_are_named_and_stay() {
    let world = World::new(BELLJAR);
    world.write("source/file", "before\n");
    let id = keep(&world, "echo after > file");
    let folder = format!("state/kept/{id}");
    world.write(&format!("{folder}/copy.json"), "{");
    let told = world.run(&["changes", "list"]).succeeded();
    assert!(told.stderr.contains(&id) && told.stderr.contains("can't be listed"), "{told:?}");
    let told = world.run(&["changes", "list", "--json"]).succeeded().json();
    assert!(told["stranded"][0].as_str().unwrap().ends_with(&folder), "{told}");
    keep(&world, "echo again > file");
    assert!(world.path().join(folder).exists());
}
