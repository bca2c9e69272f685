//! Artifacts of a job are downloaded.

use super::{FakeNode, ask, over, told};
use belljar_testkit::node::{Node, new_id};
use belljar_testkit::world::{ProgramOutput, World};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::os::unix::fs::symlink;

/// Downloads the artifacts that a node reports for a job, each with this content.
fn fetch(world: &World, artifacts: &Value, content: &'static [u8], more: &[&str]) -> ProgramOutput {
    fetch_into(world, "out", (artifacts, content), more)
}

fn fetch_into(
    world: &World,
    into: &str,
    (artifacts, content): (&Value, &'static [u8]),
    more: &[&str],
) -> ProgramOutput {
    let id = new_id();
    let job = told(&id, artifacts);
    let node = FakeNode::telling(world, move |target| match target.contains("/artifacts/") {
        true => (200, content.to_vec()),
        false => (200, job.clone()),
    });
    ask(world, node.address, &[&["artifacts", &id, "--output", into], more].concat())
}

fn artifact(path: &str, content: &[u8]) -> Value {
    let sha256: String = Sha256::digest(content).iter().map(|byte| format!("{byte:02x}")).collect();
    json!({ "path": path, "sha256": sha256, "size_bytes": content.len() })
}

fn entries(world: &World, folder: &str) -> Vec<String> {
    let entries = std::fs::read_dir(world.path().join(folder)).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn artifacts_are_listed_and_downloaded_unchanged() {
    let world = World::new(crate::BELLJAR);
    let node = Node::start(&world, &[]);
    let make = "cd /job/artifacts; mkdir -p d/e; head -c 300000 /dev/zero | tr '\\0' x > d/e/large; echo kept > note";
    let id = over(&world, &node, &["sh", "-c", make]);
    let listed = ask(&world, node.address(), &["artifacts", &id, "--json"]).succeeded().json();
    assert_eq!(listed, node.job(&id)["artifacts"]);
    let table = ask(&world, node.address(), &["artifacts", &id]).succeeded().stdout;
    assert!(table.contains("300000") && table.contains("/job/artifacts/note"), "{table}");
    ask(&world, node.address(), &["artifacts", &id, "--output", "a/out"]).succeeded();
    assert_eq!(world.read("a/out/note"), "kept\n");
    assert_eq!(world.read("a/out/d/e/large"), "x".repeat(300_000));
    // Existing files stay, unless their replacement is requested.
    world.write("a/out/note", "mine");
    let ran = ask(&world, node.address(), &["artifacts", &id, "--output", "a/out"]);
    assert!(ran.code == 125 && ran.stderr.contains("Hint: --force replaces it"), "{}", ran.stderr);
    assert_eq!(world.read("a/out/note"), "mine");
    let ran = ask(&world, node.address(), &["artifacts", &id, "--output", "a/out", "--force", "--json"])
        .succeeded();
    assert_eq!(world.read("a/out/note"), "kept\n");
    let files: Vec<_> = ran.json().as_array().unwrap().iter().map(|file| file["file"].clone()).collect();
    assert_eq!(files, ["a/out/d/e/large", "a/out/note"]);
    assert_eq!(entries(&world, "a/out"), ["d", "note"]);
}

#[test]
fn download_writes_nothing_outside_its_directory_whatever_the_file_name() {
    let world = World::new(crate::BELLJAR);
    for path in
        ["/job/artifacts/../stolen", "../stolen", "/etc/stolen", "/job/artifacts//stolen", "a/./b", "..", ""]
    {
        // With a valid artifact before it: no artifact is downloaded.
        let ran = fetch(&world, &json!([artifact("good", b"x"), artifact(path, b"x")]), b"x", &["--force"]);
        assert!(ran.code == 125 && ran.stderr.contains("leads out"), "{path}: {}", ran.stderr);
        assert!(!world.path().join("stolen").exists() && entries(&world, "out").is_empty(), "{path}");
    }
    // Nor through an existing link.
    world.write("elsewhere/kept", "mine");
    std::fs::create_dir(world.path().join("out")).unwrap();
    symlink(world.path().join("elsewhere"), world.path().join("out/link")).unwrap();
    symlink(world.path().join("elsewhere/kept"), world.path().join("out/file")).unwrap();
    for force in [&[][..], &["--force"]] {
        let ran = fetch(&world, &json!([artifact("link/new", b"x")]), b"x", force);
        assert_eq!(ran.code, 125, "{}", ran.stderr);
    }
    let ran = fetch(&world, &json!([artifact("file", b"x")]), b"x", &[]);
    assert!(ran.code == 125 && ran.stderr.contains("there is a file of that name"), "{}", ran.stderr);
    // A link is replaced, and not followed.
    fetch(&world, &json!([artifact("file", b"x")]), b"x", &["--force"]).succeeded();
    assert_eq!((world.read("out/file").as_str(), world.read("elsewhere/kept").as_str()), ("x", "mine"));
    assert_eq!(entries(&world, "elsewhere"), ["kept"]);
    // Nor through a link of a cloned repository.
    world.write("cloned/.git/HEAD", "");
    symlink(world.path().join("elsewhere"), world.path().join("cloned/out")).unwrap();
    let ran = fetch_into(&world, "cloned/out", (&json!([artifact("new", b"x")]), b"x"), &[]);
    assert!(ran.code == 125 && ran.stderr.contains("a sandbox may have made the link"), "{}", ran.stderr);
    assert_eq!(entries(&world, "elsewhere"), ["kept"]);
    // The control: a path that leads down is downloaded.
    fetch(&world, &json!([artifact("/workspace/d/new", b"x")]), b"x", &[]).succeeded();
    assert_eq!(world.read("out/workspace/d/new"), "x");
}

#[test]
fn artifacts_with_the_same_destination_are_reported_and_others_downloaded() {
    let world = World::new(crate::BELLJAR);
    let paths = ["/job/artifacts/y", "/job/artifacts/workspace/x", "/workspace/x", "/workspace/x/z"];
    let all = Value::from(paths.map(|path| artifact(path, b"x")).to_vec());
    for force in [&[][..], &["--force"]] {
        let ran = fetch(&world, &all, b"x", force);
        assert_eq!(ran.code, 125, "{}", ran.stderr);
        for left_out in &paths[2..] {
            let line = ran.stderr.lines().find(|line| line.contains(left_out));
            assert!(line.is_some_and(|line| line.contains("same place")), "{left_out}: {}", ran.stderr);
        }
        assert_eq!((world.read("out/y").as_str(), world.read("out/workspace/x").as_str()), ("x", "x"));
    }
    // The control: without them all artifacts are downloaded.
    let first = Value::from(paths[..2].iter().map(|path| artifact(path, b"x")).collect::<Vec<_>>());
    fetch(&world, &first, b"x", &["--force"]).succeeded();
}

#[test]
fn download_that_does_not_match_its_digest_is_not_kept() {
    let world = World::new(crate::BELLJAR);
    let ran = fetch(&world, &json!([artifact("a", b"good")]), b"evil", &[]);
    assert!(
        ran.code == 125 && ran.stderr.contains("the received content differs from what the job has left"),
        "{}",
        ran.stderr
    );
    let ran = fetch(&world, &json!([artifact("a", b"good")]), b"good and more", &[]);
    assert!(ran.code == 125 && ran.stderr.contains("more came than its 4 bytes"), "{}", ran.stderr);
    let ran = fetch(&world, &json!([{ "path": "a", "sha256": "../../x", "size_bytes": 1 }]), b"x", &[]);
    assert!(ran.code == 125 && ran.stderr.contains("it has no digest"), "{}", ran.stderr);
    assert_eq!(entries(&world, "out"), Vec::<String>::new());
    // The control.
    fetch(&world, &json!([artifact("a", b"good")]), b"good", &[]).succeeded();
    assert_eq!(entries(&world, "out"), ["a"]);
}

#[test]
fn downloaded_files_that_gain_trust_need_approval() {
    let world = World::new(crate::BELLJAR);
    let config = b"[core]\n\tfsmonitor = touch mark\n";
    let one = |path: &str| json!([artifact(path, config)]);
    let repository = json!([
        artifact("/job/artifacts/.git/HEAD", config),
        artifact("/job/artifacts/.git/config", config),
        artifact("/job/artifacts/bare/HEAD", config),
        artifact("/job/artifacts/bare/objects/x", config),
        artifact("/job/artifacts/bare/refs/x", config),
        artifact("/job/artifacts/bare/config", config),
    ]);
    let bad =
        [one("Makefile"), one(".envrc"), one(".newtoolrc"), one("/workspace/.vscode/tasks.json"), repository];
    for artifacts in &bad {
        let ran = fetch(&world, artifacts, config, &[]);
        assert!(ran.code == 3 && ran.stderr.contains("--trust"), "{artifacts}: {} {}", ran.code, ran.stderr);
        assert!(entries(&world, "out").is_empty(), "{artifacts}");
    }
    // An existing link with a trusted name leads to the file.
    std::fs::create_dir_all(world.path().join("linked")).unwrap();
    symlink("rules.txt", world.path().join("linked/Makefile")).unwrap();
    let into_linked = |name, more: &[&str]| fetch_into(&world, "linked", (&one(name), config), more);
    assert_eq!(into_linked("rules.txt", &["--force"]).code, 3);
    // The controls: an approval for the file, one for all files, and a file that gains no trust.
    into_linked("notes.txt", &[]).succeeded();
    assert_eq!(fetch(&world, &bad[1], config, &["--trust", ".env"]).code, 3);
    fetch(&world, &bad[1], config, &["--trust", ".envrc"]).succeeded();
    fetch(&world, &bad[4], config, &["--trust-all"]).succeeded();
    assert_eq!(entries(&world, "out"), [".envrc", ".git", "bare"]);
}
