//! Which paths there are. Whatever is not in this table is not there, by any spelling: nothing is decoded, folded or
//! joined before it is looked up.

use belljar_contract::inference::Surface;

/// What a path is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Route {
    /// A call that a provider answers.
    Call(Call),
    /// What may be asked for, as OpenAI's list.
    Models,
    /// The same as Ollama's list.
    Tags,
    /// One of them, as Ollama tells it.
    Show,
    /// The version that Ollama's clients look for.
    Version,
    /// Whether there is somebody.
    Health,
}

/// A call that a provider answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Call {
    /// In whose shape it is.
    pub(crate) surface: Surface,
    /// The path, here and there.
    pub(crate) path: &'static str,
    pub(crate) operation: Operation,
}

/// What is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    /// A conversation, of OpenAI's older kind or a plain text.
    Completion,
    /// A conversation, of OpenAI's newer kind.
    Responses,
    /// Numbers for a text. Never streamed.
    Embedding,
    /// A conversation of Anthropic's kind.
    Messages,
    /// How long one would be.
    CountTokens,
    /// Anything of Ollama's that is streamed unless it is asked not to be.
    Generation,
}

// === impl Call ===

impl Call {
    /// Whether it is of OpenAI's older kind of conversation, and no plain text.
    pub(crate) fn is_chat(self) -> bool {
        self.path == CHAT
    }
}

const CHAT: &str = "/v1/chat/completions";

const fn call(surface: Surface, path: &'static str, operation: Operation) -> Route {
    Route::Call(Call { surface, path, operation })
}

/// Method, path, what there is.
const ROUTES: &[(&str, &str, Route)] = &[
    ("GET", "/health", Route::Health),
    ("GET", "/v1/models", Route::Models),
    ("POST", CHAT, call(Surface::Openai, CHAT, Operation::Completion)),
    ("POST", "/v1/completions", call(Surface::Openai, "/v1/completions", Operation::Completion)),
    ("POST", "/v1/responses", call(Surface::Openai, "/v1/responses", Operation::Responses)),
    ("POST", "/v1/embeddings", call(Surface::Openai, "/v1/embeddings", Operation::Embedding)),
    ("POST", "/v1/messages", call(Surface::Anthropic, "/v1/messages", Operation::Messages)),
    (
        "POST",
        "/v1/messages/count_tokens",
        call(Surface::Anthropic, "/v1/messages/count_tokens", Operation::CountTokens),
    ),
    ("POST", "/api/chat", call(Surface::Ollama, "/api/chat", Operation::Generation)),
    ("POST", "/api/generate", call(Surface::Ollama, "/api/generate", Operation::Generation)),
    ("POST", "/api/embed", call(Surface::Ollama, "/api/embed", Operation::Embedding)),
    ("GET", "/api/tags", Route::Tags),
    ("POST", "/api/show", Route::Show),
    ("GET", "/api/version", Route::Version),
];

/// What stands behind a question mark and is passed on. Everything else there is let go of.
const QUERIES: &[&str] = &["beta=true"];

/// What there is at a path.
pub(crate) fn find(method: &str, path: &str) -> Option<Route> {
    ROUTES.iter().find(|(m, p, _)| *m == method && *p == path).map(|(.., route)| *route)
}

/// In whose shape somebody who asked for such a path expects to hear that there is nothing.
pub(crate) fn shape_of(path: &str) -> Surface {
    match path {
        path if path.starts_with("/api/") => Surface::Ollama,
        path if path.starts_with("/v1/messages") => Surface::Anthropic,
        _ => Surface::Openai,
    }
}

/// The part of a query that is passed on.
pub(crate) fn query(asked: Option<&str>) -> Option<&'static str> {
    QUERIES.iter().copied().find(|query| Some(*query) == asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_found_by_another_spelling() {
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
    fn of_a_query_only_what_is_known_goes_on() {
        assert_eq!(query(Some("beta=true")), Some("beta=true"));
        for other in [None, Some(""), Some("beta=true&api_key=x"), Some("beta=1"), Some("api-version=2024")] {
            assert_eq!(query(other), None);
        }
    }
}
