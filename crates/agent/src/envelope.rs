//! The answer of an agent: plain text, or a JSON envelope (`docs/contracts/agents.md#a6.5`).
//!
//! ```text
//! {"payloads": [{"text": "Done."}], "meta": {"durationMs": 5, "error": null}}
//! ```
//! The output is an envelope if all of standard output, without surrounding white space, is one object with `payloads` and
//! `meta`. Otherwise it is text, and no part of it is interpreted. Text is an error if the catalogue declares that the agent
//! prints an envelope. The output comes from inside the sandbox, so it is untrusted.

use super::catalogue::OutputForm;
use serde_json::{Map, Value};

/// The answer of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// Plain text.
    Text(String),
    /// An envelope. The texts of several payloads are joined by line breaks.
    Envelope {
        /// The joined text.
        text: String,
        /// The error that it reports, if any.
        error: Option<AgentError>,
    },
    /// A malformed envelope.
    Malformed {
        /// The defect.
        why: &'static str,
    },
}

/// An error that an agent reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentError {
    /// Its code, such as `llm_error`; `agent_error` if the agent gives no valid one.
    pub code: String,
    /// A message for people, at most 500 characters.
    pub message: String,
}

/// The code of an error without a valid code.
const NO_CODE: &str = "agent_error";

/// The defect of output that is not an envelope, though the agent's row in the catalogue declares one.
const NO_ENVELOPE: &str =
    "standard output is not one envelope and nothing else, as the agent's row in the catalogue says";

const LONGEST_CODE: usize = 64;
const LONGEST_MESSAGE: usize = 500;

// === impl Answer ===

impl Answer {
    /// Parses an agent's output, in the form that the catalogue declares.
    pub fn of(stdout: &[u8], form: OutputForm) -> Self {
        match (Self::read(stdout), form) {
            (Self::Text(_), OutputForm::Envelope) => Self::Malformed { why: NO_ENVELOPE },
            (answer, _) => answer,
        }
    }

    /// Parses an agent's output.
    fn read(stdout: &[u8]) -> Self {
        let trimmed = stdout.trim_ascii();
        // The parser accepts at most 128 levels of nesting; deeper JSON is treated as text.
        let parsed = match trimmed.first() {
            Some(b'{') => serde_json::from_slice::<Map<String, Value>>(trimmed).ok(),
            _ => None,
        };
        match parsed.as_ref().and_then(|all| Some((all.get("payloads")?, all.get("meta")?))) {
            Some((payloads, meta)) => envelope(payloads, meta).unwrap_or_else(|why| Self::Malformed { why }),
            None => Self::Text(String::from_utf8_lossy(stdout).into_owned()),
        }
    }
}

fn envelope(payloads: &Value, meta: &Value) -> Result<Answer, &'static str> {
    let payloads = payloads.as_array().ok_or("`payloads` is no array")?;
    let texts = payloads.iter().map(text).collect::<Result<Vec<_>, _>>()?;
    let meta = meta.as_object().ok_or("`meta` is no object")?;
    let error = match meta.get("error") {
        None | Some(Value::Null) => None,
        Some(error) => Some(error.as_object().map(said).ok_or("`meta.error` is no object")?),
    };
    Ok(Answer::Envelope { text: texts.into_iter().flatten().collect::<Vec<_>>().join("\n"), error })
}

/// Returns the text of a payload; `None` for one without a text, such as a picture.
fn text(payload: &Value) -> Result<Option<&str>, &'static str> {
    let members = payload.as_object().ok_or("a payload is no object")?;
    match members.get("text") {
        None | Some(Value::Null) => Ok(None),
        Some(text) => text.as_str().map(Some).ok_or("the `text` of a payload is no text"),
    }
}

/// Reads the reported error. Some agents have the error's `kind` in place of a code.
fn said(error: &Map<String, Value>) -> AgentError {
    let is_code = |text: &&str| {
        let is_allowed = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_');
        (1..=LONGEST_CODE).contains(&text.len()) && text.bytes().all(is_allowed)
    };
    let named = ["code", "kind"].iter().find_map(|name| error.get(*name)?.as_str());
    let message = error.get("message").and_then(Value::as_str).unwrap_or_default();
    AgentError {
        code: named.filter(is_code).unwrap_or(NO_CODE).to_owned(),
        message: message.chars().take(LONGEST_MESSAGE).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn envelope_of(text: &str, error: Option<(&str, &str)>) -> Answer {
        let error = error.map(|(code, message)| AgentError { code: code.into(), message: message.into() });
        Answer::Envelope { text: text.to_owned(), error }
    }

    #[test]
    fn envelope_alone_is_parsed_in_both_dialects() {
        let cases = [
            (r#"{"payloads":[{"text":"hi"}],"meta":{"durationMs":1,"error":null}}"#, envelope_of("hi", None)),
            (" \n{\"payloads\":[],\"meta\":{}}\n\n", envelope_of("", None)),
            (
                r#"{"payloads":[{"text":"a"},{"mediaUrl":"x"},{"text":"b"}],"meta":{"agentMeta":{}},"more":1}"#,
                envelope_of("a\nb", None),
            ),
            (
                r#"{"payloads":[],"meta":{"error":{"code":"llm_error","message":"502"}}}"#,
                envelope_of("", Some(("llm_error", "502"))),
            ),
            (
                r#"{"payloads":[],"meta":{"error":{"kind":"context_overflow","message":"m"}}}"#,
                envelope_of("", Some(("context_overflow", "m"))),
            ),
            (
                r#"{"payloads":[],"meta":{"error":{"code":"; rm"}}}"#,
                envelope_of("", Some(("agent_error", ""))),
            ),
        ];
        for (stdout, expected) in cases {
            assert_eq!(Answer::read(stdout.as_bytes()), expected, "{stdout}");
        }
    }

    #[test]
    fn output_around_an_envelope_makes_the_answer_text() {
        let envelope = r#"{"payloads":[{"text":"hi"}],"meta":{}}"#;
        for text in [
            format!("warning\n{envelope}"),
            format!("{envelope}\n{envelope}"),
            format!("{envelope} done"),
            format!("[{envelope}]"),
            r#"{"payloads":[]}"#.to_owned(),
            r#"{"meta":{}}"#.to_owned(),
            "{".repeat(100_000),
            "plain\u{1b}[31m".to_owned(),
            String::new(),
        ] {
            assert_eq!(Answer::read(text.as_bytes()), Answer::Text(text.clone()), "{text:.60}");
        }
        assert_eq!(Answer::read(b"\xff{"), Answer::Text("\u{fffd}{".to_owned()));
    }

    #[test]
    fn envelope_of_another_shape_is_malformed() {
        for wrong in [
            r#"{"payloads":{},"meta":{}}"#,
            r#"{"payloads":["x"],"meta":{}}"#,
            r#"{"payloads":[{"text":1}],"meta":{}}"#,
            r#"{"payloads":[],"meta":null}"#,
            r#"{"payloads":[],"meta":{"error":"bad"}}"#,
        ] {
            assert!(matches!(Answer::read(wrong.as_bytes()), Answer::Malformed { .. }), "{wrong}");
        }
    }

    #[test]
    fn deeply_nested_json_is_read_as_text() {
        let deep = format!(r#"{{"payloads":{}{},"meta":{{}}}}"#, "[".repeat(50_000), "]".repeat(50_000));
        assert!(matches!(Answer::read(deep.as_bytes()), Answer::Text(_)));
    }

    proptest! {
        #[test]
        fn reading_arbitrary_output_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            Answer::read(&bytes);
        }

        #[test]
        fn envelope_text_survives_and_errors_are_truncated(code in ".{0,100}", message in ".{0,1000}", text in ".{0,100}") {
            let all = serde_json::json!({
                "payloads": [{ "text": text }], "meta": { "error": { "code": code, "message": message } }
            });
            let Answer::Envelope { text: read, error: Some(error) } = Answer::read(all.to_string().as_bytes()) else {
                panic!("no envelope");
            };
            prop_assert_eq!(read, text);
            prop_assert!(error.code.len() <= LONGEST_CODE && error.message.chars().count() <= LONGEST_MESSAGE);
        }
    }
}
