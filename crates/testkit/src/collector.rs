//! A collector of traces: accepts OTLP over HTTP, and keeps everything it receives.

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as AnyOf;
use opentelemetry_proto::tonic::trace::v1::Span as Told;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use prost::Message;
use std::collections::{BTreeMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};

/// A collector. Its thread ends with the process.
#[derive(Debug)]
pub struct Collector {
    address: SocketAddr,
    heard: Arc<Mutex<CollectorState>>,
}

/// A span, as it arrived.
#[derive(Debug, Clone)]
pub struct Span {
    /// Its trace, in hexadecimal.
    pub trace: String,
    /// Its id.
    pub id: String,
    /// Id of the parent; empty for the root.
    pub parent: String,
    /// Its name.
    pub name: String,
    /// Begin and end, in nanoseconds.
    pub times: (u64, u64),
    /// Its attributes, numbers as texts.
    pub attributes: BTreeMap<String, String>,
    /// Error message, if it failed.
    pub failure: Option<String>,
}

#[derive(Debug, Default)]
struct CollectorState {
    spans: Vec<Span>,
    raw: Vec<u8>,
    heads: Vec<String>,
    answers: VecDeque<&'static str>,
}

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

// === impl Collector ===

impl Collector {
    /// Starts a collector that answers its first requests with these, and then accepts all.
    ///
    /// # Panics
    /// When there can't be one.
    pub fn start(answers: &[&'static str]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let heard = Arc::new(Mutex::new(CollectorState {
            answers: answers.iter().copied().collect(),
            ..CollectorState::default()
        }));
        let hears = Arc::clone(&heard);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let hears = Arc::clone(&hears);
                std::thread::spawn(move || while take(&stream, &hears).is_some() {});
            }
        });
        Self { address, heard }
    }

    /// Returns the URL that it listens at.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the received spans.
    pub fn spans(&self) -> Vec<Span> {
        self.locked(|heard| heard.spans.clone())
    }

    /// Returns the heads of all requests.
    pub fn heads(&self) -> Vec<String> {
        self.locked(|heard| heard.heads.clone())
    }

    /// Returns true if any of them contained the text.
    pub fn has_heard(&self, text: &str) -> bool {
        self.locked(|heard| String::from_utf8_lossy(&heard.raw).contains(text))
    }

    fn locked<T>(&self, look: impl FnOnce(&CollectorState) -> T) -> T {
        look(&self.heard.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Takes a request and answers it; nothing when there is none.
fn take(stream: &TcpStream, heard: &Mutex<CollectorState>) -> Option<()> {
    let mut reads = BufReader::new(stream);
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = String::new();
        if reads.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if let Some(said) = line.strip_prefix("content-length: ") {
            length = said.trim().parse().ok()?;
        }
        head.push_str(&line);
        if line == "\r\n" {
            break;
        }
    }
    let mut body = vec![0; length];
    reads.read_exact(&mut body).ok()?;
    let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
    heard.heads.push(head);
    heard.raw.extend_from_slice(&body);
    let answer = heard.answers.pop_front().unwrap_or(OK);
    if answer == OK {
        let request = ExportTraceServiceRequest::decode(body.as_slice()).expect("a request of OTLP");
        let all = request.resource_spans.into_iter().flat_map(|of| of.scope_spans).flat_map(|of| of.spans);
        heard.spans.extend(all.map(span));
    }
    drop(heard);
    let mut writes = stream;
    writes.write_all(answer.as_bytes()).ok()
}

fn span(told: Told) -> Span {
    let text = |value: AnyOf| match value {
        AnyOf::StringValue(text) => text,
        AnyOf::IntValue(number) => number.to_string(),
        other => format!("{other:?}"),
    };
    let attributes = told
        .attributes
        .into_iter()
        .filter_map(|attribute| Some((attribute.key, text(attribute.value?.value?))));
    Span {
        trace: hex(&told.trace_id),
        id: hex(&told.span_id),
        parent: hex(&told.parent_span_id),
        name: told.name,
        times: (told.start_time_unix_nano, told.end_time_unix_nano),
        attributes: attributes.collect(),
        failure: told.status.filter(|status| status.code() == StatusCode::Error).map(|status| status.message),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
