//! Nodes with a shared database and different capabilities: each claims only the jobs that it can run.

use super::stopped::stop;
use crate::models::configure;
use belljar_testkit::models::{Answer, ModelServer, Script};
use belljar_testkit::node::{Node, command, script};
use belljar_testkit::postgres::Postgres;
use belljar_testkit::skip::skip;
use belljar_testkit::world::World;
use serde_json::{Value, json};

fn on_each_shared_database(name: &str, test: impl Fn(&World, &str)) {
    let world = World::new(crate::BELLJAR);
    test(&world, &format!("sqlite:{}", world.path().join("jobs.db").display()));
    match Postgres::start().and_then(|server| server.database().map(|url| (server, url))) {
        Ok((_server, url)) => test(&World::new(crate::BELLJAR), &url),
        Err(why) => skip(name, &why),
    }
}

/// Makes the node without models and images run a few jobs, so that it has seen every waiting job.
fn pass_by(unable: &Node<'_>) {
    for _ in 0..3 {
        assert_eq!(unable.run(&command(&["true"])).json()["status"], "completed");
    }
}

#[test]
fn job_waits_for_the_node_that_has_its_models() {
    on_each_shared_database("node::able::job_waits_for_the_node_that_has_its_models", |world, database| {
        let server = ModelServer::start(Script::always(Answer::text("hello")));
        let config = configure(world, &server);
        let unable = Node::start(world, &["--database", database, "--state-dir", "unable"]);
        let of_able =
            ["--database", database, "--state-dir", "able", "--config", &config, "--max-concurrency", "1"];
        let able = Node::start(world, &of_able);
        let asking = |mut job: Value| {
            job["sandbox"]["use_inference"] = json!(true);
            job
        };
        let busy = asking(script("echo begun; sleep 300"));
        let first = able.submit(busy.clone());
        able.wait_for(&first, "in_progress");
        let second = able.submit(asking(script("echo done")));
        pass_by(&unable);
        assert_eq!(unable.job(&second)["status"], "accepted");
        stop(&able, &busy, 0);
        assert_eq!(able.wait_for(&second, "completed")["stdout"], "done\n");
        assert_eq!(able.story(&second), ["accepted 0", "in_progress 1", "completed 1"]);
    });
}

#[test]
fn job_of_an_image_is_claimed_by_the_node_that_allows_it() {
    on_each_shared_database(
        "node::able::job_of_an_image_is_claimed_by_the_node_that_allows_it",
        |world, database| {
            let sandbox = json!({ "allowed_images": ["debian:*"], "default_image": "debian:12" });
            let config = world.write("config.yaml", json!({ "node": { "sandbox": sandbox } }).to_string());
            let unable = Node::start(world, &["--database", database, "--state-dir", "unable"]);
            // There is no engine: the job's failure shows which node has claimed it.
            let config = config.display().to_string();
            let of_able = ["--database", database, "--state-dir", "able", "--config", &config];
            let able =
                Node::start(world, &[&of_able[..], &["--docker-socket", "/nowhere/engine.sock"]].concat());
            for image in [json!("debian:12"), Value::Null] {
                for _ in 0..4 {
                    let mut job = script("true");
                    job["sandbox"]["image"] = image.clone();
                    if image.is_null() {
                        job["sandbox"].as_object_mut().unwrap().remove("image");
                    }
                    let told = able.run(&job).json();
                    let why = told["failure_message"].as_str().unwrap();
                    assert!(
                        told["status"] == "node_failure" && why.contains("/nowhere/engine.sock"),
                        "{told}"
                    );
                    pass_by(&unable);
                }
            }
        },
    );
}
