//! Error messages for the author of a wrong job, word by word.

use belljar_contract::job::Job;

fn refusal(document: &str) -> String {
    let problems = Job::parse(document.as_bytes()).unwrap_err().problems.into_vec();
    problems.iter().map(|problem| format!("{problem}\n")).collect()
}

#[test]
fn messages_for_a_job_with_many_mistakes() {
    let document = r#"{
        "protocol_version": "2.0",
        "job_id": "job-1",
        "taskid": "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0f",
        "constraints": {
            "max_runtime_seconds": "300",
            "max_output_bytes": 1048576.0,
            "ext_net_allowed": false,
            "network_allowed": true,
            "allowed_paths": ["src", "a//b", 7]
        },
        "inference": { "allowed_models": [], "source": "cloud" },
        "context": { "requirements": "No panics.", "skills": { "a": 1, "a": 2 } },
        "steps": [
            { "type": "run_command", "args": { "argv": ["go"], "command": "go", "working_dir": "" } },
            { "type": "run_command", "args": { "args": ["test"], "env": { "CYNODE_JOB_ID": "x", "PATH": null } } },
            { "type": "write_file", "args": { "path": "src/", "contents": "", "mode": 420 } },
            { "type": "read-file", "args": {} },
            { "id": "step-1", "type": "read_file", "args": { "path": "a", "start_line": 9, "end_line": 3 } },
            { "id": "step-1", "type": "list_tree", "arguments": { "maxDepth": 2 } },
            { "type": "search_files" },
            "list_tree"
        ],
        "comment": null
    }"#;
    insta::assert_snapshot!(refusal(document), @r#"
    $.protocol_version: found "2.0" (unknown major version 2); expected a version of major 1, such as "1.0"
    $.job_id: found "job-1" (not a UUID in the form xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx); expected a UUID such as 0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e
    $.task_id: found nothing; expected this required member
    $.constraints.max_runtime_seconds: found the string "300"; expected a whole number from 1 to 4294967295
    $.constraints.max_output_bytes: found the number 1048576.0; expected a whole number from 1 to 4294967295, without fraction or exponent
    $.constraints.network_allowed: found `network_allowed` beside `ext_net_allowed`; expected one of the two: both name the same thing
    $.constraints.allowed_paths[1]: found "a//b" (an empty component (`//`)); expected a path in the workspace, relative or starting with /workspace
    $.constraints.allowed_paths[2]: found the number 7; expected a path in the workspace, relative or starting with /workspace
    $.inference.allowed_models: found an empty array; expected at least one model
    $.inference.source: found the string "cloud"; expected "worker" or "api_egress"
    $.context.requirements: found the string "No panics."; expected an array
    $.context.skills.a: found the member 2 times; expected each member once
    $.steps[0].args: found `argv`, `command`, `working_dir` together; expected one dialect: `argv` and `cwd`, or `command`, `args` and `working_dir`
    $.steps[0].args.working_dir: found "" (an empty path); expected a path in the workspace, relative or starting with /workspace
    $.steps[1].args.command: found nothing; expected this required member
    $.steps[1].args.env.PATH: found null; expected a string without NUL
    $.steps[1].args.env.CYNODE_JOB_ID: found a variable of this name; expected another name: this variable identifies the job and is set by the host
    $.steps[2].args.path: found the string "src/"; expected the path of a file
    $.steps[2].args.content: found nothing; expected this required member
    $.steps[2].args.mode: found the number 420; expected octal permission bits in a string, such as "0644"
    $.steps[2].args.contents: found an unknown member; expected `content`, perhaps; known here: content, create_parents, encoding, mode, overwrite, path
    $.steps[3].type: found the string "read-file"; expected one of: run_command, write_file, read_file, apply_unified_diff, list_tree, search_files
    $.steps[4].args: found lines 9 to 3; expected a `start_line` that is not after `end_line`
    $.steps[5].arguments.maxDepth: found an unknown member; expected `max_depth`, perhaps; known here: glob, max_depth, max_entries, path, sizes
    $.steps[6].args: found nothing; expected this required member
    $.steps[7]: found the string "list_tree"; expected an object
    $.steps[4].id: found the step name "step-1" again; expected another name than that of $.steps[0]
    $.steps[5].id: found the step name "step-1" again; expected another name than that of $.steps[0]
    $.taskid: found an unknown member; expected `task_id`, perhaps; known here: artifacts, constraints, context, inference, job_id, persona, persona_id, protocol_version, skill_id, steps, task_id
    $.comment: found an unknown member; expected one of: artifacts, constraints, context, inference, job_id, persona, persona_id, protocol_version, skill_id, steps, task_id
    "#);
}

#[test]
fn messages_for_text_that_is_not_json() {
    let documents: [&[u8]; 12] = [
        b"",
        b" \n ",
        b"{\"job_id\": \"x\"",
        b"{'a': 1}",
        b"{\"a\": 1,}",
        b"\xef\xbb\xbf{}",
        b"\xff\xfe{\0}\0",
        b"{\"a\": \"\xe9\"}",
        b"{\"a\": \"\\ud800\"}",
        b"{\"a\": 1e400}",
        b"{} {}",
        b"{\"a\": \"line\nbreak\"}",
    ];
    let refusals: String = documents
        .iter()
        .map(|document| {
            format!("<{}>\n    {}\n", document.escape_ascii(), Job::parse(document).unwrap_err().problems)
        })
        .collect();
    insta::assert_snapshot!(refusals, @r#"
    <>
        $: found an empty document; expected one JSON document (RFC 8259, UTF-8 without a byte order mark)
    < \n >
        $: found an empty document; expected one JSON document (RFC 8259, UTF-8 without a byte order mark)
    <{\"job_id\": \"x\">
        $: found text that ends too early: EOF while parsing an object at line 1 column 14; expected one JSON document (RFC 8259, UTF-8 without a byte order mark)
    <{\'a\': 1}>
        $: found text that is not JSON: key must be a string at line 1 column 2; expected one JSON document (RFC 8259, UTF-8 without a byte order mark)
    <{\"a\": 1,}>
        $: found text that is not JSON: trailing comma at line 1 column 9; expected one JSON document (RFC 8259, UTF-8 without a byte order mark)
    <\xef\xbb\xbf{}>
        $: found a byte order mark; expected one JSON document (RFC 8259, UTF-8 without a byte order mark)
    <\xff\xfe{\x00}\x00>
        $: found UTF-16 or UTF-32; expected one JSON document (RFC 8259, UTF-8 without a byte order mark)
    <{\"a\": \"\xe9\"}>
        $: found text that is not JSON: invalid unicode code point at line 1 column 8; expected one JSON document (RFC 8259, UTF-8 without a byte order mark)
    <{\"a\": \"\\ud800\"}>
        $: found text that is not JSON: unexpected end of hex escape at line 1 column 14; expected one JSON document (RFC 8259, UTF-8 without a byte order mark)
    <{\"a\": 1e400}>
        $: found text that is not JSON: number out of range at line 1 column 11; expected one JSON document (RFC 8259, UTF-8 without a byte order mark)
    <{} {}>
        $: found text that is not JSON: trailing characters at line 1 column 4; expected one JSON document (RFC 8259, UTF-8 without a byte order mark)
    <{\"a\": \"line\nbreak\"}>
        $: found text that is not JSON: control character (\u0000-\u001F) found while parsing a string at line 2 column 0; expected one JSON document (RFC 8259, UTF-8 without a byte order mark)
    "#);
}

#[test]
fn messages_for_documents_that_are_not_jobs() {
    insta::assert_snapshot!(refusal("[]"), @r#"$: found an empty array; expected an object"#);
    insta::assert_snapshot!(refusal("{}"), @r#"
    $.protocol_version: found nothing; expected this required member
    $.job_id: found nothing; expected this required member
    $.task_id: found nothing; expected this required member
    $.constraints: found nothing; expected this required member
    $.steps: found nothing; expected this required member
    "#);
}

#[test]
fn summary_of_many_problems_is_short_and_counts_the_rest() {
    let members: Vec<String> = (0..1000).map(|n| format!("\"m{n}\": 0")).collect();
    let invalid = Job::parse(format!("{{{}}}", members.join(",")).as_bytes()).unwrap_err();
    let message = invalid.to_string();
    assert_eq!(message.lines().count(), 11);
    assert!(message.ends_with("\nand 995 more"), "{message}");
}
