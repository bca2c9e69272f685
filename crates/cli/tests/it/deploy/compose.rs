//! The node with its database, by Compose. Its images are on another host, so it is read and not started.

use super::{file, said};
use belljar_testkit::skip::skip;
use std::process::Command;

#[test]
fn its_file_is_well_formed_and_publishes_no_database() {
    // Where it is found, so that what it names beside it is.
    let mut command = Command::new("docker-compose");
    command.arg("config").current_dir(file(""));
    let Some((is_well_formed, said)) = said(&mut command) else {
        return skip(
            "deploy::compose::its_file_is_well_formed_and_publishes_no_database",
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
