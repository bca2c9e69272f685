//! Characters that reorder or hide text are shown as escapes in all output of belljar.

use crate::BELLJAR;
use crate::session::{SessionCleanup, create};
use belljar_testkit::job::{job, shell};
use belljar_testkit::world::{ProgramOutput, World};
use serde_json::json;

/// A right-to-left override, a zero-width space, a tag, a variation selector, a soft hyphen and a Hangul filler.
const HIDDEN: [char; 6] = ['\u{202e}', '\u{200b}', '\u{e0041}', '\u{fe0f}', '\u{ad}', '\u{3164}'];

const NAME: &str = "a\u{202e}txt.sh\u{200b}\u{e0041}\u{fe0f}\u{ad}\u{3164}";
const SHOWN: &str = "a\\u{202e}txt.sh\\u{200b}\\u{e0041}\\u{fe0f}\\u{ad}\\u{3164}";

/// The working folder, and its printed form.
const SOURCE: &str = "so\u{202e}urce";
const SOURCE_SHOWN: &str = "so\\u{202e}urce";

/// Returns a script that creates a file with a misleading name and content, one whose name spells an escape, and one that
/// gains trust.
fn script() -> String {
    format!(
        "printf 'x\\342\\200\\256y\\r\\n' > '{NAME}'; touch 'b\\u{{202e}}c' \"$(printf 'd\\n  M forged')\"; \
         mkdir 'e\u{202e}'; echo all: > 'e\u{202e}/Makefile'"
    )
}

#[track_caller]
fn shows(ran: &ProgramOutput, parts: &[&str]) {
    for text in [&ran.stdout, &ran.stderr] {
        assert!(!text.contains(HIDDEN), "{text:?}");
        assert!(!text.lines().any(|line| line.starts_with("  M forged")), "{text:?}");
    }
    for part in parts {
        assert!(ran.stdout.contains(part) || ran.stderr.contains(part), "{part}: {ran:?}");
    }
}

#[test]
fn names_that_reorder_or_hide_text_are_printed_as_escapes_in_sessions() {
    let world = World::new(BELLJAR);
    let _sessions = SessionCleanup(&world);
    world.write(&format!("{SOURCE}/file"), "before\n");
    let id = create(&world, &["--workspace-copy", SOURCE]);
    world.run(&["session", "exec", &id, "--", "sh", "-ec", &script()]).succeeded();
    shows(&world.run(&["session", "list"]).succeeded(), &[SOURCE_SHOWN]);
    let listed = world.run(&["session", "list", "--json"]).succeeded();
    shows(&listed, &["so\\u202eurce"]);
    assert!(
        listed.json()[0]["workspace"].as_str().unwrap().ends_with(SOURCE),
        "JSON says exactly what there is"
    );

    let escaped = ["b\\u{5c}u{202e}c", "d\\u{a}  M forged", "e\\u{202e}/Makefile"];
    shows(&world.run(&["session", "diff", &id, "--stat"]).succeeded(), &[&[SHOWN], &escaped[..]].concat());
    let diff = world.run(&["session", "diff", &id, "--escape"]).succeeded();
    shows(&diff, &[&[SHOWN, "+x\\u{202e}y\\u{d}"], &escaped[..]].concat());
    let diff = world.run(&["session", "diff", &id, "--json"]).succeeded();
    shows(&diff, &["x\\u202ey\\r\\n"]);
    assert!(diff.json()["diff"].as_str().unwrap().contains("+x\u{202e}y\r\n"), "{diff:?}");
    // A patch is exact, with a warning that not all of it is visible.
    let patch = world.run(&["session", "diff", &id]).succeeded();
    assert!(
        patch.stdout.contains("+x\u{202e}y\r\n") && patch.stderr.contains("reorder or hide"),
        "{patch:?}"
    );

    let refused = world.run(&["session", "commit", &id]);
    assert_eq!(refused.code, 3, "{refused:?}");
    shows(&refused, &["e\\u{202e}/Makefile"]);
    let digest = world.run(&["session", "diff", &id, "--digest"]).succeeded().stdout;
    let commit = ["session", "commit", &id, "--trust-all", "--reviewed", digest.trim()];
    let committed = world.run(&commit).succeeded();
    shows(&committed, &[&[SHOWN], &escaped[..]].concat());
    assert!(world.path().join(SOURCE).join(NAME).exists(), "the file keeps its name");
}

#[test]
fn names_that_reorder_or_hide_text_are_printed_as_escapes_by_run_exec_and_errors() {
    let world = World::new(BELLJAR);
    world.write(&format!("{SOURCE}/file"), "before\n");
    let ran = world.run(&["exec", "--workspace-copy", SOURCE, "--", "sh", "-ec", &script()]).succeeded();
    shows(&ran, &[SHOWN, "+x\\u{202e}y\\u{d}", "e\\u{202e}/Makefile"]);
    world.write("job.json", job(&json!([shell(&script())])).to_string());
    let ran = world.run(&["run", "--workspace-copy", SOURCE, "job.json"]).succeeded();
    shows(&ran, &[SHOWN, "+x\\u{202e}y\\u{d}", "e\\u{202e}/Makefile"]);
    let missing = world.run(&["run", &format!("{NAME}\nHint: forged")]);
    assert_ne!(missing.code, 0);
    shows(&missing, &["\\u{202e}"]);
    assert!(!missing.stderr.lines().any(|line| line.starts_with("Hint: forged")), "{missing:?}");
    // The control: ordinary names of any script stay readable.
    let plain = "ü漢字 שלום 🦀";
    let ran = world.run(&["exec", "--workspace-copy", SOURCE, "--", "touch", plain]).succeeded();
    assert!(ran.stderr.contains(plain), "{ran:?}");
}
