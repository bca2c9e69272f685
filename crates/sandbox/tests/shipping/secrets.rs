//! Tests with planted secrets.

use crate::events::{ReadyRows, shipped};
use belljar_sandbox::config::LogShippingConfig;
use belljar_sandbox::shipping::{Redactor, RowSource};
use proptest::prelude::{ProptestConfig, prop, prop_assert_eq, proptest};
use serde_json::json;

/// The planted secret, which no event may contain.
const PLANTED: &str = "s3cr3tValue0123456789";

/// The secret in a row.
const ROW: &str = "{\"url\":\"https://s3cr3tValue0123456789@a/\",\"token\":\"s3cr3tValue0123456789\"}\n";

#[test]
fn what_is_named_or_looks_like_a_secret_is_hidden_and_the_rest_is_not() {
    let redactor = Redactor::new();
    let texts = [
        format!("password={PLANTED}&user=bob"),
        format!("DB_PASSWORD: {PLANTED}\nhost: db"),
        format!("export AWS_SECRET_ACCESS_KEY_TOKEN='{PLANTED}'"),
        format!("{{\"client_secret\": \"{PLANTED}\", \"n\": 1}}"),
        format!("{{\\\"access_token\\\":\\\"{PLANTED}\\\"}}"),
        format!("grant?code={PLANTED}&code_verifier={PLANTED}"),
        format!("https://bob:{PLANTED}@git.example.com/a.git"),
        format!("https://{PLANTED}@git.example.com/a.git"),
        format!("Authorization: Bearer {PLANTED}"),
        format!("authorization: Basic {PLANTED}=="),
        format!("sent bearer {PLANTED} along"),
        format!("gAAAAAB{PLANTED}{PLANTED}=="),
        format!("eyJhbGciOi.{PLANTED}.{PLANTED}"),
        format!("sk-proj-{PLANTED}"),
        format!("ghp_{PLANTED}"),
        format!("xoxb-{PLANTED}"),
        format!("-----BEGIN RSA PRIVATE KEY-----\n{PLANTED}\n-----END RSA PRIVATE KEY-----\nafter"),
        format!("-----BEGIN PRIVATE KEY-----\n{PLANTED}\nand cut off"),
    ];
    let redacted: Vec<String> = texts.iter().map(|text| redactor.text(text)).collect();
    for (text, redacted) in texts.iter().zip(&redacted) {
        assert!(!redacted.contains(PLANTED), "{text} became {redacted}");
    }
    insta::assert_snapshot!(redacted.join("\n"), @r#"
    password=***&user=bob
    DB_PASSWORD: ***
    host: db
    export AWS_SECRET_ACCESS_KEY_TOKEN='***'
    {"client_secret": "***", "n": 1}
    {\"access_token\":\"***\"}
    grant?code=***&code_verifier=***
    https://***@git.example.com/a.git
    https://***@git.example.com/a.git
    Authorization: *** ***
    authorization: *** ***
    sent bearer *** along
    ***
    ***
    ***
    ***
    ***
    -----BEGIN RSA PRIVATE KEY-----***-----END RSA PRIVATE KEY-----
    after
    -----BEGIN PRIVATE KEY-----***
    "#);
    let harmless = "exit_code=3 in 12 ms: see https://example.com/a?b=c, mail bob@example.com, tokenizer ok";
    assert_eq!(redactor.text(harmless), harmless);
}

#[test]
fn members_of_rows_are_hidden_by_name_and_by_content_at_any_depth() {
    let row = json!({
        "event": "proxy.connection.allowed",
        "port": 443,
        "api_key": PLANTED,
        "nested": [{"x-auth-token": PLANTED, "url": format!("https://a:{PLANTED}@b/")}],
    });
    let redacted = Redactor::new().value(&row);
    insta::assert_snapshot!(redacted, @r#"{"api_key":"***","event":"proxy.connection.allowed","nested":[{"url":"https://***@b/","x-auth-token":"***"}],"port":443}"#);
}

#[test]
fn secrets_are_hidden_in_all_that_is_told_also_where_it_is_cut() {
    let secret = format!("password={PLANTED}");
    for room in [9, 12, 20, 50, 1_000] {
        let config =
            LogShippingConfig { ship_raw_logs: true, max_log_bytes: room, ..LogShippingConfig::default() };
        for padding in [0, 5, room, room + 100, 2 * room + (16 << 10) - 15] {
            let text = format!("{}\n{secret}{}", "x".repeat(padding), " y".repeat(11_000));
            let rows = Some(Box::new(ReadyRows(ROW)) as Box<dyn RowSource>);
            let event = shipped(config, text.as_bytes(), secret.as_bytes(), rows).unwrap();
            let told = serde_json::to_string(&event).unwrap();
            assert!(!told.contains(&PLANTED[..4]), "room {room}, padding {padding}");
        }
    }
}

#[test]
fn rows_are_told_without_secrets() {
    let config = LogShippingConfig { ship_raw_logs: true, ..LogShippingConfig::default() };
    let raw = shipped(config, b"", b"", Some(Box::new(ReadyRows(ROW)))).unwrap().raw.unwrap();
    assert_eq!(raw.rows, [json!({"url": "https://***@a/", "token": "***"})]);
}

#[test]
fn a_secret_that_the_looking_ends_in_is_not_told_when_what_is_before_it_becomes_short() {
    let room = 100;
    let looked_at = 2 * room + (16 << 10);
    let (begin, end) = ("-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----\n");
    let body = "k".repeat(looked_at - begin.len() - end.len() - "ghp_s3cr".len());
    let text = format!("{begin}{body}{end}ghp_{PLANTED}");
    let config =
        LogShippingConfig { ship_raw_logs: true, max_log_bytes: room, ..LogShippingConfig::default() };
    let raw = shipped(config, text.as_bytes(), b"", None).unwrap().raw.unwrap();
    assert!(!raw.stdout.contains("s3cr"), "{}", raw.stdout);
    assert!(raw.truncated);
}

#[test]
fn what_becomes_a_secret_as_others_are_hidden_is_hidden_too() {
    let redactor = Redactor::new();
    assert_eq!(redactor.text("https://password=a/b,c@host"), "https://***@host");
    assert_eq!(redactor.text("https://password:https://@"), "https://password:***");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn what_is_redacted_stays_as_it_is_when_it_is_redacted_again(
        parts in prop::collection::vec("(password|token|Bearer|code|https://|@|:|=|\"|'|\\\\|[a-z]{1,9}| |\n|sk-|\\*)", 0..24),
    ) {
        let redactor = Redactor::new();
        let once = redactor.text(&parts.concat());
        prop_assert_eq!(redactor.text(&once), once.clone());
    }
}
