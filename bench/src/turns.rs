//! The overhead of an agent's turn besides the model: two hundred turns, each with one tool call, compared with a bare client
//! that sends the same requests.

use crate::Programs;
use crate::rounds::{Goal, judge, median};
use belljar_testkit::models::{Answer, ModelServer, Request, Script, ServerBehaviour, ToolCall};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const TURNS: usize = 200;
const ROUNDS: usize = 7;

/// The duration of one run, and the model's requests in it.
struct TimedRun {
    took: Duration,
    asked: Vec<Request>,
}

pub(crate) fn run(programs: &Programs) -> bool {
    let folder = crate::in_memory();
    let program = programs.runner();
    let mut added = Vec::new();
    for _ in 0..ROUNDS {
        let short = run_agent(&program, folder.path(), 1);
        let long = run_agent(&program, folder.path(), TURNS + 1);
        let bare = bare_client(&long.asked[..TURNS]);
        let turns = (long.took - short.took).saturating_sub(bare);
        added.push(turns.as_secs_f64() * 1e3 / TURNS as f64);
    }
    println!("\n## turns: an agent that reads a file in each of {TURNS} turns, in a growing conversation\n");
    println!("| round | ms a turn, besides the model |\n| --- | --- |");
    for (round, added) in added.iter().enumerate() {
        println!("| {} | {added:.3} |", round + 1);
    }
    judge("duration of a turn without the model, ms", median(added), Goal::AtMost(2.0))
}

/// Runs an agent that reads a file in each of this many turns, and then finishes.
fn run_agent(program: &Path, folder: &Path, turns: usize) -> TimedRun {
    let call = |tool: &str, arguments: Value| Answer::tool(ToolCall::new(tool, arguments));
    let reads = (0..turns).map(|_| call("read_file", json!({ "path": "a.txt" })));
    let ends = [
        call("todo_update", json!({ "id": 1, "status": "done" })),
        call("finish", json!({ "summary": "read" })),
        call(
            "report_criteria",
            json!({ "results": [{ "criterion": 1, "met": true, "evidence": "it was read" }] }),
        ),
    ];
    let server = server(Script::queue(reads.chain(ends).collect::<Vec<_>>()));
    let workspace = folder.join("workspace");
    std::fs::create_dir_all(&workspace).expect("a folder");
    std::fs::write(workspace.join("a.txt"), "some text\n".repeat(20)).expect("a file");
    for left in ["todo.json", "steps.jsonl", "result.json"] {
        let _ = std::fs::remove_file(folder.join(left));
    }
    std::fs::write(folder.join("job.json"), job().to_string()).expect("a file");
    let mut command = Command::new(program);
    for (flag, name) in [("--job", "job.json"), ("--result", "result.json"), ("--artifacts", "artifacts")] {
        command.arg(flag).arg(folder.join(name));
    }
    command
        .arg("--allow-root")
        .arg("--workspace")
        .arg(&workspace)
        .env("OPENAI_BASE_URL", format!("{}/v1", server.url()));
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let begun = Instant::now();
    let status = command.status().expect("a program that starts");
    let took = begun.elapsed();
    assert!(status.success(), "the agent did not finish");
    let asked = server.requests().into_iter().filter(|request| request.operation().generates()).collect();
    TimedRun { took, asked }
}

fn server(script: Script) -> ModelServer {
    let models = vec!["scripted".to_owned()];
    ModelServer::start_with(
        ServerBehaviour { closes_first: 0, reads_per_second: None, models, keeps_requests: true },
        script,
    )
}

fn job() -> Value {
    json!({
        "protocol_version": "1.0",
        "job_id": "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e",
        "task_id": "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0f",
        "constraints": { "max_runtime_seconds": 60, "max_output_bytes": 1 << 20 },
        "inference": { "allowed_models": ["scripted"], "max_turns": TURNS + 10 },
        "context": { "requirements": ["the file is read"] },
        "steps": [],
    })
}

/// Returns the time to send those requests one after another and to read the responses.
fn bare_client(asked: &[Request]) -> Duration {
    let answer = Answer::tool(ToolCall::new("read_file", json!({ "path": "a.txt" })));
    let server = server(Script::always(answer));
    let stream = connect(server.address());
    let mut reader = BufReader::new(stream.try_clone().expect("another handle of it"));
    let begun = Instant::now();
    for request in asked {
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nHost: h\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            request.body.len()
        );
        let message = [head.as_bytes(), &request.body].concat();
        (&stream).write_all(&message).expect("a connection");
        read_answer(&mut reader);
    }
    begun.elapsed()
}

fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("a connection");
    stream.set_nodelay(true).expect("an option");
    stream
}

fn read_answer(reader: &mut BufReader<TcpStream>) {
    let mut length = None;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a head");
        let line = line.trim_end().to_ascii_lowercase();
        if line.is_empty() {
            break;
        }
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().ok();
        }
    }
    let mut body = vec![0; length.expect("an answer that says its length")];
    reader.read_exact(&mut body).expect("an answer");
}
