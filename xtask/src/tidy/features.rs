//! Nothing that ships leaves out a wall: only a test, by name, turns on the feature that makes that possible.

use super::{Finding, Repository};
use serde_json::Value;

const FEATURE: &str = "removable-walls";

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in repository.packages() {
        let name = package["name"].as_str().unwrap_or_default();
        let mut complain = |found: String| {
            let right = format!("`{FEATURE}` turned on by `{FEATURE}` alone");
            findings.push(Finding { path: "Cargo.toml".into(), line: 1, found, right });
        };
        for (feature, turns_on) in package["features"].as_object().into_iter().flatten() {
            if feature != FEATURE && names_it(turns_on) {
                complain(format!("{name}: the feature `{feature}` turns it on"));
            }
        }
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            if names_it(&dependency["features"]) {
                complain(format!("{name}: the dependency {} has it", dependency["name"]));
            }
        }
    }
    findings
}

fn names_it(features: &Value) -> bool {
    let mut features = features.as_array().into_iter().flatten().filter_map(Value::as_str);
    features.any(|feature| feature.rsplit('/').next() == Some(FEATURE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn found(features: &Value, of_dependency: &Value) -> usize {
        let dependency = json!({ "name": "belljar-confine", "features": of_dependency });
        let package = json!({ "name": "a", "features": features, "dependencies": [dependency] });
        check(&Repository { files: Vec::new(), metadata: json!({ "packages": [package] }) }).len()
    }

    #[test]
    fn whoever_turns_it_on_is_found() {
        assert_eq!(found(&json!({ FEATURE: ["belljar-confine/removable-walls"] }), &json!([])), 0);
        assert_eq!(found(&json!({ "default": [FEATURE] }), &json!([])), 1);
        assert_eq!(found(&json!({ "fast": ["belljar-confine/removable-walls"] }), &json!([])), 1);
        assert_eq!(found(&json!({}), &json!([FEATURE])), 1);
    }
}
