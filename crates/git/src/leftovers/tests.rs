//! Tests of which clones are removed, and which stay.

use super::*;
use std::path::PathBuf;
use tempfile::TempDir;

/// A state directory with a clone of a directory.
struct CloneFixture {
    folder: TempDir,
    base: PathBuf,
    directory: PathBuf,
}

// === impl CloneFixture ===

impl CloneFixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (base, directory) = (folder.path().join("state/git/one"), folder.path().join("work"));
        std::fs::create_dir_all(&base).unwrap();
        std::fs::create_dir(&directory).unwrap();
        let rig = Self { folder, base, directory };
        rig.records(Some(&CheckoutDirectory::of(&rig.directory).unwrap()));
        rig
    }

    fn records(&self, directory: Option<&CheckoutDirectory>) {
        let record = serde_json::json!({
            "remote": "https://h.example/a", "reference": "HEAD", "commit": "0".repeat(40),
            "fetched_at": "2026-01-01T00:00:00Z", "run_id": null, "agent": null, "model": null, "directory": directory,
        });
        std::fs::write(self.base.join("base.json"), record.to_string()).unwrap();
    }

    /// Makes the last push appear long ago.
    fn ages(&self) {
        let long_ago = SystemTime::now() - 2 * MOVED_AWAY;
        File::open(&self.base).unwrap().set_modified(long_ago).unwrap();
    }

    /// Returns true if the clone is still there afterwards.
    fn survives(&self, new: Option<&Path>) -> bool {
        HostClone::clear_away(&self.folder.path().join("state"), new);
        self.base.exists()
    }
}

#[test]
fn clone_is_removed_once_its_directory_is_gone() {
    let rig = CloneFixture::new();
    rig.ages();
    assert!(rig.survives(None), "it is there");
    std::fs::remove_dir(&rig.directory).unwrap();
    assert!(!rig.survives(None));
}

#[test]
fn recent_clone_is_kept_if_its_directory_moved_or_record_is_unreadable() {
    let rig = CloneFixture::new();
    std::fs::remove_dir(&rig.directory).unwrap();
    assert!(rig.survives(None));
    std::fs::create_dir(&rig.directory).unwrap();
    assert!(rig.survives(None), "another is in its place, and may give way again");
    assert!(!rig.survives(Some(&rig.directory)), "removed when a new clone uses the directory");
    let rig = CloneFixture::new();
    std::fs::write(rig.base.join("base.json"), "{\"of\": \"another version\"}").unwrap();
    rig.ages();
    assert!(rig.survives(None));
}

#[test]
fn clone_is_removed_if_its_directory_was_replaced() {
    let rig = CloneFixture::new();
    std::fs::rename(&rig.directory, rig.folder.path().join("moved")).unwrap();
    std::fs::create_dir(&rig.directory).unwrap();
    rig.ages();
    assert!(!rig.survives(None));
    let rig = CloneFixture::new();
    assert!(rig.survives(Some(rig.folder.path())));
    assert!(!rig.survives(Some(&rig.directory)), "a new clone uses the directory");
}

#[test]
fn clone_is_kept_if_its_directory_may_be_unmounted() {
    let rig = CloneFixture::new();
    let record = std::fs::read_to_string(rig.base.join("base.json")).unwrap();
    let device = rig.directory.metadata().unwrap().dev();
    let elsewhere = record.replace(&format!("\"device\":{device}"), "\"device\":1");
    assert_ne!(record, elsewhere);
    std::fs::write(rig.base.join("base.json"), elsewhere).unwrap();
    std::fs::remove_dir(&rig.directory).unwrap();
    rig.ages();
    assert!(rig.survives(None), "it was of a file system that isn't there");
}

#[test]
fn clone_is_kept_while_a_push_holds_its_lock() {
    let rig = CloneFixture::new();
    std::fs::remove_dir(&rig.directory).unwrap();
    let lock = File::create(rig.base.join(LOCK)).unwrap();
    lock.lock().unwrap();
    rig.ages();
    assert!(rig.survives(None));
    drop(lock);
    assert!(!rig.survives(None));
}

#[test]
fn unfinished_clone_is_removed_after_the_longest_clone_time() {
    for is_recorded in [false, true] {
        let rig = CloneFixture::new();
        match is_recorded {
            true => rig.records(None),
            false => std::fs::remove_file(rig.base.join("base.json")).unwrap(),
        }
        assert!(rig.survives(None), "a clone may still be in progress");
        let long_ago = SystemTime::now() - 2 * LONGEST;
        File::open(&rig.base).unwrap().set_modified(long_ago).unwrap();
        assert!(!rig.survives(None));
    }
}
