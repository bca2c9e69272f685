//! JSON by itself and inside of a job: which documents are accepted, which are rejected, and that both give the same
//! verdict.
//!
//! The documents of [`valid`] and [`invalid`] are written out; the families of [`generated`] follow a rule.

mod generated;
mod invalid;
mod valid;

use crate::documents::{full_job, with};
use belljar_contract::job::Job;
use belljar_contract::json;
use serde_json::{Value, json};

/// Placeholder for the document.
const HOLE: &str = "\"HOLE\"";

/// A JSON pointer, and a value for there that has the hole in it.
type InsertionPoint = (&'static str, fn() -> Value);

/// The places of a full job where any value may stand.
const PLACES: [InsertionPoint; 3] = [
    ("/context/skills", || json!("HOLE")),
    ("/context/skills", || json!([true, "HOLE"])),
    ("/context/preferences", || json!({ "before": 1, "any": "HOLE", "then": {} })),
];

fn all(written: &[(&str, &[&[u8]])], made: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    let written = written.iter().flat_map(|(_, documents)| *documents).map(|document| document.to_vec());
    written.chain(made).collect()
}

fn valid() -> Vec<Vec<u8>> {
    all(valid::DOCUMENTS, generated::valid())
}

fn invalid() -> Vec<Vec<u8>> {
    all(invalid::DOCUMENTS, generated::invalid())
}

fn shown(document: &[u8]) -> String {
    document.escape_ascii().to_string()
}

/// A full job with the document in the place of a value.
fn spliced(document: &[u8], (pointer, value): InsertionPoint) -> Vec<u8> {
    let job = with(&full_job(), pointer, value()).to_string();
    let (before, after) = job.split_once(HOLE).unwrap();
    [before.as_bytes(), document, after.as_bytes()].concat()
}

/// Returns true if the text has a comma or a colon outside of any bracket: within a job it may continue the surrounding
/// text, and is no longer a document of its own.
fn continues_its_surroundings(document: &[u8]) -> bool {
    let mut depth = 0_i32;
    document.iter().any(|byte| {
        depth += match byte {
            b'[' | b'{' => 1,
            b']' | b'}' => -1,
            _ => 0,
        };
        depth == 0 && matches!(byte, b',' | b':')
    })
}

#[test]
fn corpus_has_more_documents_than_the_json_test_suite() {
    let [valid, invalid] = [valid(), invalid()].map(|mut documents| {
        documents.sort();
        documents.dedup();
        documents.len()
    });
    assert!(valid >= 150 && invalid >= 400, "{valid} valid, {invalid} invalid documents");
}

#[test]
fn every_valid_corpus_document_is_parsed() {
    for document in valid() {
        let node = json::parse(&document).unwrap_or_else(|problem| panic!("{}: {problem}", shown(&document)));
        let value: Value = serde_json::from_slice(&document).unwrap();
        assert_eq!(node.to_value(), value, "{}", shown(&document));
    }
}

#[test]
fn every_invalid_corpus_document_is_rejected_with_one_root_problem() {
    for document in invalid() {
        let problem = json::parse(&document).expect_err(&shown(&document));
        assert_eq!(problem.path, "$", "{}", shown(&document));
        let problems = Job::parse(&document).unwrap_err().problems.into_vec();
        assert_eq!(problems, [problem], "{}", shown(&document));
    }
}

#[test]
fn no_corpus_document_is_a_job() {
    for document in valid() {
        let invalid = Job::parse(&document).expect_err(&shown(&document));
        assert!(!invalid.problems.as_slice().is_empty());
    }
}

#[test]
fn valid_document_embedded_in_a_job_keeps_its_value() {
    for document in valid() {
        let value: Value = serde_json::from_slice(&document).unwrap();
        for place in PLACES {
            let job = spliced(&document, place);
            let job = Job::parse(&job).unwrap_or_else(|invalid| panic!("{}: {invalid}", shown(&document)));
            let context = job.context.unwrap();
            let found = match (place.0, context.skills) {
                ("/context/preferences", _) => Some(context.preferences["any"].clone()),
                (_, Some(Value::Array(skills))) if place.1().is_array() => Some(skills[1].clone()),
                (_, skills) => skills,
            };
            assert_eq!(found.unwrap_or_default(), value, "{}", shown(&document));
        }
    }
}

#[test]
fn invalid_document_embedded_in_a_job_invalidates_the_job() {
    for document in invalid() {
        if continues_its_surroundings(&document) {
            continue;
        }
        for place in PLACES {
            let job = spliced(&document, place);
            let invalid = Job::parse(&job).expect_err(&shown(&document));
            assert_eq!(invalid.problems.as_slice().len(), 1, "{}", shown(&document));
        }
    }
}

#[test]
fn valid_document_under_unknown_member_is_rejected_for_the_name() {
    for document in valid() {
        let job = full_job().to_string();
        let job = [b"{\"surprise\":", document.as_slice(), b",", &job.as_bytes()[1..]].concat();
        let problems = Job::parse(&job).expect_err(&shown(&document)).problems.into_vec();
        assert_eq!((problems.len(), problems[0].path.as_str()), (1, "$.surprise"), "{}", shown(&document));
    }
}

#[test]
fn truncated_job_is_rejected_at_every_length() {
    let job = full_job().to_string();
    for length in 0..job.len() {
        assert!(Job::parse(&job.as_bytes()[..length]).is_err(), "{length}");
    }
}

#[test]
fn repeated_member_names_are_valid_json_but_not_a_valid_job() {
    for document in [
        &br#"{"a":1,"a":1}"#[..],
        br#"{"a":1,"b":2,"a":3}"#,
        br#"{"a":1,"\u0061":1}"#,
        br#"{"":0,"":0}"#,
        br#"[[{"x":{"a":null,"a":null}}]]"#,
        br#"{"a":{},"a":[]}"#,
    ] {
        assert!(json::parse(document).is_ok(), "{}", shown(document));
        for place in PLACES {
            let invalid = Job::parse(&spliced(document, place)).expect_err(&shown(document));
            assert_eq!(invalid.problems.as_slice().len(), 1, "{}", shown(document));
        }
    }
}
