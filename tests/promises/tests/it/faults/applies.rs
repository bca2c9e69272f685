//! An apply of kept changes that is killed at any place: the next one finishes it, and the directory equals the result
//! of an uninterrupted apply.

use crate::belljar::belljar;
use belljar_failpoint::{APPLY, VARIABLE};
use belljar_testkit::world::World;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

/// Maximum number of times that a place is passed before the process dies there.
const MOST_TIMES: usize = 4;

/// Returns everything in a directory: permission bits and content.
fn tree(top: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    let (mut found, mut pending) = (BTreeMap::new(), vec![top.to_owned()]);
    while let Some(directory) = pending.pop() {
        for entry in std::fs::read_dir(directory).unwrap().map(Result::unwrap) {
            let (path, about) = (entry.path(), entry.metadata().unwrap());
            let content = if about.is_file() { std::fs::read(&path).unwrap() } else { Vec::new() };
            if about.is_dir() {
                pending.push(path.clone());
            }
            found.insert(
                path.strip_prefix(top).unwrap().to_owned(),
                (about.permissions().mode() & 0o7777, content),
            );
        }
    }
    found
}

/// Keeps changes to a directory with `names` names, and returns their id. Two files conflict if `is_edited`.
fn keep(world: &World, source: &str, (names, is_edited): (usize, bool)) -> String {
    for at in 0..names {
        world.write(&format!("{source}/other/{at}"), "other\n");
    }
    for name in ["x", "y"] {
        world.write(&format!("{source}/{name}"), "a\nb\nc\n");
    }
    let script =
        "sed -i s/b/run/ x y; mkdir -p new/1/deep new/2; echo run > new/1/deep/f; echo run > new/2/f";
    world.run(&["exec", "--workspace-copy", source, "--keep", "--", "sh", "-c", script]).succeeded();
    if is_edited {
        for name in ["x", "y"] {
            world.write(&format!("{source}/{name}"), "a\nperson\nc\n");
        }
    }
    let listed = world.run(&["changes", "list", "--json"]).succeeded().json();
    let [kept] = listed["changes"].as_array().unwrap().as_slice() else { panic!("{listed:#}") };
    kept["id"].as_str().unwrap().to_owned()
}

#[test]
fn killed_and_repeated_apply_gives_the_same_result() {
    let world = World::new(belljar());
    let mut killed = 0;
    // A snapshot with files that are merged, and an overlay.
    for (kind, how) in [("snapshot", (0, true)), ("overlay", (100, false))] {
        let id = keep(&world, kind, how);
        world.run(&["changes", "apply", &id, "--merge=markers"]).succeeded();
        let expected = tree(&world.path().join(kind));
        for place in APPLY {
            for time in 1..=MOST_TIMES {
                let name = format!("{kind}-{place}-{time}");
                let id = keep(&world, &name, how);
                let apply = ["changes", "apply", &id, "--merge=markers"];
                let mut command = world.command(&apply);
                let output = command.env(VARIABLE, format!("{place}@{time}")).output().unwrap();
                if output.status.signal() != Some(9) {
                    assert!(output.status.success() && time > 1, "{name}: {output:?}");
                    break;
                }
                killed += 1;
                world.run(&apply).succeeded();
                assert_eq!(tree(&world.path().join(&name)), expected, "{name}");
            }
        }
    }
    super::tell(&format!("{killed} applies died at {} places, each was finished", APPLY.len()));
}
