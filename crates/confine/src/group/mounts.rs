//! Mount points of the cgroup trees, and the position of this process in them.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The kernel's description of both, read once.
pub(super) struct CgroupMountInfo {
    mountinfo: String,
    cgroup: String,
}

/// A mounted tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct MountedHierarchy {
    /// Mount point.
    point: PathBuf,
    /// Part of the tree that is mounted: `/`, or a part of it in a container.
    root: PathBuf,
    /// Its controllers; none for version 2.
    controllers: Vec<String>,
}

/// Reads a file of the kernel's completely. It reports no size beforehand, and is generated anew for each small piece that
/// is read.
fn read(path: &str) -> String {
    const PIECE_BYTES: usize = 32 << 10;
    let mut text = Vec::with_capacity(PIECE_BYTES);
    let read = fs::File::open(path).and_then(|mut file| file.read_to_end(&mut text));
    read.ok().and_then(|_| String::from_utf8(text).ok()).unwrap_or_default()
}

/// A line of mountinfo: `36 25 0:31 /root /point options [tag…] - type source super-options`.
fn parse(mountinfo: &str, kind: &str) -> Vec<MountedHierarchy> {
    let mounted = |line: &str| {
        let (place, what) = line.split_once(" - ")?;
        let mut what = what.split(' ');
        if what.next() != Some(kind) {
            return None;
        }
        let controllers = what.nth(1)?.split(',').map(str::to_owned).collect();
        let mut place = place.split(' ').skip(3);
        Some(MountedHierarchy { root: unescape(place.next()?), point: unescape(place.next()?), controllers })
    };
    mountinfo.lines().filter_map(mounted).collect()
}

/// Blanks and the like are written as three octal digits.
fn unescape(field: &str) -> PathBuf {
    let unescaped = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")];
    unescaped.iter().fold(field.to_owned(), |field, (code, sign)| field.replace(code, sign)).into()
}

/// A line is `4:memory:/path`.
fn own_path_in(cgroup: &str, controller: Option<&str>) -> Option<PathBuf> {
    cgroup.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        let is_meant = match controller {
            Some(name) => controllers.split(',').any(|controller| controller == name),
            None => controllers.is_empty(),
        };
        is_meant.then(|| path.into())
    })
}

// === impl CgroupMountInfo ===

impl CgroupMountInfo {
    pub(super) fn look() -> Self {
        Self { mountinfo: read("/proc/self/mountinfo"), cgroup: read("/proc/self/cgroup") }
    }

    /// Returns every tree of version 1, or the one of version 2.
    pub(super) fn of_version(&self, version: u8) -> Vec<MountedHierarchy> {
        parse(&self.mountinfo, if version == 2 { "cgroup2" } else { "cgroup" })
    }

    /// Path of this process in the tree with that controller; `None` stands for version 2.
    pub(super) fn own_path(&self, controller: Option<&str>) -> Option<PathBuf> {
        own_path_in(&self.cgroup, controller)
    }
}

// === impl MountedHierarchy ===

impl MountedHierarchy {
    pub(super) fn has(&self, controller: &str) -> bool {
        self.controllers.iter().any(|name| name == controller)
    }

    pub(super) fn point(&self) -> &Path {
        &self.point
    }

    /// The directory of a path in the tree, if that part of the tree is mounted here.
    pub(super) fn directory(&self, path: &Path) -> Option<PathBuf> {
        let below = path.strip_prefix(&self.root).ok()?;
        Some(if below.as_os_str().is_empty() { self.point.clone() } else { self.point.join(below) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTINFO: &str = "\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
29 28 0:25 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
30 28 0:26 /docker/ab /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct
31 28 0:27 / /sys/fs/with\\040blank rw,relatime - cgroup2 none rw,nsdelegate
";

    #[test]
    fn cgroup_hierarchies_are_found_by_version_and_controller() {
        let v1 = parse(MOUNTINFO, "cgroup");
        assert_eq!(v1.len(), 2);
        assert!(v1[0].has("memory") && !v1[0].has("cpu"));
        assert!(v1[1].has("cpuacct"));
        assert_eq!(parse(MOUNTINFO, "cgroup2")[0].point(), Path::new("/sys/fs/with blank"));
    }

    #[test]
    fn cgroup_path_is_resolved_below_the_mounted_root() {
        let v1 = parse(MOUNTINFO, "cgroup");
        assert_eq!(v1[0].directory(Path::new("/a/b")), Some("/sys/fs/cgroup/memory/a/b".into()));
        assert_eq!(v1[0].directory(Path::new("/")), Some("/sys/fs/cgroup/memory".into()));
        assert_eq!(v1[1].directory(Path::new("/docker/ab")), Some("/sys/fs/cgroup/cpu,cpuacct".into()));
        assert_eq!(v1[1].directory(Path::new("/docker/other")), None);
    }

    #[test]
    fn own_cgroup_path_is_read_from_the_matching_hierarchy() {
        let cgroup = "8:pids:/\n4:cpu,cpuacct:/a\n1:name=systemd:/b\n0::/user.slice/x:y\n";
        assert_eq!(own_path_in(cgroup, Some("cpuacct")), Some("/a".into()));
        assert_eq!(own_path_in(cgroup, Some("memory")), None);
        assert_eq!(own_path_in(cgroup, None), Some("/user.slice/x:y".into()));
    }
}
