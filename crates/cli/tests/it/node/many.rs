//! Several nodes with one database.

use super::stopped::{POLITE, begun, stop};
use belljar_testkit::http::HttpRequest;
use belljar_testkit::node::{Node, command, script};
use belljar_testkit::postgres::Postgres;
use belljar_testkit::skip::skip;
use belljar_testkit::world::World;
use serde_json::json;

#[test]
fn two_nodes_on_one_database_share_the_work_and_run_nothing_twice() {
    let server = match Postgres::start() {
        Ok(server) => server,
        Err(why) => {
            return skip("node::many::two_nodes_on_one_database_share_the_work_and_run_nothing_twice", &why);
        }
    };
    let url = server.database().unwrap();
    let worlds = [World::new(crate::BELLJAR), World::new(crate::BELLJAR)];
    let arguments = ["--database", url.as_str(), "--max-concurrency", "2"];
    let nodes = worlds.each_ref().map(|world| Node::start(world, &arguments));
    let ids: Vec<_> = (0..24).map(|number| nodes[number % 2].submit(command(&["true"]))).collect();
    for id in &ids {
        // Either node knows all jobs.
        nodes[0].wait_for(id, "completed");
        assert_eq!(nodes[1].story(id), ["accepted 0", "in_progress 1", "completed 1"]);
    }
    // A cancellation at one node reaches the job at the other.
    let jobs: Vec<_> = (0..4).map(|_| nodes[0].submit(script("sleep 100"))).collect();
    for id in &jobs {
        nodes[1].wait_for(id, "in_progress");
        nodes[1].send(&HttpRequest::new("POST", &format!("/v1/worker/jobs/{id}:cancel")));
    }
    for id in &jobs {
        assert_eq!(nodes[0].wait_for(id, "canceled")["failure_code"], "canceled");
    }
    let owners = server.ask(&url, "SELECT count(*) FROM jobs WHERE owner IS NOT NULL").unwrap();
    assert_eq!(json!(owners.trim()), "0");
}

#[test]
fn job_stopped_through_another_node_keeps_its_grace_period() {
    const NAME: &str = "node::many::job_stopped_through_another_node_keeps_its_grace_period";
    let server = match Postgres::start() {
        Ok(server) => server,
        Err(why) => return skip(NAME, &why),
    };
    let url = server.database().unwrap();
    let [world, other] = [World::new(crate::BELLJAR), World::new(crate::BELLJAR)];
    let arguments = ["--database", url.as_str()];
    let owner = Node::start(&world, &arguments);
    // Begun while there is no other node that could run them.
    let [polite, canceled] = [script(POLITE), script(POLITE)];
    let ids = [&polite, &canceled].map(|job| begun(&owner, job));
    let other = Node::start(&other, &arguments);
    assert_eq!(stop(&other, &polite, 60).json()["status"], "canceled");
    assert_eq!(other.job(&ids[0])["stdout"], "begun\nbye\n");
    // The control: a canceled job has none.
    other.send(&HttpRequest::new("POST", &format!("/v1/worker/jobs/{}:cancel", ids[1])));
    assert_eq!(other.wait_for(&ids[1], "canceled")["stdout"], "begun\n");
}

#[test]
fn copied_state_directory_does_not_start_while_its_original_lives() {
    const NAME: &str = "node::many::copied_state_directory_does_not_start_while_its_original_lives";
    let server = match Postgres::start() {
        Ok(server) => server,
        Err(why) => return skip(NAME, &why),
    };
    let url = server.database().unwrap();
    let arguments = ["--database", url.as_str()];
    let [world, copy] = [World::new(crate::BELLJAR), World::new(crate::BELLJAR)];
    let mut node = Node::start(&world, &arguments);
    let [from, to] = [&world, &copy].map(|world| world.path().join("state/node"));
    std::fs::create_dir_all(&to).unwrap();
    for name in ["node-id", "node.lock", "instances"] {
        std::fs::copy(from.join(name), to.join(name)).unwrap();
    }
    let running = node.submit(script("sleep 6; echo done"));
    node.wait_for(&running, "in_progress");
    let refused = Node::refused(&copy, &arguments);
    assert!(refused.contains("is alive at this database") && refused.contains("node-id"), "{refused}");
    // Controls: a node with an id of its own starts; and the original goes on and, after a kill, starts again at once.
    std::fs::remove_file(to.join("node-id")).unwrap();
    drop(Node::start(&copy, &arguments));
    assert_eq!(node.wait_for(&running, "completed")["stdout"], "done\n");
    let begun = std::time::Instant::now();
    node.killed_and_started();
    assert!(begun.elapsed() < std::time::Duration::from_secs(10), "{:?}", begun.elapsed());
    assert_eq!(node.run(&command(&["true"])).json()["status"], "completed");
}
