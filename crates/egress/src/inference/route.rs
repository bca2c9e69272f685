//! Paths of the inference proxy. A path that is not in this table does not exist in any spelling: nothing is decoded, folded or
//! joined before the lookup.

use belljar_contract::inference::ApiDialect;

/// Purpose of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    /// Call that a provider answers.
    Call(Call),
    /// List of models, as in OpenAI's API.
    Models,
    /// List of models, as in Ollama's API.
    Tags,
    /// One model, as in Ollama's API.
    Show,
    /// Version that Ollama's clients look for.
    Version,
    /// Health check.
    Health,
}

/// Call that a provider answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Call {
    /// API format of the call.
    pub(crate) surface: ApiDialect,
    /// Path, which is the same at the provider.
    pub(crate) path: &'static str,
    pub(crate) operation: Operation,
}

/// Operation of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    /// Chat completion or plain completion of OpenAI's older API.
    Completion,
    /// Conversation of OpenAI's Responses API.
    Responses,
    /// Embedding of a text. Never streamed.
    Embedding,
    /// Conversation of Anthropic's API.
    Messages,
    /// Number of tokens of a conversation.
    CountTokens,
    /// Any of Ollama's operations that stream by default.
    Generation,
}

// === impl Call ===

impl Call {
    /// Returns true for a chat completion, false for a plain one.
    pub(crate) fn is_chat(self) -> bool {
        self.path == CHAT
    }
}

const CHAT: &str = "/v1/chat/completions";

const fn call(surface: ApiDialect, path: &'static str, operation: Operation) -> Route {
    Route::Call(Call { surface, path, operation })
}

/// Method, path and route.
const ROUTES: &[(&str, &str, Route)] = &[
    ("GET", "/health", Route::Health),
    ("GET", "/v1/models", Route::Models),
    ("POST", CHAT, call(ApiDialect::Openai, CHAT, Operation::Completion)),
    ("POST", "/v1/completions", call(ApiDialect::Openai, "/v1/completions", Operation::Completion)),
    ("POST", "/v1/responses", call(ApiDialect::Openai, "/v1/responses", Operation::Responses)),
    ("POST", "/v1/embeddings", call(ApiDialect::Openai, "/v1/embeddings", Operation::Embedding)),
    ("POST", "/v1/messages", call(ApiDialect::Anthropic, "/v1/messages", Operation::Messages)),
    (
        "POST",
        "/v1/messages/count_tokens",
        call(ApiDialect::Anthropic, "/v1/messages/count_tokens", Operation::CountTokens),
    ),
    ("POST", "/api/chat", call(ApiDialect::Ollama, "/api/chat", Operation::Generation)),
    ("POST", "/api/generate", call(ApiDialect::Ollama, "/api/generate", Operation::Generation)),
    ("POST", "/api/embed", call(ApiDialect::Ollama, "/api/embed", Operation::Embedding)),
    ("GET", "/api/tags", Route::Tags),
    ("POST", "/api/show", Route::Show),
    ("GET", "/api/version", Route::Version),
];

/// Queries that are forwarded. All others are dropped.
const QUERIES: &[&str] = &["beta=true"];

/// Returns the route of a path.
pub(crate) fn find(method: &str, path: &str) -> Option<Route> {
    ROUTES.iter().find(|(m, p, _)| *m == method && *p == path).map(|(.., route)| *route)
}

/// Returns the API format in which a client of such a path expects an error.
pub(crate) fn shape_of(path: &str) -> ApiDialect {
    match path {
        path if path.starts_with("/api/") => ApiDialect::Ollama,
        path if path.starts_with("/v1/messages") => ApiDialect::Anthropic,
        _ => ApiDialect::Openai,
    }
}

/// Returns the part of a query that is forwarded.
pub(crate) fn query(asked: Option<&str>) -> Option<&'static str> {
    QUERIES.iter().copied().find(|query| Some(*query) == asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn route_matches_only_its_exact_method_and_path() {
        assert!(find("POST", "/v1/chat/completions").is_some());
        for (method, path) in [
            ("GET", "/v1/chat/completions"),
            ("post", "/v1/chat/completions"),
            ("POST", "/v1/chat/completions/"),
            ("POST", "//v1/chat/completions"),
            ("POST", "/v1//chat/completions"),
            ("POST", "/v1/./chat/completions"),
            ("POST", "/v1/x/../chat/completions"),
            ("POST", "/V1/chat/completions"),
            ("POST", "/v1/chat%2fcompletions"),
            ("POST", "/%761/chat/completions"),
            ("POST", "/v1/chat/completions;a"),
            ("POST", "/v1/chat/completions%00"),
            ("POST", "/chat/completions"),
            ("POST", "/v1/files"),
            ("POST", "/v1/batches"),
            ("GET", "/v1/model/info"),
            ("GET", "/key/info"),
            ("POST", "/key/generate"),
            ("GET", "/spend/logs"),
            ("GET", "/v1/responses"),
            ("POST", "/api/pull"),
            ("DELETE", "/api/delete"),
            ("GET", "/"),
        ] {
            assert_eq!(find(method, path), None, "{method} {path}");
        }
    }

    #[test]
    fn only_known_queries_are_forwarded() {
        assert_eq!(query(Some("beta=true")), Some("beta=true"));
        for other in [None, Some(""), Some("beta=true&api_key=x"), Some("beta=1"), Some("api-version=2024")] {
            assert_eq!(query(other), None);
        }
    }
}
