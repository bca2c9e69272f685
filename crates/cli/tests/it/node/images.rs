//! Jobs and sessions that run a program of an image in a container.

use super::sessions::{SESSIONS, open};
use super::stopped::{POLITE, begun, stop};
use crate::models::{configure, recorded};
use belljar_testkit::foreign_root::{Docker, IMAGE};
use belljar_testkit::http::HttpRequest;
use belljar_testkit::models::{Answer, ModelServer, Script};
use belljar_testkit::node::{Node, command, new_id, script, steps};
use belljar_testkit::skip::skip;
use belljar_testkit::wait::until;
use belljar_testkit::world::World;
use serde_json::{Value, json};

/// Makes one model call. The image has no Python.
const CALL: &str = r#"perl -MIO::Socket::INET -e '
    my $to = IO::Socket::INET->new(PeerAddr => "127.0.0.1:8080") or die;
    my $body = q({"model": "small", "messages": []});
    print $to "POST /v1/chat/completions HTTP/1.0\r\nContent-Length: ", length $body, "\r\n\r\n$body";
    my @all = <$to>; print $all[0]'"#;

/// A node with an engine, and with models.
struct ImageNode<'w> {
    node: Node<'w>,
    engine: &'w Docker,
    world: &'w World,
}

// === impl ImageNode ===

impl ImageNode<'_> {
    /// Runs a job in the image, and returns its record. Checks that no container and no folder is left.
    fn run(&self, mut job: Value) -> Value {
        job["sandbox"]["image"] = json!(IMAGE);
        let answered = self.node.run(&job);
        assert_eq!(answered.status, 200, "{:#}", answered.json());
        self.is_empty(&answered.json());
        answered.json()
    }

    /// Checks that nothing is left. A client may learn of the end before the run's folder is removed.
    fn is_empty(&self, told: &Value) {
        assert_eq!(self.containers(), "", "{told:#}");
        let runs = self.world.path().join("state/node/runs");
        until(|| std::fs::read_dir(&runs).is_ok_and(|mut left| left.next().is_none()));
    }

    fn containers(&self) -> String {
        self.engine.command(&["ps", "--all", "--quiet"]).unwrap()
    }
}

#[test]
fn jobs_and_sessions_run_programs_of_allowed_images() {
    let name = "jobs_and_sessions_run_programs_of_allowed_images";
    let engine = match Docker::start() {
        Ok(engine) => engine,
        Err(reason) => return skip(name, &reason),
    };
    let world = World::new(crate::BELLJAR);
    let server = ModelServer::start(Script::always(Answer::text("hello")));
    let config = configure(&world, &server);
    allow(&world, &json!({ "allowed_images": [IMAGE, "no-such/*"] }));
    let socket = engine.socket().display().to_string();
    let node = Node::start(&world, &["--config", &config, "--docker-socket", &socket]);
    let mut hall = ImageNode { node, engine: &engine, world: &world };
    a_command_is_told_kept_and_billed(&hall);
    the_runner_works_there_as_anywhere(&hall);
    programs_that_a_job_allows_are_not_left_to_a_container(&hall);
    what_goes_too_far_is_ended(&hall);
    one_that_is_to_stop_stops(&hall);
    ids_of_a_job_are_in_its_container_and_that_of_the_container_is_in_its_result(&hall);
    what_may_not_be_run_is_refused_before_it_is_accepted(&hall);
    a_session_is_a_container_that_stays(&hall);
    a_container_reaches_the_web_by_the_proxy_alone(&hall);
    what_a_killed_node_leaves_the_next_one_clears_away(&mut hall);
}

/// Containers can't enforce an allowlist of programs: the job is refused with the reason.
fn programs_that_a_job_allows_are_not_left_to_a_container(hall: &ImageNode<'_>) {
    let mut job = steps(&json!([{ "type": "run_command", "args": { "argv": ["sh", "-c", "ls"] } }]));
    job["sandbox"]["job_spec"]["constraints"]["allowed_commands"] = json!(["sh"]);
    let told = hall.run(job);
    assert_eq!(told["failure_code"], "policy_violation", "{told:#}");
    assert!(told["failure_message"].as_str().unwrap().contains("list of programs"), "{told:#}");
}

#[test]
fn container_job_whose_engine_is_killed_ends_once_and_the_next_one_runs() {
    let name = "container_job_whose_engine_is_killed_ends_once_and_the_next_one_runs";
    let mut engine = match Docker::start_own() {
        Ok(engine) => engine,
        Err(reason) => return skip(name, &reason),
    };
    let world = World::new(crate::BELLJAR);
    world.write("config.yaml", json!({ "node": { "sandbox": { "allowed_images": [IMAGE] } } }).to_string());
    let socket = engine.socket().display().to_string();
    let node = Node::start(&world, &["--config", "config.yaml", "--docker-socket", &socket]);
    let mut job = script("echo begun; sleep 300");
    job["sandbox"]["image"] = json!(IMAGE);
    node.submit(job.clone());
    let id = job["job_id"].as_str().unwrap();
    node.wait_for(id, "in_progress");
    engine.crash().unwrap();
    // It ends exactly once, with any of these statuses.
    until(|| !node.job(id)["ended_at"].is_null());
    let ends = ["completed", "failed", "timeout", "canceled", "node_failure"];
    let story = node.story(id);
    let ended = story.iter().filter(|told| ends.iter().any(|end| told.starts_with(end)));
    assert_eq!(ended.count(), 1, "{story:?}");
    let mut next = script("echo well");
    next["sandbox"]["image"] = json!(IMAGE);
    let next = node.run(&next).json();
    assert_eq!((&next["status"], &next["stdout"]), (&json!("completed"), &json!("well\n")), "{next:#}");
    // The container that could not be removed before, and its folder.
    until(|| engine.command(&["ps", "--all", "--quiet"]).is_ok_and(|left| left.is_empty()));
    let runs = world.path().join("state/node/runs");
    until(|| std::fs::read_dir(&runs).is_ok_and(|mut left| left.next().is_none()));
}

/// Adds the permitted images and their limits to the configuration.
fn allow(world: &World, sandbox: &Value) {
    let mut config: Value = serde_json::from_str(&world.read("config.yaml")).unwrap();
    config["node"] = json!({ "sandbox": sandbox });
    config["sandboxing"] = json!({ "docker": { "disk_limit": "256m", "memory_limit": "256m" } });
    world.write("config.yaml", config.to_string());
}

fn a_command_is_told_kept_and_billed(hall: &ImageNode<'_>) {
    let mut job = script(&format!(
        "cut -d. -f1 /etc/debian_version; id -u; pwd; {CALL}; echo more > /job/artifacts/left; echo $CYNODE_JOB_ID; \
         (exec 2>&-; touch /etc/no /usr/no || echo sealed); exit 3"
    ));
    job["sandbox"]["use_inference"] = json!(true);
    let told = hall.run(job.clone());
    let expected =
        format!("12\n1000\n/workspace\nHTTP/1.1 200 OK\r\n{}\nsealed\n", job["job_id"].as_str().unwrap());
    assert_eq!((&told["stdout"], &told["exit_code"]), (&json!(expected), &json!(3)), "{told:#}");
    assert_eq!(told["artifacts"][0]["path"], "/job/artifacts/left");
    assert_eq!((&told["inference"]["calls"], &told["isolation"]["backend"]), (&json!(1), &json!("docker")));
    let layers = told["isolation"]["layers"].as_array().unwrap();
    let in_force = |name: &str| layers.iter().any(|layer| layer["name"] == name && layer["in_force"] == true);
    for layer in ["disk_limit", "memory_limit", "network_namespace", "landlock", "seccomp", "capabilities"] {
        assert!(in_force(layer), "{layer} {told:#}");
    }
    let containers = hall.node.get("/v1/worker/telemetry/containers").json();
    let container = &containers["containers"][0];
    let image = format!("docker.io/{IMAGE}:latest");
    assert_eq!(
        (&container["runtime"], &container["image_ref"]),
        (&json!("docker"), &json!(image)),
        "{containers:#}"
    );
}

fn the_runner_works_there_as_anywhere(hall: &ImageNode<'_>) {
    let mut job = steps(&json!([
        { "type": "write_file", "args": { "path": "deep/a", "content": "text" } },
        { "type": "run_command", "args": { "argv": ["sh", "-c", "cat deep/a; cut -d. -f1 /etc/debian_version"] } },
    ]));
    job["sandbox"]["job_spec"]["artifacts"] = json!(["deep/a"]);
    let told = hall.run(job);
    assert_eq!(told["status"], "completed", "{told:#}");
    assert_eq!(told["sba_result"]["steps"][1]["result"]["stdout"], "text12\n");
    assert_eq!(told["artifacts"][0]["path"], "/workspace/deep/a");
    let missing = hall.run(command(&["no-such-program"]));
    assert_eq!((&missing["status"], &missing["exit_code"]), (&json!("failed"), &json!(127)), "{missing:#}");
}

fn what_goes_too_far_is_ended(hall: &ImageNode<'_>) {
    let fill = "dd if=/dev/zero of=big bs=1M count=400 2>/dev/null; sleep 60";
    // A deleted file that is still open takes disk space, too.
    let hidden = "exec 3> gone; rm gone; dd if=/dev/zero bs=1M count=400 >&3 2>/dev/null; sleep 60";
    let hold = "exec perl -e '$held = q(x) x (1 << 30); print length $held; sleep 60'";
    for (text, why) in [(fill, "disk"), (hidden, "disk"), (hold, "memory")] {
        let told = hall.run(script(text));
        let failure = (&told["status"], &told["failure_code"]);
        assert_eq!(failure, (&json!("failed"), &json!("constraint_violation")), "{text} {told:#}");
        assert!(told["failure_message"].as_str().unwrap().contains(why), "{text} {told:#}");
    }
    let mut late = script("echo begun; (while :; do echo; sleep 0.1; done) & sleep 60");
    late["sandbox"]["timeout_seconds"] = json!(2);
    let told = hall.run(late);
    assert_eq!((&told["status"], &told["failure_code"]), (&json!("timeout"), &json!("timeout")), "{told:#}");
    // The control: a file within the quota.
    let told = hall.run(script("dd if=/dev/zero of=big bs=1M count=100 2>/dev/null; stat -c %s big"));
    assert_eq!(told["stdout"], "104857600\n", "{told:#}");
}

fn one_that_is_to_stop_stops(hall: &ImageNode<'_>) {
    let mut polite = script(POLITE);
    polite["sandbox"]["image"] = json!(IMAGE);
    let id = begun(&hall.node, &polite);
    assert_eq!(stop(&hall.node, &polite, 60).json()["status"], "canceled");
    let told = hall.node.job(&id);
    assert_eq!(told["stdout"], "begun\nbye\n", "{told:#}");
    let mut stubborn = script("echo begun; sleep 60");
    stubborn["sandbox"]["image"] = json!(IMAGE);
    let id = begun(&hall.node, &stubborn);
    hall.node.send(&HttpRequest::new("POST", &format!("/v1/worker/jobs/{id}:cancel")));
    let told = hall.node.wait_for(&id, "canceled");
    hall.is_empty(&told);
}

fn ids_of_a_job_are_in_its_container_and_that_of_the_container_is_in_its_result(hall: &ImageNode<'_>) {
    let mut job = script(&format!("echo $SYNTHORG_TASK_ID,$SYNTHORG_REQUEST_ID,$BELLJAR_TASK_ID; {POLITE}"));
    job["sandbox"]["image"] = json!(IMAGE);
    let id = begun(&hall.node, &job);
    let container = hall.engine.command(&["ps", "--no-trunc", "--quiet"]).unwrap().trim().to_owned();
    assert_eq!(stop(&hall.node, &job, 60).json()["status"], "canceled");
    let told = hall.node.job(&id);
    let task = job["task_id"].as_str().unwrap();
    assert_eq!(told["stdout"], format!("{task},{id},{task}\nbegun\nbye\n"), "{told:#}");
    assert!(container.len() == 64 && container.bytes().all(|byte| byte.is_ascii_hexdigit()), "{container}");
    assert_eq!(told["isolation"]["container_id"], container, "{told:#}");
    let [first, second] =
        [(); 2].map(|()| hall.run(script("true"))["isolation"]["container_id"].as_str().unwrap().to_owned());
    assert!(first != second && first != container, "{first} {second}");
    // The control: a native job has no container id.
    let native = hall.node.run(&script("true")).json();
    assert_eq!(
        (&native["isolation"]["backend"], &native["isolation"]["container_id"]),
        (&json!("native"), &Value::Null),
        "{native:#}"
    );
}

fn what_may_not_be_run_is_refused_before_it_is_accepted(hall: &ImageNode<'_>) {
    for (image, status, why) in [
        ("debian:13", 403, "image docker.io/library/debian:13 is not allowed on this node"),
        ("Not/An/Image", 400, "$.sandbox.image"),
        ("--privileged", 400, "$.sandbox.image"),
    ] {
        let mut job = script("true");
        job["sandbox"]["image"] = json!(image);
        let answered = hall.node.run(&job);
        assert_eq!(answered.status, status, "{image} {:#}", answered.json());
        assert!(answered.json()["detail"].as_str().unwrap().contains(why), "{:#}", answered.json());
        assert_eq!(
            hall.node.get(&format!("/v1/worker/jobs/{}", job["job_id"].as_str().unwrap())).status,
            404
        );
        let mut session = json!({ "version": 1, "task_id": new_id(), "session_id": new_id() });
        session["image"] = json!(image);
        assert_eq!(hall.node.post(SESSIONS, &session).status, status, "{image}");
    }
    // The image is permitted, and the engine doesn't have it.
    let mut missing = script("true");
    missing["sandbox"]["image"] = json!("no-such/image");
    let told = hall.node.run(&missing).json();
    assert_eq!((&told["status"], &told["failure_code"]), (&json!("node_failure"), &json!("node_failure")));
    let message = told["failure_message"].as_str().unwrap();
    assert!(message.contains("no image docker.io/no-such/image:latest"), "{told:#}");
    // The control: the node's own programs are always available.
    let mut native = script("true");
    native["sandbox"]["image"] = json!("native");
    assert_eq!(hall.node.run(&native).json()["isolation"]["backend"], "native");
}

fn a_session_is_a_container_that_stays(hall: &ImageNode<'_>) {
    let request = json!({
        "version": 1, "task_id": new_id(), "session_id": new_id(), "image": IMAGE, "use_inference": true,
    });
    let session = open(&hall.node, &request);
    let exec = |text: &str| {
        let command = json!({ "version": 1, "command": ["sh", "-c", text] });
        hall.node.post(&format!("{session}/exec"), &command).json()
    };
    assert_eq!(exec("cut -d. -f1 /etc/debian_version > kept")["status"], "completed");
    assert_eq!(exec(&format!("cat kept; {CALL}"))["stdout"], "12\nHTTP/1.1 200 OK\r\n");
    let ended = hall.node.send(&HttpRequest::new("POST", &format!("{session}/end"))).json();
    assert_eq!((&ended["status"], &ended["inference"]["calls"]), (&json!("ended"), &json!(1)), "{ended:#}");
    let recorded = recorded(&hall.world.path().join("state/node/audit"), "session_ended");
    assert_eq!(recorded[0]["session_id"], request["session_id"]);
    assert_eq!(recorded[0]["usage"], ended["inference"]);
    hall.is_empty(&ended);
}

fn a_container_reaches_the_web_by_the_proxy_alone(hall: &ImageNode<'_>) {
    let ask = r#"perl -MIO::Socket::INET -e '
        my $to = IO::Socket::INET->new(PeerAddr => "127.0.0.1:3128") or print("none\n") && exit;
        print $to "GET http://other.example/ HTTP/1.1\r\nHost: other.example\r\nConnection: close\r\n\r\n";
        print scalar(<$to>) =~ s/^HTTP.1.1 (...).*/$1/sr, "\n"'; ls -d /web-sock 2>/dev/null; exit 3"#;
    let told = hall.run(super::web::command(ask, "restricted"));
    assert_eq!(
        (&told["stdout"], &told["failure_code"]),
        (&json!("403\n/web-sock\n"), &json!("ext_net_required"))
    );
    assert_eq!(told["web"]["denied"][0]["host"], "other.example", "{told:#}");
    let without = hall.run(super::web::command(ask, "none"));
    assert_eq!((&without["stdout"], &without["failure_code"]), (&json!("none\n"), &json!("step_failed")));
}

fn what_a_killed_node_leaves_the_next_one_clears_away(hall: &mut ImageNode<'_>) {
    let mut job = script("echo begun; sleep 600");
    job["sandbox"]["image"] = json!(IMAGE);
    let id = begun(&hall.node, &job);
    // The control: it runs.
    assert_ne!(hall.containers(), "");
    hall.node.killed_and_started();
    let told = hall.node.wait_for(&id, "node_failure");
    until(|| hall.containers().is_empty());
    hall.is_empty(&told);
}

#[test]
fn image_must_be_named_by_digest_if_required_and_none_runs_if_not_allowed() {
    let world = World::new(crate::BELLJAR);
    world.write("config.yaml", "{}\n");
    let refused = |node: &Node<'_>, image: &str| {
        let mut job = script("true");
        job["sandbox"]["image"] = json!(image);
        let answered = node.run(&job);
        assert_eq!(answered.status, 403, "{:#}", answered.json());
        answered.json()["detail"].as_str().unwrap().to_owned()
    };
    let node = Node::start(&world, &[]);
    assert!(refused(&node, "debian:12").contains("no images are allowed on this node"));
    drop(node);
    world.write(
        "config.yaml",
        "node: { sandbox: { allowed_images: [\"debian:*\"], require_digest_pinning: true } }\n",
    );
    let node = Node::start(&world, &["--config", "config.yaml"]);
    assert!(refused(&node, "debian:12").contains("docker.io/library/debian@sha256:"));
    assert_eq!(node.run(&script("true")).json()["status"], "completed");
    drop(node);
    world.write("config.yaml", "node: { sandbox: { default_image: \"debian:12\" } }\n");
    let why = Node::refused(&world, &["--config", "config.yaml"]);
    assert!(why.contains("node.sandbox.default_image"), "{why}");
}
