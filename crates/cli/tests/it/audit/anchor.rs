//! `belljar audit anchor` and `belljar audit verify --anchor`

use super::{folder, segment, world};
use crate::BELLJAR;
use belljar_store::audit::{AuditLog, Event};
use belljar_testkit::s3::S3;
use belljar_testkit::skip::skip;
use belljar_testkit::world::{ProgramOutput, World};
use serde_json::json;

/// Size of one mark in the head file, in bytes.
const MARK: usize = 1024;

fn append(world: &World, records: usize) {
    let log = AuditLog::open(&folder(world)).unwrap();
    for number in 0..records {
        log.append(Event::new("note", None, &json!({ "number": number })).unwrap()).unwrap();
    }
    log.close();
}

/// Removes this many records with their checkpoints from the log's end, and rewrites `head` from the rest.
fn cut(world: &World, records: usize) {
    let whole = std::fs::read_to_string(segment(world)).unwrap();
    let lines: Vec<&str> = whole.lines().collect();
    let left = &lines[..lines.len() - 2 * records];
    let text: String = left.iter().map(|line| format!("{line}\n")).collect();
    let mark = format!("{{\"segment\":1,\"end\":{},\"checkpoint\":{}}}", text.len(), left.last().unwrap());
    std::fs::write(segment(world), text).unwrap();
    std::fs::write(folder(world).join("head"), format!("{mark:<width$}\n", width = MARK - 1).repeat(2))
        .unwrap();
}

fn anchored_in_a_file() -> World {
    let world = world();
    let notes = world.path().join("elsewhere.notes");
    world.write("belljar.yaml", format!("audit: {{anchors: [{{to: 'file:{}'}}]}}", notes.display()));
    world
}

#[test]
fn verify_without_an_anchor_states_its_limit_and_with_one_finds_930_cut_records() {
    let world = anchored_in_a_file();
    append(&world, 1_000);
    let delivered = world.run(&["audit", "anchor", "--config", "belljar.yaml", "--json"]).succeeded().json();
    let anchored_to = delivered[0]["delivered"]["sequence"].as_u64().unwrap();
    let verify: &[&str] = &["audit", "verify", "--anchor", "elsewhere.notes"];
    let sound = world.run(verify).succeeded().stdout;
    assert!(sound.contains(&format!("\n  anchored     records 1 to {anchored_to}, at ")), "{sound}");
    assert!(!sound.contains("not anchored"), "{sound}");
    cut(&world, 930);
    let alone = world.run(&["audit", "verify"]).succeeded().stdout;
    assert!(alone.starts_with("intact: 75 records"), "{alone}");
    assert!(alone.contains("this can't show that the end was cut off"), "{alone}");
    let compared = world.run(verify);
    let expected = format!("holds a checkpoint of record {anchored_to}\n");
    assert!(
        compared.stdout.contains("the log is cut or rolled back: ") && compared.stdout.ends_with(&expected),
        "{compared:?}"
    );
    assert_eq!(compared.code, 1);
}

#[test]
fn verify_reports_how_many_records_only_the_local_signature_covers() {
    let world = anchored_in_a_file();
    world.run(&["audit", "anchor", "--config", "belljar.yaml"]).succeeded();
    append(&world, 3);
    let found = world.run(&["audit", "verify", "--json", "--anchor", "elsewhere.notes"]).succeeded().json();
    assert_eq!(found["anchored"]["not_anchored_records"], 6);
    let told = world.run(&["audit", "verify", "--anchor", "elsewhere.notes"]).succeeded().stdout;
    assert!(told.contains("\n  not anchored 6 records, "), "{told}");
    // A folder of anchors, of which one doesn't belong to this log.
    std::fs::create_dir(world.path().join("anchors")).unwrap();
    std::fs::copy(world.path().join("elsewhere.notes"), world.path().join("anchors/one")).unwrap();
    world.run(&["audit", "verify", "--anchor", "anchors"]).succeeded();
    world.write("empty.notes", "");
    let unknown = world.run(&["audit", "verify", "--anchor", "empty.notes"]);
    assert_eq!(unknown.code, 1);
    assert!(
        unknown.stdout.starts_with("not anchored: the anchors hold no checkpoint of this log\n"),
        "{unknown:?}"
    );
    assert_eq!(world.run(&["audit", "verify", "--anchor", "missing.notes"]).code, 125);
}

#[test]
fn failing_anchor_is_reported_by_anchor_verify_and_doctor_and_delays_nothing() {
    let world = world();
    world.write("belljar.yaml", "audit: {anchors: [{to: 'syslog:/nonexistent/log'}]}");
    let delivered = world.run(&["audit", "anchor", "--config", "belljar.yaml"]);
    assert_eq!(delivered.code, 1);
    let reported = |ran: &ProgramOutput| {
        ran.stdout.contains("syslog:/nonexistent/log") && ran.stdout.contains("failing since")
    };
    assert!(reported(&delivered), "{delivered:?}");
    let verified = world.run(&["audit", "verify"]).succeeded();
    assert!(reported(&verified), "{verified:?}");
    let doctor = world.run(&["doctor", "--json"]).json();
    assert_eq!(doctor["audit_anchors"][0]["target"], "syslog:/nonexistent/log");
    assert!(doctor["audit_anchors"][0]["failing"].is_object(), "{doctor:#}");
    let shown = world.run(&["audit", "show", "--kind", "audit_anchor_failed"]).succeeded().stdout;
    assert_eq!(shown.lines().count(), 2, "{shown}");
    world.write("none.yaml", "audit: {}");
    assert_eq!(world.run(&["audit", "anchor", "--config", "none.yaml"]).code, 125);
}

#[test]
fn run_delivers_its_last_record_at_its_end() {
    let world = World::new(BELLJAR);
    let notes = world.path().join("elsewhere.notes");
    // The anchor is found through the user's configuration, by a command that otherwise reads no configuration.
    let anchored = format!("audit: {{anchors: [{{to: 'file:{}'}}]}}", notes.display());
    std::fs::create_dir_all(world.path().join(".config/belljar")).unwrap();
    world.write(".config/belljar/config.yaml", anchored);
    world.write("policy.yaml", "rules: [{host: allowed.example}]");
    let denied = "curl -s https://denied.example/; true";
    world.run(&["exec", "--egress", "policy.yaml", "--", "sh", "-c", denied]).succeeded();
    let found = world.run(&["audit", "verify", "--json", "--anchor", "elsewhere.notes"]).succeeded().json();
    assert!(found["records"].as_u64().unwrap() > 0, "{found:#}");
    assert_eq!(found["anchored"]["not_anchored_records"], 0, "{found:#}");
}

#[test]
fn bucket_keeps_each_checkpoint_and_detects_a_truncated_log() {
    let s3 = match S3::start() {
        Ok(s3) => s3,
        Err(why) => {
            return skip("audit::anchor::bucket_keeps_each_checkpoint_and_detects_a_truncated_log", &why);
        }
    };
    let bucket = format!("{}/node-7", s3.bucket("anchors"));
    let world = world();
    world.write("belljar.yaml", format!("audit: {{anchors: [{{to: '{bucket}', required: true}}]}}"));
    let run = |arguments: &[&str]| {
        ProgramOutput::from(world.command(arguments).envs(s3.environment()).output().unwrap())
    };
    for _ in 0..2 {
        append(&world, 2);
        run(&["audit", "anchor", "--config", "belljar.yaml"]).succeeded();
    }
    let verify: &[&str] = &["audit", "verify", "--json", "--anchor", &bucket];
    let found = run(verify).succeeded().json();
    assert_eq!(
        (&found["anchored"]["checkpoints"], &found["anchored"]["not_anchored_records"]),
        (&json!(2), &json!(0))
    );
    cut(&world, 2);
    let compared = run(verify);
    assert_eq!(compared.code, 1);
    assert!(compared.json()["fault"].as_str().unwrap().contains("cut or rolled back"), "{compared:?}");
    assert_eq!(world.run(verify).code, 125, "without credentials nothing can be compared");
}
