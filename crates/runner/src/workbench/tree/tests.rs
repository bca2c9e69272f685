//! A tree in transit, and at its destination.

use super::*;
use belljar_contract::workbench::Bytes;
use std::os::unix::fs::{PermissionsExt, symlink};

fn bytes(text: &str) -> Bytes {
    Bytes(text.as_bytes().to_vec())
}

fn path(text: &str) -> WorkspacePath {
    place(text).unwrap()
}

fn told(lines: &[(TreeLine, &str)]) -> Vec<u8> {
    let mut stream = Vec::new();
    for (line, content) in lines {
        tell(&mut stream, line).unwrap();
        stream.extend_from_slice(content.as_bytes());
    }
    stream
}

fn file(path: &str, content: &str) -> (TreeLine, String) {
    let size_bytes = content.len() as u64;
    (TreeLine::File { path: bytes(path), is_executable: false, size_bytes }, content.to_owned())
}

fn whole() -> Vec<u8> {
    let (a, content) = file("src/a", "a\nb");
    told(&[
        (TreeLine::Directory { path: bytes("src") }, ""),
        (a, &content),
        (TreeLine::Link { path: bytes("link"), target: bytes("src/a") }, ""),
        (TreeLine::End {}, ""),
    ])
}

fn put(folder: &Path, directory: &str, stream: &[u8]) -> Result<(), RequestRefusal> {
    put::put(&path(directory), &Directory::open_no_link(folder).unwrap(), &mut &*stream)
}

fn names(folder: &Path) -> Vec<String> {
    let listed = std::fs::read_dir(folder).unwrap();
    listed.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn tree_is_put_only_into_a_new_or_empty_directory() {
    let folder = tempfile::tempdir().unwrap();
    put(folder.path(), "lib/app", &whole()).unwrap();
    assert_eq!(std::fs::read(folder.path().join("lib/app/link")).unwrap(), b"a\nb");
    std::fs::create_dir(folder.path().join("empty")).unwrap();
    put(folder.path(), "empty", &whole()).unwrap();
    std::fs::write(folder.path().join("file"), "mine").unwrap();
    for taken in ["lib/app", "lib", "file"] {
        assert_eq!(put(folder.path(), taken, &whole()).unwrap_err().why, RefusalReason::Exists, "{taken}");
    }
    assert_eq!(put(folder.path(), ".", &whole()).unwrap_err().why, RefusalReason::Invalid);
    assert_eq!(names(&folder.path().join("lib")), ["app"]);
}

#[test]
fn truncated_tree_upload_leaves_no_files() {
    let folder = tempfile::tempdir().unwrap();
    let stream = whole();
    for end in [0, 10, stream.len() / 2, stream.len() - 2] {
        let refused = put(folder.path(), "app", &stream[..end]).unwrap_err();
        assert!(matches!(refused.why, RefusalReason::Invalid | RefusalReason::Failed), "{end}: {refused:?}");
    }
    assert_eq!(names(folder.path()), Vec::<String>::new());
}

#[test]
fn tree_upload_through_a_symlink_or_into_a_git_directory_is_refused() {
    let (folder, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    symlink(outside.path(), folder.path().join("out")).unwrap();
    assert_eq!(put(folder.path(), "out/app", &whole()).unwrap_err().why, RefusalReason::Forbidden);
    assert!(put(folder.path(), "out", &whole()).is_err());
    for directory in [".git/modules/x", "../app", "/etc/app", ".GIT"] {
        assert_eq!(place(directory).unwrap_err().why, RefusalReason::Forbidden, "{directory}");
    }
    // Nor does anything in it go through a link that came with it.
    let (through, content) = file("link/b", "b");
    let stream = told(&[
        (
            TreeLine::Link {
                path: bytes("link"),
                target: Bytes(outside.path().as_os_str().as_encoded_bytes().to_vec()),
            },
            "",
        ),
        (through, &content),
        (TreeLine::End {}, ""),
    ]);
    assert_eq!(put(folder.path(), "app", &stream).unwrap_err().why, RefusalReason::Forbidden);
    assert_eq!(names(outside.path()), Vec::<String>::new());
}

#[test]
fn tree_download_omits_git_directories_and_follows_no_symlinks() {
    let folder = tempfile::tempdir().unwrap();
    let at = |path: &str| folder.path().join("app").join(path);
    std::fs::create_dir_all(at(".git/hooks")).unwrap();
    std::fs::write(at(".git/config"), "secret").unwrap();
    std::fs::write(at("tool"), "x").unwrap();
    std::fs::set_permissions(at("tool"), PermissionsExt::from_mode(0o755)).unwrap();
    symlink("/etc/passwd", at("link")).unwrap();
    rustix::fs::mknodat(rustix::fs::CWD, at("pipe"), rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
        .unwrap();
    let time = JobTime::start(WITHIN, None, &|| None);
    let cancellation = crate::cancellation::Cancellation::new().unwrap();
    let mut stream = Vec::new();
    let top = Directory::open_no_link(folder.path()).unwrap();
    take::take(&path("app"), &top, &mut stream, &Deadline::of_job(&time, &cancellation)).unwrap();
    let tool = TreeLine::File { path: bytes("tool"), is_executable: true, size_bytes: 1 };
    let expected = told(&[
        (TreeLine::Directory { path: bytes(".git") }, ""),
        (TreeLine::Link { path: bytes("link"), target: bytes("/etc/passwd") }, ""),
        (TreeLine::Other { path: bytes("pipe") }, ""),
        (tool, "x"),
    ]);
    assert_eq!(String::from_utf8(stream).unwrap(), String::from_utf8(expected).unwrap());
}
