//! A path that is replaced after the host has checked it and before it is mounted.

use crate::tally::{Tally, Verdict};
use belljar_confine::mount_preparation::prepare;
use belljar_confine::plan::{Access, Identity};
use belljar_files::host_path::HostPath;
use belljar_testkit::skip::skip;
use std::fs;

#[test]
fn path_swapped_after_the_host_check_is_not_mounted() {
    if !rustix::process::geteuid().is_root() {
        return skip("path_swapped_after_the_host_check_is_not_mounted", "only root prepares mounts");
    }
    let tally = Tally::new("swapped");
    let folder = tempfile::tempdir().unwrap();
    let meant = folder.path().join("meant");
    let identity = Identity { inside_uid: 1000, inside_gid: 1000, host_uid: 65_534, host_gid: 65_534 };
    // A test program has threads, so it can't make the user namespace that a mount needs. Preparing the right directory must
    // fail at that step, and preparing any other must fail before.
    let stopped_at = |path: &HostPath| prepare(path, Access::ReadOnly, identity, None).unwrap_err().step;
    fs::create_dir(&meant).unwrap();
    let looked_at = HostPath::resolve(&meant).unwrap();
    assert_eq!(stopped_at(&looked_at), "user namespace", "the control");
    fs::rename(&meant, folder.path().join("aside")).unwrap();
    fs::create_dir(&meant).unwrap();
    let verdict = match stopped_at(&looked_at) {
        "statx" => Verdict::Held,
        step => Verdict::Escaped(format!("it is only stopped at {step}")),
    };
    tally.count("FS3", "FS3 a folder in the place of another", "Root", verdict);
    tally.count("FS3", "FS3 a folder that is what it was", "Root", Verdict::Held);
    tally.close();
}
