//! Pages that the host fetches for a run, when the agent calls a fetch tool. Each request, and each redirect, passes the same
//! policy, dialer and audit log as requests through the run's own sockets.
//!
//! ```text
//! Fetcher::fetch ─► Fetches, a listener among the run's sockets ─► address, read once ─► Passage ─┬─► Page
//!                                                                      ▲                           │
//!                                                                      └──────── redirect ◄────────┘
//! ```
//! Pages are fetched by `GET`, without credentials, cookies or any header that the sandbox chooses. Any other request is a
//! [`FetchRequest`]; its redirects are not followed.

mod request;

pub use request::{FetchAnswer, FetchRequest, Method};

use super::decision::RequestRoute;
use super::forward::authority;
use super::hatch_server::WebProxy;
use super::placeholder;
use super::proxied_request::{BodyExtent, FetchInput, FetchedAnswer, ProxiedRequest};
use super::refusal::Refusal;
use crate::http1::RequestHead;
use belljar_policy::egress::{Destination, Host};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use url::Url;

/// Fetches pages for one run, for as long as its [`Fetches`] are served.
#[derive(Debug, Clone)]
pub struct Fetcher {
    orders: mpsc::UnboundedSender<PendingFetch>,
}

/// Receiving end of a [`Fetcher`], served together with the sockets of the run.
#[derive(Debug)]
pub struct Fetches {
    orders: mpsc::UnboundedReceiver<PendingFetch>,
}

/// Answered page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// URL after the last redirect.
    pub url: String,
    /// HTTP status.
    pub status: u16,
    /// Content type, if the answer has one.
    pub content_type: Option<String>,
    /// Complete body.
    pub body: Vec<u8>,
}

/// Reason why there is no page.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    /// The URL is invalid.
    #[error("{url:?} can't be fetched: {why}")]
    Address {
        /// URL that was given.
        url: String,
        /// Error in it.
        why: &'static str,
    },
    /// A header can't be sent.
    #[error("the header {name:?} can't be sent: {why}")]
    Header {
        /// Header name, as it was given.
        name: String,
        /// Error in it.
        why: &'static str,
    },
    /// A redirect names an invalid URL.
    #[error("it redirects to {to:?}, which can't be fetched: {why}")]
    Redirect {
        /// Target of the redirect.
        to: String,
        /// Error in it.
        why: &'static str,
    },
    /// There were more than [`MOST_REDIRECTS`] redirects.
    #[error("it redirects more than {MOST_REDIRECTS} times")]
    TooManyRedirects,
    /// The policy denies it, or a limit of the run is reached.
    #[error("{said}")]
    Denied {
        /// Stable code.
        code: &'static str,
        /// The smallest rule that would allow it, if there is one and the caller may know of it.
        needed: Option<String>,
        /// Reason in words.
        said: String,
    },
    /// The answer is larger than the limit.
    #[error("{said}")]
    TooLarge {
        /// The limit in words.
        said: String,
    },
    /// The host does not answer, or answers wrongly.
    #[error("{said}")]
    Failed {
        /// Stable code.
        code: &'static str,
        /// Error in words.
        said: String,
    },
    /// The time limit was exceeded.
    #[error("it took longer than {} s", within.as_secs())]
    OutOfTime {
        /// The time limit.
        within: Duration,
    },
    /// The run is over.
    #[error("the run is over")]
    Over,
}

/// Request of a caller that waits for an answer.
#[derive(Debug)]
pub(crate) enum PendingFetch {
    Page { url: String, answer: oneshot::Sender<Result<Page, FetchError>> },
    Request { request: FetchRequest, answer: oneshot::Sender<Result<FetchAnswer, FetchError>> },
}

/// Request as it is sent.
struct FetchTarget {
    destination: Destination,
    is_secure: bool,
    head: RequestHead,
}

/// Parts of a request besides its destination.
struct RequestTemplate<'s> {
    method: &'static str,
    /// Complete header lines.
    headers: &'s str,
}

/// Method and headers for pages.
const FOR_PAGES: RequestTemplate<'static> = RequestTemplate {
    method: "GET",
    headers: "user-agent: belljar\r\naccept: text/html, text/*;q=0.9, */*;q=0.5\r\n",
};

/// Maximum size of a page in bytes: 5 MiB.
pub const MOST_PAGE_BYTES: usize = 5 << 20;

/// Maximum number of redirects for one page.
pub const MOST_REDIRECTS: usize = 5;

/// Time limit for a page with all its redirects: 30 s.
const WITHIN: Duration = Duration::from_secs(30);

/// Maximum number of concurrent fetches of one run. Others wait.
pub(super) const AT_ONCE: usize = 4;

/// Maximum length of a URL in bytes.
const LONGEST_URL: usize = 8 << 10;

/// Maximum number of bytes of a URL that an error message repeats.
const LONGEST_REPEATED: usize = 256;

/// Makes both ends. The second one has to be served.
pub fn fetcher() -> (Fetcher, Fetches) {
    let (sender, orders) = mpsc::unbounded_channel();
    (Fetcher { orders: sender }, Fetches { orders })
}

// === impl Fetcher ===

impl Fetcher {
    /// Fetches a page. Dropping the future cancels the fetch.
    ///
    /// # Errors
    /// [`FetchError`].
    pub async fn fetch(&self, url: &str) -> Result<Page, FetchError> {
        let (answer, answered) = oneshot::channel();
        let order = PendingFetch::Page { url: url.to_owned(), answer };
        self.orders.send(order).map_err(|_| FetchError::Over)?;
        answered.await.map_err(|_| FetchError::Over)?
    }

    /// Sends one request. A redirect is returned, not followed. Dropping the future cancels it; the request may have had its
    /// effect by then.
    ///
    /// # Errors
    /// [`FetchError`].
    pub async fn request(&self, request: FetchRequest) -> Result<FetchAnswer, FetchError> {
        let (answer, answered) = oneshot::channel();
        self.orders.send(PendingFetch::Request { request, answer }).map_err(|_| FetchError::Over)?;
        answered.await.map_err(|_| FetchError::Over)?
    }
}

// === impl Fetches ===

impl Fetches {
    /// Returns the next request. Never resolves once no caller can send any more.
    pub(crate) async fn next(&mut self) -> PendingFetch {
        match self.orders.recv().await {
            Some(order) => order,
            None => std::future::pending().await,
        }
    }
}

/// Serves one request.
pub(super) async fn serve(gate: &WebProxy, order: PendingFetch) {
    match order {
        PendingFetch::Page { url, answer } => answer_by(page(gate, &url), WITHIN, answer).await,
        PendingFetch::Request { request, answer } => {
            answer_by(request::answered(gate, &request), request.within, answer).await;
        }
    }
}

async fn answer_by<T>(
    answered: impl Future<Output = Result<T, FetchError>>,
    within: Duration,
    mut answer: oneshot::Sender<Result<T, FetchError>>,
) {
    tokio::select! {
        answered = timeout(within, answered) => {
            // A caller that has gone meanwhile needs no answer.
            let _ = answer.send(answered.unwrap_or(Err(FetchError::OutOfTime { within })));
        }
        () = answer.closed() => {}
    }
}

async fn page(gate: &WebProxy, text: &str) -> Result<Page, FetchError> {
    // The semaphore is never closed.
    let _place = gate.fetching.acquire().await;
    let address = |why| FetchError::Address { url: repeated(text), why };
    let mut url = Url::parse(text).map_err(|_| address("it is not an absolute URL"))?;
    let mut wanted = FetchTarget::of(&mut url, &FOR_PAGES).map_err(address)?;
    for _ in 0..=MOST_REDIRECTS {
        let fetched = wanted.fetch(gate, &[], BodyExtent::Whole).await?;
        let Some(location) = fetched.location else {
            let (status, content_type, body) = (fetched.status, fetched.content_type, fetched.body);
            return Ok(Page { url: url.into(), status, content_type, body });
        };
        let elsewhere = |why| FetchError::Redirect { to: repeated(&location), why };
        url = url.join(&location).map_err(|_| elsewhere("it is not a valid URL"))?;
        wanted = FetchTarget::of(&mut url, &FOR_PAGES).map_err(elsewhere)?;
    }
    Err(FetchError::TooManyRedirects)
}

fn of_refusal(refusal: &Refusal) -> FetchError {
    let (code, said) = (refusal.code(), refusal.to_string());
    match (refusal, refusal.status()) {
        (Refusal::AnswerTooLarge { .. }, _) => FetchError::TooLarge { said },
        (_, 400..500) => FetchError::Denied { code, needed: refusal.needed().map(str::to_owned), said },
        _ => FetchError::Failed { code, said },
    }
}

fn repeated(text: &str) -> String {
    text[..text.floor_char_boundary(LONGEST_REPEATED)].to_owned()
}

// === impl FetchTarget ===

impl FetchTarget {
    /// Makes the request for a URL. The fragment of a URL is never sent.
    fn of(url: &mut Url, said: &RequestTemplate<'_>) -> Result<Self, &'static str> {
        url.set_fragment(None);
        let is_secure = match url.scheme() {
            "https" => true,
            "http" => false,
            _ => return Err("it must begin with https:// or http://"),
        };
        if !url.username().is_empty() || url.password().is_some() {
            return Err("it contains a user or a password");
        }
        if url.as_str().len() > LONGEST_URL {
            return Err("it is too long");
        }
        // Placeholders are for programs, and for hosts that a rule names. A page is read by an agent.
        if placeholder::is_in(url.as_str().as_bytes()) {
            return Err("it contains a placeholder for a credential");
        }
        let host = url.host_str().and_then(|host| Host::parse(host).ok()).ok_or("its host is malformed")?;
        let port = url.port_or_known_default().filter(|port| *port != 0).ok_or("its port is malformed")?;
        let destination = Destination { host, port };
        let query = url.query().map(|query| format!("?{query}")).unwrap_or_default();
        let RequestTemplate { method, headers } = said;
        let head = format!(
            "{method} {}{query} HTTP/1.1\r\nhost: {}\r\n{headers}accept-encoding: identity\r\n\r\n",
            url.path(),
            authority(&destination, is_secure),
        );
        let head = RequestHead::parse(head.as_bytes()).map_err(|_| "its path can't be requested")?;
        Ok(Self { destination, is_secure, head })
    }

    async fn fetch(
        &self,
        gate: &WebProxy,
        body: &[u8],
        taken: BodyExtent,
    ) -> Result<FetchedAnswer, FetchError> {
        let way = RequestRoute::Inside { destination: &self.destination, is_secure: self.is_secure };
        let asking = FetchInput { head: &self.head, body, taken };
        ProxiedRequest::begin(gate).fetch(asking, way).await.map_err(|refusal| of_refusal(&refusal))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(text: &str) -> Result<String, &'static str> {
        let mut url = Url::parse(text).map_err(|_| "no address")?;
        let FetchTarget { destination, is_secure, head } = FetchTarget::of(&mut url, &FOR_PAGES)?;
        let query = head.query.map(|query| format!("?{query}")).unwrap_or_default();
        Ok(format!("{destination} {is_secure} {}{query}", head.path))
    }

    #[test]
    fn ambiguous_fetch_url_is_refused() {
        for (text, expected) in [
            ("https://A.Example/x?y=1#z", Ok("a.example:443 true /x?y=1")),
            ("http://a.example", Ok("a.example:80 false /")),
            ("http://a.example:8080/ä b\"", Ok("a.example:8080 false /%C3%A4%20b%22")),
            ("https://[::1]/", Ok("[::1]:443 true /")),
            // The decision is about the address itself, however it is spelled.
            ("http://0x7f.1/", Ok("127.0.0.1:80 false /")),
            ("http://2130706433/", Ok("127.0.0.1:80 false /")),
            ("http://169.254.169.254/", Ok("169.254.169.254:80 false /")),
            ("https://a.example\\@b.example/", Ok("a.example:443 true /@b.example/")),
            ("https://a.example/..%2f../x", Ok("a.example:443 true /..%2f../x")),
            ("https://user@a.example/", Err("it contains a user or a password")),
            ("https://:word@a.example/", Err("it contains a user or a password")),
            ("ftp://a.example/", Err("it must begin with https:// or http://")),
            ("file:///etc/passwd", Err("it must begin with https:// or http://")),
            ("data:text/html,x", Err("it must begin with https:// or http://")),
            ("https://a.example/?k=belljar:cred:x", Err("it contains a placeholder for a credential")),
            ("https://a.example/?k=belljar%3acred%3Ax", Err("it contains a placeholder for a credential")),
            ("a.example", Err("no address")),
            ("https://", Err("no address")),
            ("http://a.example:0/", Err("its port is malformed")),
        ] {
            assert_eq!(asked(text), expected.map(str::to_owned), "{text}");
        }
        // A line end is no part of a URL.
        assert_eq!(asked("https://a.example/x\r\nhost: b").as_deref(), Ok("a.example:443 true /xhost:%20b"));
        assert_eq!(asked(&format!("https://a.example/{}", "x".repeat(LONGEST_URL))), Err("it is too long"));
    }
}
