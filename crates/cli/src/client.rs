//! A client of the Worker API: it asks one node, and waits for the answer.
//!
//! It speaks plain HTTP/1.1, a connection for each request; heads and bodies are read by `egress`'s strict parser. There is
//! no TLS and no resolver of names here: what leaves for a host that only a name tells is `egress`'s business.

mod answer;
mod error;
pub(crate) mod events;
mod place;
mod token;

pub(crate) use answer::{Answer, Piece};
pub(crate) use error::ClientError;
pub(crate) use place::Place;
pub(crate) use token::ShownToken;

use belljar_contract::id::JobId;
use belljar_contract::worker::BASE_PATH;
use belljar_contract::worker::job::{JobListResponse, JobResponse};
use belljar_contract::worker::problem::ProblemDetails;
use belljar_trusted::tcp_server::ServerUser;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::Duration;
use zeroize::Zeroizing;

/// Who asks a node.
pub(crate) struct Client {
    place: Place,
    token: ShownToken,
    user: ServerUser,
}

/// A request.
#[derive(Debug, Default)]
pub(crate) struct Ask<'a> {
    /// Whether it is a `POST`, which it is also without a body.
    pub(crate) is_post: bool,
    /// Below the Worker API's own path, with the query.
    pub(crate) path: &'a str,
    /// Headers besides those that every request has.
    pub(crate) headers: &'a [(&'static str, String)],
    /// A document of JSON.
    pub(crate) body: Option<&'a [u8]>,
}

/// A document of the node's: as it came, and as it is understood.
pub(crate) struct Told<T> {
    /// All of it, also what is not known here.
    pub(crate) document: Value,
    /// What is known.
    pub(crate) known: T,
}

/// A node that says nothing for so long says nothing any more. It sends a sign of life every 15 seconds.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Maximum time for the head of an answer, and for a whole document, however slowly it trickles.
pub(crate) const WHOLE: Duration = Duration::from_secs(120);

/// The largest document that is taken, in bytes.
const LARGEST_DOCUMENT_BYTES: usize = 64 << 20;

// === impl Client ===

impl Client {
    /// A client that shows the token to a node of `user`, where the node is on this machine.
    pub(crate) fn new(place: Place, token: ShownToken, user: ServerUser) -> Self {
        Self { place, token, user }
    }

    /// Where the node is, as it was written.
    pub(crate) fn node(&self) -> &str {
        self.place.as_str()
    }

    /// Sends a request; the answer, if it is none that tells of a problem.
    pub(crate) fn ask(&self, ask: &Ask<'_>) -> Result<Answer, ClientError> {
        let mut answer = Answer::to(&self.place, self.user, &self.request(ask))?;
        match answer.status() {
            200..=299 => Ok(answer),
            status => Err(self.refused(status, &answer.whole(LARGEST_DOCUMENT_BYTES)?)),
        }
    }

    /// The document that a request is answered with.
    pub(crate) fn document<T: DeserializeOwned>(&self, ask: &Ask<'_>) -> Result<Told<T>, ClientError> {
        let body = self.ask(ask)?.whole(LARGEST_DOCUMENT_BYTES)?;
        let read = |source| ClientError::Document { node: self.node().to_owned(), source };
        let document: Value = serde_json::from_slice(&body).map_err(read)?;
        let known = T::deserialize(&document).map_err(read)?;
        Ok(Told { document, known })
    }

    /// A job, with what came of it once it is over.
    pub(crate) fn job(&self, id: &JobId) -> Result<Told<JobResponse>, ClientError> {
        self.document(&Ask { path: &format!("/jobs/{id}"), ..Ask::default() })
    }

    /// Has a job stopped.
    pub(crate) fn cancel(&self, id: &JobId) -> Result<Told<JobResponse>, ClientError> {
        self.document(&Ask { is_post: true, path: &format!("/jobs/{id}:cancel"), ..Ask::default() })
    }

    /// A page of jobs.
    pub(crate) fn page(&self, query: &str) -> Result<Told<JobListResponse>, ClientError> {
        self.document(&Ask { path: &format!("/jobs?{query}"), ..Ask::default() })
    }

    fn request(&self, ask: &Ask<'_>) -> Zeroizing<Vec<u8>> {
        let Ask { is_post, path, headers, body } = ask;
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
