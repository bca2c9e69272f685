//! Operation of a request, and its dialect.

use super::request::Request;

/// API that a request uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// OpenAI's, which LiteLLM speaks as well.
    OpenAi,
    /// Anthropic's.
    Anthropic,
    /// Ollama's own.
    Ollama,
}

/// Operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// `POST /v1/chat/completions`
    Chat,
    /// `POST /v1/responses`
    Responses,
    /// `POST /v1/completions`
    Completions,
    /// `POST /v1/embeddings`
    Embeddings,
    /// `GET /v1/models`
    Models,
    /// `POST /v1/messages`
    Messages,
    /// `POST /v1/messages/count_tokens`
    CountTokens,
    /// `POST /api/chat`
    OllamaChat,
    /// `POST /api/generate`
    OllamaGenerate,
    /// `POST /api/embed`
    OllamaEmbed,
    /// `GET /api/tags`
    OllamaTags,
    /// `POST /api/show`
    OllamaShow,
    /// `GET /api/version`
    OllamaVersion,
    /// `GET /` or `HEAD /`: a liveness check.
    Root,
    /// Anything else.
    Unknown,
}

const ROUTES: &[(&str, &str, Operation)] = &[
    ("POST", "/v1/chat/completions", Operation::Chat),
    ("POST", "/v1/responses", Operation::Responses),
    ("POST", "/v1/completions", Operation::Completions),
    ("POST", "/v1/embeddings", Operation::Embeddings),
    ("GET", "/v1/models", Operation::Models),
    ("POST", "/v1/messages", Operation::Messages),
    ("POST", "/v1/messages/count_tokens", Operation::CountTokens),
    ("POST", "/api/chat", Operation::OllamaChat),
    ("POST", "/api/generate", Operation::OllamaGenerate),
    ("POST", "/api/embed", Operation::OllamaEmbed),
    ("GET", "/api/tags", Operation::OllamaTags),
    ("POST", "/api/show", Operation::OllamaShow),
    ("GET", "/api/version", Operation::OllamaVersion),
    ("GET", "/", Operation::Root),
    ("HEAD", "/", Operation::Root),
];

// === impl Operation ===

impl Operation {
    /// Returns true if a model generates the answer.
    pub fn generates(self) -> bool {
        use Operation::{Chat, Completions, Messages, OllamaChat, OllamaGenerate, Responses};
        matches!(self, Chat | Responses | Completions | Messages | OllamaChat | OllamaGenerate)
    }
}

// === impl Request ===

impl Request {
    /// Returns the operation.
    pub fn operation(&self) -> Operation {
        let is_asked_for =
            |(method, path, _): &&(&str, &str, _)| *method == self.method && *path == self.path();
        ROUTES.iter().find(is_asked_for).map_or(Operation::Unknown, |(_, _, operation)| *operation)
    }

    /// Returns the dialect of the operation.
    pub fn dialect(&self) -> Dialect {
        let path = self.path();
        match () {
            () if path.starts_with("/api/") => Dialect::Ollama,
            () if path.starts_with("/v1/messages") || self.header("anthropic-version").is_some() => {
                Dialect::Anthropic
            }
            () => Dialect::OpenAi,
        }
    }

    /// Returns true if the answer is to be streamed. Ollama's is, unless the request disables it.
    pub fn asks_for_a_stream(&self) -> bool {
        match self.json()["stream"].as_bool() {
            Some(stream) => stream,
            None => matches!(self.operation(), Operation::OllamaChat | Operation::OllamaGenerate),
        }
    }

    /// The model that is asked for; empty if none is.
    pub fn model(&self) -> String {
        self.json()["model"].as_str().unwrap_or_default().to_owned()
    }
}
