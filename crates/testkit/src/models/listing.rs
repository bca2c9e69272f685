//! Answers that need no script: lists of models, vectors, counts.

use super::ollama::rfc3339;
use super::operation::{Dialect, Operation};
use super::rendered::RenderedAnswer;
use super::request::Request;
use base64::Engine;
use serde_json::{Value, json};

/// The answer, if the request is for one of these.
pub(super) fn answer(request: &Request, models: &[String]) -> Option<RenderedAnswer> {
    let body = match request.operation() {
        Operation::Models if request.dialect() == Dialect::Anthropic => anthropic_models(models),
        Operation::Models => {
            let model = |name: &String| json!({ "id": name, "object": "model", "created": CREATED, "owned_by": "belljar" });
            json!({ "object": "list", "data": models.iter().map(model).collect::<Vec<_>>() })
        }
        Operation::CountTokens => json!({ "input_tokens": request.body.len() / 4 }),
        Operation::Embeddings => embeddings(request),
        Operation::OllamaEmbed => ollama_embeddings(request),
        Operation::OllamaTags => json!({ "models": models.iter().map(|name| tag(name)).collect::<Vec<_>>() }),
        Operation::OllamaShow => show(),
        Operation::OllamaVersion => json!({ "version": "0.12.6" }),
        Operation::Root => json!({ "status": "ok" }),
        _ => return None,
    };
    Some(RenderedAnswer::json(200, &body))
}

/// Creation time of every model.
const CREATED: u64 = 1_700_000_000;

fn anthropic_models(models: &[String]) -> Value {
    let created_at = rfc3339(CREATED);
    let model = |name: &String| json!({ "type": "model", "id": name, "display_name": name, "created_at": created_at });
    let data: Vec<Value> = models.iter().map(model).collect();
    json!({ "data": data, "has_more": false, "first_id": models.first(), "last_id": models.last() })
}

fn tag(name: &str) -> Value {
    json!({
        "name": name, "model": name, "modified_at": rfc3339(CREATED), "size": 4_096, "digest": "0".repeat(64),
        "details": details(),
    })
}

fn show() -> Value {
    json!({
        "modelfile": "FROM scratch", "parameters": "", "template": "{{ .Prompt }}", "details": details(),
        "model_info": { "general.architecture": "scripted" }, "capabilities": ["completion", "tools"],
        "modified_at": rfc3339(CREATED),
    })
}

fn details() -> Value {
    json!({
        "parent_model": "", "format": "gguf", "family": "scripted", "families": ["scripted"],
        "parameter_size": "1B", "quantization_level": "Q4_0",
    })
}

/// The texts of which vectors are wanted.
fn inputs(request: &Request) -> Vec<String> {
    match &request.json()["input"] {
        Value::Array(inputs) => {
            inputs.iter().map(|input| input.as_str().unwrap_or_default().to_owned()).collect()
        }
        input => vec![input.as_str().unwrap_or_default().to_owned()],
    }
}

/// A vector of a text: the same for the same one.
fn vector(text: &str) -> [f32; 4] {
    let mut vector = [0.5_f32; 4];
    for (index, byte) in text.bytes().enumerate() {
        vector[index % 4] = f32::midpoint(vector[index % 4], f32::from(byte) / 255.0);
    }
    vector
}

fn embeddings(request: &Request) -> Value {
    let inputs = inputs(request);
    let is_packed = request.json()["encoding_format"] == "base64";
    let embedding = |(index, text): (usize, &String)| {
        let vector = vector(text);
        let packed = || {
            let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
            json!(base64::engine::general_purpose::STANDARD.encode(bytes))
        };
        let numbers = if is_packed { packed() } else { json!(vector) };
        json!({ "object": "embedding", "index": index, "embedding": numbers })
    };
    let data: Vec<Value> = inputs.iter().enumerate().map(embedding).collect();
    let tokens = inputs.iter().map(|text| text.split_whitespace().count()).sum::<usize>();
    json!({
        "object": "list", "data": data, "model": request.model(),
        "usage": { "prompt_tokens": tokens, "total_tokens": tokens },
    })
}

fn ollama_embeddings(request: &Request) -> Value {
    let inputs = inputs(request);
    let vectors: Vec<[f32; 4]> = inputs.iter().map(|text| vector(text)).collect();
    json!({
        "model": request.model(), "embeddings": vectors, "total_duration": 2_000_000,
        "load_duration": 1_000_000, "prompt_eval_count": inputs.len(),
    })
}
