//! JSON Schema of the configuration (draft 2020-12), made from the tables of the reference: for editors that complete and check YAML.

use crate::json;
use crate::reference::{AcceptedValues, Member, MemberDefault, ROOT, Scalar};
use belljar_contract::category::{ALIASES, Category};
use belljar_contract::isolation::LAYERS;
use serde_json::{Map, Value, json};

/// Returns the schema of a whole file. Rules that relate members to each other are not in it; `belljar config check` has them.
pub fn schema() -> Value {
    let mut schema = object(ROOT);
    schema.insert("$schema".to_owned(), "https://json-schema.org/draft/2020-12/schema".into());
    schema.insert("$id".to_owned(), "urn:belljar:schema:configuration:1.0".into());
    schema.insert("title".to_owned(), "Belljar configuration".into());
    schema.insert("minProperties".to_owned(), 1.into());
    Value::Object(schema)
}

fn object(members: &[Member]) -> Map<String, Value> {
    let properties: Map<String, Value> =
        members.iter().map(|member| (member.name.to_owned(), property(member))).collect();
    let is_required =
        |member: &&Member| matches!(member.default, MemberDefault::Required(_)) && !depends(member);
    let required: Vec<&str> = members.iter().filter(is_required).map(|member| member.name).collect();
    let mut object = Map::new();
    object.insert("type".to_owned(), "object".into());
    object.insert("properties".to_owned(), Value::Object(properties));
    if !required.is_empty() {
        object.insert("required".to_owned(), required.into());
    }
    object.insert("additionalProperties".to_owned(), false.into());
    object
}

/// Returns true if a member is required beside some values of its siblings only.
fn depends(member: &Member) -> bool {
    member.name == "command"
}

fn property(member: &Member) -> Value {
    let mut schema = match member.takes {
        AcceptedValues::One(scalar) => scalar_schema(scalar),
        AcceptedValues::List(scalar) => fields(json!({ "type": "array", "items": scalar_schema(scalar) })),
        AcceptedValues::Layers => fields(json!({ "type": "array", "items": { "enum": LAYERS } })),
        AcceptedValues::ByCategory(scalar) => {
            let names = Category::ALL.map(Category::as_str).into_iter();
            let names: Vec<&str> = names.chain(ALIASES.map(|(alias, _)| alias)).collect();
            let each = scalar_schema(scalar);
            fields(
                json!({ "type": "object", "propertyNames": { "enum": names }, "additionalProperties": each }),
            )
        }
        AcceptedValues::ByName(scalar) => {
            fields(json!({ "type": "object", "additionalProperties": scalar_schema(scalar) }))
        }
        AcceptedValues::Section(below) => object(below),
        AcceptedValues::Sections(below) => fields(json!({ "type": "array", "items": object(below) })),
    };
    let form = schema.remove("description");
    let form =
        form.as_ref().and_then(Value::as_str).map_or_else(String::new, |form| format!(". Takes {form}"));
    let absent = match member.default {
        MemberDefault::Described(words, _) => format!(". Default: {words}"),
        _ => String::new(),
    };
    schema.insert("description".to_owned(), format!("{}{form}{absent}", member.meaning).into());
    if let MemberDefault::Value(value) = member.default {
        schema.insert("default".to_owned(), json::of_text(value));
    }
    Value::Object(schema)
}

fn scalar_schema(scalar: Scalar) -> Map<String, Value> {
    let in_seconds = |millis: u64| json!(millis as f64 / 1_000.0);
    fields(match scalar {
        Scalar::Boolean => json!({ "type": "boolean" }),
        Scalar::Whole(least, most) => json!({ "type": "integer", "minimum": least, "maximum": most }),
        Scalar::Seconds(least, most) => json!({
            "type": "number", "minimum": in_seconds(least), "maximum": in_seconds(most),
            "description": scalar.to_string(),
        }),
        Scalar::Number(most) => json!({ "type": "number", "minimum": 0, "maximum": most }),
        Scalar::Size(least) => json!({
            "anyOf": [{ "type": "integer", "minimum": least }, { "type": "string", "pattern": "^[1-9][0-9]*[kmg]?$" }],
            "description": scalar.to_string(),
        }),
        Scalar::OneOf(names) => json!({ "enum": names }),
        Scalar::Fixed(value, reason) => {
            json!({ "const": json::of_text(value), "description": format!("this value only: {reason}") })
        }
        Scalar::Text(form) => json!({ "type": "string", "description": form }),
        Scalar::Any(form) => json!({ "description": form }),
    })
}

fn fields(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests;
