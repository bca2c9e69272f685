//! Changes of runs and sessions in copies are kept until a person decides: listed, shown, applied, merged and removed.

mod agents;
mod conflicts;
mod ends;
mod garbage;
mod killed;
mod sessions;

use belljar_testkit::world::World;
use serde_json::Value;

/// Returns the kept change sets in the format of `belljar changes list`.
pub(crate) fn list(world: &World) -> Vec<Value> {
    let listed = world.run(&["changes", "list", "--json"]).succeeded().json();
    listed["changes"].as_array().cloned().unwrap_or_default()
}

/// Returns their ids, oldest first.
pub(crate) fn ids(world: &World) -> Vec<String> {
    list(world).iter().map(|kept| kept["id"].as_str().unwrap().to_owned()).collect()
}

/// Returns the id of the only one.
pub(crate) fn only(world: &World) -> String {
    let mut ids = ids(world);
    assert_eq!(ids.len(), 1, "{ids:?}");
    ids.remove(0)
}

/// Returns the folders of runs and of kept change sets.
pub(crate) fn folders(world: &World) -> Vec<String> {
    let below =
        |area: &str| std::fs::read_dir(world.path().join("state").join(area)).into_iter().flatten().flatten();
    let all = below("runs").chain(below("kept")).filter(|entry| entry.path().is_dir());
    all.map(|entry| entry.path().display().to_string()).collect()
}
