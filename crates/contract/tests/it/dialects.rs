//! The two dialects are equivalent; one object must keep to one of them.

use crate::documents::{
    accepted, assert_refused_at, full_job, full_job_in_the_older_dialect, job_with_step, problems, small_job,
    with,
};
use belljar_contract::job::step::Action;
use serde_json::{Map, Value, json};

#[test]
fn both_dialects_parse_to_the_same_job() {
    assert_eq!(accepted(full_job()), accepted(full_job_in_the_older_dialect()));
}

#[test]
fn mixed_dialects_in_one_step_are_rejected() {
    let choices = [
        ("argv", json!(["go", "test"])),
        ("cwd", json!("sub")),
        ("command", json!("go")),
        ("args", json!(["test"])),
        ("working_dir", json!("sub")),
    ];
    for chosen in 0_u32..1 << choices.len() {
        let mut arguments = Map::new();
        for (_, (name, value)) in choices.iter().enumerate().filter(|(place, _)| chosen & (1 << place) != 0) {
            arguments.insert((*name).to_owned(), value.clone());
        }
        let has = |name| arguments.contains_key(name);
        let newer = has("argv") || has("cwd");
        let older = has("command") || has("args") || has("working_dir");
        let expected = match (newer, older) {
            (true, true) => Some("$.steps[0].args"),
            (false, true) => (!has("command")).then_some("$.steps[0].args.command"),
            (_, false) => (!has("argv")).then_some("$.steps[0].args.argv"),
        };
        let job = job_with_step(json!({ "type": "run_command", "args": arguments }));
        match expected {
            Some(path) => assert_refused_at(job, path),
            None => drop(accepted(job)),
        }
    }
}

#[test]
fn step_rejects_both_args_and_arguments() {
    let steps = [
        json!({ "type": "run_command", "args": { "argv": ["true"] } }),
        json!({ "type": "write_file", "args": { "path": "a", "content": "" } }),
        json!({ "type": "read_file", "args": { "path": "a" } }),
        json!({ "type": "apply_unified_diff", "args": { "diff": "" } }),
        json!({ "type": "list_tree", "args": {} }),
        json!({ "type": "search_files", "args": { "pattern": "a" } }),
    ];
    for step in steps {
        let arguments = step["args"].clone();
        let renamed = json!({ "type": step["type"], "arguments": arguments });
        assert_eq!(accepted(job_with_step(step.clone())), accepted(job_with_step(renamed)));
        let mut both = step;
        both["arguments"] = arguments;
        assert_refused_at(job_with_step(both), "$.steps[0].arguments");
    }
}

#[test]
fn steps_of_one_job_may_use_different_dialects() {
    let newer = full_job()["steps"][0].clone();
    let mut older = full_job_in_the_older_dialect()["steps"][0].clone();
    older["id"] = json!("again");
    let job = accepted(with(&small_job(), "/steps", json!([newer, older])));
    assert_eq!(job.steps[0].action, job.steps[1].action);
}

#[test]
fn job_rejects_both_network_flags() {
    let with_flags = |flags: Value| {
        let mut job = small_job();
        job["constraints"].as_object_mut().unwrap().extend(flags.as_object().unwrap().clone());
        job
    };
    for (flags, allowed) in [
        (json!({}), false),
        (json!({ "ext_net_allowed": true }), true),
        (json!({ "network_allowed": true }), true),
        (json!({ "network_allowed": false }), false),
    ] {
        assert_eq!(accepted(with_flags(flags)).constraints.ext_net_allowed, allowed);
    }
    let both = with_flags(json!({ "ext_net_allowed": false, "network_allowed": false }));
    assert_refused_at(both, "$.constraints.network_allowed");
}

#[test]
fn omitted_members_have_documented_defaults() {
    let job = accepted(small_job());
    assert!(!job.constraints.ext_net_allowed);
    assert_eq!((job.constraints.allowed_commands, job.constraints.allowed_paths), (None, None));
    assert_eq!((job.inference, job.context, job.artifacts.len()), (None, None, 0));

    let job =
        accepted(job_with_step(json!({ "type": "write_file", "args": { "path": "a", "content": "é" } })));
    let Action::WriteFile(write) = &job.steps[0].action else { panic!("another action") };
    assert_eq!(write.content, "é".as_bytes());
    assert!(write.create_parents && write.overwrite && write.mode.is_none());
    assert_eq!(job.steps[0].name(0), "step-1");

    assert_eq!(
        accepted(job_with_step(json!({ "type": "list_tree" }))),
        accepted(job_with_step(json!({ "type": "list_tree", "args": {} })))
    );
}

#[test]
fn mixed_dialects_also_report_problems_of_members() {
    let arguments = json!({ "argv": [], "command": 7, "cwd": "", "env": { "A": 1 } });
    let problems = problems(job_with_step(json!({ "type": "run_command", "args": arguments })));
    let paths: Vec<_> = problems.iter().map(|problem| problem.path.as_str()).collect();
    let args = "$.steps[0].args";
    let expected = ["", ".argv", ".command", ".cwd", ".env.A"].map(|member| format!("{args}{member}"));
    assert_eq!(paths, expected);
}
