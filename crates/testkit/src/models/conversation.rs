//! Progress of a conversation with tools, in any dialect.

use super::request::Request;
use serde_json::Value;

// === impl Request ===

impl Request {
    /// The names of the tools that the model may call.
    pub fn offered_tools(&self) -> Vec<String> {
        let body = self.json();
        let tools = body["tools"].as_array().into_iter().flatten();
        // OpenAI's and Ollama's chat have the name one deeper; a tool of the provider's has none but its type.
        let name = |tool: &Value| {
            [&tool["function"]["name"], &tool["name"], &tool["type"]]
                .into_iter()
                .find_map(Value::as_str)
                .map(str::to_owned)
        };
        tools.filter_map(name).collect()
    }

    /// Returns the results of the tools that were called so far, each as JSON, in order.
    pub fn tool_results(&self) -> Vec<Value> {
        let body = self.json();
        let mut results = Vec::new();
        for message in body["messages"].as_array().into_iter().flatten() {
            if message["role"] == "tool" {
                results.push(message["content"].clone());
            }
            let parts = message["content"].as_array().into_iter().flatten();
            results.extend(
                parts.filter(|part| part["type"] == "tool_result").map(|part| part["content"].clone()),
            );
        }
        let items = body["input"].as_array().into_iter().flatten();
        let is_result =
            |item: &&Value| item["type"].as_str().is_some_and(|kind| kind.ends_with("_call_output"));
        results.extend(items.filter(is_result).map(|item| item["output"].clone()));
        results
    }
}
