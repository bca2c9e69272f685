//! Tests that injected credentials never come back to a sandbox.

use crate::rig::{CHAT, KEY, Rig};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use belljar_egress::upstream::Upstream;
use belljar_egress::upstream::names::NameSource;
use belljar_testkit::models::{Answer, ModelServer, Script};
use belljar_testkit::other_user::{self, UNKNOWN_USER};
use belljar_trusted::tcp_server::ServerUser;
use serde_json::{Value, json};

fn stream() -> Value {
    json!({"model": "small", "stream": true})
}

/// Returns true if the bytes contain the key in any form that a scan would find.
fn holds_the_key(bytes: &[u8]) -> bool {
    let hex: String = KEY.bytes().map(|byte| format!("{byte:02x}")).collect();
    let text = String::from_utf8_lossy(bytes);
    // In base64, the part that doesn't depend on its surroundings.
    let core = ["c2staG9zdC00ZjlhQjd6S2Q4MlFtWDAx", "staG9zdC00ZjlhQjd6S2Q4", "ay1ob3N0LTRmOWFCN3pLZDgyUW1Y"];
    text.contains(&KEY[..12])
        || text.contains(&hex[..24])
        || core.iter().any(|core| text.contains(&core[..16]))
}

#[test]
fn provider_error_that_echoes_the_credential_is_withheld() {
    let rig = Rig::new(Script::always(Answer::echo(400)));
    let answer = rig.post(CHAT, "", &json!({"model": "small"}));
    assert!(rig.server.requests()[0].contains(KEY.as_bytes()), "the control: it was sent");
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (502, &json!("provider_answer_withheld")));
    assert!(!holds_the_key(&answer.bytes), "{answer:?}");
    assert_eq!(rig.book.only().upstream_status, Some(400));
    // An error without the key is forwarded unchanged.
    let rig = Rig::new(Script::always(Answer::rate_limited(7)));
    let answer = rig.post(CHAT, "", &json!({"model": "small"}));
    assert_eq!(answer.status, 429);
    assert!(answer.head.contains("retry-after: 7"), "{answer:?}");
}

#[test]
fn credential_is_not_sent_to_a_local_server_of_another_user() {
    for at in ["127.0.0.1:0", "[::1]:0", "0.0.0.0:0"] {
        let Some((address, heard)) = other_user::listen(at) else { continue };
        let url = match address.is_ipv6() {
            true => format!("http://[::1]:{}", address.port()),
            false => format!("http://localhost:{}", address.port()),
        };
        let upstream = Upstream::parse(&url).unwrap();
        let call = |upstream: &Upstream| {
            let unused = ModelServer::start(Script::always(Answer::echo(400)));
            let rig = Rig::reaching(upstream.clone(), unused, NameSource::of_system());
            rig.post(CHAT, "", &json!({"model": "small"}))
        };
        let answer = call(&upstream);
        assert_eq!(answer.json()["error"]["code"], "provider_of_other_user", "{answer:?}");
        assert!(answer.body.contains("`user`"), "{answer:?}");
        assert_eq!(heard.recv().unwrap(), "", "{at}");
        // Controls: the server of a named user, and of any user.
        for user in [ServerUser::Also(UNKNOWN_USER), ServerUser::Any] {
            call(&upstream.clone().served_by(user).unwrap());
            assert!(heard.recv().unwrap().contains(KEY), "{at}: {user:?}");
        }
        call(&upstream.without_credential());
        assert!(heard.recv().unwrap().starts_with("POST "), "{at}");
    }
}

#[test]
fn streamed_answer_is_cut_before_the_credential() {
    let (first, second) = KEY.split_at(9);
    let letters: Vec<String> = KEY.chars().map(String::from).collect();
    let letters: Vec<&str> = letters.iter().map(String::as_str).collect();
    for (pieces, sizes) in [
        (vec!["it is ", KEY, " now"], vec![]),
        (vec!["it is ", KEY, " now"], vec![1]),
        (vec!["it is ", KEY, " now"], vec![3, 5, 2]),
        // Split in two, the key is in neither event, but the stream spells it.
        (vec!["it is ", first, second, " now"], vec![]),
        (letters, vec![]),
    ] {
        let mut reply = Answer::pieces(&pieces);
        if !sizes.is_empty() {
            reply = reply.in_chunks_of(&sizes);
        }
        let rig = Rig::new(Script::always(reply));
        let answer = rig.post(CHAT, "", &stream());
        assert!(!answer.bytes.ends_with(b"0\r\n\r\n"), "{answer:?}");
        assert!(!holds_the_key(&answer.bytes) && !answer.body.contains(second), "{answer:?}");
        let record = rig.book.only();
        // If it is noticed before anything was forwarded, the client gets an error.
        let expected = ["failed: credential_echoed", "failed: provider_answer_withheld"];
        assert!(expected.contains(&record.outcome.to_string().as_str()), "{record:?}");
    }
    // Control: an incomplete key is forwarded.
    let rig = Rig::new(Script::always(Answer::pieces(&["it is ", first, "not ", second, " now"])));
    let answer = rig.post(CHAT, "", &stream());
    assert!(answer.bytes.ends_with(b"0\r\n\r\n") && answer.body.contains(second), "{answer:?}");
    assert_eq!(rig.book.only().outcome.to_string(), "completed");
}

#[test]
fn answer_that_ends_within_the_credential_is_cut_before_it() {
    let json = [("Content-Type", "application/json")];
    for length in [6, 12, KEY.len() - 1] {
        for status in [200, 401] {
            let rig =
                Rig::new(Script::always(Answer::own(status, &json, format!("you sent {}", &KEY[..length]))));
            let answer = rig.post(CHAT, "", &json!({"model": "small"}));
            assert!(!answer.body.contains(&KEY[..6]), "{length} {status}: {answer:?}");
            let outcome = rig.book.only().outcome.to_string();
            let expected = ["failed: credential_echoed", "failed: provider_answer_withheld"];
            assert!(expected.contains(&outcome.as_str()), "{length} {status}: {outcome}");
        }
        let rig = Rig::new(Script::always(Answer::own(200, &[("X-Request-Id", &KEY[..length])], "{}")));
        assert_eq!(rig.post(CHAT, "", &json!({"model": "small"})).status, 502);
    }
    // The first half reveals as much wherever it stands.
    let cut = format!("{{\"you sent\": \"{}...\"}}", &KEY[..KEY.len() / 2]);
    let rig = Rig::new(Script::always(Answer::own(200, &json, cut)));
    assert!(!rig.post(CHAT, "", &json!({"model": "small"})).body.contains(&KEY[..6]));
    // Control: a few characters may end any text, and a cut must be at the end.
    for said in [format!("you sent {}", &KEY[..4]), format!("{{\"you sent\": \"{}\"}}", &KEY[..11])] {
        let rig = Rig::new(Script::always(Answer::own(200, &json, said.clone())));
        assert!(rig.post(CHAT, "", &json!({"model": "small"})).body.ends_with(&said), "{said}");
    }
}

#[test]
fn compressed_answer_that_cannot_be_scanned_is_not_forwarded() {
    let body = b"\x1f\x8b\x08 not looked at";
    for (coding, status) in [("gzip", 502), ("br", 502), ("identity", 200)] {
        let with = [("Content-Type", "application/json"), ("Content-Encoding", coding)];
        let rig = Rig::new(Script::always(Answer::own(200, &with, body)));
        assert_eq!(rig.post(CHAT, "", &json!({"model": "small"})).status, status, "{coding}");
        let asked = rig.server.requests().pop().unwrap();
        assert_eq!(asked.header("accept-encoding"), Some("identity"));
    }
    // Codings may be in several lines.
    for (codings, status) in
        [(["identity", "gzip"], 502), (["gzip", "identity"], 502), (["identity"; 2], 200)]
    {
        let with = codings.map(|coding| ("Content-Encoding", coding));
        let rig = Rig::new(Script::always(Answer::own(200, &with, body)));
        assert_eq!(rig.post(CHAT, "", &json!({"model": "small"})).status, status, "{codings:?}");
    }
}

#[test]
fn buffer_for_a_possible_credential_is_bounded() {
    let begun = format!("data: {{\"content\":\"it is {}\"}}\n\n", &KEY[..9]);
    let answered = |held: usize| {
        let events = format!(
            "{begun}{}data: {{\"content\":\" no\"}}\n\ndata: [DONE]\n\n",
            ": on\n\n".repeat(held / 6)
        );
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", events.len());
        let rig = Rig::new(Script::always(Answer::raw(head + &events)));
        let answer = rig.post(CHAT, "", &stream());
        (answer.body == events, rig.book.only())
    };
    for held in [400 << 10, 20 << 20] {
        let (is_whole, record) = answered(held);
        assert!(!is_whole && record.response_bytes < 300 << 10, "{record:?}");
        let expected = ["failed: credential_echoed", "failed: provider_answer_withheld"];
        assert!(expected.contains(&record.outcome.to_string().as_str()), "{record:?}");
    }
    // Control: a little later it turns out not to be the credential, and everything is forwarded.
    assert!(answered(40 << 10).0);
}

#[test]
fn credential_in_base64_lines_is_not_forwarded_at_any_offset() {
    for offset in 0..57 {
        let encoded = STANDARD.encode(format!("{}{KEY} was sent", "p".repeat(offset)));
        let lines: Vec<_> = encoded.as_bytes().chunks(76).map(String::from_utf8_lossy).collect();
        for end in ["\r\n", "\\n"] {
            let rig = Rig::new(Script::always(Answer::own(
                200,
                &[],
                format!("{{\"it is\":\"{}\"}}", lines.join(end)),
            )));
            let answer = rig.post(CHAT, "", &json!({"model": "small"}));
            assert!(answer.status == 502 || !answer.body.ends_with('}'), "{offset}: {answer:?}");
        }
    }
}

#[test]
fn answer_header_with_the_credential_is_not_forwarded() {
    let with = [("Content-Type", "application/json"), ("X-Request-Id", KEY)];
    let rig = Rig::new(Script::always(Answer::own(200, &with, "{}")));
    let answer = rig.post(CHAT, "", &json!({"model": "small"}));
    assert_eq!(answer.status, 502, "{answer:?}");
    assert!(!holds_the_key(&answer.bytes));
    assert!(!holds_the_key(format!("{:?}", rig.book.only()).as_bytes()), "nor what is kept for good");
    let others = [
        ("Set-Cookie", "a=b"),
        ("X-LiteLLM-Key-Spend", "5"),
        ("Server", "x"),
        ("X-Ratelimit-Remaining", "9"),
    ];
    let rig = Rig::new(Script::always(Answer::own(200, &others, "{}")));
    let head = rig.post(CHAT, "", &json!({"model": "small"})).head;
    assert!(head.contains("x-ratelimit-remaining: 9"), "{head}");
    assert!(
        !head.contains("set-cookie") && !head.contains("key-spend") && !head.contains("server:"),
        "{head}"
    );
}

#[test]
fn rotated_key_is_used_without_restart_and_a_missing_key_is_reported() {
    let rig = Rig::new(Script::always(Answer::text("hello")));
    let call = || rig.post(CHAT, "", &json!({"model": "small"}));
    assert_eq!(call().status, 200);
    std::fs::write(rig.key_file().with_extension("new"), "sk-second-key-of-the-host").unwrap();
    std::fs::rename(rig.key_file().with_extension("new"), rig.key_file()).unwrap();
    // The file is checked ten times a second.
    let later = || std::thread::sleep(std::time::Duration::from_millis(150));
    later();
    assert_eq!(call().status, 200);
    let last = rig.server.requests().pop().unwrap();
    assert_eq!(last.header("authorization"), Some("Bearer sk-second-key-of-the-host"));
    std::fs::remove_file(rig.key_file()).unwrap();
    later();
    let answer = call();
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (502, &json!("credential_unavailable")));
    assert!(!answer.body.contains("/"), "no path of the host's: {answer:?}");
}
