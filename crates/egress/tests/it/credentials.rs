//! What the host injects comes back to nobody.

use crate::rig::{CHAT, KEY, Rig};
use belljar_testkit::models::{Answer, Script};
use serde_json::{Value, json};

fn stream() -> Value {
    json!({"model": "small", "stream": true})
}

/// Every way of writing it that a scan would find.
fn holds_the_key(bytes: &[u8]) -> bool {
    let hex: String = KEY.bytes().map(|byte| format!("{byte:02x}")).collect();
    let text = String::from_utf8_lossy(bytes);
    // In base64, what stands inside whatever surrounds it.
    let core = ["c2staG9zdC00ZjlhQjd6S2Q4MlFtWDAx", "staG9zdC00ZjlhQjd6S2Q4", "ay1ob3N0LTRmOWFCN3pLZDgyUW1Y"];
    text.contains(&KEY[..12])
        || text.contains(&hex[..24])
        || core.iter().any(|core| text.contains(&core[..16]))
}

#[test]
fn an_upstream_that_repeats_a_request_in_its_error_is_not_repeated() {
    let rig = Rig::new(Script::always(Answer::echo(400)));
    let answer = rig.post(CHAT, "", &json!({"model": "small"}));
    assert!(rig.server.requests()[0].contains(KEY.as_bytes()), "the control: it was sent");
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (502, &json!("provider_answer_withheld")));
    assert!(!holds_the_key(&answer.bytes), "{answer:?}");
    assert_eq!(rig.book.only().upstream_status, Some(400));
    // An error without it goes on as it is.
    let rig = Rig::new(Script::always(Answer::rate_limited(7)));
    let answer = rig.post(CHAT, "", &json!({"model": "small"}));
    assert_eq!(answer.status, 429);
    assert!(answer.head.contains("retry-after: 7"), "{answer:?}");
}

#[test]
fn an_answer_with_it_is_cut_off_before_it_however_it_is_cut_into_pieces() {
    let (first, second) = KEY.split_at(9);
    for (pieces, sizes) in [
        (vec!["it is ", KEY, " now"], vec![]),
        (vec!["it is ", first, second, " now"], vec![]),
        (vec!["it is ", KEY, " now"], vec![1]),
        (vec!["it is ", KEY, " now"], vec![3, 5, 2]),
    ] {
        let mut reply = Answer::pieces(&pieces);
        if !sizes.is_empty() {
            reply = reply.in_chunks_of(&sizes);
        }
        let is_whole = pieces.contains(&KEY);
        let rig = Rig::new(Script::always(reply));
        let answer = rig.post(CHAT, "", &stream());
        // Two halves in two events are no key, and stand apart.
        assert!(!is_whole || !answer.bytes.ends_with(b"0\r\n\r\n"), "{answer:?}");
        assert!(!is_whole || !holds_the_key(&answer.bytes), "{answer:?}");
        let record = rig.book.only();
        // It may be noticed before anything was passed on: then it can be said.
        let expected: &[&str] = match is_whole {
            true => &["failed: credential_echoed", "failed: provider_answer_withheld"],
            false => &["completed"],
        };
        assert!(expected.contains(&record.outcome.to_string().as_str()), "{record:?}");
    }
}

#[test]
fn a_header_with_it_is_not_passed_on() {
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
fn a_new_key_is_used_without_a_restart_and_a_missing_one_is_said() {
    let rig = Rig::new(Script::always(Answer::text("hello")));
    let call = || rig.post(CHAT, "", &json!({"model": "small"}));
    assert_eq!(call().status, 200);
    std::fs::write(rig.key_file().with_extension("new"), "sk-second-key-of-the-host").unwrap();
    std::fs::rename(rig.key_file().with_extension("new"), rig.key_file()).unwrap();
    assert_eq!(call().status, 200);
    let last = rig.server.requests().pop().unwrap();
    assert_eq!(last.header("authorization"), Some("Bearer sk-second-key-of-the-host"));
    std::fs::remove_file(rig.key_file()).unwrap();
    let answer = call();
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (502, &json!("credential_unavailable")));
    assert!(!answer.body.contains("/"), "no path of the host's: {answer:?}");
}
