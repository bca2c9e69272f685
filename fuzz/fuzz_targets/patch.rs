//! Plans arbitrary diffs on a small tree: no panic, no overflow, and a plan that could be carried out.
#![no_main]

use std::collections::BTreeMap;
use std::io;

use belljar_runner::patch::plan::{Content, FileTreeEntry, plan_within};
use belljar_runner::patch::{FileMode, FileTree, Limits, RelativeName, parse};
use libfuzzer_sys::fuzz_target;

struct Memory(BTreeMap<&'static str, &'static [u8]>);

impl Memory {
    fn new() -> Self {
        Self(BTreeMap::from([
            ("x", &b"a\nb\nc\na\nb\nc\na\nb\nc\n"[..]),
            ("y", b"a\nb"),
            ("d/x", b""),
            ("d/e/z", b"a\r\nb\r\n\r\n"),
            ("\u{e4} b", b"\xff\xfe\n\x00\n"),
        ]))
    }
}

impl FileTree for Memory {
    fn read(&mut self, path: &RelativeName) -> io::Result<Option<FileTreeEntry>> {
        let below = format!("{}/", path.as_str());
        Ok(match self.0.get(path.as_str()) {
            Some(bytes) => Some(FileTreeEntry::File { mode: FileMode::Plain, bytes: bytes.to_vec() }),
            None => self.0.keys().any(|name| name.starts_with(&below)).then_some(FileTreeEntry::Directory),
        })
    }

    fn children(&mut self, directory: &RelativeName) -> io::Result<Vec<Vec<u8>>> {
        let below = format!("{directory}/");
        let mut children: Vec<Vec<u8>> = (self.0.keys())
            .filter_map(|name| name.strip_prefix(&below)?.split('/').next())
            .map(|child| child.as_bytes().to_vec())
            .collect();
        children.dedup();
        Ok(children)
    }
}

fuzz_target!(|diff: &[u8]| {
    let Ok(patch) = parse(diff) else { return };
    let limits = Limits { result_bytes: 1 << 20, work_steps: 1 << 16, ..Limits::default() };
    let mut tree = Memory::new();
    let Ok(plan) = plan_within(&patch, &mut tree, &limits) else { return };
    assert!(!plan.changes.is_empty());
    for removed in &plan.removed {
        assert!(tree.0.contains_key(removed.as_str()));
    }
    for change in &plan.changes {
        let path = change.path.as_str();
        assert!(!path.starts_with('/') && !path.split('/').any(|part| matches!(part, "" | "." | ".." | ".git")));
        match change.after.as_ref().map(|after| &after.content) {
            Some(Content::Before(name)) => assert!(tree.0.contains_key(name.as_str())),
            Some(Content::Bytes(bytes)) => assert!(bytes.len() <= 1 << 20),
            None => assert!(plan.removed.contains(&change.path)),
        }
    }
});
