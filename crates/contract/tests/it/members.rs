//! Tests of all members of all types of a job: absent, of each wrong type, repeated, out of range; and of unknown
//! members.

use crate::documents::{
    accepted, assert_refused_at, full_job, full_job_in_the_older_dialect, path_of, plus, problems, with,
    with_repeated, without,
};
use belljar_contract::schema;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Kind of a member's value.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Text,
    Number,
    Bool,
    Array,
    Object,
    Anything,
}

use Kind::{Anything, Array, Bool, Number, Object, Text};

/// A member: its type, its name, its kind, and whether it is required.
type Member = (&'static str, &'static str, Kind, bool);

const MEMBERS: &[Member] = &[
    ("Job", "protocol_version", Text, true),
    ("Job", "job_id", Text, true),
    ("Job", "task_id", Text, true),
    ("Job", "skill_id", Text, false),
    ("Job", "persona", Object, false),
    ("Job", "persona_id", Text, false),
    ("Job", "constraints", Object, true),
    ("Persona", "title", Text, true),
    ("Persona", "description", Text, true),
    ("Criterion", "text", Text, true),
    ("Criterion", "check", Object, false),
    ("Inference", "max_turns", Number, false),
    ("Inference", "context_tokens", Number, false),
    ("Job", "inference", Object, false),
    ("Job", "context", Object, false),
    ("Job", "steps", Array, true),
    ("Job", "artifacts", Array, false),
    ("Constraints", "max_runtime_seconds", Number, true),
    ("Constraints", "max_output_bytes", Number, true),
    ("Constraints", "ext_net_allowed", Bool, false),
    ("Constraints", "network_allowed", Bool, false),
    ("Constraints", "allowed_commands", Array, false),
    ("Constraints", "allowed_paths", Array, false),
    ("Constraints", "overwrite_allowed", Bool, false),
    ("Inference", "allowed_models", Array, true),
    ("Inference", "source", Text, false),
    ("Context", "baseline_context", Text, false),
    ("Context", "project_context", Text, false),
    ("Context", "task_context", Text, false),
    ("Context", "requirements", Array, false),
    ("Context", "acceptance_criteria", Array, false),
    ("Context", "preferences", Object, false),
    ("Context", "additional_context", Text, false),
    ("Context", "skill_ids", Array, false),
    ("Context", "skills", Anything, false),
    ("Step", "id", Text, false),
    ("Step", "type", Text, true),
    ("Step", "args", Object, true),
    ("Step", "arguments", Object, true),
    ("RunCommand", "argv", Array, true),
    ("RunCommand", "cwd", Text, false),
    ("RunCommand", "command", Text, true),
    ("RunCommand", "args", Array, false),
    ("RunCommand", "working_dir", Text, false),
    ("RunCommand", "env", Object, false),
    ("RunCommand", "timeout_seconds", Number, false),
    ("WriteFile", "path", Text, true),
    ("WriteFile", "content", Text, true),
    ("WriteFile", "encoding", Text, false),
    ("WriteFile", "mode", Text, false),
    ("WriteFile", "create_parents", Bool, false),
    ("WriteFile", "overwrite", Bool, false),
    ("ReadFile", "path", Text, true),
    ("ReadFile", "max_bytes", Number, false),
    ("ReadFile", "start_line", Number, false),
    ("ReadFile", "end_line", Number, false),
    ("ApplyUnifiedDiff", "diff", Text, true),
    ("ListTree", "path", Text, false),
    ("ListTree", "max_depth", Number, false),
    ("ListTree", "glob", Text, false),
    ("ListTree", "max_entries", Number, false),
    ("ListTree", "sizes", Bool, false),
    ("SearchFiles", "pattern", Text, true),
    ("SearchFiles", "path", Text, false),
    ("SearchFiles", "include", Text, false),
    ("SearchFiles", "context_lines", Number, false),
    ("SearchFiles", "max_matches", Number, false),
];

/// Returns the objects of a full job: the type of each, and its JSON pointer.
fn objects(job: &Value) -> Vec<(&'static str, String)> {
    let arguments = if job["steps"][0].get("args").is_some() { "args" } else { "arguments" };
    let mut objects = vec![
        ("Job", String::new()),
        ("Constraints", "/constraints".to_owned()),
        ("Inference", "/inference".to_owned()),
        ("Context", "/context".to_owned()),
        ("Persona", "/persona".to_owned()),
        ("Criterion", "/context/acceptance_criteria/1".to_owned()),
        ("RunCommand", "/context/acceptance_criteria/1/check".to_owned()),
    ];
    let types = ["RunCommand", "WriteFile", "ReadFile", "ApplyUnifiedDiff", "ListTree", "SearchFiles"];
    for (place, name) in types.into_iter().enumerate() {
        objects.push(("Step", format!("/steps/{place}")));
        objects.push((name, format!("/steps/{place}/{arguments}")));
    }
    objects
}

/// Calls `test` for every member of a full job in either dialect.
fn for_each_member(mut test: impl FnMut(&Value, &str, Member)) {
    let mut seen = BTreeSet::new();
    for job in [full_job(), full_job_in_the_older_dialect()] {
        accepted(&job);
        for (owner, object) in objects(&job) {
            for name in job.pointer(&object).unwrap().as_object().unwrap().keys() {
                let member = MEMBERS.iter().find(|(of, known, ..)| (*of, *known) == (owner, name));
                let member = member.unwrap_or_else(|| panic!("{owner}.{name} is not in the table"));
                seen.insert((member.0, member.1));
                test(&job, &object, *member);
            }
        }
    }
    assert_eq!(seen.len(), MEMBERS.len(), "the full jobs have every member of the table");
}

#[test]
fn member_table_matches_the_published_schema() {
    let schema = serde_json::to_value(schema::job()).unwrap();
    let mut published = properties("Job", &schema);
    for (name, definition) in schema["$defs"].as_object().unwrap() {
        published.extend(properties(name, definition));
    }
    let table = MEMBERS.iter().map(|(owner, name, ..)| ((*owner).to_owned(), (*name).to_owned()));
    assert_eq!(published, table.collect());
}

fn properties(owner: &str, schema: &Value) -> BTreeSet<(String, String)> {
    let own = schema["properties"].as_object().into_iter().flat_map(|properties| properties.keys());
    let mut names: BTreeSet<_> = own.map(|name| (owner.to_owned(), name.clone())).collect();
    for variant in schema["oneOf"].as_array().into_iter().flatten() {
        names.extend(properties(owner, variant));
    }
    names
}

#[test]
fn absent_member_is_rejected_only_if_required() {
    for_each_member(|job, object, (owner, name, _, required)| {
        let spoiled = without(job, object, name);
        let is_list_tree = job.pointer(object).unwrap()["type"] == "list_tree";
        match (owner, name) {
            ("Step", "args" | "arguments") if is_list_tree => drop(accepted(spoiled)),
            // A step without arguments doesn't show which of the names it would have used.
            ("Step", "arguments") => assert_refused_at(spoiled, &format!("{}.args", path_of(object))),
            _ if required => assert_refused_at(spoiled, &format!("{}.{name}", path_of(object))),
            _ => drop(accepted(spoiled)),
        }
    });
}

#[test]
fn member_of_wrong_json_type_is_rejected_including_null() {
    let samples = [
        (json!(null), None),
        (json!(true), Some(Bool)),
        (json!(7), Some(Number)),
        (json!("text"), Some(Text)),
        (json!([]), Some(Array)),
        (json!({}), Some(Object)),
    ];
    for_each_member(|job, object, (_, name, kind, _)| {
        for (sample, its_kind) in
            samples.iter().filter(|(_, its_kind)| kind != Anything && *its_kind != Some(kind))
        {
            assert!(its_kind.is_some() || sample.is_null());
            let pointer = format!("{object}/{name}");
            assert_refused_at(with(job, &pointer, sample.clone()), &path_of(&pointer));
        }
    });
}

#[test]
fn element_or_variable_of_wrong_json_type_is_rejected() {
    let strings = [
        "/constraints/allowed_commands/0",
        "/constraints/allowed_paths/1",
        "/inference/allowed_models/0",
        "/context/requirements/0",
        "/context/skill_ids/0",
        "/steps/0/args/argv/0",
        "/steps/0/args/argv/1",
        "/steps/0/args/env/LC_ALL",
        "/artifacts/0",
    ];
    for pointer in strings {
        for sample in [json!(null), json!(true), json!(7), json!([]), json!({})] {
            assert_refused_at(with(&full_job(), pointer, sample), &path_of(pointer));
        }
    }
    for sample in [json!(null), json!(true), json!(7), json!([])] {
        let pointer = "/context/acceptance_criteria/0";
        assert_refused_at(with(&full_job(), pointer, sample), &path_of(pointer));
    }
    for sample in [json!(null), json!(true), json!(7), json!("run_command"), json!([])] {
        assert_refused_at(with(&full_job(), "/steps/3", sample), "$.steps[3]");
    }
    let argument = with(&full_job_in_the_older_dialect(), "/steps/0/arguments/args/0", json!(1));
    assert_refused_at(argument, "$.steps[0].arguments.args[0]");
}

#[test]
fn document_that_is_not_an_object_is_rejected_at_the_root() {
    for sample in [json!(null), json!(true), json!(7), json!("text"), json!([]), json!([full_job()])] {
        assert_refused_at(sample, "$");
    }
}

#[test]
fn an_unknown_member_is_refused_in_every_object() {
    for job in [full_job(), full_job_in_the_older_dialect()] {
        for (_, object) in objects(&job) {
            for value in [json!(null), json!({ "a": [1] })] {
                let spoiled = plus(&job, &object, "surprise", value);
                assert_refused_at(spoiled, &format!("{}.surprise", path_of(&object)));
            }
        }
    }
}

#[test]
fn a_member_written_twice_is_refused_in_every_object() {
    for_each_member(|job, object, (_, name, ..)| {
        assert_refused_at(with_repeated(job, object, name), &format!("{}.{name}", path_of(object)));
    });
    for (object, name) in [
        ("/context/preferences", "style"),
        ("/context/preferences/style", "width"),
        ("/context/skills/0", "name"),
    ] {
        assert_refused_at(with_repeated(&full_job(), object, name), &format!("{}.{name}", path_of(object)));
    }
    assert_refused_at(
        with_repeated(&full_job(), "/steps/0/args/env", "LC_ALL"),
        "$.steps[0].args.env.LC_ALL",
    );
}

#[test]
fn member_names_are_compared_after_unescaping() {
    let text = full_job().to_string().replacen(r#""skill_id":"#, r#""skill_id":"x","skill\u005fid":"#, 1);
    assert_refused_at(text, "$.skill_id");
}

#[test]
fn numbers_are_accepted_within_range_only() {
    let from_one = [
        "/constraints/max_runtime_seconds",
        "/constraints/max_output_bytes",
        "/steps/0/args/timeout_seconds",
        "/steps/2/args/max_bytes",
        "/steps/2/args/start_line",
        "/steps/2/args/end_line",
        "/steps/4/args/max_depth",
        "/steps/4/args/max_entries",
        "/steps/5/args/max_matches",
    ];
    for pointer in from_one {
        for number in ["0", "-1", "-0", "1.5", "1.0", "1e2", "4294967296", "18446744073709551616", "1e300"] {
            assert_refused_at(with_number(pointer, number), &path_of(pointer));
        }
    }
    for number in ["-1", "-0", "0.5", "101", "4294967296"] {
        assert_refused_at(
            with_number("/steps/5/args/context_lines", number),
            "$.steps[5].args.context_lines",
        );
    }
    for pointer in from_one.into_iter().filter(|pointer| !pointer.ends_with("_line")) {
        accepted(with_number(pointer, "1"));
        accepted(with_number(pointer, "4294967295"));
    }
    for number in ["0", "100"] {
        accepted(with_number("/steps/5/args/context_lines", number));
    }
}

/// The full job with a number that is written exactly so.
fn with_number(pointer: &str, number: &str) -> String {
    with(&full_job(), pointer, json!("NUMBER")).to_string().replace("\"NUMBER\"", number)
}

#[test]
fn malformed_texts_are_rejected() {
    let long_path = "a/".repeat(2048);
    let long_name = "ä".repeat(128);
    let long_id = "ä".repeat(65);
    let paths = ["", "a//b", "a\0b", "a\nb", "a\u{202e}b", "\u{feff}a", &long_path, &long_name];
    let files = [".", "./", "a/", "a/.", "/workspace/"];
    for pointer in ["/artifacts/0", "/constraints/allowed_paths/0", "/steps/0/args/cwd", "/steps/4/args/path"]
    {
        refuse_texts(pointer, &paths);
        for directory in files {
            accepted(with(&full_job(), pointer, json!(directory)));
        }
    }
    refuse_texts("/steps/1/args/path", &[paths.as_slice(), files.as_slice()].concat());
    refuse_texts("/steps/2/args/path", &[paths.as_slice(), files.as_slice()].concat());
    refuse_texts("/steps/0/id", &["", "a\nb", "\u{9b}31m", &long_id]);
    refuse_texts("/steps/0/type", &["", "Run_Command", "run-command", "shell", "run_command "]);
    refuse_texts("/steps/0/args/argv/0", &["", "a\0b"]);
    refuse_texts("/steps/0/args/argv/1", &["a\0b"]);
    refuse_texts("/steps/0/args/env/LC_ALL", &["a\0b"]);
    refuse_texts("/steps/1/args/encoding", &["", "UTF-8", "utf8", "Base64"]);
    refuse_texts("/steps/1/args/content", &["Zg", "Zg=", "Zh==", "Zm4=\n", "Zm-_", "Zm4==", "é"]);
    refuse_texts(
        "/steps/1/args/mode",
        &["", "64", "0888", "4755", "00644", "-644", "0o644", " 644", "0644 "],
    );
    refuse_texts("/inference/source", &["", "Worker", "orchestrator"]);
}

#[track_caller]
fn refuse_texts(pointer: &str, texts: &[&str]) {
    for text in texts {
        assert_refused_at(with(&full_job(), pointer, json!(text)), &path_of(pointer));
    }
}

#[test]
fn texts_at_format_limits_are_accepted() {
    let accepted_at = |pointer, text: &str| drop(accepted(with(&full_job(), pointer, json!(text))));
    let longest_path = ["ab/".repeat(1364), "abc".to_owned()].concat();
    assert_eq!(longest_path.len(), 4095);
    accepted_at("/steps/1/args/path", &longest_path);
    accepted_at("/steps/1/args/path", &"a".repeat(255));
    accepted_at("/steps/1/args/path", "..leading dots.. and spaces");
    accepted_at("/steps/0/id", &"ä".repeat(64));
    accepted_at("/steps/0/args/argv/1", "");
    accepted_at("/steps/0/args/env/LC_ALL", "");
    accepted_at("/steps/1/args/content", "");
    for mode in ["000", "0000", "777", "0777"] {
        accepted_at("/steps/1/args/mode", mode);
    }
}

#[test]
fn invalid_and_reserved_variable_names_are_rejected() {
    let reserved = ["CYNODE_TASK_ID", "CYNODE_JOB_ID", "CYNODE_WORKSPACE_DIR", "CYNODE_ARTIFACTS_DIR"];
    for name in reserved {
        let spoiled = plus(&full_job(), "/steps/0/args/env", name, json!("x"));
        assert_refused_at(spoiled, &format!("$.steps[0].args.env.{name}"));
    }
    for name in ["", "A=B", "=", "A\0"] {
        let problems = problems(plus(&full_job(), "/steps/0/args/env", name, json!("x")));
        assert_eq!(problems.len(), 1);
        assert!(problems[0].path.starts_with("$.steps[0].args.env["), "{problems:?}");
    }
}

#[test]
fn empty_lists_are_rejected_where_an_element_is_required() {
    assert_refused_at(with(&full_job(), "/steps/0/args/argv", json!([])), "$.steps[0].args.argv");
    assert_refused_at(
        with(&full_job(), "/inference/allowed_models", json!([])),
        "$.inference.allowed_models",
    );
    for pointer in ["/steps", "/artifacts", "/constraints/allowed_commands", "/context/requirements"] {
        accepted(with(&full_job(), pointer, json!([])));
    }
}

#[test]
fn members_that_contradict_each_other_are_refused() {
    let backwards = with(&full_job(), "/steps/2/args/start_line", json!(3));
    assert_refused_at(backwards, "$.steps[2].args");
    assert_refused_at(with(&full_job(), "/steps/3/id", json!("status")), "$.steps[3].id");
    let clash = without(&with(&full_job(), "/steps/0/id", json!("step-4")), "/steps/3", "id");
    assert_refused_at(clash, "$.steps[3].id");
    accepted(without(&with(&full_job(), "/steps/0/id", json!("step-1")), "/steps/3", "id"));
}

#[test]
fn skills_may_be_any_json_and_null_means_absent() {
    for skills in [json!(true), json!(7), json!("rust"), json!([]), json!({ "a": { "b": [null] } })] {
        let job = accepted(with(&full_job(), "/context/skills", skills.clone()));
        assert_eq!(job.context.unwrap().skills, Some(skills));
    }
    assert_eq!(accepted(with(&full_job(), "/context/skills", json!(null))).context.unwrap().skills, None);
}
