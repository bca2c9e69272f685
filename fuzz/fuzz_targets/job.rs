//! Any bytes are a job or are refused with problems; the answer stays small and never panics.

#![no_main]

use belljar_contract::job::Job;
use belljar_contract::problem::LISTED_PROBLEMS;
use libfuzzer_sys::fuzz_target;

const LARGEST_ANSWER: usize = 300_000;

fuzz_target!(|document: &[u8]| {
    let Err(invalid) = Job::parse(document) else { return };
    let message = invalid.to_string();
    assert!(!message.contains(|c: char| c.is_control() && c != '\n'), "{message:?}");
    let problems = invalid.problems.into_vec();
    assert!(!problems.is_empty() && problems.len() <= LISTED_PROBLEMS + 1);
    let answer: usize = problems.iter().map(|problem| problem.to_string().len()).sum();
    assert!(answer < LARGEST_ANSWER, "an answer of {answer} bytes");
});
