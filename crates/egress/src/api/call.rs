//! One call, from what is asked for to its answer, each on the one thread that makes them all.

use super::config::{ApiConnection, Placement};
use super::error::ApiError;
use crate::credential::Injected;
use crate::http1::Headers;
use crate::upstream::names::{NameSource, Names};
use crate::upstream::{Connection, Patience, Trust, dial_allowed, secure};
use crate::web::ledger::WebLedger;
use crate::web::{authority_of, encoded};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use belljar_contract::egress::{Asked, PassageBegun, PassageOutcome, PassageRecord};
use belljar_contract::id::{PassageId, RunId};
use belljar_contract::inference::{Excerpt, ReasonCode};
use belljar_policy::egress::{Allowed, Asked as Wanted, Destination};
use jiff::Timestamp;
use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::runtime::LocalOptions;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use uuid::Uuid;
use zeroize::Zeroizing;

/// What somebody wants to have called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiCall {
    /// The method, in upper case.
    pub method: String,
    /// The path below the connection's, which begins with a slash; as it is sent.
    pub path: String,
    /// What stands behind the question mark, as it is sent.
    pub query: Option<String>,
    /// Headers, of which only some are the caller's to say; their names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// Whether somebody has said yes to it.
    pub is_approved: bool,
}

/// What was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApiAnswer {
    /// The status.
    pub status: u16,
    /// Headers that are the caller's business, their names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// For whom.
pub struct Caller {
    /// The run.
    pub run_id: RunId,
    /// Where it is written down.
    pub ledger: Arc<dyn WebLedger>,
}

/// Makes calls. Dropping it ends what is under way.
#[derive(Debug)]
pub struct ApiCaller {
    orders: mpsc::UnboundedSender<Order>,
}

struct Order {
    connection: Arc<ApiConnection>,
    call: ApiCall,
    caller: Caller,
    answer: oneshot::Sender<Result<ApiAnswer, ApiError>>,
}

/// What all calls share.
struct Outside {
    names: Names,
    trust: Trust,
}

/// What of a caller's headers goes on.
const FROM_CALLER: [&str; 9] = [
    "accept",
    "accept-language",
    "content-type",
    "idempotency-key",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "prefer",
    "range",
];

/// What of an answer's goes back.
const TO_CALLER: [&str; 9] = [
    "content-range",
    "content-type",
    "etag",
    "last-modified",
    "link",
    "location",
    "retry-after",
    "x-ratelimit-remaining",
    "x-ratelimit-reset",
];

/// A body of a call, and one of an answer.
const MOST_BODY: usize = 4 << 20;
const MOST_ANSWER: usize = 4 << 20;

const MOST_TARGET: usize = 8 << 10;
const MOST_HEADER: usize = 1 << 10;

const PATIENCE: Patience = Patience { names: Duration::from_secs(2), connect: Duration::from_secs(10) };
const CALL: Duration = Duration::from_secs(60);

// === impl ApiCaller ===

impl ApiCaller {
    /// Starts the thread; names are resolved there.
    ///
    /// # Errors
    /// [`io::Error`] when there can't be one.
    pub fn start_with(names: NameSource) -> io::Result<Self> {
        let (orders, taken) = mpsc::unbounded_channel();
        let mut builder = tokio::runtime::Builder::new_current_thread();
        std::thread::Builder::new().name("belljar-calls".to_owned()).spawn(move || {
            // Without it nothing is taken, and everybody is told so.
            if let Ok(runtime) = builder.enable_all().build_local(LocalOptions::default()) {
                runtime.block_on(take_orders(taken, names));
            }
        })?;
        Ok(Self { orders })
    }

    /// Makes a call, if it may be made, and waits for the answer. When this is dropped, it is given up.
    ///
    /// # Errors
    /// [`ApiError`]; if it [is no refusal](ApiError::is_refusal), the call may have arrived all the same.
    pub async fn call(
        &self,
        connection: &Arc<ApiConnection>,
        call: ApiCall,
        caller: Caller,
    ) -> Result<ApiAnswer, ApiError> {
        let (answer, answered) = oneshot::channel();
        let order = Order { connection: Arc::clone(connection), call, caller, answer };
        self.orders.send(order).map_err(|_| ApiError::Over)?;
        answered.await.map_err(|_| ApiError::Over)?
    }
}

async fn take_orders(mut orders: mpsc::UnboundedReceiver<Order>, names: NameSource) {
    let outside = Rc::new(Outside { names: Names::new(names), trust: Trust::default() });
    while let Some(Order { connection, call, caller, mut answer }) = orders.recv().await {
        let outside = Rc::clone(&outside);
        tokio::task::spawn_local(async move {
            let mut under_way = UnderWay::begin(&connection, &call, &caller);
            tokio::select! {
                answered = timeout(CALL, under_way.make(&outside)) => {
                    let answered = answered.unwrap_or(Err(ApiError::OutOfTime));
                    under_way.end(&answered);
                    drop(under_way);
                    let _ = answer.send(answered);
                }
                () = answer.closed() => {}
            }
        });
    }
}

/// A call under way. However it ends, it is written down.
struct UnderWay<'c> {
    connection: &'c ApiConnection,
    call: &'c ApiCall,
    caller: &'c Caller,
    /// All of the path, as it is sent.
    path: String,
    passage_id: PassageId,
    started_at: Timestamp,
    since: Instant,
    address: Option<IpAddr>,
    tls_name: Option<String>,
    status: Option<u16>,
    sent: u64,
    received: u64,
    outcome: PassageOutcome,
}

// === impl UnderWay ===

impl<'c> UnderWay<'c> {
    fn begin(connection: &'c ApiConnection, call: &'c ApiCall, caller: &'c Caller) -> Self {
        Self {
            connection,
            call,
            caller,
            path: format!("{}{}", connection.prefix, call.path),
            passage_id: PassageId::from_uuid(Uuid::now_v7()),
            started_at: Timestamp::now(),
            since: Instant::now(),
            address: None,
            tls_name: None,
            status: None,
            sent: 0,
            received: 0,
            outcome: PassageOutcome::Failed { code: ReasonCode::of("cut_off") },
        }
    }

    async fn make(&mut self, outside: &Outside) -> Result<ApiAnswer, ApiError> {
        let allowed = self.decide()?;
        let (connection, call) = (self.connection, self.call);
        if connection.takes_approval(&call.method) && !call.is_approved {
            return Err(ApiError::ApprovalNeeded { method: call.method.clone() });
        }
        let injected = match &connection.credential {
            None => None,
            Some(credential) => Some(credential.get_beside().await.map_err(|_| ApiError::NoCredential)?),
        };
        let a_minute = connection.allowance.a_minute();
        connection.allowance.take(Instant::now()).map_err(|wait| ApiError::TooMany { a_minute, wait })?;
        if !self.caller.ledger.is_sound() || !self.caller.ledger.begin(self.begun()).await {
            return Err(ApiError::NotRecorded);
        }
        let mut upstream = self.reach(allowed, outside).await?;
        let request = self.request(injected.as_deref());
        self.sent = (request.len() + call.body.len()) as u64;
        let sending = async {
            upstream.stream.write_all(&request).await?;
            upstream.stream.write_all(&call.body).await?;
            upstream.stream.flush().await
        };
        sending.await.map_err(|_| ApiError::Unreachable)?;
        self.answer(&mut upstream, injected.as_deref()).await
    }

    /// Whether the connection is for that.
    fn decide(&self) -> Result<Allowed<Destination>, ApiError> {
        self.check()?;
        let wanted = Wanted::Request { method: &self.call.method, path: &self.path };
        let decided = self.connection.policy.decide(self.connection.destination.clone(), wanted);
        decided.map_err(|denied| ApiError::NotAllowed { reason: denied.reason.code() })
    }

    /// What no request may have.
    fn check(&self) -> Result<(), ApiError> {
        let ApiCall { method, path, query, headers, body, .. } = self.call;
        let invalid = |what, why| Err(ApiError::Invalid { what, why });
        let is_graphic = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
        if method.is_empty() || !method.bytes().all(|byte| byte.is_ascii_uppercase()) {
            return invalid("the method", "it is a word in upper case");
        }
        if !path.starts_with('/') || !is_graphic(path) || path.contains('?') || path.len() > MOST_TARGET {
            return invalid("the path", "it begins with a slash, and what can't be seen is encoded in it");
        }
        if query.as_ref().is_some_and(|query| !is_graphic(query) || query.len() > MOST_TARGET) {
            return invalid("the query", "what can't be seen is encoded in it");
        }
        if body.len() > MOST_BODY {
            return invalid("the body", "it is larger than 4 MiB");
        }
        for (name, value) in headers {
            if !FROM_CALLER.contains(&name.as_str()) {
                return invalid("a header", "it isn't the caller's to say");
            }
            let is_plain = value.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
            if !is_plain || value.len() > MOST_HEADER {
                return invalid("a header", "it is up to 1 KiB of visible ASCII");
            }
        }
        Ok(())
    }

    fn asked(&self) -> Asked {
        Asked {
            method: Excerpt::of(&self.call.method),
            host: Excerpt::of(&self.connection.destination.host.to_string()),
            port: self.connection.destination.port,
            path: Some(Excerpt::of(&self.path)),
        }
    }

    fn begun(&self) -> PassageBegun {
        PassageBegun {
            passage_id: self.passage_id.clone(),
            run_id: self.caller.run_id.clone(),
            started_at: self.started_at,
            asked: self.asked(),
            rule: 0,
            generation: 1,
            credentials: Vec::new(),
            connection: Some(self.connection.name.clone()),
        }
    }

    async fn reach(
        &mut self,
        allowed: Allowed<Destination>,
        outside: &Outside,
    ) -> Result<Connection, ApiError> {
        let host = allowed.value().host.clone();
        let dialed = dial_allowed(allowed, &outside.names, PATIENCE).await;
        let dialed = dialed.map_err(|error| ApiError::of_dial(&error))?;
        self.address = dialed.address;
        if !self.connection.is_secure {
            return Ok(Connection::of(dialed));
        }
        let trust = (&outside.trust, self.connection.authorities.as_deref());
        let secured = secure(dialed.stream, &host, trust, PATIENCE.connect).await;
        let connection = secured.map_err(|error| ApiError::of_connect(&error))?;
        self.tls_name = Some(host.to_string());
        Ok(connection)
    }

    /// The head of the request. It may have a secret in it.
    fn request(&self, injected: Option<&Injected>) -> Zeroizing<Vec<u8>> {
        let placement = injected.map(|_| &self.connection.placement);
        let secret = injected.map(|injected| injected.secret.expose()).unwrap_or_default();
        let mut head = Zeroizing::new(Vec::with_capacity(
            2 * MOST_TARGET + FROM_CALLER.len() * MOST_HEADER + (64 << 10),
        ));
        for part in [&self.call.method, " ", &self.path] {
            head.extend_from_slice(part.as_bytes());
        }
        let mut mark: &[u8] = b"?";
        if let Some(query) = self.call.query.as_ref().filter(|query| !query.is_empty()) {
            head.extend_from_slice(&[mark, query.as_bytes()].concat());
            mark = b"&";
        }
        if let Some(Placement::Query(name)) = placement {
            let encoded = Zeroizing::new(encoded(secret, b""));
            for part in [mark, name.as_bytes(), b"=", encoded.as_bytes()] {
                head.extend_from_slice(part);
            }
        }
        head.extend_from_slice(b" HTTP/1.1\r\n");
        let mut put = |name: &str, value: &[&[u8]]| {
            head.extend_from_slice(name.as_bytes());
            head.extend_from_slice(b": ");
            value.iter().for_each(|part| head.extend_from_slice(part));
            head.extend_from_slice(b"\r\n");
        };
        let connection = self.connection;
        put("host", &[authority_of(&connection.destination, connection.is_secure).as_bytes()]);
        put("user-agent", &[b"belljar"]);
        // What comes back is looked at, so it has to come as it is.
        put("accept-encoding", &[b"identity"]);
        for (name, value) in &self.call.headers {
            put(name, &[value.as_bytes()]);
        }
        match placement {
            Some(Placement::Bearer) => put("authorization", &[b"Bearer ", secret]),
            Some(Placement::Basic) => {
                let encoded = Zeroizing::new(STANDARD.encode(secret));
                put("authorization", &[b"Basic ", encoded.as_bytes()]);
            }
            Some(Placement::Header(name)) => put(name, &[secret]),
            Some(Placement::Query(_)) | None => {}
        }
        put("content-length", &[self.call.body.len().to_string().as_bytes()]);
        put("connection", &[b"close"]);
        head.extend_from_slice(b"\r\n");
        head
    }

    async fn answer(
        &mut self,
        upstream: &mut Connection,
        injected: Option<&Injected>,
    ) -> Result<ApiAnswer, ApiError> {
        let failed = |error| ApiError::of_answer(&error, MOST_ANSWER);
        let received = &mut self.received;
        let head = upstream.head_counted(CALL, |bytes| *received += bytes).await.map_err(failed)?;
        self.status = Some(head.status);
        let is_plain = |coding: &[u8]| coding.eq_ignore_ascii_case(b"identity");
        if !head.headers.all("content-encoding").all(is_plain) {
            return Err(ApiError::BadAnswer);
        }
        let body = match self.call.method.as_str() {
            "HEAD" => Vec::new(),
            _ => upstream.body(head.body, MOST_ANSWER, CALL).await.map_err(failed)?,
        };
        self.received += body.len() as u64;
        let is_told = injected.is_some_and(|injected| {
            injected.forms.are_in_lines(head.headers.text()) || injected.forms.are_told_by(&body)
        });
        match is_told {
            true => Err(ApiError::Repeated),
            false => Ok(ApiAnswer { status: head.status, headers: to_caller(&head.headers), body }),
        }
    }

    fn end(&mut self, answered: &Result<ApiAnswer, ApiError>) {
        self.outcome = match answered {
            Ok(_) => PassageOutcome::Completed,
            Err(error) if error.is_refusal() => {
                PassageOutcome::Denied { reason: ReasonCode::of(error.code()) }
            }
            Err(error) => PassageOutcome::Failed { code: ReasonCode::of(error.code()) },
        };
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.caller.ledger.record(PassageRecord {
            passage_id: self.passage_id.clone(),
            run_id: self.caller.run_id.clone(),
            started_at: self.started_at,
            asked: Some(self.asked()),
            outcome: self.outcome.clone(),
            generation: 1,
            rule: None,
            address: self.address,
            tls_name: self.tls_name.as_deref().map(Excerpt::of),
            status: self.status,
            sent_bytes: self.sent,
            received_bytes: self.received,
            total_ms: u64::try_from(self.since.elapsed().as_millis()).unwrap_or(u64::MAX),
            connection: Some(self.connection.name.clone()),
        });
    }
}

fn to_caller(headers: &Headers) -> Vec<(String, String)> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    headers
        .iter()
        .filter(|(name, _)| TO_CALLER.iter().any(|known| known.as_bytes() == *name))
        .map(|(name, value)| (text(name), text(value)))
        .collect()
}
