//! Messages for an agent, in OpenAI's format (`docs/contracts/agents.md#a6.1`).
//!
//! Messages are validated, and passed to the agent unchanged. The prompt on a command line is the last message of a user.

use serde_json::{Value, json};

/// Messages; at least one is a user's.
#[derive(Debug, Clone, PartialEq)]
pub struct Messages {
    document: Vec<u8>,
    prompt: String,
}

/// Reasons why a document is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MessagesError {
    /// The document exceeds [`LARGEST_BYTES`].
    #[error("the messages have more than {LARGEST_BYTES} bytes")]
    TooLong,
    /// It is not an array.
    #[error("the messages are no array of JSON: {why}")]
    NotAnArray {
        /// The parser's error.
        why: String,
    },
    /// An element is not a message.
    #[error("message {at} is {found}; expected {expected}")]
    NoMessage {
        /// Its index, from 0.
        at: usize,
        /// The defect.
        found: &'static str,
        /// The expected form.
        expected: &'static str,
    },
    /// No message of a user has a text.
    #[error("none of the messages is a user's with a text")]
    NoPrompt,
}

/// Maximum size of a document, in bytes.
pub const LARGEST_BYTES: usize = 8 << 20;

const ROLES: [&str; 6] = ["system", "developer", "user", "assistant", "tool", "function"];

// === impl Messages ===

impl Messages {
    /// Returns one message of a user.
    ///
    /// # Errors
    /// [`MessagesError`] for an empty text, or one that is too long.
    pub fn of_prompt(prompt: &str) -> Result<Self, MessagesError> {
        Self::of(&[json!({ "role": "user", "content": prompt })])
    }

    /// Parses a document.
    ///
    /// # Errors
    /// [`MessagesError`].
    pub fn parse(document: &[u8]) -> Result<Self, MessagesError> {
        let prompt = prompt_of(&elements(document)?)?;
        Ok(Self { document: document.to_owned(), prompt })
    }

    /// Parses a document, and adds a message of a user.
    ///
    /// # Errors
    /// [`MessagesError`] for an invalid document, or a text that is empty or too long.
    pub fn parse_and_add(document: &[u8], prompt: &str) -> Result<Self, MessagesError> {
        let mut all = elements(document)?;
        all.push(json!({ "role": "user", "content": prompt }));
        Self::of(&all)
    }

    fn of(messages: &[Value]) -> Result<Self, MessagesError> {
        let prompt = prompt_of(messages)?;
        let document = Value::from(messages).to_string().into_bytes();
        match document.len() > LARGEST_BYTES {
            true => Err(MessagesError::TooLong),
            false => Ok(Self { document, prompt }),
        }
    }

    /// Returns the document.
    pub fn document(&self) -> &[u8] {
        &self.document
    }

    /// Returns the text of the user's last message.
    pub fn prompt(&self) -> &str {
        &self.prompt
    }
}

fn elements(document: &[u8]) -> Result<Vec<Value>, MessagesError> {
    if document.len() > LARGEST_BYTES {
        return Err(MessagesError::TooLong);
    }
    let parsed: Result<Vec<Value>, _> = serde_json::from_slice(document);
    let messages = parsed.map_err(|error| MessagesError::NotAnArray { why: error.to_string() })?;
    messages.iter().enumerate().try_for_each(|(at, message)| check(at, message))?;
    Ok(messages)
}

fn check(at: usize, message: &Value) -> Result<(), MessagesError> {
    let wrong = |found, expected| Err(MessagesError::NoMessage { at, found, expected });
    let Value::Object(members) = message else {
        return wrong("something else", "an object with `role` and `content`");
    };
    match members.get("role").and_then(Value::as_str) {
        Some(role) if ROLES.contains(&role) => {}
        Some(_) => return wrong("of another role", "system, developer, user, assistant, tool or function"),
        None => return wrong("without a role", "`role` as a text"),
    }
    match members.get("content") {
        None | Some(Value::Null | Value::String(_) | Value::Array(_)) => Ok(()),
        Some(_) => wrong("of another content", "`content` as a text, an array of parts, or null"),
    }
}

fn prompt_of(messages: &[Value]) -> Result<String, MessagesError> {
    let last = messages.iter().rfind(|message| message["role"] == "user").ok_or(MessagesError::NoPrompt)?;
    let text = match &last["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts: Vec<&str> = parts.iter().filter_map(|part| part["text"].as_str()).collect();
            texts.join("\n")
        }
        _ => String::new(),
    };
    match text.trim().is_empty() {
        true => Err(MessagesError::NoPrompt),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_stay_verbatim_and_last_user_message_is_prompt() {
        let document = br#"[ {"role":"system","content":"be brief"},
            {"role":"user","content":"first"}, {"role":"assistant","content":null,"tool_calls":[]},
            {"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"b"}],"name":"x"} ]"#;
        let messages = Messages::parse(document).unwrap();
        assert_eq!((messages.document(), messages.prompt()), (&document[..], "a\nb"));
        let more = Messages::parse_and_add(document, "and \"this\"\n").unwrap();
        let parsed: Vec<Value> = serde_json::from_slice(more.document()).unwrap();
        assert_eq!((parsed.len(), more.prompt()), (5, "and \"this\"\n"));
        assert_eq!(parsed[4], json!({ "role": "user", "content": "and \"this\"\n" }));
    }

    #[test]
    fn invalid_messages_are_rejected_with_their_position() {
        for none in ["", "{}", "[", "null", "[] x"] {
            assert!(
                matches!(Messages::parse(none.as_bytes()), Err(MessagesError::NotAnArray { .. })),
                "{none}"
            );
        }
        for wrong in [
            r#"["x"]"#,
            r#"[{"content":"x"}]"#,
            r#"[{"role":"root","content":"x"}]"#,
            r#"[{"role":"user","content":1}]"#,
        ] {
            let error = Messages::parse(wrong.as_bytes());
            assert!(matches!(error, Err(MessagesError::NoMessage { at: 0, .. })), "{wrong}");
        }
        for silent in
            ["[]", r#"[{"role":"assistant","content":"x"}]"#, r#"[{"role":"user","content":" \n"}]"#]
        {
            assert_eq!(Messages::parse(silent.as_bytes()), Err(MessagesError::NoPrompt), "{silent}");
        }
        assert_eq!(Messages::parse(&vec![b' '; LARGEST_BYTES + 1]), Err(MessagesError::TooLong));
        assert_eq!(Messages::of_prompt(""), Err(MessagesError::NoPrompt));
    }
}
