//! Tests of the trees that a session sends.

use super::*;
use std::os::unix::fs::PermissionsExt;

fn bytes(text: impl AsRef<[u8]>) -> Bytes {
    Bytes(text.as_ref().to_vec())
}

fn directory(path: &str) -> (TreeLine, &'static str) {
    (TreeLine::Directory { path: bytes(path) }, "")
}

fn link(path: &str, target: &str) -> (TreeLine, &'static str) {
    (TreeLine::Link { path: bytes(path), target: bytes(target) }, "")
}

fn file(path: &str, content: &'static str) -> (TreeLine, &'static str) {
    let size_bytes = content.len() as u64;
    (TreeLine::File { path: bytes(path), is_executable: path.ends_with(".sh"), size_bytes }, content)
}

fn take_of(
    top: &Path,
    lines: &[(TreeLine, &str)],
    limits: TreeLimits,
) -> Result<SkippedTreeEntries, TreeTransferError> {
    receive(&mut stream_of(lines).as_slice(), &Directory::open_host(top).unwrap(), limits)
}

fn stream_of(lines: &[(TreeLine, &str)]) -> Vec<u8> {
    let mut stream = Vec::new();
    for (line, content) in lines {
        stream.extend(serde_json::to_vec(line).unwrap());
        stream.push(b'\n');
        stream.extend_from_slice(content.as_bytes());
    }
    stream
}

const END: (TreeLine, &str) = (TreeLine::End {}, "");

#[test]
fn tree_listing_is_created_and_special_files_are_reported() {
    let top = tempfile::tempdir().unwrap();
    let pipe = (TreeLine::Other { path: bytes("a/pipe") }, "");
    let told = [directory("a"), file("a/run.sh", "x\n"), link("l", "/etc/passwd"), pipe, END];
    let others = take_of(top.path(), &told, TreeLimits::default()).unwrap();
    assert_eq!(others, SkippedTreeEntries { named: vec!["a/pipe".into()], count: 1 });
    assert_eq!(std::fs::read(top.path().join("a/run.sh")).unwrap(), b"x\n");
    assert_eq!(top.path().join("a/run.sh").metadata().unwrap().permissions().mode() & 0o777, 0o700);
    assert_eq!(std::fs::read_link(top.path().join("l")).unwrap(), Path::new("/etc/passwd"));
}

#[test]
fn tree_listing_cannot_create_files_outside_its_directory() {
    let outside = tempfile::tempdir().unwrap();
    let there = outside.path().to_str().unwrap();
    for told in [
        vec![link("l", there), file("l/x", "x")],
        vec![link("l", ".."), file("l/x", "x")],
        vec![directory("a"), link("a/l", there), directory("a/l/x")],
        vec![file("../x", "x")],
        vec![file("/tmp/x", "x")],
        vec![file("a/../../x", "x")],
        vec![file("", "x")],
        vec![file(".", "x")],
        vec![link("l", there), file("l", "x")],
        vec![file("a/b", "no directory was told")],
    ] {
        let top = tempfile::tempdir_in(outside.path()).unwrap();
        let told = [told, vec![END]].concat();
        let refused = take_of(top.path(), &told, TreeLimits::default()).unwrap_err();
        assert!(matches!(refused, TreeTransferError::NoTree), "{told:?}: {refused:?}");
        drop(top);
        assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 0, "{told:?}");
    }
}

#[test]
fn tree_listing_over_a_limit_or_cut_short_is_refused() {
    let limits = TreeLimits { files: 3, bytes: 4, file_bytes: 3 };
    let of = |told: &[(TreeLine, &'static str)]| {
        take_of(tempfile::tempdir().unwrap().path(), told, limits).map_err(|error| error.to_string())
    };
    assert!(of(&[file("a", "abc"), file("b", "d"), END]).is_ok());
    for (told, what) in [
        (vec![file("a", "abcd"), END], "bytes in one file"),
        (vec![file("a", "abc"), file("b", "de"), END], "bytes"),
        (vec![directory("a"), directory("b"), directory("c"), END], "files"),
    ] {
        assert_eq!(of(&told), Err(format!("the file tree exceeds a limit of transfers: {what}")));
    }
    let huge = TreeLine::File { path: bytes("a"), is_executable: false, size_bytes: 3 };
    assert!(of(&[(huge, "a")]).is_err() && of(&[file("a", "a")]).is_err() && of(&[]).is_err());
}

#[test]
fn special_files_are_all_counted_and_the_first_ones_named() {
    let top = tempfile::tempdir().unwrap();
    for count in [MOST_TOLD, MOST_TOLD + 2_000] {
        let pipes = (0..count).map(|at| (TreeLine::Other { path: bytes(at.to_string()) }, ""));
        let others =
            take_of(top.path(), &pipes.chain([END]).collect::<Vec<_>>(), TreeLimits::default()).unwrap();
        assert_eq!((others.named.len(), others.count), (MOST_TOLD, count));
        assert_eq!(others.named.last().unwrap(), Path::new("499"));
    }
}

#[test]
fn tree_path_longer_than_path_max_is_refused() {
    let of = |length: usize| {
        let path = "a/".repeat(length / 2) + &"b".repeat(length % 2);
        let other = (TreeLine::Other { path: bytes(path) }, "");
        take_of(tempfile::tempdir().unwrap().path(), &[other, END], TreeLimits::default())
    };
    assert_eq!(of(4095).unwrap().count, 1);
    assert!(matches!(of(4096).unwrap_err(), TreeTransferError::NoTree));
}

#[test]
fn names_and_link_targets_share_one_size_limit() {
    let told = [directory("dir"), file("file", "content"), link("l", "target"), END];
    let take = |name_bytes| {
        let top = tempfile::tempdir().unwrap();
        let left = RemainingTreeLimits { names: 9, name_bytes, bytes: 99, file_bytes: 99 };
        take_within(&mut stream_of(&told).as_slice(), &Directory::open_host(top.path()).unwrap(), left)
    };
    assert!(take(14).is_ok());
    assert_eq!(
        take(13).unwrap_err().to_string(),
        "the file tree exceeds a limit of transfers: bytes in names"
    );
}

#[test]
fn endless_tree_line_is_refused_at_the_line_limit() {
    let top = tempfile::tempdir().unwrap();
    let mut endless = io::BufReader::new(io::repeat(b' '));
    let refused = receive(&mut endless, &Directory::open_host(top.path()).unwrap(), TreeLimits::default());
    assert!(matches!(refused, Err(TreeTransferError::NoTree)));
}
