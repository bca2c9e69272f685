//! Tests of messages: they are sent to the configured destinations only.

mod smtp;

use crate::configured::{Case, Rig};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use belljar_contract::tool::DomainCode;
use belljar_testkit::orchestrator::Orchestrator;
use serde_json::{Value, json};
use smtp::{Server, ServerBehavior};
use std::path::PathBuf;
use tempfile::TempDir;

pub(crate) const CASES: &[Case] = &[
    ("message_goes_only_to_the_addresses_of_its_channel", message_goes_only_to_the_addresses_of_its_channel),
    ("nothing_is_sent_to_an_unauthenticated_mail_server", nothing_is_sent_to_an_unauthenticated_mail_server),
    (
        "webhook_message_is_signed_and_contains_only_the_message",
        webhook_message_is_signed_and_contains_only_the_message,
    ),
    ("internal_and_external_channels_use_separate_tools", internal_and_external_channels_use_separate_tools),
];

/// Password of the login.
const PASSWORD: &str = "a-password-of-tests";

/// A file with the password.
struct PasswordFile(TempDir);

// === impl PasswordFile ===

impl PasswordFile {
    fn new() -> Self {
        let keys = Self(tempfile::tempdir().unwrap());
        std::fs::write(keys.file(), PASSWORD).unwrap();
        keys
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("password")
    }
}

fn by_mail(server: &Server, keys: &PasswordFile, tls: &str) -> Rig {
    Rig::new(&format!(
        "channels:
  mail:
    - name: owners
      host: localhost
      port: {}
      tls: {tls}
      ca: {}
      login: {{user: bell, password: {{file: {}}}}}
      from: bell@house.example
      to: [one@house.example, two@house.example]
",
        server.port(),
        server.authority().display(),
        keys.file().display(),
    ))
}

fn message(channel: &str, subject: &str, message: &str) -> Value {
    json!({ "channel": channel, "subject": subject, "message": message })
}

fn message_goes_only_to_the_addresses_of_its_channel() -> Result<(), String> {
    let keys = PasswordFile::new();
    for (tls, manner) in [("starttls", ServerBehavior::Asked), ("implicit", ServerBehavior::Implicit)] {
        let server = Server::start(manner);
        let rig = by_mail(&server, &keys, tls);
        let send =
            |subject: &str, text: &str| rig.call("send_external_message", &message("owners", subject, text));
        for subject in
            ["x\r\nBcc: three@other.example", "x\nTo: three@other.example", "x\rBcc: three@other.example"]
        {
            assert_eq!(send(subject, "x").unwrap_err().code, DomainCode::InvalidArgument, "{subject:?}");
        }
        let more =
            json!({ "channel": "owners", "subject": "x", "message": "x", "to": ["three@other.example"] });
        assert_eq!(rig.call("send_external_message", &more).unwrap_err().code, DomainCode::InvalidArgument);
        assert!(server.heard().is_empty());
        let body = "Grüße\n.\nRCPT TO:<three@other.example>\n\nBcc: three@other.example";
        assert_eq!(send("Größe: fine", body).unwrap().data["recipients"], 2);
        let heard = server.heard();
        let envelope: Vec<_> =
            heard.iter().filter(|line| line.contains('<') && !line.contains(": ")).collect();
        assert_eq!(
            envelope,
            [
                "MAIL FROM:<bell@house.example>",
                "RCPT TO:<one@house.example>",
                "RCPT TO:<two@house.example>",
                " <two@house.example>"
            ]
        );
        assert!(heard.contains(&format!("AUTH PLAIN {}", STANDARD.encode(format!("\0bell\0{PASSWORD}")))));
        let blank = heard.iter().position(String::is_empty).unwrap();
        let encoded: String =
            heard[blank + 1..].iter().take_while(|line| *line != ".").map(String::as_str).collect();
        assert_eq!(String::from_utf8(STANDARD.decode(encoded).unwrap()).unwrap(), body.replace('\n', "\r\n"));
    }
    Ok(())
}

fn nothing_is_sent_to_an_unauthenticated_mail_server() -> Result<(), String> {
    let keys = PasswordFile::new();
    let sent = |server: &Server, tls: &str| {
        by_mail(server, &keys, tls).call("send_external_message", &message("owners", "x", "x"))
    };
    for manner in [ServerBehavior::WithoutTls, ServerBehavior::AheadOfTls, ServerBehavior::Another] {
        let server = Server::start(manner);
        assert!(sent(&server, "starttls").is_err(), "{manner:?}");
        let heard = server.heard();
        assert!(
            heard.iter().all(|line| line.starts_with("EHLO") || line == "STARTTLS"),
            "{manner:?}: {heard:?}"
        );
    }
    let refusing = Server::start(ServerBehavior::RefusesTheSecond);
    let failure = sent(&refusing, "starttls").unwrap_err();
    assert_eq!(
        (failure.code, failure.message.as_str()),
        (DomainCode::ToolFailed, "the mail server answers 550 to RCPT")
    );
    assert!(!refusing.heard().contains(&"DATA".to_owned()));
    // Control.
    assert!(sent(&Server::start(ServerBehavior::Asked), "starttls").is_ok());
    Ok(())
}

fn webhook_message_is_signed_and_contains_only_the_message() -> Result<(), String> {
    let (keys, house) = (PasswordFile::new(), Orchestrator::start());
    let rig = Rig::new(&format!(
        "channels:
  webhooks: [{{name: team, url: '{}', secret: {{file: {}}}, audience: internal}}]
  slack: [{{name: ops, url: '{}', audience: internal}}]
",
        house.url("/team"),
        keys.file().display(),
        house.url("/services/x"),
    ));
    let send = |channel: &str| rig.call("send_notification", &message(channel, "On <fire>", "All & sundry"));
    assert_eq!(send("team").unwrap().data["http_status"], 204);
    send("ops").unwrap();
    let received = house.received();
    let [team, ops] = received.as_slice() else { panic!("{received:?}") };
    let id = team.header("webhook-id").unwrap();
    assert_eq!(
        team.body,
        json!({ "id": id, "type": "message", "subject": "On <fire>", "message": "All & sundry" })
    );
    let signed =
        [format!("{id}.{}.", team.header("webhook-timestamp").unwrap()).as_bytes(), &team.bytes].concat();
    let signature = STANDARD.encode(Orchestrator::hmac_sha256(PASSWORD.as_bytes(), &signed));
    assert_eq!(team.header("webhook-signature"), Some(format!("v1,{signature}").as_str()));
    assert_eq!((ops.path.as_str(), ops.header("webhook-signature")), ("/services/x", None));
    assert_eq!(ops.body, json!({ "text": "*On &lt;fire&gt;*\nAll &amp; sundry" }));
    house.refuse(1);
    assert_eq!(send("team").unwrap_err().code, DomainCode::ToolFailed);
    Ok(())
}

fn internal_and_external_channels_use_separate_tools() -> Result<(), String> {
    let channels = |more: &str| {
        format!("channels: {{slack: [{{name: a, url: 'http://127.0.0.1:9/', audience: internal}}{more}]}}")
    };
    let internal = Rig::new(&channels(""));
    assert_eq!(internal.names(), ["send_notification"]);
    let both = Rig::new(&channels(", {name: b, url: 'http://127.0.0.1:9/'}"));
    assert_eq!(both.names(), ["send_external_message", "send_notification"]);
    let other = both.call("send_notification", &message("b", "x", "x")).unwrap_err();
    assert_eq!((other.code, other.message.as_str()), (DomainCode::NotFound, "unknown channel; available: a"));
    assert_eq!(
        both.call("send_notification", &message("a", "x", "x")).unwrap_err().code,
        DomainCode::Unavailable
    );
    assert!(Rig::new("{}").names().is_empty());
    Ok(())
}
