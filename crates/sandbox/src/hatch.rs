//! Hatches of a sandbox, as it sees them: mediated ways to the outside. The host owns the sockets, and serves them.

use crate::backend::BackendError;
use belljar_confine::plan;
use belljar_contract::id::JobId;
use serde::{Deserialize, Serialize};
use std::os::fd::OwnedFd;

/// A hatch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Hatch {
    /// Access to models (`docs/contracts/agents.md#a1.9`).
    Inference,
    /// Reports to the node: a job's progress, and extensions of its deadline
    /// (`docs/contracts/job.md#j5.2`).
    Status,
    /// Access to the web, as far as a policy permits (`docs/contracts/job.md#j6.4`).
    Web,
}

/// Port at which OpenAI's and Anthropic's clients find models.
pub const OPENAI_PORT: u16 = 8080;
/// Port at which Ollama's clients find models.
pub const OLLAMA_PORT: u16 = 11434;
/// The directory with the socket by which all of them do. Not below `/run`, which images cover with a file system of their
/// own.
pub const SOCKET_DIRECTORY: &str = "llm-sock";
/// The socket in that directory.
pub const SOCKET: &str = "llm-sock/llm.sock";

/// Port at which a job reports its progress.
pub const STATUS_PORT: u16 = 7070;
/// The socket by which it does so too.
pub const STATUS_SOCKET: &str = "status-sock/status.sock";
const STATUS_DIRECTORY: &str = "status-sock";

/// Port of the HTTP proxy.
pub const WEB_PORT: u16 = 3128;
/// The socket by which it is found too.
pub const WEB_SOCKET: &str = "web-sock/web.sock";
const WEB_DIRECTORY: &str = "web-sock";

/// Variables that name the trusted authorities for TLS clients: OpenSSL and what is built on it, curl, Git, Cargo, pip,
/// requests, Node, those of AWS, Deno.
const OF_TRUST: [&str; 9] = [
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "CARGO_HTTP_CAINFO",
    "PIP_CERT",
    "REQUESTS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "AWS_CA_BUNDLE",
    "DENO_CERT",
];

/// Hosts inside that are not accessed by the proxy.
const NOT_BY_PROXY: &str = "localhost,127.0.0.1,::1";

/// Refuses hatches where a sandbox shares its network with the host: any program on that network could connect to them.
pub(crate) fn none_of(backend: &'static str, hatches: &[Hatch]) -> Result<(), BackendError> {
    match hatches {
        [] => Ok(()),
        _ => Err(BackendError::Unavailable {
            backend,
            why: "it has no hatches: its sandboxes have no network of their own".to_owned(),
        }),
    }
}

/// Returns the URL at which a job's programs report its progress.
pub(crate) fn status_url(job_id: &JobId) -> String {
    format!("http://127.0.0.1:{STATUS_PORT}/v1/jobs/{job_id}/status")
}

/// Returns the URL at which the agent of a job calls tools of the host.
pub(crate) fn tools_url() -> String {
    format!("http://127.0.0.1:{STATUS_PORT}/mcp")
}

/// Returns the variables by which clients trust the authorities in this file, which lies inside.
pub fn trusting(authorities: &str) -> impl Iterator<Item = (&'static str, String)> {
    OF_TRUST.into_iter().map(move |name| (name, authorities.to_owned()))
}

/// Returns the sockets of a sandbox's hatches, by hatch, in the order in which they were requested.
pub fn by_hatch(hatches: &[Hatch], sockets: Vec<OwnedFd>) -> Vec<(Hatch, Vec<OwnedFd>)> {
    let mut sockets = sockets.into_iter();
    hatches.iter().map(|hatch| (*hatch, sockets.by_ref().take(hatch.sockets().len()).collect())).collect()
}

// === impl Hatch ===

impl Hatch {
    /// The sockets that it takes.
    pub fn sockets(self) -> Vec<plan::Hatch> {
        match self {
            Self::Inference => vec![
                plan::Hatch::Loopback { port: OPENAI_PORT },
                plan::Hatch::Loopback { port: OLLAMA_PORT },
                plan::Hatch::Local { inside: SOCKET.to_owned() },
            ],
            Self::Status => vec![
                plan::Hatch::Loopback { port: STATUS_PORT },
                plan::Hatch::Local { inside: STATUS_SOCKET.to_owned() },
            ],
            Self::Web => vec![
                plan::Hatch::Loopback { port: WEB_PORT },
                plan::Hatch::Local { inside: WEB_SOCKET.to_owned() },
            ],
        }
    }

    /// The directory in memory that one of them lies in.
    pub(crate) fn directory(self) -> &'static str {
        match self {
            Self::Inference => SOCKET_DIRECTORY,
            Self::Status => STATUS_DIRECTORY,
            Self::Web => WEB_DIRECTORY,
        }
    }

    /// Returns the variables by which clients find the hatch.
    pub fn environment(self) -> Vec<(&'static str, String)> {
        match self {
            Self::Inference => {
                let (models, ollama) =
                    (format!("http://localhost:{OPENAI_PORT}"), format!("http://localhost:{OLLAMA_PORT}"));
                vec![
                    ("OPENAI_API_BASE", models.clone()),
                    ("OPENAI_BASE_URL", format!("{models}/v1")),
                    ("ANTHROPIC_BASE_URL", models),
                    ("OLLAMA_BASE_URL", ollama.clone()),
                    ("OLLAMA_HOST", ollama),
                    ("INFERENCE_PROXY_URL", format!("http+unix://%2F{}", SOCKET.replace('/', "%2F"))),
                    ("LLM_PROXY_SOCKET", format!("/{SOCKET}")),
                ]
            }
            Self::Status => vec![("BELLJAR_STATUS_SOCKET", format!("/{STATUS_SOCKET}"))],
            Self::Web => {
                let proxy = format!("http://127.0.0.1:{WEB_PORT}");
                // In either case, as some read one alone; the others have words of their own.
                let of_proxy = [
                    "HTTP_PROXY",
                    "HTTPS_PROXY",
                    "http_proxy",
                    "https_proxy",
                    "CARGO_HTTP_PROXY",
                    "npm_config_proxy",
                    "npm_config_https_proxy",
                ];
                let mut all: Vec<_> = of_proxy.map(|name| (name, proxy.clone())).into();
                all.extend(["NO_PROXY", "no_proxy"].map(|name| (name, NOT_BY_PROXY.to_owned())));
                // Node's own client uses them only with this variable.
                all.push(("NODE_USE_ENV_PROXY", "1".to_owned()));
                all.push(("BELLJAR_WEB_SOCKET", format!("/{WEB_SOCKET}")));
                all
            }
        }
    }
}
