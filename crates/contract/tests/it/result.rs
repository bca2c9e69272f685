//! Results: each one is valid under the published schema, and reads back as it was.

use crate::documents::{accepted, small_job};
use belljar_contract::egress::{DeniedDestination, WebUsage};
use belljar_contract::event::{Event, LogLine};
use belljar_contract::failure::FailureCode;
use belljar_contract::isolation::{Isolation, Layer};
use belljar_contract::job::Job;
use belljar_contract::job::step::StepType;
use belljar_contract::result::output::{
    AppliedDiff, CommandOutput, ContentEncoding, EntryKind, FileContent, Listing, OutputTruncation,
    PatchedFile, SearchMatch, SearchMatches, StepOutput, TreeEntry, WrittenFile,
};
use belljar_contract::result::{
    Artifact, Change, ChangedFile, Failure, JobResult, JobStatus, OmittedContent, ResourceUsage,
    ResumeSummary, StepError, StepResult, StepStatus, WorkspaceChanges,
};
use belljar_contract::schema;
use jiff::Timestamp;
use jsonschema::Validator;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};
use std::sync::LazyLock;

static SCHEMA: LazyLock<Validator> =
    LazyLock::new(|| jsonschema::draft202012::new(schema::result().as_value()).unwrap());

#[track_caller]
fn assert_valid_and_the_same_again(result: &JobResult) {
    let text = serde_json::to_string(result).unwrap();
    let value: Value = serde_json::from_str(&text).unwrap();
    if let Err(error) = SCHEMA.validate(&value) {
        panic!("{error}\n{value:#}");
    }
    assert_eq!(&serde_json::from_str::<JobResult>(&text).unwrap(), result);
}

#[test]
fn result_has_all_specified_members_after_any_outcome() {
    let at = Timestamp::UNIX_EPOCH;
    let failure = Failure::new(FailureCode::NodeFailure, "gone");
    let results = [
        JobResult::begun(&accepted(small_job()), at),
        JobResult::of_invalid_job(Job::parse(b"").unwrap_err(), at),
        JobResult::of_invalid_job(Job::parse(b"{}").unwrap_err(), at),
        JobResult::of_failure((None, None), failure, at),
    ];
    for result in results {
        assert_valid_and_the_same_again(&result);
        let value = serde_json::to_value(&result).unwrap();
        let minimum =
            ["protocol_version", "job_id", "status", "steps", "artifacts", "failure_code", "failure_message"];
        for name in minimum {
            assert!(value.get(name).is_some(), "{name} in {value}");
        }
        let failed = result.status != JobStatus::Success;
        assert_eq!(failed, value["failure_code"].is_string() && value["failure_message"].is_string());
    }
}

#[test]
fn smallest_result_snapshot() {
    let result = JobResult::begun(&accepted(small_job()), Timestamp::UNIX_EPOCH);
    insta::assert_snapshot!(serde_json::to_string_pretty(&result).unwrap(), @r#"
    {
      "protocol_version": "1.0",
      "job_id": "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e",
      "task_id": "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0f",
      "status": "success",
      "steps": [],
      "artifacts": [],
      "failure_code": null,
      "failure_message": null,
      "started_at": "1970-01-01T00:00:00Z",
      "finished_at": "1970-01-01T00:00:00Z",
      "resource_usage": {
        "cpu_time_ms": 0,
        "max_rss_bytes": 0
      }
    }
    "#);
}

#[test]
fn rejected_job_result_lists_its_problems() {
    let result =
        JobResult::of_invalid_job(Job::parse(br#"{"job_id": "7"}"#).unwrap_err(), Timestamp::UNIX_EPOCH);
    assert_eq!(result.failure_code, Some(FailureCode::SchemaValidation));
    assert_eq!(result.job_id.as_deref(), Some("7"));
    assert_eq!(result.problems.len(), 5);
}

#[test]
fn the_exit_code_follows_from_the_failure_code() {
    let success = JobResult::begun(&accepted(small_job()), Timestamp::UNIX_EPOCH);
    assert_eq!(success.exit_code(), 0);
    for code in FailureCode::ALL {
        let result = success.clone().failed(Failure::new(code, "so"), Timestamp::UNIX_EPOCH);
        let expected = match code {
            FailureCode::SchemaValidation => (JobStatus::Failure, 2),
            FailureCode::Timeout => (JobStatus::Timeout, 124),
            _ => (JobStatus::Failure, 1),
        };
        assert_eq!((result.status, result.exit_code()), expected, "{code}");
    }
}

#[test]
fn result_schema_rejects_invalid_results() {
    let good = serde_json::to_value(JobResult::begun(&accepted(small_job()), Timestamp::UNIX_EPOCH)).unwrap();
    assert!(SCHEMA.is_valid(&good));
    for (name, value) in [
        ("status", json!("ok")),
        ("failure_code", json!("unheard_of")),
        ("steps", json!(null)),
        ("started_at", json!(0)),
        ("surprise", json!(1)),
        ("protocol_version", json!("2.0")),
    ] {
        let mut bad = good.clone();
        bad[name] = value;
        assert!(!SCHEMA.is_valid(&bad), "{name}");
        assert!(serde_json::from_value::<JobResult>(bad).is_err(), "{name}");
    }
    for name in ["failure_code", "job_id", "artifacts"] {
        let mut bad = good.clone();
        bad.as_object_mut().unwrap().remove(name);
        assert!(!SCHEMA.is_valid(&bad), "{name}");
    }
}

// === Strategies ===

fn timestamp() -> impl Strategy<Value = Timestamp> {
    // Of the years 1970 to 9999; the schema's `date-time` has no other.
    (0_i64..253_000_000_000, 0_i32..1_000_000_000)
        .prop_map(|(seconds, nanoseconds)| Timestamp::new(seconds, nanoseconds).unwrap())
}

fn usage() -> impl Strategy<Value = ResourceUsage> {
    (any::<u64>(), any::<u64>())
        .prop_map(|(cpu_time_ms, max_rss_bytes)| ResourceUsage { cpu_time_ms, max_rss_bytes })
}

fn encoding() -> impl Strategy<Value = ContentEncoding> {
    select(vec![ContentEncoding::Utf8, ContentEncoding::Base64])
}

fn change() -> impl Strategy<Value = Change> {
    select(vec![
        Change::Created,
        Change::Modified,
        Change::Deleted,
        Change::Renamed,
        Change::Copied,
        Change::ModeChanged,
    ])
}

fn few<S: Strategy>(element: S) -> impl Strategy<Value = Vec<S::Value>> {
    prop::collection::vec(element, 0..3)
}

fn command_output() -> impl Strategy<Value = CommandOutput> {
    let ends = (any::<Option<i32>>(), any::<Option<i32>>(), any::<u64>(), usage());
    let outputs = (any::<[String; 2]>(), [encoding(), encoding()], any::<[bool; 2]>());
    (ends, outputs).prop_map(|((exit_code, signal, duration_ms, resource_usage), (texts, encodings, cut))| {
        let [stdout, stderr] = texts;
        let [stdout_encoding, stderr_encoding] = encodings;
        let truncated = OutputTruncation { stdout: cut[0], stderr: cut[1] };
        CommandOutput {
            exit_code,
            signal,
            stdout,
            stderr,
            stdout_encoding,
            stderr_encoding,
            truncated,
            duration_ms,
            resource_usage,
        }
    })
}

fn listing() -> impl Strategy<Value = Listing> {
    let kinds = vec![EntryKind::File, EntryKind::Directory, EntryKind::Symlink, EntryKind::Other];
    let details = (any::<Option<u64>>(), any::<Option<String>>(), prop::option::of(encoding()));
    let entry =
        (any::<String>(), select(kinds), details).prop_map(|(path, kind, (size_bytes, target, encoding))| {
            TreeEntry { path, kind, size_bytes, target, encoding }
        });
    (any::<String>(), few(entry), any::<bool>(), any::<u64>()).prop_map(
        |(path, entries, truncated, unreadable_directories)| Listing {
            path,
            entries,
            truncated,
            unreadable_directories,
        },
    )
}

fn matches() -> impl Strategy<Value = SearchMatches> {
    let surroundings = (few(any::<String>()), few(any::<String>()));
    let found = (any::<String>(), any::<u64>(), any::<String>(), surroundings, prop::option::of(encoding()))
        .prop_map(|(path, line, text, (before, after), encoding)| SearchMatch {
            path,
            line,
            text,
            before,
            after,
            encoding,
        });
    (few(found), any::<[u64; 3]>(), any::<bool>()).prop_map(|(matches, counts, truncated)| {
        let [files_searched, files_skipped, unreadable_directories] = counts;
        SearchMatches { matches, files_searched, files_skipped, unreadable_directories, truncated }
    })
}

fn output() -> impl Strategy<Value = StepOutput> {
    let written = (any::<String>(), any::<u64>(), any::<bool>(), any::<String>())
        .prop_map(|(path, size_bytes, created, mode)| WrittenFile { path, size_bytes, created, mode });
    let content = (any::<[String; 2]>(), encoding(), any::<u64>(), any::<bool>()).prop_map(
        |([path, content], encoding, size_bytes, truncated)| FileContent {
            path,
            content,
            encoding,
            size_bytes,
            truncated,
        },
    );
    let patched = (any::<String>(), change(), any::<Option<String>>())
        .prop_map(|(path, change, from)| PatchedFile { path, change, from });
    prop_oneof![
        command_output().prop_map(StepOutput::RunCommand),
        written.prop_map(StepOutput::WriteFile),
        content.prop_map(StepOutput::ReadFile),
        few(patched).prop_map(|files| StepOutput::ApplyUnifiedDiff(AppliedDiff { files })),
        listing().prop_map(StepOutput::ListTree),
        matches().prop_map(StepOutput::SearchFiles),
    ]
}

fn step_result() -> impl Strategy<Value = StepResult> {
    let name = (any::<usize>(), any::<String>(), select(StepType::ALL.to_vec()));
    let times = (prop::option::of(timestamp()), prop::option::of(timestamp()), any::<u64>());
    let error = prop::option::of((select(FailureCode::ALL.to_vec()), any::<String>()));
    let status = select(vec![StepStatus::Success, StepStatus::Failure]);
    (name, status, times, prop::option::of(output()), error).prop_map(
        |((index, id, step_type), status, (started_at, finished_at, duration_ms), result, error)| {
            StepResult {
                index,
                id,
                step_type,
                status,
                started_at,
                finished_at,
                duration_ms,
                result,
                error: error.map(|(code, message)| StepError { code, message }),
            }
        },
    )
}

fn isolation() -> impl Strategy<Value = Isolation> {
    let layer = (any::<[String; 2]>(), any::<bool>()).prop_map(|([name, detail], in_force)| Layer {
        name,
        in_force,
        detail,
    });
    (any::<String>(), any::<Option<String>>(), few(layer))
        .prop_map(|(backend, container_id, layers)| Isolation { backend, container_id, layers })
}

fn web() -> impl Strategy<Value = WebUsage> {
    let denied = (any::<[String; 2]>(), any::<u16>(), any::<Option<String>>()).prop_map(
        |([host, reason], port, rule_needed)| DeniedDestination { host, port, reason, rule_needed },
    );
    (few(denied), any::<[u64; 4]>()).prop_map(
        |(denied, [passages, sent_bytes, received_bytes, denied_unlisted])| WebUsage {
            passages,
            sent_bytes,
            received_bytes,
            denied,
            denied_unlisted,
        },
    )
}

fn changes() -> impl Strategy<Value = WorkspaceChanges> {
    let unshown = (any::<u64>(), proptest::option::of(any::<String>()))
        .prop_map(|(size_bytes, sha256)| OmittedContent { size_bytes, sha256 });
    let file = (any::<String>(), change(), proptest::option::of(unshown))
        .prop_map(|(path, change, unshown)| ChangedFile { path, change, unshown });
    (few(file), any::<String>(), any::<bool>()).prop_map(|(files, diff, truncated)| WorkspaceChanges {
        files,
        diff,
        truncated,
        ..WorkspaceChanges::default()
    })
}

fn job_result() -> impl Strategy<Value = JobResult> {
    let artifact = (any::<String>(), "[0-9a-f]{64}", any::<u64>())
        .prop_map(|(path, sha256, size_bytes)| Artifact { path, sha256, size_bytes });
    let ids = (any::<Option<String>>(), any::<Option<String>>());
    let failure = prop::option::of((select(FailureCode::ALL.to_vec()), any::<String>()));
    let again = prop::option::of("[a-z]{1,9}");
    let resumed =
        prop::option::of((any::<usize>(), again).prop_map(|(steps_taken_over, step_run_again)| {
            ResumeSummary { steps_taken_over, step_run_again }
        }));
    let kept = (few(step_result()), few(artifact), usage(), resumed);
    let host = (prop::option::of(isolation()), prop::option::of(changes()), prop::option::of(web()));
    (ids, failure, kept, host, timestamp(), timestamp()).prop_map(
        |(
            ids,
            failure,
            (steps, artifacts, resource_usage, resumed),
            (isolation, changes, web),
            started_at,
            finished_at,
        )| {
            let unfailed = JobResult::begun(&accepted(small_job()), started_at);
            let (job_id, task_id) = ids;
            let result = JobResult {
                job_id,
                task_id,
                steps,
                artifacts,
                resource_usage,
                resumed,
                isolation,
                changes,
                web,
                ..unfailed
            };
            match failure {
                Some((code, message)) => result.failed(Failure { code, message }, finished_at),
                None => JobResult { finished_at, ..result },
            }
        },
    )
}

fn event() -> impl Strategy<Value = Event> {
    let code = || prop::option::of(select(FailureCode::ALL.to_vec()));
    let status = select(vec![JobStatus::Success, JobStatus::Failure, JobStatus::Timeout]);
    prop_oneof![
        any::<usize>().prop_map(|steps| Event::JobStarted { steps }),
        (any::<usize>(), any::<String>(), select(StepType::ALL.to_vec()))
            .prop_map(|(index, id, step_type)| Event::StepStarted { index, id, step_type }),
        (any::<usize>(), any::<String>())
            .prop_map(|(index, last_line)| Event::StepProgress { index, last_line }),
        (any::<usize>(), any::<String>(), any::<u64>(), any::<bool>(), usage(), code()).prop_map(
            |(index, id, duration_ms, truncated, resource_usage, failure_code)| Event::StepFinished {
                index,
                id,
                status: StepStatus::Failure,
                duration_ms,
                truncated,
                resource_usage,
                failure_code,
            }
        ),
        (status, code(), any::<u64>(), usage()).prop_map(
            |(status, failure_code, duration_ms, resource_usage)| Event::JobFinished {
                status,
                failure_code,
                duration_ms,
                resource_usage,
            }
        ),
        any::<String>().prop_map(|message| Event::Warning { message }),
    ]
}

proptest! {
    #[test]
    fn every_result_is_valid_and_round_trips(result in job_result()) {
        assert_valid_and_the_same_again(&result);
    }

    #[test]
    fn every_log_line_is_one_line_and_round_trips(
        at in timestamp(),
        job_id: Option<String>,
        event in event(),
    ) {
        let line = LogLine { at, job_id, event };
        let text = serde_json::to_string(&line).unwrap();
        prop_assert!(!text.contains('\n'));
        prop_assert_eq!(serde_json::from_str::<LogLine>(&text).unwrap(), line);
    }
}
