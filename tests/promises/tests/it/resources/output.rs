//! RS5: floods of output of every kind. Exactly the permitted bytes are kept, and the output can't control a terminal.

use crate::belljar::belljar;
use crate::scene::PreparedHost;
use crate::tally::{Tally, Verdict};
use crate::way::PROBE;
use belljar_testkit::job::job;
use belljar_testkit::world::{ProgramOutput, World};
use serde_json::{Value, json};
use std::path::Path;

/// Bytes that are written, and the maximum that is kept.
const FLOOD_BYTES: usize = 4 << 20;
const MOST_BYTES: usize = 5_000;

/// The kinds of output, each with the beginning of its result.
const KINDS: [(&str, &[u8]); 6] = [
    ("line", b"xxxx"),
    ("lines", b"\n\n\n\n"),
    ("nul", b"\0\0\0\0"),
    ("invalid", b"\xff\xfe"),
    ("escapes", b"\x1b]0;"),
    ("both", b"out\n"),
];

#[test]
fn output_flood_is_cut_to_the_byte_and_terminal_codes_are_escaped() {
    let tally = Tally::new("output");
    World::as_everyone(belljar(), |world| {
        let scene = PreparedHost::lay(world);
        for (kind, begins) in KINDS {
            let control = flood_outside(&scene, kind);
            let is_flood =
                control.stdout.len() >= FLOOD_BYTES && control.stdout.as_bytes().starts_with(begins);
            let verdicts = [
                ("in the result", judge_result(&scene, kind)),
                ("at a terminal", judge_summary(&scene, kind)),
            ];
            for (what, verdict) in verdicts {
                let verdict = match (verdict, is_flood || kind == "invalid") {
                    (Verdict::Held, false) => {
                        Verdict::Invalid("there is no flood outside, either".to_owned())
                    }
                    (verdict, _) => verdict,
                };
                tally.count(
                    "RS5",
                    &format!("RS5 {kind} {what}"),
                    &format!("Job {:?}", world.user()),
                    verdict,
                );
            }
        }
    });
    tally.close();
}

fn flood_outside(scene: &PreparedHost<'_>, kind: &str) -> ProgramOutput {
    let probe = scene.path("lent/belljar-probe");
    let output =
        scene.world.command_of(Path::new(&probe), &["flood", kind, &FLOOD_BYTES.to_string()]).output();
    ProgramOutput::from(output.unwrap())
}

fn run(scene: &PreparedHost<'_>, kind: &str, options: &[&str]) -> ProgramOutput {
    let argv = [PROBE, "flood", kind, &FLOOD_BYTES.to_string()];
    let mut document = job(&json!([{ "type": "run_command", "args": { "argv": argv } }]));
    document["constraints"]["max_output_bytes"] = json!(MOST_BYTES);
    scene.world.write("flood.json", document.to_string());
    let lent = format!("{}:/lent", scene.path("lent"));
    scene.world.run(&[&["run", "--ro", &lent], options, &["flood.json"]].concat())
}

fn judge_result(scene: &PreparedHost<'_>, kind: &str) -> Verdict {
    let result = run(scene, kind, &["--json"]).json();
    let streams: &[&str] = if kind == "both" { &["stdout", "stderr"] } else { &["stdout"] };
    let output = &result["steps"][0]["result"];
    let is_cut =
        |stream: &&str| kept_bytes(output, stream) == MOST_BYTES && output["truncated"][*stream] == true;
    match (result["failure_code"].as_str(), streams.iter().all(is_cut)) {
        (Some("constraint_violation"), true) => Verdict::Held,
        (code, _) => {
            let kept: Vec<usize> = streams.iter().map(|stream| kept_bytes(output, stream)).collect();
            Verdict::Escaped(format!("{code:?}, kept {kept:?}, flags {}", output["truncated"]))
        }
    }
}

/// Returns the number of a stream's bytes in the result, in either encoding.
fn kept_bytes(output: &Value, stream: &str) -> usize {
    let text = output[stream].as_str().unwrap_or_default();
    match output[format!("{stream}_encoding")].as_str() {
        Some("base64") => text.len() / 4 * 3 - text.bytes().filter(|byte| *byte == b'=').count(),
        _ => text.len(),
    }
}

/// Checks that the summary for people contains no control sequences of terminals.
fn judge_summary(scene: &PreparedHost<'_>, kind: &str) -> Verdict {
    let ran = run(scene, kind, &[]);
    let seen = ran.stdout + &ran.stderr;
    let obeyed = seen.chars().find(|character| character.is_control() && *character != '\n');
    match obeyed {
        None if !seen.is_empty() => Verdict::Held,
        None => Verdict::Invalid("nothing is shown at all".to_owned()),
        Some(character) => Verdict::Escaped(format!("{character:?} is shown")),
    }
}
