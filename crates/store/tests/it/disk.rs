//! A disk that is full.

use crate::log::{event, intact};
use belljar_store::audit::{AuditError, AuditLog, Event};
use belljar_testkit::skip::skip;
use belljar_testkit::wait;
use serde_json::json;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// A small file system of its own, gone with the test.
struct SmallDisk {
    mounted: tempfile::TempDir,
}

// === impl SmallDisk ===

impl SmallDisk {
    fn mount(size: &str) -> Option<Self> {
        let mounted = tempfile::tempdir().unwrap();
        let options = format!("size={size}");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &options, "tmpfs"]).arg(mounted.path());
        mount.status().is_ok_and(|status| status.success()).then_some(Self { mounted })
    }

    fn path(&self) -> &Path {
        self.mounted.path()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.path()).status();
    }
}

#[test]
fn full_disk_fails_appends_until_space_is_freed() {
    let name = "full_disk_fails_appends_until_space_is_freed";
    if !is_root() {
        return skip(name, "to mount a small disk takes root");
    }
    let Some(disk) = SmallDisk::mount("512k") else {
        return skip(name, "nothing may be mounted here");
    };
    let folder = disk.path().join("audit");
    let log = AuditLog::open(&folder).unwrap();
    let mut acknowledged = 0;
    let long = Event::new("test", None, &json!({ "text": "x".repeat(10_000) })).unwrap();
    let refused = loop {
        match log.append(long.clone()) {
            Ok(_) => acknowledged += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(refused, AuditError::Io { action: "write", .. }), "{refused}");
    assert!(acknowledged > 30);
    // Even a record that would fit is rejected, and even when there is space again.
    assert!(matches!(log.append(event(1)), Err(AuditError::Failed { .. })));
    assert_eq!(intact(&folder).records, acknowledged);
    // Some time later writing is retried, in vain.
    std::thread::sleep(Duration::from_millis(1_100));
    assert!(matches!(log.append(long), Err(AuditError::Io { .. })));
    let found = intact(&folder);
    assert_eq!((found.records, found.has_leftover, found.torn_tails), (acknowledged, false, 0));
    let remount = Command::new("mount").args(["-o", "remount,size=2m"]).arg(disk.path()).status().unwrap();
    assert!(remount.success());
    wait::until(|| log.append(event(2)).is_ok());
    log.append(event(3)).unwrap();
    log.close();
    let log = AuditLog::open(&folder).unwrap();
    log.append(event(4)).unwrap();
    log.close();
    assert_eq!(intact(&folder).records, acknowledged + 3);
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}
