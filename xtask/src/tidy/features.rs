//! Checks that no shipped crate enables a feature that removes isolation layers or adds failpoints. Only tests enable
//! these features, by name.

use super::{Finding, Repository};
use serde_json::Value;

const FEATURES: [&str; 2] = ["removable-walls", "failpoints"];

pub(super) fn check(repository: &Repository) -> Vec<Finding> {
    FEATURES.into_iter().flat_map(|feature| check_one(repository, feature)).collect()
}

fn check_one(repository: &Repository, guarded: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in repository.packages() {
        let name = package["name"].as_str().unwrap_or_default();
        let mut complain = |found: String| {
            let right = format!("`{guarded}` turned on by `{guarded}` alone");
            findings.push(Finding { path: "Cargo.toml".into(), line: 1, found, right });
        };
        for (feature, turns_on) in package["features"].as_object().into_iter().flatten() {
            if feature != guarded && names_it(turns_on, guarded) {
                complain(format!("{name}: the feature `{feature}` turns it on"));
            }
        }
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            if names_it(&dependency["features"], guarded) {
                complain(format!("{name}: the dependency {} has it", dependency["name"]));
            }
        }
    }
    findings
}

fn names_it(features: &Value, guarded: &str) -> bool {
    let mut features = features.as_array().into_iter().flatten().filter_map(Value::as_str);
    features.any(|feature| feature.rsplit('/').next() == Some(guarded))
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
    fn crate_enabling_a_forbidden_feature_is_found() {
        for feature in FEATURES {
            let of_another = format!("belljar-confine/{feature}");
            assert_eq!(found(&json!({ feature: [of_another] }), &json!([])), 0);
            assert_eq!(found(&json!({ "default": [feature] }), &json!([])), 1);
            assert_eq!(found(&json!({ "fast": [of_another] }), &json!([])), 1);
            assert_eq!(found(&json!({}), &json!([feature])), 1);
        }
    }
}
