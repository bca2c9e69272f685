//! The reference for users lists everything that the contract accepts.

use belljar_contract::failure::FailureCode;
use belljar_contract::job::Job;
use belljar_contract::job::step::StepType;
use belljar_contract::result::{Failure, JobResult};
use belljar_contract::schema;
use jiff::Timestamp;
use serde_json::Value;
use std::collections::BTreeSet;

const JOB: &str = include_str!("../../../../docs/reference/job.md");
const AGENTS: &str = concat!(
    include_str!("../../../../docs/guides/agents.md"),
    include_str!("../../../../docs/reference/agents.md"),
    include_str!("../../../../docs/guides/usage.md"),
);
const RESULT: &str = include_str!("../../../../docs/reference/result.md");

#[test]
fn every_schema_member_is_in_the_reference() {
    let pairs = [(schema::job(), JOB), (schema::result(), RESULT), (schema::agent_result(), AGENTS)];
    for (schema, reference) in pairs {
        let mut names = BTreeSet::new();
        collect_names(schema.as_value(), &mut names);
        let missing: Vec<_> = names.iter().filter(|name| !mentions(reference, name)).collect();
        assert!(missing.is_empty(), "not in the reference: {missing:?}");
    }
}

/// Returns true if the name is in a code span, perhaps with `?` for optional or after other names.
fn mentions(reference: &str, name: &str) -> bool {
    reference.contains(&format!("`{name}`")) || reference.contains(&format!("`{name}?`")) || {
        let quoted = format!("\"{name}\"");
        reference.contains(&quoted) || reference.contains(&format!("`{name}:"))
    }
}

fn collect_names(schema: &Value, names: &mut BTreeSet<String>) {
    match schema {
        Value::Object(members) => {
            for (keyword, below) in members {
                if let ("properties", Value::Object(properties)) = (keyword.as_str(), below) {
                    names.extend(properties.keys().cloned());
                }
                if let ("const", Value::String(text)) = (keyword.as_str(), below) {
                    names.insert(text.clone());
                }
                collect_names(below, names);
            }
        }
        Value::Array(elements) => elements.iter().for_each(|below| collect_names(below, names)),
        _ => {}
    }
}

#[test]
fn every_step_type_has_its_row_in_both_references() {
    for step_type in StepType::ALL {
        for reference in [JOB, RESULT] {
            assert!(reference.contains(&format!("\n| `{step_type}` | ")), "{step_type}");
        }
    }
}

#[test]
fn documented_outcome_table_matches_results() {
    let rows: Vec<Vec<&str>> = RESULT
        .lines()
        .filter_map(|line| line.strip_prefix("| "))
        .map(|row| row.trim_end_matches(" |").split(" | ").collect())
        .collect();
    let example = JOB.split("```json").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let job = Job::parse(example.as_bytes()).unwrap();
    for code in FailureCode::ALL {
        let result = JobResult::begun(&job, Timestamp::UNIX_EPOCH)
            .failed(Failure::new(code, "so"), Timestamp::UNIX_EPOCH);
        let status = serde_json::to_value(result.status).unwrap();
        let expected =
            [format!("`{}`", status.as_str().unwrap()), format!("`{code}`"), result.exit_code().to_string()];
        assert!(
            rows.iter().any(|row| row.len() == 4 && row[1..] == expected),
            "no row ends with {expected:?}"
        );
    }
}

/// The draft's names (`docs/contracts/draft.md#d11.1`), in its order.
const OF_THE_DRAFT: [&str; 6] = [
    "schema_error",
    "policy_violation",
    "execution_failure",
    "timeout",
    "resource_limit_exceeded",
    "internal_error",
];

#[test]
fn draft_failures_map_to_all_failure_codes() {
    let (_, table) = RESULT.split_once("\n| draft | `failure_code` |\n").unwrap();
    let rows: Vec<&str> = table.lines().skip(1).take_while(|line| line.starts_with("| ")).collect();
    let names: Vec<&str> = rows.iter().map(|row| row.split('`').nth(1).unwrap()).collect();
    assert_eq!(names, OF_THE_DRAFT);
    let codes: Vec<&str> = rows.iter().flat_map(|row| row.split('`').skip(3).step_by(2)).collect();
    let mut mapped: Vec<&str> = FailureCode::ALL.iter().map(|code| code.as_str()).collect();
    mapped.sort_unstable();
    let mut found = codes.clone();
    found.sort_unstable();
    assert_eq!(found, mapped, "each code once");
}
