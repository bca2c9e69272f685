//! Values of YAML as JSON.

use belljar_contract::yaml::{self, MistakeLog, Node, Value};
use serde_json::{Map, Value as Json};

/// Returns a value as JSON. Texts without quotes that read as a boolean or a number are one.
pub(crate) fn of_node(node: &Node) -> Json {
    match &node.value {
        Value::Plain(text) => of_plain(text),
        Value::Text(text) => Json::from(text.as_str()),
        Value::Sequence(items) => Json::Array(items.iter().map(of_node).collect()),
        Value::Mapping(members) => {
            let members: Map<String, Json> =
                members.iter().map(|(key, node)| (key.name.clone(), of_node(node))).collect();
            Json::Object(members)
        }
    }
}

/// Returns a value of the reference as JSON.
pub(crate) fn of_text(text: &str) -> Json {
    let node = yaml::parse(text.as_bytes(), &mut MistakeLog::default());
    node.map_or(Json::Null, |node| of_node(&node))
}

fn of_plain(text: &str) -> Json {
    match text {
        "true" => Json::Bool(true),
        "false" => Json::Bool(false),
        _ if yaml::whole_number(text).is_some() || yaml::thousandths(text).is_some() => {
            serde_json::from_str(text).unwrap_or_else(|_| Json::from(text))
        }
        _ => Json::from(text),
    }
}
