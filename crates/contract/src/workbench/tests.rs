//! Both documents, as they are on the wire.

use super::*;
use crate::path::StepPath;
use std::collections::BTreeMap;

#[test]
fn workbench_request_is_tagged_by_operation() {
    let request = Request::WriteFile(WriteFile {
        path: StepPath::parse("a/b").unwrap(),
        content: Bytes(b"\0\xff".to_vec()),
        create_directories: true,
    });
    let text = serde_json::to_string(&request).unwrap();
    assert_eq!(text, r#"{"write_file":{"path":"a/b","content":"AP8=","create_directories":true}}"#);
    assert_eq!(serde_json::from_str::<Request>(&text).unwrap(), request);
}

#[test]
fn workbench_request_rejects_unknown_members_and_bad_paths() {
    for text in [
        r#"{"delete_file":{"path":"a","force":true}}"#,
        r#"{"delete_file":{"path":"a\nb"}}"#,
        r#"{"delete_file":{"path":""}}"#,
        r#"{"delete_file":{}}"#,
        r#"{"remove":{"path":"a"}}"#,
        r#"{"write_file":{"path":"a","content":"!","create_directories":false}}"#,
    ] {
        assert!(serde_json::from_str::<Request>(text).is_err(), "{text}");
    }
}

#[test]
fn largest_workbench_request_and_answer_fit_their_limits() {
    let path = StepPath::parse(&"a".repeat(255)).unwrap();
    let text = "\u{1}".repeat(MOST_EDITED_BYTES);
    let edit =
        Request::EditFile(EditFile { path: path.clone(), old_text: text.clone(), new_text: text, all: true });
    let content = Bytes(vec![0; MOST_WRITTEN_BYTES]);
    let write = Request::WriteFile(WriteFile { path, content, create_directories: true });
    for request in [edit, write] {
        assert!(serde_json::to_vec(&request).unwrap().len() <= LONGEST_REQUEST_BYTES);
    }
    let content = "\u{1}".repeat(MOST_READ_BYTES);
    let read = FileReadResult { content, size_bytes: u64::MAX, line_count: u64::MAX, truncated: true };
    assert!(serde_json::to_vec(&Answer::FileRead(read)).unwrap().len() <= LONGEST_ANSWER_BYTES);
}

#[test]
fn workbench_run_request_round_trips() {
    let run = Request::Run(RunProgram {
        argv: vec!["true".to_owned()],
        env: BTreeMap::new(),
        directory: None,
        input: Bytes::default(),
        within_ms: 1,
        most_bytes: 2,
    });
    let text = serde_json::to_string(&run).unwrap();
    assert_eq!(serde_json::from_str::<Request>(&text).unwrap(), run);
}
