//! The Compose file of the node with its database. Its images are on a remote registry, so it is parsed and not started.

use super::{file, said};
use belljar_testkit::skip::skip;
use std::process::Command;

#[test]
fn compose_file_is_well_formed_and_publishes_no_database() {
    // The file's own directory, so that relative paths in it resolve.
    let mut command = Command::new("docker-compose");
    command.arg("config").current_dir(file(""));
    let Some((is_well_formed, said)) = said(&mut command) else {
        return skip(
            "deploy::compose::compose_file_is_well_formed_and_publishes_no_database",
            "docker-compose is not installed",
        );
    };
    assert!(is_well_formed, "{said}");
    let (_, database) = said.split_once("\n  database:\n").unwrap();
    let database = database.split("\n  node:\n").next().unwrap();
    assert!(database.contains("image: postgres:17") && database.contains("pg_isready"), "{database}");
    assert!(!database.contains("ports:"), "{database}");
    assert!(said.contains("127.0.0.1:12090:12090"), "{said}");
}
