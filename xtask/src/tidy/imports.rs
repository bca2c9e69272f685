//! Checks that the crates' dependencies in cargo agree with the table of rooms.

use super::{Finding, Repository};
use crate::rooms::{CrateRules, LOCAL_ENGINE, ONLY_FOR_TESTS, OUTSIDERS, ROOMS};
use serde_json::Value;

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in repository.packages() {
        let manifest = manifest_path(package);
        let name = package["name"].as_str().unwrap_or_default();
        let room = name.strip_prefix("belljar-").unwrap_or(name);
        match ROOMS.iter().find(|known| known.name == room) {
            Some(room) => findings.extend(check_package(room, package, &manifest)),
            None => findings.push(finding(
                &manifest,
                format!("the crate {name}"),
                "a row for it in xtask/src/rooms.rs",
            )),
        }
    }
    for room in ROOMS {
        let package = format!("belljar-{}", room.name);
        if !repository.packages().any(|p| p["name"] == room.name || p["name"] == package.as_str()) {
            findings.push(finding(
                "xtask/src/rooms.rs",
                format!("a row for {}", room.name),
                "rows for crates that exist",
            ));
        }
    }
    findings
}

fn check_package(room: &CrateRules, package: &Value, manifest: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for dependency in package["dependencies"].as_array().into_iter().flatten() {
        let name = dependency["name"].as_str().unwrap_or_default();
        let for_tests = dependency["kind"] == "dev";
        if let Some(import) = name.strip_prefix("belljar-") {
            let may = room.may_import.contains(&import) || (for_tests && import == ONLY_FOR_TESTS);
            if !may {
                let right = format!("only {:?}, and {ONLY_FOR_TESTS} in tests", room.may_import);
                findings.push(finding(manifest, format!("{} imports {import}", room.name), right));
            }
            continue;
        }
        if name == LOCAL_ENGINE.name {
            findings.extend(more_than_the_local_socket(dependency, manifest));
        }
        let rules =
            OUTSIDERS.iter().filter(|rule| rule.names.contains(&name) && !rule.only_in.contains(&room.name));
        for rule in rules.filter(|_| !for_tests) {
            let right = format!("{name} only in {:?}: {}", rule.only_in, rule.why);
            findings.push(finding(manifest, format!("{} imports {name}", room.name), right));
        }
    }
    findings
}

/// The client for container engines is allowed for Unix sockets only. With any other feature it could open network
/// connections.
fn more_than_the_local_socket(dependency: &Value, manifest: &str) -> Option<Finding> {
    let features: Vec<&str> =
        dependency["features"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let is_local = dependency["uses_default_features"] == false && features == LOCAL_ENGINE.features;
    let right = format!("`default-features = false`, and only {:?}", LOCAL_ENGINE.features);
    (!is_local).then(|| finding(manifest, format!("{} with {features:?}", LOCAL_ENGINE.name), right))
}

fn manifest_path(package: &Value) -> String {
    let path = package["manifest_path"].as_str().unwrap_or_default();
    let from = ["/crates/", "/tests/", "/xtask/", "/bench/"].iter().find_map(|folder| path.rfind(folder));
    from.map_or(path, |at| &path[at + 1..]).to_owned()
}

fn finding(path: &str, found: String, right: impl Into<String>) -> Finding {
    Finding { path: path.to_owned(), line: 1, found, right: right.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn with_dependency(dependency: &Value) -> Vec<String> {
        let mut packages: Vec<Value> = ROOMS
            .iter()
            .map(|room| json!({ "name": format!("belljar-{}", room.name), "dependencies": [] }))
            .collect();
        packages[1]["dependencies"] = json!([dependency]);
        let repository = Repository { files: Vec::new(), metadata: json!({ "packages": packages }) };
        check(&repository).into_iter().map(|finding| finding.found).collect()
    }

    #[test]
    fn import_missing_from_the_table_is_found() {
        assert_eq!(ROOMS[1].name, "policy");
        assert!(with_dependency(&json!({ "name": "belljar-contract", "kind": null })).is_empty());
        assert!(with_dependency(&json!({ "name": "belljar-testkit", "kind": "dev" })).is_empty());
        assert_eq!(
            with_dependency(&json!({ "name": "belljar-sandbox", "kind": null })),
            ["policy imports sandbox"]
        );
        assert_eq!(
            with_dependency(&json!({ "name": "belljar-testkit", "kind": null })),
            ["policy imports testkit"]
        );
        assert_eq!(with_dependency(&json!({ "name": "tokio", "kind": null })), ["policy imports tokio"]);
        assert_eq!(with_dependency(&json!({ "name": "libc", "kind": null })), ["policy imports libc"]);
    }

    #[test]
    fn engine_client_with_tcp_or_tls_features_is_found() {
        let with = |defaults: bool, features: &[&str]| json!({ "name": "bollard", "kind": null, "uses_default_features": defaults, "features": features });
        // The other finding is about the room.
        assert_eq!(with_dependency(&with(false, &["pipe"])).len(), 1);
        for (defaults, features) in [(true, &["pipe"][..]), (false, &["pipe", "ssl"]), (false, &["http"])] {
            assert_eq!(with_dependency(&with(defaults, features)).len(), 2, "{defaults} {features:?}");
        }
    }

    #[test]
    fn a_crate_without_a_row_and_a_row_without_a_crate_are_found() {
        let metadata = json!({ "packages": [{ "name": "belljar-new", "dependencies": [] }] });
        let findings = check(&Repository { files: Vec::new(), metadata });
        assert_eq!(findings.len(), 1 + ROOMS.len());
    }
}
