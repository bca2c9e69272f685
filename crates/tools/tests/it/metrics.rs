//! Tests of metrics, queried from a server with the Prometheus API.

use crate::configured::{Case, Rig};
use belljar_contract::tool::DomainCode;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::sync::mpsc::{self, Receiver};

pub(crate) const CASES: &[Case] = &[(
    "metrics_query_uses_the_host_credential_and_does_not_return_it",
    metrics_query_uses_the_host_credential_and_does_not_return_it,
)];

/// Answers each request with the next of these answers, and records the requests.
fn server(answers: Vec<(u16, Value)>) -> (u16, Receiver<Vec<String>>) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let (tell, asked) = mpsc::channel();
    std::thread::spawn(move || {
        for (status, body) in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let head: Vec<String> = lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
            tell.send(head).unwrap();
            let body = body.to_string();
            let head =
                format!("HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            stream.write_all((head + &body).as_bytes()).unwrap();
        }
    });
    (port, asked)
}

fn metrics_query_uses_the_host_credential_and_does_not_return_it() -> Result<(), String> {
    let found = json!([{ "metric": { "job": "house" }, "value": [1_700_000_000, "1.5"] }]);
    let good = json!({ "status": "success", "data": { "resultType": "vector", "result": found } });
    let bad = json!({ "status": "error", "errorType": "bad_data", "error": "parse error" });
    let telling =
        json!({ "status": "success", "data": { "resultType": "string", "result": [1, "a-key-of-tests"] } });
    let (port, asked) = server(vec![(200, good), (400, bad), (200, telling)]);
    let folder = tempfile::tempdir().unwrap();
    let key = folder.path().join("key");
    std::fs::write(&key, "a-key-of-tests").unwrap();
    let rig = Rig::new(&format!(
        "metrics: [{{name: house, url: 'http://127.0.0.1:{port}/prom', headers: {{authorization: {{prefix: 'Bearer ', secret: {{file: {}}}}}}}}}]",
        key.display()
    ));
    let ask =
        |source: &str| rig.call("query_metrics", &json!({ "source": source, "query": "up{job=\"house\"}" }));
    let told = ask("house").unwrap().data;
    let series = json!([{ "labels": { "job": "house" }, "points": [[1_700_000_000, "1.5"]] }]);
    assert_eq!((&told["kind"], &told["series"]), (&json!("vector"), &series));
    let head = asked.recv().unwrap();
    assert_eq!(head[0], "GET /prom/api/v1/query?query=up%7Bjob%3D%22house%22%7D&timeout=20s HTTP/1.1");
    assert!(head.contains(&"authorization: Bearer a-key-of-tests".to_owned()));
    let wrong = ask("house").unwrap_err();
    assert_eq!((wrong.code, wrong.message.as_str()), (DomainCode::InvalidArgument, "parse error"));
    assert_eq!(ask("house").unwrap_err().code, DomainCode::ToolFailed);
    assert_eq!(ask("unknown").unwrap_err().code, DomainCode::NotFound);
    Ok(())
}
