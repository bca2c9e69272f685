//! Members that have no effect, given the other members of the same file.
//!
//! Only what the file alone decides is reported. An option of the command line may change more.

use belljar_contract::category::Category;
use belljar_contract::yaml::{Node, Position, Value};

/// A member that has no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InertMember {
    /// Position of its value.
    pub position: Position,
    /// Path from the root.
    pub path: String,
    /// Reason.
    pub reason: &'static str,
}

/// Mappings of `sandboxing` from categories.
const BY_CATEGORY: [&[&str]; 3] = [
    &["sandboxing", "overrides"],
    &["sandboxing", "docker", "network_overrides"],
    &["sandboxing", "docker", "runtime_overrides"],
];

/// Sections whose other members have no effect unless `enabled` is true, and the default of `enabled`.
const SWITCHES: [(&[&str], bool); 2] =
    [(&["log", "container_log_shipping"], true), (&["trust", "re_verification"], false)];

/// Returns the members of a document without mistakes that have no effect, in the order of their positions. `has_sandbox` returns true
/// for categories whose tools work in sandboxes.
pub fn inert(root: &Node, has_sandbox: impl Fn(Category) -> bool) -> Vec<InertMember> {
    let mut found = Vec::new();
    for path in BY_CATEGORY {
        for (name, node) in mapping(root.member(path)) {
            if Category::named(name).is_some_and(|category| !has_sandbox(category)) {
                found.push(note(node, "tools of this category work on the host"));
            }
        }
    }
    for (path, is_on) in SWITCHES {
        let section = root.member(path);
        let enabled = section.and_then(|section| section.member(&["enabled"]));
        if !enabled.map_or(is_on, |node| is_plain(node, "true")) {
            let others = mapping(section).filter(|(name, _)| *name != "enabled");
            found.extend(others.map(|(_, node)| note(node, "`enabled` is false")));
        }
    }
    for agent in items(root.member(&["tool_access", "agents"])) {
        if let (Some(department), Some(_)) = (agent.member(&["department"]), agent.member(&["autonomy"])) {
            found.push(note(department, "`autonomy` of the same agent takes precedence"));
        }
    }
    found.extend(unnamed(root));
    found.sort_by_key(|member| member.position);
    found
}

/// Returns items with a name that no other part of the file names.
fn unnamed(root: &Node) -> Vec<InertMember> {
    let egress = root.member(&["egress"]);
    let rules = || items(egress.and_then(|egress| egress.member(&["rules"])));
    let credentials: Vec<&str> =
        rules().flat_map(|rule| items(rule.member(&["credentials"]))).filter_map(text).collect();
    let inference = root.member(&["inference"]);
    let models = items(inference.and_then(|inference| inference.member(&["models"])));
    let providers: Vec<&str> =
        models.filter_map(|model| model.member(&["provider"])).filter_map(text).collect();
    let lists = [
        (egress, "credentials", &credentials, "no rule names this credential"),
        (egress, "aws_keys", &credentials, "no rule names this key"),
        (inference, "providers", &providers, "no model names this provider"),
    ];
    let mut found = Vec::new();
    for (section, list, names, reason) in lists {
        for item in items(section.and_then(|section| section.member(&[list]))) {
            let name = item.member(&["name"]).and_then(text);
            if name.is_some_and(|name| !names.contains(&name)) {
                found.push(note(item, reason));
            }
        }
    }
    found
}

fn note(node: &Node, reason: &'static str) -> InertMember {
    InertMember { position: node.position, path: node.path.clone(), reason }
}

fn mapping(node: Option<&Node>) -> impl Iterator<Item = (&str, &Node)> {
    let members = match node.map(|node| &node.value) {
        Some(Value::Mapping(members)) => members.as_slice(),
        _ => &[],
    };
    members.iter().map(|(key, node)| (key.name.as_str(), node))
}

fn items(node: Option<&Node>) -> impl Iterator<Item = &Node> {
    let items = match node.map(|node| &node.value) {
        Some(Value::Sequence(items)) => items.as_slice(),
        _ => &[],
    };
    items.iter()
}

fn text(node: &Node) -> Option<&str> {
    match &node.value {
        Value::Plain(text) | Value::Text(text) => Some(text),
        Value::Sequence(_) | Value::Mapping(_) => None,
    }
}

fn is_plain(node: &Node, expected: &str) -> bool {
    matches!(&node.value, Value::Plain(text) if text == expected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_contract::yaml::{self, MistakeLog};

    fn found(document: &str) -> Vec<String> {
        let root = yaml::parse(document.as_bytes(), &mut MistakeLog::default()).unwrap();
        let inert = inert(&root, |category| category == Category::Terminal);
        inert.into_iter().map(|member| format!("{} {}", member.position.line, member.path)).collect()
    }

    #[test]
    fn members_without_effect_are_found_with_their_line() {
        let document = "sandboxing:\n  overrides: {terminal: native, web: native}\n\
                        log:\n  container_log_shipping: {enabled: false, max_log_bytes: 5}\n\
                        trust:\n  re_verification: {interval_days: 5}\n\
                        tool_access:\n  agents: [{name: a, department: b, autonomy: semi}, {name: c, department: b}]\n\
                        inference:\n  providers: [{name: used}, {name: unused}]\n  models: [{provider: used}]\n\
                        egress:\n  rules: [{credentials: [x]}]\n  credentials: [{name: x}, {name: y}]\n";
        assert_eq!(
            found(document),
            [
                "2 sandboxing.overrides.web",
                "4 log.container_log_shipping.max_log_bytes",
                "6 trust.re_verification.interval_days",
                "8 tool_access.agents[0].department",
                "10 inference.providers[1]",
                "14 egress.credentials[1]",
            ]
        );
    }

    #[test]
    fn members_with_an_effect_are_not_reported() {
        let document = "sandboxing: {overrides: {terminal: native}}\n\
                        log: {container_log_shipping: {max_log_bytes: 5}}\n\
                        trust: {re_verification: {enabled: true, interval_days: 5}}\n";
        assert_eq!(found(document), Vec::<String>::new());
    }
}
