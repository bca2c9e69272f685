//! The published schema of jobs against the parser: documents that the parser accepts are valid under the schema, and
//! problems that only the parser finds fall under a rule that no schema can express.

use crate::documents::{
    accepted, full_job, full_job_in_the_older_dialect, job_with_step, small_job, with, without,
};
use belljar_contract::job::Job;
use belljar_contract::problem::Problem;
use belljar_contract::schema;
use jsonschema::Validator;
use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

static SCHEMA: LazyLock<Validator> =
    LazyLock::new(|| jsonschema::draft202012::new(schema::job().as_value()).unwrap());

/// A rule that only the parser checks; `docs/reference/job.md` lists them for users.
struct Rule {
    /// Returns true if the rule covers the problem.
    covers: fn(&Problem) -> bool,
    /// A document that breaks it and nothing else.
    example: fn() -> Value,
}

/// The rules. (Repeated members, the size and the depth of a document are rules about its text, which a schema
/// doesn't see either; `hostile` and `members` have the tests of those.)
const BEYOND_THE_SCHEMA: [Rule; 6] = [
    Rule {
        covers: |problem| problem.expected.starts_with("another name than that of $.steps["),
        example: || with(&full_job(), "/steps/1/id", json!("status")),
    },
    Rule {
        covers: |problem| problem.expected == "a `start_line` that is not after `end_line`",
        example: || with(&full_job(), "/steps/2/args/start_line", json!(3)),
    },
    Rule {
        covers: |problem| problem.expected.starts_with("base64 (RFC 4648"),
        example: || with(&full_job(), "/steps/1/args/content", json!("Zg")),
    },
    Rule {
        covers: |problem| problem.expected.ends_with(", without fraction or exponent"),
        example: || with(&full_job(), "/constraints/max_output_bytes", json!(1.0)),
    },
    Rule {
        // The schema counts characters, the kernel bytes.
        covers: |problem| {
            problem.found.ends_with(" bytes)") && problem.expected.starts_with("a path in the workspace")
        },
        example: || with(&full_job(), "/artifacts/0", json!("é".repeat(128))),
    },
    Rule {
        covers: |problem| problem.expected.starts_with("a name of 1 to 128 bytes"),
        example: || with(&full_job(), "/steps/0/id", json!("é".repeat(65))),
    },
];

#[track_caller]
fn compare(document: &Value) {
    let by_schema = SCHEMA.validate(document);
    match Job::parse(document.to_string().as_bytes()) {
        Ok(_) => {
            if let Err(error) = by_schema {
                panic!("only the parser accepts: {error}\n{document:#}");
            }
        }
        Err(invalid) if by_schema.is_ok() => {
            for problem in invalid.problems.as_slice() {
                let covered = BEYOND_THE_SCHEMA.iter().any(|rule| (rule.covers)(problem));
                assert!(covered, "only the parser refuses: {problem}\n{document:#}");
            }
        }
        Err(_) => {}
    }
}

#[test]
fn job_schema_is_valid_and_accepts_the_sample_jobs() {
    assert!(jsonschema::meta::is_valid(schema::job().as_value()));
    for job in [full_job(), full_job_in_the_older_dialect(), small_job()] {
        accepted(&job);
        assert!(SCHEMA.is_valid(&job));
    }
}

#[test]
fn every_parser_only_rule_has_an_example() {
    for rule in BEYOND_THE_SCHEMA {
        let example = (rule.example)();
        assert!(SCHEMA.is_valid(&example), "{example}");
        let invalid = Job::parse(example.to_string().as_bytes()).unwrap_err();
        let [problem] = invalid.problems.as_slice() else { panic!("{invalid}") };
        assert!((rule.covers)(problem), "{problem}");
    }
}

#[test]
fn job_schema_rejects_invalid_jobs() {
    let args = |args: Value| job_with_step(json!({ "type": "run_command", "args": args }));
    let file = |path: &str| job_with_step(json!({ "type": "read_file", "args": { "path": path } }));
    for document in [
        json!([]),
        without(&full_job(), "", "task_id"),
        with(&full_job(), "/job_id", json!("{0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e}")),
        with(&full_job(), "/protocol_version", json!("1.01")),
        with(&full_job(), "/context/skill_ids", json!(null)),
        args(json!({ "argv": ["go"], "command": "go" })),
        args(json!({ "argv": ["go"], "args": [] })),
        args(json!({ "argv": [""] })),
        args(json!({ "argv": ["go"], "env": { "CYNODE_JOB_ID": "" } })),
        args(json!({ "argv": ["go"], "env": { "A=B": "" } })),
        file("a/"),
        file("."),
        file("a//b"),
        file("a\u{202e}b"),
        file(&"a".repeat(256)),
        job_with_step(json!({ "type": "list_tree", "args": {}, "arguments": {} })),
        job_with_step(json!({ "type": "search_files" })),
    ] {
        assert!(!SCHEMA.is_valid(&document), "{document}");
        compare(&document);
    }
}

#[test]
fn schema_and_parser_agree_on_any_single_replacement() {
    let texts = TEXTS.iter().map(|text| json!(text));
    let samples: Vec<Value> =
        texts.chain(numbers()).chain([json!(null), json!(true), json!([]), json!({}), json!([""])]).collect();
    let few = [json!("a"), json!(1), json!(["a"]), json!({}), json!(null)];
    for job in [full_job(), full_job_in_the_older_dialect()] {
        for place in places(&job) {
            for sample in &samples {
                compare(&with(&job, &place, sample.clone()));
            }
            if job.pointer(&place).unwrap().is_object() {
                for (name, sample) in NAMES.into_iter().flat_map(|name| few.iter().map(move |s| (name, s))) {
                    let mut job = job.clone();
                    job.pointer_mut(&place).unwrap()[name] = sample.clone();
                    compare(&job);
                }
            }
        }
    }
}

#[test]
fn schema_and_parser_agree_on_single_character_changes() {
    let job = full_job();
    for place in places(&job) {
        let Some(text) = job.pointer(&place).unwrap().as_str().filter(|text| text.len() <= 8) else {
            continue;
        };
        for at in 0..=text.len() {
            for character in "0189/=.+ \n\0\u{7f}\u{202e}éAZ-".chars() {
                compare(&with(&job, &place, json!(format!("{}{character}{}", &text[..at], &text[at..]))));
                let rest = text.get(at + 1..).unwrap_or_default();
                compare(&with(&job, &place, json!(format!("{}{character}{rest}", &text[..at]))));
            }
        }
    }
}

// === Spoiling ===

/// A change to a document; positions and names are chosen among those it has.
#[derive(Debug, Clone)]
enum Change {
    Replace(Index, Value),
    Remove(Index),
    Add(Index, String, Value),
    /// A value of the document replaces another one.
    Move(Index, Index),
    /// Replaces, inserts or deletes one character of a text.
    Edit(Index, Index, Option<char>, bool),
}

const NAMES: [&str; 22] = [
    "argv",
    "args",
    "arguments",
    "command",
    "cwd",
    "working_dir",
    "env",
    "timeout_seconds",
    "path",
    "content",
    "mode",
    "id",
    "type",
    "start_line",
    "end_line",
    "network_allowed",
    "ext_net_allowed",
    "skills",
    "source",
    "glob",
    "encoding",
    "surprise",
];

const TEXTS: [&str; 40] = [
    "",
    " ",
    ".",
    "..",
    "/",
    "./",
    "a",
    "a/",
    "a/.",
    "/.",
    "a/./b",
    "a//b",
    "/workspace",
    "/workspace/a",
    "a\nb",
    "a\0",
    "\u{7f}",
    "\u{85}",
    "\u{200b}",
    "\u{202e}a",
    "\u{feff}",
    "1.0",
    "1.7",
    "1.07",
    "2.0",
    "1.0000000000",
    "0644",
    "777",
    "0888",
    "utf-8",
    "base64",
    "Zm4=",
    "Zm4",
    "worker",
    "api_egress",
    "run_command",
    "list_tree",
    "step-1",
    "step-2",
    "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e",
];

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => select(&TEXTS[..]).prop_map(str::to_owned),
        2 => any::<String>(),
        1 => "[a-z/.]{1,8}",
        1 => (select(vec!["a", "é", "/a", "日"]), 40_usize..300).prop_map(|(unit, count)| unit.repeat(count)),
        1 => (select(vec!["a/", "é/"]), 1360_usize..2060).prop_map(|(unit, count)| unit.repeat(count)),
    ]
}

fn character() -> impl Strategy<Value = char> {
    const LIKELY: &str = "0123456789abcdefgABCDEFGZ=/+-_. \\\n\0\u{7f}\u{85}\u{200f}\u{202e}é日😀";
    prop_oneof![8 => select(LIKELY.chars().collect::<Vec<_>>()), 1 => any::<char>()]
}

/// Numbers at the edges of ranges, and of ways to write them.
fn numbers() -> Vec<Value> {
    vec![
        json!(0),
        json!(1),
        json!(-1),
        json!(100),
        json!(101),
        json!(u32::MAX),
        json!(u64::from(u32::MAX) + 1),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(-0.0),
        json!(1.0),
        json!(1.5),
        json!(100.0),
        json!(1e300),
    ]
}

fn number() -> impl Strategy<Value = Value> {
    prop_oneof![select(numbers()), any::<u32>().prop_map(Value::from), any::<i64>().prop_map(Value::from)]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        1 => Just(Value::Null),
        1 => any::<bool>().prop_map(Value::from),
        3 => number(),
        5 => text().prop_map(Value::from),
    ];
    leaf.prop_recursive(2, 8, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(name(), inner, 0..3)
                .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![6 => select(&NAMES[..]).prop_map(str::to_owned), 1 => text()]
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        4 => (any::<Index>(), value()).prop_map(|(place, value)| Change::Replace(place, value)),
        2 => any::<Index>().prop_map(Change::Remove),
        2 => (any::<Index>(), name(), value()).prop_map(|(place, name, value)| Change::Add(place, name, value)),
        2 => (any::<Index>(), any::<Index>()).prop_map(|(from, to)| Change::Move(from, to)),
        8 => (any::<Index>(), any::<Index>(), prop::option::weighted(0.8, character()), any::<bool>())
            .prop_map(|(place, at, character, instead)| Change::Edit(place, at, character, instead)),
    ]
}

/// The JSON pointers of everything in the document but its root.
fn places(document: &Value) -> Vec<String> {
    let mut found = Vec::new();
    collect_places(document, "", &mut found);
    found
}

fn collect_places(value: &Value, pointer: &str, found: &mut Vec<String>) {
    let children: Vec<(String, &Value)> = match value {
        Value::Object(members) => members.iter().map(|(name, child)| (name.clone(), child)).collect(),
        Value::Array(elements) => {
            elements.iter().enumerate().map(|(n, child)| (n.to_string(), child)).collect()
        }
        _ => Vec::new(),
    };
    for (step, child) in children {
        let pointer = format!("{pointer}/{}", step.replace('~', "~0").replace('/', "~1"));
        collect_places(child, &pointer, found);
        found.push(pointer);
    }
}

fn apply(document: &mut Value, change: Change) {
    let places = places(document);
    if places.is_empty() {
        return;
    }
    let at = |index: Index| places[index.index(places.len())].clone();
    match change {
        Change::Replace(place, value) => *document.pointer_mut(&at(place)).unwrap() = value,
        Change::Move(from, to) => {
            let moved = document.pointer(&at(from)).unwrap().clone();
            *document.pointer_mut(&at(to)).unwrap() = moved;
        }
        Change::Remove(place) => {
            let place = at(place);
            let (owner, step) = place.rsplit_once('/').unwrap();
            match document.pointer_mut(owner).unwrap() {
                Value::Object(members) => drop(members.remove(&step.replace("~1", "/").replace("~0", "~"))),
                Value::Array(elements) => drop(elements.remove(step.parse().unwrap())),
                _ => {}
            }
        }
        Change::Edit(place, at, character, instead) => {
            let texts: Vec<&String> =
                places.iter().filter(|place| document.pointer(place).unwrap().is_string()).collect();
            if texts.is_empty() {
                return;
            }
            let text = document.pointer_mut(texts[place.index(texts.len())]).unwrap();
            let mut characters: Vec<char> = text.as_str().unwrap().chars().collect();
            let at = at.index(characters.len() + 1);
            if instead && at < characters.len() {
                characters.remove(at);
            }
            if let Some(character) = character {
                characters.insert(at, character);
            }
            *text = characters.into_iter().collect::<String>().into();
        }
        Change::Add(place, name, value) => match document.pointer_mut(&at(place)).unwrap() {
            Value::Object(members) => drop(members.insert(name, value)),
            Value::Array(elements) => elements.push(value),
            _ => {}
        },
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn schema_and_parser_agree_on_mutated_jobs(
        job in select(vec![full_job(), full_job_in_the_older_dialect(), small_job()]),
        changes in prop::collection::vec(change(), 0..4),
    ) {
        let mut job = job;
        for change in changes {
            apply(&mut job, change);
        }
        compare(&job);
    }
}
