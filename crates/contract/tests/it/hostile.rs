//! Hostile documents are rejected quickly, with an answer that stays small.

use crate::documents::{full_job, full_job_in_the_older_dialect, job_with_step, small_job, with};
use belljar_contract::job::Job;
use belljar_contract::json::{MAX_DEPTH, MAX_DOCUMENT_BYTES, MAX_VALUES};
use belljar_contract::problem::{LISTED_PROBLEMS, Problem};
use proptest::prelude::*;
use serde_json::json;
use std::time::Duration;

/// Maximum processor time of a rejection; the limit is loose for debug builds.
const LONGEST_REFUSAL: Duration = Duration::from_secs(if cfg!(debug_assertions) { 20 } else { 1 });

/// Maximum length of an answer in bytes: 201 problems with a path, a text and an advice each.
const LARGEST_ANSWER: usize = 300_000;

#[track_caller]
fn refused_cheaply(document: &[u8]) -> Vec<Problem> {
    let begun = processor_time();
    let problems = Job::parse(document).unwrap_err().problems;
    let taken = processor_time() - begun;
    assert!(taken < LONGEST_REFUSAL, "took {taken:?}");
    assert!(problems.to_string().len() < LARGEST_ANSWER);
    let problems = problems.into_vec();
    let answer: usize = problems.iter().map(|problem| problem.to_string().len()).sum();
    assert!(answer < LARGEST_ANSWER, "an answer of {answer} bytes");
    problems
}

/// Returns the processor time of this thread. Unlike wall-clock time, it doesn't depend on what else runs.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap()
}

/// The full job, begun with these members.
fn job_beginning_with(members: &str) -> Vec<u8> {
    format!("{{{members},{}", &full_job().to_string()[1..]).into_bytes()
}

#[test]
fn many_unknown_members_are_counted_and_two_hundred_listed() {
    let members: Vec<String> = (0..100_000).map(|n| format!("\"unknown_{n}\":{n}")).collect();
    let problems = refused_cheaply(&job_beginning_with(&members.join(",")));
    assert_eq!(problems.len(), LISTED_PROBLEMS + 1);
    assert_eq!(problems[LISTED_PROBLEMS].found, "99800 more problems");
}

#[test]
fn member_repeated_many_times_is_one_problem() {
    let members = vec!["\"skill_id\":\"x\""; 100_000].join(",");
    let problems = refused_cheaply(&job_beginning_with(&members));
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].found, "the member 100001 times");
}

#[test]
fn many_repeated_member_names_are_counted() {
    let members: Vec<String> = (0..100_000).map(|n| format!("\"{n}\":0,\"{n}\":1")).collect();
    let preferences = format!("{{{}}}", members.join(","));
    let job = with(&full_job(), "/context/preferences", json!("HOLE"))
        .to_string()
        .replace("\"HOLE\"", &preferences);
    assert_eq!(refused_cheaply(job.as_bytes()).len(), LISTED_PROBLEMS + 1);
}

#[test]
fn many_invalid_steps_are_counted() {
    for step in ["{}", "7", r#"{"type":"shell","args":{}}"#, r#"{"id":"same","type":"list_tree"}"#] {
        let steps = format!("[{}]", vec![step; 100_000].join(","));
        let job = with(&small_job(), "/steps", json!("HOLE")).to_string().replace("\"HOLE\"", &steps);
        let problems = refused_cheaply(job.as_bytes());
        assert_eq!(problems.len(), LISTED_PROBLEMS + 1, "{step}");
    }
}

#[test]
fn megabyte_member_names_are_truncated_in_problems() {
    let name = "n".repeat(10 << 20);
    let repeated: Vec<String> = (0..300).map(|n| format!("\"{n}\":0,\"{n}\":1")).collect();
    let preferences = format!("{{\"{name}\":{{{}}}}}", repeated.join(","));
    let job = with(&full_job(), "/context/preferences", json!("HOLE"))
        .to_string()
        .replace("\"HOLE\"", &preferences);
    let problems = refused_cheaply(job.as_bytes());
    assert!(problems.iter().all(|problem| problem.path.len() < 200), "{}", problems[0].path);
    refused_cheaply(&job_beginning_with(&format!("\"{name}\":1")));
}

#[test]
fn megabyte_texts_are_truncated_in_problems() {
    let text = "t".repeat(10 << 20);
    let job = full_job();
    for pointer in [
        "/protocol_version",
        "/job_id",
        "/inference/source",
        "/constraints",
        "/steps/0",
        "/steps/0/id",
        "/steps/0/type",
        "/steps/0/args",
        "/steps/1/args/path",
        "/steps/1/args/mode",
        "/steps/1/args/content",
    ] {
        refused_cheaply(with(&job, pointer, json!(text)).to_string().replace("ttt", "t=t").as_bytes());
    }
    let variable =
        job_with_step(json!({ "type": "run_command", "args": { "argv": ["true"], "env": { "HOLE": "" } } }));
    refused_cheaply(variable.to_string().replace("HOLE", &format!("={text}")).as_bytes());
}

#[test]
fn document_at_size_limit_is_parsed_and_larger_is_rejected() {
    let step = json!({ "type": "write_file", "args": { "path": "a", "content": "HOLE" } });
    let frame = job_with_step(step).to_string();
    let filled = |length: usize| frame.replace("HOLE", &"x".repeat(length - (frame.len() - "HOLE".len())));
    assert!(Job::parse(filled(MAX_DOCUMENT_BYTES).as_bytes()).is_ok());
    let problems = refused_cheaply(filled(MAX_DOCUMENT_BYTES + 1).as_bytes());
    assert_eq!(problems[0].found, "a document of 67108865 bytes");
}

#[test]
fn document_of_many_tiny_values_stops_at_the_value_limit() {
    for (open, tiny, close) in [("[", "0,", "0]"), ("[", "[],", "0]"), ("{", "\"\":0,", "\"\":0}")] {
        let inside = (MAX_DOCUMENT_BYTES - open.len() - close.len()) / tiny.len();
        let problems = refused_cheaply(format!("{open}{}{close}", tiny.repeat(inside)).as_bytes());
        assert!(
            problems[0].found.starts_with("more values and names than are read at line 1"),
            "{problems:?}"
        );
    }
    let fits = format!("[{}0]", "0,".repeat(MAX_VALUES - 2));
    assert_eq!(refused_cheaply(fits.as_bytes())[0].found, "an array");
}

#[test]
fn deep_nesting_stops_at_the_depth_limit() {
    for open in ["[", "{\"a\":"] {
        let problems = refused_cheaply(open.repeat(100_000).as_bytes());
        assert!(problems[0].found.starts_with("deeper nesting than is read"), "{problems:?}");
        assert_eq!(problems[0].expected, format!("at most {MAX_DEPTH} levels"));
    }
}

#[test]
fn messages_contain_no_terminal_control_characters() {
    let nasty = "\u{1b}[31m\u{9b}2J\u{202e}\u{7}\r\0";
    let members = json!({ nasty: 1 }).to_string();
    let mut documents = vec![job_beginning_with(&members[1..members.len() - 1])];
    for pointer in ["/job_id", "/steps/0/type", "/steps/0/id", "/steps/1/args/path", "/steps/1/args/content"]
    {
        documents.push(with(&full_job(), pointer, json!(nasty)).to_string().into_bytes());
    }
    for document in documents {
        let message = Job::parse(&document).unwrap_err().to_string();
        assert!(!message.contains(|c: char| c.is_control() && c != '\n' || c == '\u{202e}'), "{message:?}");
    }
}

proptest! {
    #[test]
    fn parsing_arbitrary_bytes_never_panics(document: Vec<u8>) {
        prop_assert!(Job::parse(&document).is_err());
    }

    #[test]
    fn mutated_job_is_parsed_or_rejected_with_problems(
        older: bool,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let job = if older { full_job_in_the_older_dialect() } else { full_job() };
        let mut document = job.to_string().into_bytes();
        for (place, byte) in changes {
            let place = place.index(document.len());
            document[place] = byte;
        }
        if let Err(invalid) = Job::parse(&document) {
            prop_assert!(!invalid.problems.as_slice().is_empty());
        }
    }
}
