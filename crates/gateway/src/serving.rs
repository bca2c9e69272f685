//! HTTP connections: limited in number, and each with a time limit for sending a request.

use crate::admission::{Admission, ConnectionLimits, ConnectionSlot, Peer};
use crate::half_closed::{Exchange, HalfClosed};
use axum::Router;
use axum::extract::{ConnectInfo, Request};
use axum::http::StatusCode;
use axum::http::header::CONNECTION;
use axum::response::{IntoResponse, Response};
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Connection limits, and grace period of the shutdown.
#[derive(Debug, Clone, Copy)]
pub struct ServerLimits {
    /// Limits of concurrent connections.
    pub connections: ConnectionLimits,
    /// Grace period for requests that are under way.
    pub grace: Duration,
}

/// The future of a response.
type ResponseFuture = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

/// A future that uses that runtime's reactor and clock, on any thread that polls it.
struct RuntimeFuture {
    runtime: Handle,
    answering: Option<ResponseFuture>,
}

/// Maximum time for receiving the head of a request.
const HEAD_WITHIN: Duration = Duration::from_secs(30);

/// Maximum size of a request's head, in bytes.
const LARGEST_HEAD_BYTES: usize = 64 << 10;

/// Pause after a failed accept, most likely because of missing descriptors.
const AFTER_FAILURE: Duration = Duration::from_millis(10);

/// Serves until it is stopped; then finishes requests that are under way, within the grace period.
pub async fn serve(routes: Router, listener: TcpListener, room: ServerLimits, stop: CancellationToken) {
    let admission = Admission::new(room.connections);
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            () = stop.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, peer)) = accepted else {
            admission.make_room();
            tokio::time::sleep(AFTER_FAILURE).await;
            continue;
        };
        let place = admission.enter(Peer::of(peer, stream.local_addr().ok()));
        let (routes, stop) = (routes.clone(), stop.clone());
        connections.spawn(async move {
            tokio::select! {
                () = of_peer((stream, peer), routes, Arc::clone(&place), stop) => {}
                () = place.closed() => {}
            }
        });
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    let all = async { while connections.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(room.grace, all).await;
}

/// Serves a TCP client, which may close its sending side after its request. Each request has its peer address and its [`ConnectionSlot`]
/// among its extensions.
async fn of_peer(
    (stream, peer): (TcpStream, SocketAddr),
    routes: Router,
    place: Arc<ConnectionSlot>,
    stop: CancellationToken,
) {
    let _ = stream.set_nodelay(true);
    let exchange = Exchange::default();
    let stream = HalfClosed::new(stream, exchange.clone());
    let answer = move |mut request: Request| {
        request.extensions_mut().insert(ConnectInfo(peer));
        request.extensions_mut().insert(Arc::clone(&place));
        exchange.begin();
        let (place, exchange) = (Arc::clone(&place), exchange.clone());
        let answered = answer(&routes, request);
        Box::pin(async move {
            let _under_way = place.begin();
            answered.await.map(|response| exchange.answer(response))
        }) as ResponseFuture
    };
    speak(stream, answer, HEAD_WITHIN, stop).await;
}

/// Serves a connection of a sandbox's hatch, until it is closed. It is read and answered on the thread that polls this; resources
/// of a runtime, such as database connections, are the given runtime's. Without `head_within` the client may be silent
/// indefinitely.
pub async fn hatch_connection<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    routes: Router,
    head_within: Option<Duration>,
    runtime: Handle,
) {
    let answer = move |request| {
        let answering = Some(answer(&routes, request));
        Box::pin(RuntimeFuture { runtime: runtime.clone(), answering }) as ResponseFuture
    };
    speak(stream, answer, head_within, CancellationToken::new()).await;
}

fn answer(routes: &Router, request: Request) -> ResponseFuture {
    let service = TowerToHyperService::new(routes.clone());
    Box::pin(service.call(request))
}

async fn speak<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    answer: impl Fn(Request) -> ResponseFuture,
    head_within: impl Into<Option<Duration>>,
    stop: CancellationToken,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(head_within).max_buf_size(LARGEST_HEAD_BYTES);
    let service = service_fn(|request: hyper::Request<hyper::body::Incoming>| match head_bytes(&request) {
        0..=LARGEST_HEAD_BYTES => answer(request.map(axum::body::Body::new)),
        _ => Box::pin(std::future::ready(Ok(head_too_large()))),
    });
    let connection = http.serve_connection(TokioIo::new(stream), service).with_upgrades();
    tokio::pin!(connection);
    // Errors of a connection are ignored: its requests are recorded, or were refused.
    tokio::select! {
        _ = connection.as_mut() => return,
        () = stop.cancelled() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}

/// Returns the size of a head, without insignificant white space. The parser's buffer limits it only roughly, as the head may end
/// within the last read.
fn head_bytes<T>(request: &hyper::Request<T>) -> usize {
    const LINE: usize = "  HTTP/1.1\r\n\r\n".len();
    const FIELD: usize = ": \r\n".len();
    let uri = request.uri();
    let target = uri.path_and_query().map_or(0, |path| path.as_str().len());
    let authority = uri.authority().map_or(0, |authority| authority.as_str().len());
    let fields = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + FIELD);
    LINE + request.method().as_str().len() + target + authority + fields.sum::<usize>()
}

fn head_too_large() -> Response {
    (StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, [(CONNECTION, "close")]).into_response()
}

// === impl RuntimeFuture ===

impl Future for RuntimeFuture {
    type Output = Result<Response, Infallible>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { runtime, answering } = &mut *self;
        let _inside = runtime.enter();
        match answering {
            Some(answering) => answering.as_mut().poll(context),
            None => Poll::Pending,
        }
    }
}

impl Drop for RuntimeFuture {
    fn drop(&mut self) {
        // Resources that are released, such as database connections, need the runtime, too.
        let _inside = self.runtime.enter();
        self.answering = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::routing::get;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    async fn status(head: String) -> String {
        let (mut client, server) = tokio::io::duplex(1 << 20);
        let routes = Router::new().route("/", get(|| async { "here" }));
        tokio::spawn(hatch_connection(server, routes, None, Handle::current()));
        client.write_all(head.as_bytes()).await.unwrap();
        let mut answer = vec![0; 12];
        client.read_exact(&mut answer).await.unwrap();
        String::from_utf8(answer).unwrap()
    }

    /// Serves a route that answers on request, and notes when its caller gives up.
    async fn served() -> (SocketAddr, Arc<tokio::sync::Notify>, Arc<tokio::sync::Notify>) {
        struct DropNotifier(Arc<tokio::sync::Notify>);
        impl Drop for DropNotifier {
            fn drop(&mut self) {
                self.0.notify_one();
            }
        }
        let (go, gone) = (Arc::new(tokio::sync::Notify::new()), Arc::new(tokio::sync::Notify::new()));
        let (waits, dropped) = (Arc::clone(&go), Arc::clone(&gone));
        let echo = move |body: String| {
            let (waits, dropped) = (Arc::clone(&waits), DropNotifier(Arc::clone(&dropped)));
            async move {
                waits.notified().await;
                drop(dropped);
                body + &"y".repeat(4 << 20)
            }
        };
        let routes = Router::new().route("/", get(|| async { "here" }).post(echo));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let connections = ConnectionLimits {
            authenticated: 8,
            unauthenticated: 8,
            unauthenticated_per_peer: 8,
            authenticate_within: Duration::from_secs(600),
        };
        let room = ServerLimits { connections, grace: Duration::ZERO };
        tokio::spawn(serve(routes, listener, room, CancellationToken::new()));
        (address, go, gone)
    }

    const POST: &[u8] = b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 2\r\n\r\nhi";

    async fn half_closed(address: SocketAddr, request: &[u8]) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request).await.unwrap();
        stream.shutdown().await.unwrap();
        stream
    }

    #[tokio::test]
    async fn half_closed_client_gets_all_of_its_answers() {
        let (address, go, _gone) = served().await;
        let get = b"GET / HTTP/1.1\r\nhost: a\r\n\r\n";
        let mut stream = half_closed(address, &[&get[..], POST].concat()).await;
        let mut first = [0; 12];
        stream.read_exact(&mut first).await.unwrap();
        go.notify_one();
        let mut rest = String::new();
        // The connection is closed after the last response.
        stream.read_to_string(&mut rest).await.unwrap();
        assert_eq!(&first, b"HTTP/1.1 200");
        assert!(rest.contains("hiyyy") && rest.len() > 4 << 20, "{}", rest.len());
    }

    #[tokio::test(start_paused = true)]
    async fn truncated_request_of_a_half_closed_client_fails() {
        let (address, go, _gone) = served().await;
        go.notify_one();
        let mut stream = half_closed(address, &POST[..POST.len() - 1]).await;
        let mut heard = String::new();
        let _ = stream.read_to_string(&mut heard).await;
        assert!(!heard.contains("200"), "{heard}");
    }

    #[tokio::test(start_paused = true)]
    async fn request_of_a_disconnected_client_is_cancelled() {
        let (address, _go, gone) = served().await;
        drop(half_closed(address, POST).await);
        gone.notified().await;
    }

    #[tokio::test]
    async fn head_of_more_than_64_kib_is_refused() {
        let head = |bytes: usize| {
            let begun = "GET / HTTP/1.1\r\nhost: a\r\nx: ";
            format!("{begun}{}\r\n\r\n", "y".repeat(bytes - begun.len() - 4))
        };
        assert_eq!(status(head(LARGEST_HEAD_BYTES)).await, "HTTP/1.1 200");
        for bytes in [LARGEST_HEAD_BYTES + 1, 100_000, 131_000, 1 << 19] {
            assert_eq!(status(head(bytes)).await, "HTTP/1.1 431", "{bytes}");
        }
    }
}
