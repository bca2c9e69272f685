//! Routes to models, as the environment names them: each with a dialect, and with the models that are available there.

use super::{ModelError, ollama, openai};
use crate::deadline::Deadline;
use crate::http_client::{HttpClient, HttpError, HttpRequest, HttpResponse, ServerAddress};
use std::time::Duration;

/// Names of models that a server lists; `None` if it doesn't list them.
pub(super) type ListedModels = Option<Vec<String>>;

/// A way to models.
pub(super) struct ModelRoute {
    pub(super) dialect: Dialect,
    pub(super) peer: HttpClient,
    /// `None` until the server has answered.
    reachable: Option<ListedModels>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dialect {
    OpenAi,
    Ollama,
}

/// Variables that name routes; for each dialect the first one that is set counts.
const VARIABLES: [(&str, Dialect); 3] = [
    ("OPENAI_BASE_URL", Dialect::OpenAi),
    ("INFERENCE_PROXY_URL", Dialect::OpenAi),
    ("OLLAMA_BASE_URL", Dialect::Ollama),
];

const LISTING: Duration = Duration::from_secs(10);

/// Returns all routes that the environment names.
pub(super) fn of_environment() -> Result<Vec<ModelRoute>, ModelError> {
    let (mut routes, mut refused): (Vec<ModelRoute>, Vec<String>) = (Vec::new(), Vec::new());
    for (name, dialect) in VARIABLES {
        let is_known = routes.iter().any(|route| route.dialect == dialect);
        let Some(url) = std::env::var(name).ok().filter(|url| !(url.is_empty() || is_known)) else {
            continue;
        };
        match ServerAddress::of_url(&url) {
            Ok(place) => routes.push(ModelRoute::to(place, dialect)),
            Err(error) => refused.push(format!("{name}: {error}")),
        }
    }
    if routes.is_empty() {
        let names = VARIABLES.map(|(name, _)| name).join(", ");
        refused.push(format!("no model endpoint is configured in the environment ({names})"));
        return Err(ModelError::Unreachable { why: refused.join("; ") });
    }
    Ok(routes)
}

// === impl ModelRoute ===

impl ModelRoute {
    fn to(place: ServerAddress, dialect: Dialect) -> Self {
        let place = match (dialect, place.base()) {
            (Dialect::OpenAi, "") => place.with_base("/v1"),
            _ => place,
        };
        Self { dialect, peer: HttpClient::at(place), reachable: None }
    }

    /// Returns the models that the server lists. It is asked until it has answered once.
    pub(super) fn reachable(&mut self, deadline: &Deadline<'_>) -> Result<&ListedModels, ModelError> {
        if self.reachable.is_none() {
            let path = match self.dialect {
                Dialect::OpenAi => openai::MODELS,
                Dialect::Ollama => ollama::MODELS,
            };
            let question = HttpRequest {
                method: "GET",
                path,
                headers: &[],
                body: None,
                accept: super::JSON,
                is_idempotent: true,
                patience: LISTING,
            };
            self.reachable = match self.peer.ask(question, deadline) {
                Ok(HttpResponse { status: 200, body, .. }) => Some(match self.dialect {
                    Dialect::OpenAi => openai::listed(&body),
                    Dialect::Ollama => ollama::listed(&body),
                }),
                Ok(_) => Some(None),
                Err(HttpError::Interrupted(interrupted)) => return Err(interrupted.into()),
                Err(_) => None,
            };
        }
        Ok(self.reachable.as_ref().unwrap_or(&None))
    }
}
