//! The latency of a tool call through the gateway, with its record on disk before the response, compared with a call of the
//! reference server, which records nothing.

pub(crate) mod counter;

use crate::Programs;
use crate::contest::missing;
use crate::models::part::Part;
use crate::models::process::Process;
use crate::rounds::{Goal, hold, judge, median};
use belljar_testkit::mcp;
use counter::Counter;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

const ROUNDS: usize = 7;
const CALLS: usize = 500;

/// A connection to a server, with a session if the server requires one.
struct ToolConnection {
    stream: TcpStream,
    reader: BufReader<TcpStream>,
    session: Option<String>,
}

/// The reference server. It ends when this is dropped.
struct Reference(Child);

pub(crate) fn run(_: &Programs) -> bool {
    let (reference, at) = match Reference::start() {
        Ok(started) => started,
        Err(why) => return missing(&format!("server-everything ({why})")),
    };
    let folder = tempfile::tempdir().expect("a temporary folder");
    let mut ours = Process::play(&Part::Counter(Counter { state: folder.path().join("state") }));
    let mut lanes = [ToolConnection::open(ours.hear(), false), ToolConnection::open(at, true)];
    // The first calls of each are a warm-up.
    for lane in &mut lanes {
        lane.figures();
    }
    let figures = hold(ROUNDS, lanes.len(), |who| lanes[who].figures());
    println!("\n## tools: a call of an echo, one after the other by one connection\n");
    println!("| | p50 ms | p99 ms |\n| --- | --- | --- |");
    let names = ["belljar's gateway, each call on the disk", "server-everything, streamable HTTP, no record"];
    for (name, rounds) in names.iter().zip(&figures) {
        let [p50, p99] = [0, 1].map(|which| median(rounds.iter().map(|round| [round.0, round.1][which])));
        println!("| {name} | {p50:.3} | {p99:.3} |");
    }
    let added = figures[0].iter().zip(&figures[1]).map(|(ours, theirs)| ours.0 - theirs.0);
    drop(reference);
    judge("added latency of a call over the reference server, p50 ms", median(added), Goal::AtMost(0.5))
}

// === impl ToolConnection ===

impl ToolConnection {
    fn open(address: SocketAddr, has_session: bool) -> Self {
        let stream = TcpStream::connect(address).expect("a connection");
        stream.set_nodelay(true).expect("an option");
        let reader = BufReader::new(stream.try_clone().expect("another handle of it"));
        let mut lane = Self { stream, reader, session: None };
        if has_session {
            let client = json!({ "name": "bench", "version": "1" });
            let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
            lane.session =
                lane.send(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello })).0;
            lane.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
        }
        lane
    }

    /// Returns the median and the 99th percentile of some calls, in milliseconds.
    fn figures(&mut self) -> (f64, f64) {
        let params = json!({ "name": "echo", "arguments": { "message": "hello" } });
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let mut times: Vec<Duration> = (0..CALLS)
            .map(|_| {
                let begun = Instant::now();
                let (_, answer) = self.send(&call);
                assert!(answer.contains("hello"), "{answer}");
                begun.elapsed()
            })
            .collect();
        times.sort_unstable();
        let ms = |duration: Duration| duration.as_secs_f64() * 1e3;
        (ms(times[CALLS / 2]), ms(times[CALLS * 99 / 100]))
    }

    /// Sends a message. Returns the session id in the response, and the response.
    fn send(&mut self, message: &Value) -> (Option<String>, String) {
        let body = message.to_string();
        let session =
            self.session.as_ref().map_or_else(String::new, |id| format!("Mcp-Session-Id: {id}\r\n"));
        let head = format!(
            "POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nMCP-Protocol-Version: 2025-11-25\r\n\
             Accept: application/json, text/event-stream\r\n{session}Content-Length: {}\r\n\r\n",
            body.len()
        );
        self.stream.write_all((head + &body).as_bytes()).expect("a connection");
        self.answer()
    }

    fn answer(&mut self) -> (Option<String>, String) {
        let (mut session, mut length, mut is_chunked) = (None, 0, false);
        loop {
            let line = self.line();
            let Some((name, value)) = line.split_once(':') else {
                if line.is_empty() {
                    break;
                }
                continue;
            };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse().expect("a length"),
                "transfer-encoding" => is_chunked = true,
                "mcp-session-id" => session = Some(value.trim().to_owned()),
                _ => {}
            }
        }
        let body = if is_chunked { self.chunks() } else { self.bytes(length) };
        (session, String::from_utf8_lossy(&body).into_owned())
    }

    fn chunks(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let size = usize::from_str_radix(self.line().trim(), 16).expect("the size of a chunk");
            body.extend(self.bytes(size));
            self.line();
            if size == 0 {
                return body;
            }
        }
    }

    fn bytes(&mut self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.reader.read_exact(&mut bytes).expect("an answer");
        bytes
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }
}

// === impl Reference ===

impl Reference {
    fn start() -> Result<(Self, SocketAddr), String> {
        let mut command = mcp::program("server-everything/dist/index.js")?;
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let at = free.map_err(|error| error.to_string())?;
        command.arg("streamableHttp").env("PORT", at.port().to_string());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let server = Self(command.spawn().map_err(|error| error.to_string())?);
        let begun = Instant::now();
        while TcpStream::connect(at).is_err() {
            if begun.elapsed() > Duration::from_secs(30) {
                return Err("it does not listen".to_owned());
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok((server, at))
    }
}

impl Drop for Reference {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
