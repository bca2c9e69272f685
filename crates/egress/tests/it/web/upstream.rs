//! Scripted upstream that counts connections.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Server that answers every HTTP request with `hello`, echoes all other bytes, and counts.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    seen: Arc<UpstreamLog>,
}

/// Action after the scripted answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterAnswer {
    /// Waits for more.
    Wait,
    /// Closes.
    Close,
}

#[derive(Default)]
struct UpstreamLog {
    /// Port of each client, in order of connection.
    ports: Mutex<Vec<u16>>,
    /// Number of connections that were only marks.
    marks: AtomicUsize,
    heads: Mutex<Vec<String>>,
    /// All bytes that each client sent, once it is gone.
    said: Mutex<Vec<String>>,
    /// Answer to every request.
    told: Mutex<Option<(Vec<u8>, AfterAnswer)>>,
}

// === impl Upstream ===

impl Upstream {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::<UpstreamLog>::default();
        let theirs = Arc::clone(&seen);
        // The thread ends with the test's process.
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let port = stream.peer_addr().map_or(0, |peer| peer.port());
                theirs.ports.lock().unwrap().push(port);
                let seen = Arc::clone(&theirs);
                std::thread::spawn(move || answer(stream, &seen));
            }
        });
        Self { address, seen }
    }

    /// Returns the number of connections so far. A connection that the kernel has accepted may not be counted yet. So this
    /// connects, too, and waits until its own connection is counted.
    pub(crate) fn connections(&self) -> usize {
        let before = self.seen.ports.lock().unwrap().len();
        let mark = TcpStream::connect(self.address).unwrap();
        let port = mark.local_addr().unwrap().port();
        belljar_testkit::wait::until(|| self.seen.ports.lock().unwrap()[before..].contains(&port));
        let marks = self.seen.marks.fetch_add(1, Ordering::SeqCst) + 1;
        self.seen.ports.lock().unwrap().len() - marks
    }

    /// Returns all bytes that each client sent, once all current clients are gone.
    pub(crate) fn said(&self) -> Vec<String> {
        let heads = self.heads().len();
        belljar_testkit::wait::until(|| self.seen.said.lock().unwrap().len() >= heads.min(1));
        let come = self.seen.ports.lock().unwrap().len() - self.seen.marks.load(Ordering::SeqCst);
        belljar_testkit::wait::until(|| self.seen.said.lock().unwrap().len() >= come);
        self.seen.said.lock().unwrap().iter().filter(|said| !said.is_empty()).cloned().collect()
    }

    /// Sets the answer to every request from now on.
    pub(crate) fn tell(&self, bytes: impl Into<Vec<u8>>, then: AfterAnswer) {
        *self.seen.told.lock().unwrap() = Some((bytes.into(), then));
    }

    /// Returns the heads of all requests, in order.
    pub(crate) fn heads(&self) -> Vec<String> {
        self.seen.heads.lock().unwrap().clone()
    }
}

fn answer(mut stream: TcpStream, seen: &UpstreamLog) {
    let mut said = Vec::new();
    hear(&mut stream, seen, &mut said);
    seen.said.lock().unwrap().push(String::from_utf8_lossy(&said).into_owned());
}

/// Answers until nothing more comes.
fn hear(stream: &mut TcpStream, seen: &UpstreamLog, said: &mut Vec<u8>) {
    let (mut bytes, mut buffer) = (Vec::new(), [0; 16 << 10]);
    while let Ok(count) = stream.read(&mut buffer) {
        if count == 0 {
            return;
        }
        // A connection that begins with a request continues with a body or another request.
        let is_http = said.first().or(buffer.first()).is_some_and(u8::is_ascii_uppercase);
        if !is_http {
            if stream.write_all(&buffer[..count]).is_err() {
                return;
            }
            continue;
        }
        bytes.extend_from_slice(&buffer[..count]);
        said.extend_from_slice(&buffer[..count]);
        while let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            bytes.drain(..end + 4);
            seen.heads.lock().unwrap().push(head.clone());
            let told = seen.told.lock().unwrap().clone();
            let (reply, then) = told.unwrap_or_else(|| reply(&head));
            if stream.write_all(&reply).is_err() || !goes_on(stream, &head) {
                return;
            }
            if then == AfterAnswer::Close {
                let _ = stream.shutdown(Shutdown::Write);
                // Reads whatever is still to come.
                let _ = stream.read_to_end(said);
                return;
            }
        }
    }
}

/// Sends an endless answer, if the path requests one, for as long as the client reads. Returns true if another request may
/// follow.
fn goes_on(stream: &mut TcpStream, head: &str) -> bool {
    const DRIP: Duration = Duration::from_millis(50);
    let piece = match head.split(' ').nth(1).unwrap_or_default() {
        "/flood" => [&b"4000\r\n"[..], &[b'a'; 0x4000], b"\r\n"].concat(),
        "/drip" => b"1\r\na\r\n".to_vec(),
        _ => return true,
    };
    while stream.write_all(&piece).is_ok() {
        if piece.len() < 100 {
            std::thread::sleep(DRIP);
        }
    }
    false
}

/// Returns the answer to a request, by its path.
fn reply(head: &str) -> (Vec<u8>, AfterAnswer) {
    let path = head.split(' ').nth(1).unwrap_or_default();
    let path = path.split('?').next().unwrap_or_default();
    let ok = |rest: &str| format!("HTTP/1.1 200 OK\r\n{rest}");
    let said = match path {
        _ if head.starts_with("HEAD") => ok("Content-Length: 5\r\n\r\n"),
        // The whole head.
        "/back" | "/v1/back" => ok(&format!("Content-Length: {}\r\n\r\n{head}", head.len())),
        "/back/chunked" | "/v1/back/chunked" => {
            let chunks: Vec<String> = head
                .as_bytes()
                .chunks(7)
                .map(|chunk| format!("{:x}\r\n{}\r\n", chunk.len(), String::from_utf8_lossy(chunk)))
                .collect();
            ok(&format!("Transfer-Encoding: chunked\r\n\r\n{}0\r\n\r\n", chunks.concat()))
        }
        "/back/header" | "/v1/back/header" => {
            let said = head.lines().find(|line| line.to_ascii_lowercase().starts_with("authorization"));
            ok(&format!("X-Back: {}\r\nContent-Length: 0\r\n\r\n", said.unwrap_or_default()))
        }
        // The credential, cut after that many characters; the length is stated, chunked, or not stated.
        _ if path.starts_with("/back/cut/") => return cut(head, path),
        "/flood" | "/drip" => ok("Transfer-Encoding: chunked\r\n\r\n"),
        // A redirect.
        "/to" => {
            let to = head.split(' ').nth(1).and_then(|target| target.split_once('?')).unwrap_or_default().1;
            format!("HTTP/1.1 302 Found\r\nLocation: {to}\r\nContent-Length: 4\r\n\r\nhere")
        }
        "/silent" => String::new(),
        "/coded" | "/v1/coded" => ok("Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\nxx"),
        "/early" => format!(
            "{}{}",
            "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n".repeat(3),
            ok("Content-Length: 5\r\n\r\nhello")
        ),
        "/endless" => "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n".repeat(10_000),
        "/chunked" | "/v1/chunked" => {
            ok("Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n again\r\n0\r\n\r\n")
        }
        _ => ok("Content-Length: 5\r\nX-Seen: yes\r\n\r\nhello"),
    };
    (said.into_bytes(), AfterAnswer::Wait)
}

fn cut(head: &str, path: &str) -> (Vec<u8>, AfterAnswer) {
    let shown = head.lines().find_map(|line| line.strip_prefix("authorization: Bearer ")).unwrap_or_default();
    let (length, way) = path.trim_start_matches("/back/cut/").split_once('/').unwrap();
    let shown = &shown[..length.parse::<usize>().unwrap().min(shown.len())];
    let body = format!("you sent {shown}");
    let (rest, then) = match way {
        "length" => (format!("Content-Length: {}\r\n\r\n{body}", body.len()), AfterAnswer::Wait),
        "chunks" => (
            format!("Transfer-Encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n", body.len()),
            AfterAnswer::Wait,
        ),
        "header" => (format!("X-Error: {body}\r\nContent-Length: 0\r\n\r\n"), AfterAnswer::Wait),
        _ => (format!("\r\n{body}"), AfterAnswer::Close),
    };
    (format!("HTTP/1.1 401 No\r\n{rest}").into_bytes(), then)
}
