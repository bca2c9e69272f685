//! Client of the Worker API: sends requests to one node and waits for the responses.
//!
//! It speaks plain HTTP/1.1, a connection for each request; heads and bodies are read by `egress`'s strict parser. There is
//! no TLS and no DNS resolver here: requests to hosts given by name are the business of `egress`.

mod answer;
mod error;
pub(crate) mod events;
mod node_address;
mod token;

pub(crate) use answer::{BodyRead, NodeResponse};
pub(crate) use error::ClientError;
pub(crate) use node_address::NodeAddress;
pub(crate) use token::ClientToken;

use belljar_contract::id::JobId;
use belljar_contract::worker::BASE_PATH;
use belljar_contract::worker::job::{JobListResponse, JobResponse};
use belljar_contract::worker::problem::ProblemDetails;
use belljar_trusted::tcp_server::ServerUser;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::Duration;
use zeroize::Zeroizing;

/// Client of one node.
pub(crate) struct Client {
    place: NodeAddress,
    token: ClientToken,
    user: ServerUser,
}

/// A request.
#[derive(Debug, Default)]
pub(crate) struct NodeRequest<'a> {
    /// True for a `POST`, with or without a body.
    pub(crate) is_post: bool,
    /// Path below the Worker API's base path, with the query.
    pub(crate) path: &'a str,
    /// Headers besides those that every request has.
    pub(crate) headers: &'a [(&'static str, String)],
    /// A document of JSON.
    pub(crate) body: Option<&'a [u8]>,
}

/// Document from the node: as received, and parsed.
pub(crate) struct NodeDocument<T> {
    /// Complete document, with members that this client doesn't know.
    pub(crate) document: Value,
    /// Parsed members.
    pub(crate) known: T,
}

/// Silence after which a node counts as unresponsive. A node sends a heartbeat every 15 seconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Maximum time for the head of an answer, and for a whole document, however slowly it trickles.
pub(crate) const WHOLE: Duration = Duration::from_secs(120);

/// Maximum size of a document, in bytes.
const LARGEST_DOCUMENT_BYTES: usize = 64 << 20;

// === impl Client ===

impl Client {
    /// Creates a client. It sends the token to a node on this machine only if `user` permits the node's user.
    pub(crate) fn new(place: NodeAddress, token: ClientToken, user: ServerUser) -> Self {
        Self { place, token, user }
    }

    /// Returns the address of the node as it was written.
    pub(crate) fn node(&self) -> &str {
        self.place.as_str()
    }

    /// Sends a request and returns the response. A response that reports a problem is an error.
    pub(crate) fn ask(&self, ask: &NodeRequest<'_>) -> Result<NodeResponse, ClientError> {
        let mut answer = NodeResponse::to(&self.place, self.user, &self.request(ask))?;
        match answer.status() {
            200..=299 => Ok(answer),
            status => Err(self.refused(status, &answer.whole(LARGEST_DOCUMENT_BYTES)?)),
        }
    }

    /// Sends a request and returns the document of its response.
    pub(crate) fn document<T: DeserializeOwned>(
        &self,
        ask: &NodeRequest<'_>,
    ) -> Result<NodeDocument<T>, ClientError> {
        let body = self.ask(ask)?.whole(LARGEST_DOCUMENT_BYTES)?;
        let read = |source| ClientError::Document { node: self.node().to_owned(), source };
        let document: Value = serde_json::from_slice(&body).map_err(read)?;
        let known = T::deserialize(&document).map_err(read)?;
        Ok(NodeDocument { document, known })
    }

    /// Returns a job, with its result once it has ended.
    pub(crate) fn job(&self, id: &JobId) -> Result<NodeDocument<JobResponse>, ClientError> {
        self.document(&NodeRequest { path: &format!("/jobs/{id}"), ..NodeRequest::default() })
    }

    /// Cancels a job.
    pub(crate) fn cancel(&self, id: &JobId) -> Result<NodeDocument<JobResponse>, ClientError> {
        self.document(&NodeRequest {
            is_post: true,
            path: &format!("/jobs/{id}:cancel"),
            ..NodeRequest::default()
        })
    }

    /// Returns a page of jobs.
    pub(crate) fn page(&self, query: &str) -> Result<NodeDocument<JobListResponse>, ClientError> {
        self.document(&NodeRequest { path: &format!("/jobs?{query}"), ..NodeRequest::default() })
    }

    fn request(&self, ask: &NodeRequest<'_>) -> Zeroizing<Vec<u8>> {
        let NodeRequest { is_post, path, headers, body } = ask;
        let method = if *is_post { "POST" } else { "GET" };
        let (prefix, host) = (self.place.prefix(), self.place.host());
        let mut head = format!(
            "{method} {prefix}{BASE_PATH}{path} HTTP/1.1\r\nhost: {host}\r\nconnection: close\r\n\
             accept-encoding: identity\r\n"
        );
        for (name, value) in *headers {
            head += &format!("{name}: {value}\r\n");
        }
        if body.is_some() {
            head += "content-type: application/json\r\n";
        }
        if *is_post {
            head += &format!("content-length: {}\r\n", body.map_or(0, <[u8]>::len));
        }
        let body = body.unwrap_or_default();
        let mut request = Zeroizing::new(Vec::with_capacity(head.len() + body.len() + 8_192));
        request.extend_from_slice(head.as_bytes());
        request.extend_from_slice(b"authorization: Bearer ");
        request.extend_from_slice(self.token.expose());
        request.extend_from_slice(b"\r\n\r\n");
        request.extend_from_slice(body);
        request
    }

    fn refused(&self, status: u16, body: &[u8]) -> ClientError {
        let node = self.node().to_owned();
        match serde_json::from_slice::<ProblemDetails>(body) {
            Ok(problem) => ClientError::Refused { problem: Box::new(problem) },
            Err(_) => ClientError::NoNode { node, status },
        }
    }
}
