//! Agents whose program is in an image: they run in a container, with the same messages, limits and billing as any other.

use super::small::{SmallAgentWorld, configure, records};
use crate::BELLJAR;
use belljar_testkit::foreign_root::{Docker, IMAGE};
use belljar_testkit::skip::skip;
use belljar_testkit::wait::until;
use belljar_testkit::world::{ProgramOutput, World};
use serde_json::{Value, json};
use std::process::Stdio;

/// Makes one model call. The image has no Python.
const CALL: &str = r#"perl -MIO::Socket::INET -e '
    my $to = IO::Socket::INET->new(PeerAddr => "127.0.0.1:8080") or die;
    my $body = q({"model": "small", "messages": []});
    print $to "POST /v1/chat/completions HTTP/1.0\r\nContent-Length: ", length $body, "\r\n\r\n$body";
    my @all = <$to>; print $all[0]'"#;

fn row(image: &str, script: &str) -> Value {
    json!({ "name": "small", "description": "small", "reads_messages": true, "image": image,
            "argv": ["sh", "-c", script.replace('{', "{{").replace('}', "}}")],
            "files": { ".tool/deep/config": "model = {json:model}\n" } })
}

/// An engine, and a world whose agent is in an image.
struct ImageAgentWorld<'w> {
    small: SmallAgentWorld<'w>,
    engine: &'w Docker,
    socket: String,
}

impl ImageAgentWorld<'_> {
    fn become_script(&self, script: &str) {
        configure(self.small.world, &self.small.server, &json!([row(IMAGE, script)]));
    }

    /// Returns the exit code and the result of a run, and checks that no container is left.
    fn run(&self, options: &[&str]) -> (i32, Value) {
        let ran = self.small.run(&[&["--json", "--docker-socket", &self.socket], options].concat());
        assert_eq!(self.engine.command(&["ps", "--all", "--quiet"]).unwrap(), "", "{ran:?}");
        let runs = self.small.world.path().join("state/runs");
        assert_eq!(std::fs::read_dir(runs).unwrap().count(), 0, "{ran:?}");
        self.small.world.run(&["audit", "verify"]).succeeded();
        (ran.code, ran.json())
    }
}

#[test]
fn agent_with_an_image_works_in_a_container() {
    let engine = match Docker::start() {
        Ok(engine) => engine,
        Err(reason) => return skip("agent_with_an_image_works_in_a_container", &reason),
    };
    let world = &World::new(BELLJAR);
    let socket = engine.socket().display().to_string();
    let images =
        ImageAgentWorld { small: SmallAgentWorld::row(world, &row(IMAGE, "")), engine: &engine, socket };
    what_it_does_is_told_and_billed(&images);
    however_it_ends_it_is_told_and_billed(&images);
    what_there_is_not_is_said(&images);
    one_that_stands_still_is_ended_all_the_same(&images);
}

fn what_it_does_is_told_and_billed(images: &ImageAgentWorld<'_>) {
    let world = images.small.world;
    images.become_script(&format!(
        "cut -d. -f1 /etc/debian_version; cat .cogni/messages.json; echo; cat ~/.tool/deep/config; id -u; {CALL}; \
         echo $COGNI_MODEL $RUN_ID; sed -i s/hello/goodbye/ greeting.txt; mkdir new; echo x > new/file"
    ));
    world.write("project/.cogni/messages.json", "[\"the workspace's own\"]");
    let before = world.picture("project");
    let (code, result) = images.run(&[]);
    assert_eq!((code, &result["ok"]), (0, &json!(true)), "{result:#}");
    let expected = format!(
        "12\n[{{\"content\":\"say hello\",\"role\":\"user\"}}]\nmodel = \"small\"\n1000\nHTTP/1.1 200 OK\r\nsmall {}\n",
        result["run_id"].as_str().unwrap()
    );
    assert_eq!(result["stdout"], expected, "{result:#}");
    let changed = json!([{ "path": "greeting.txt", "change": "modified" }, { "path": "new/file", "change": "created" }]);
    assert_eq!((&result["files"], &result["changes"]["state"]), (&changed, &json!("kept")), "{result:#}");
    assert!(result["diff"].as_str().unwrap().contains("-hello world\n+goodbye world\n"));
    assert_eq!(result["usage"].as_array().map(Vec::len), Some(1), "{result:#}");
    assert_eq!(records(world, "run_ended").pop().unwrap()["event"]["calls"], 1);
    assert_eq!(world.picture("project"), before, "the directory itself is never changed");
    let (_, applied) = images.run(&["--apply"]);
    assert_eq!(applied["changes"]["state"], "applied", "{applied:#}");
    assert_eq!(world.read("project/new/file"), "x\n");
    assert_eq!(world.read("project/.cogni/messages.json"), "[\"the workspace's own\"]");
}

fn however_it_ends_it_is_told_and_billed(images: &ImageAgentWorld<'_>) {
    let held = "exec perl -e '$held = q(x) x (1 << 30); print length $held; sleep 600'";
    // A process that it leaves behind goes on printing, and is killed anyway.
    let endings: [(&str, &[&str], i32, Value); 6] = [
        ("sleep 600", &["--timeout", "5s"], 124, json!(["timeout", -1])),
        (held, &["--memory", "128m"], 1, json!(["oom_killed", 137])),
        (
            "dd if=/dev/zero of=big bs=1M count=200 2>/dev/null; sleep 600",
            &["--disk", "64m"],
            1,
            json!(["disk_full", 137]),
        ),
        ("exit 42", &[], 1, json!(["agent_failed", 42])),
        (
            "(while :; do echo more; sleep 0.01; done) & sleep 0.2",
            &["--max-output", "1m"],
            0,
            json!([null, 0]),
        ),
        ("kill -9 $$", &[], 1, json!(["agent_failed", 137])),
    ];
    for (script, options, expected, of_result) in endings {
        images.become_script(&format!("{CALL}; {script}"));
        let (code, result) = images.run(options);
        let told = json!([result["failure"]["code"], result["exit_code"]]);
        assert_eq!((code, &told), (expected, &of_result), "{script}: {:.2000}", result.to_string());
        assert_eq!(result["usage"].as_array().map(Vec::len), Some(1), "{script}");
    }
}

fn what_there_is_not_is_said(images: &ImageAgentWorld<'_>) {
    let world = images.small.world;
    let rows = json!([row("no-such/image", "true")]);
    configure(world, &images.small.server, &rows);
    let (code, result) = images.run(&[]);
    assert_eq!((code, &result["failure"]["code"]), (125, &json!("container_failed")), "{result:#}");
    assert!(result["failure"]["message"].as_str().unwrap().contains("no image no-such/image"), "{result:#}");
    let listed = world.run(&["agents", "--config", "config.yaml"]).succeeded();
    assert!(listed.stdout.contains("sh, in the image no-such/image"), "{listed:?}");
    let mut missing = row(IMAGE, "true");
    missing["argv"] = json!(["no-such-program"]);
    configure(world, &images.small.server, &json!([missing]));
    let (code, result) = images.run(&[]);
    assert_eq!((code, &result["failure"]["code"]), (125, &json!("container_failed")), "{result:#}");
    assert!(
        result["failure"]["message"].as_str().unwrap().contains("can't run no-such-program"),
        "{result:#}"
    );
}

/// In a paused container no process can carry out an order or respond.
fn one_that_stands_still_is_ended_all_the_same(images: &ImageAgentWorld<'_>) {
    images.become_script("echo begun; exec sleep 600");
    let options = ["--json", "--timeout", "3s", "--docker-socket", &images.socket];
    let agent = images.small.command(&options).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let running = || images.engine.command(&["ps", "--quiet"]).unwrap();
    until(|| !running().is_empty());
    until(|| images.engine.command(&["top", running().trim()]).is_ok_and(|top| top.contains("sleep 600")));
    images.engine.command(&["pause", running().trim()]).unwrap();
    let ran = ProgramOutput::from(agent.wait_with_output().unwrap());
    assert_eq!((ran.code, &ran.json()["failure"]["code"]), (124, &json!("timeout")), "{ran:?}");
    assert_eq!(images.engine.command(&["ps", "--all", "--quiet"]).unwrap(), "", "{ran:?}");
}
