//! Formats a mail. Its text is encoded, so that no line of it can act as a header or end the mail.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use std::fmt::Write;

/// Plain text mail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mail {
    id: String,
    at: Timestamp,
    subject: String,
    body: String,
}

/// Reason why a text can't be a mail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidMailError {
    /// The subject has a line end or another control character.
    #[error("a subject is one line, without control characters")]
    Subject,
    /// The subject is too long.
    #[error("a subject has {LONGEST_SUBJECT} characters at most")]
    LongSubject,
}

const LONGEST_SUBJECT: usize = 200;

/// Number of Base64 characters on a line.
const LINE: usize = 76;

/// Number of bytes that are encoded in one word of a subject, which has at most 75 characters.
const WORD_BYTES: usize = 45;

// === impl Mail ===

impl Mail {
    /// Creates a mail with a unique id of letters, digits and `-`.
    ///
    /// # Errors
    /// [`InvalidMailError`].
    pub fn new(id: String, at: Timestamp, subject: &str, body: &str) -> Result<Self, InvalidMailError> {
        if subject.contains(char::is_control) {
            return Err(InvalidMailError::Subject);
        }
        if subject.chars().count() > LONGEST_SUBJECT {
            return Err(InvalidMailError::LongSubject);
        }
        Ok(Self { id, at, subject: subject.to_owned(), body: body.to_owned() })
    }

    /// Returns the whole mail in lines of ASCII, without the final dot.
    pub(super) fn written(&self, from: &str, to: &[&str]) -> String {
        let host = from.rsplit('@').next().unwrap_or_default();
        let date = rfc2822::to_string(&self.at.to_zoned(jiff::tz::TimeZone::UTC)).unwrap_or_default();
        let mut text = format!(
            "From: <{from}>\r\nTo: <{}>\r\nSubject: {}\r\nDate: {date}\r\nMessage-ID: <{}@{host}>\r\n\
             MIME-Version: 1.0\r\nContent-Type: text/plain; charset=utf-8\r\n\
             Content-Transfer-Encoding: base64\r\nAuto-Submitted: auto-generated\r\n\r\n",
            to.join(">,\r\n <"),
            subject(&self.subject),
            self.id,
        );
        let body = self.body.replace("\r\n", "\n").replace('\n', "\r\n");
        let encoded = STANDARD.encode(body);
        for line in encoded.as_bytes().chunks(LINE) {
            text.push_str(&String::from_utf8_lossy(line));
            text.push_str("\r\n");
        }
        text
    }
}

/// Encodes a subject in words, unless it is plain ASCII.
fn subject(text: &str) -> String {
    // A subject that looks like an encoded word is encoded, too, so that it is shown unchanged.
    if text.is_ascii() && !text.contains("=?") {
        return text.to_owned();
    }
    let mut written = String::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (word, left) = rest.split_at(rest.floor_char_boundary(WORD_BYTES.min(rest.len())));
        let separator = if written.is_empty() { "" } else { "\r\n " };
        // Writing to a `String` can't fail.
        let _ = write!(written, "{separator}=?utf-8?B?{}?=", STANDARD.encode(word));
        rest = left;
    }
    written
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mail_subject_with_line_ends_is_rejected_and_non_ascii_is_encoded() {
        let mail = |subject: &str| Mail::new("1".to_owned(), Timestamp::UNIX_EPOCH, subject, "");
        assert_eq!(mail("a\r\nBcc: x@y"), Err(InvalidMailError::Subject));
        assert_eq!(mail("a\nb"), Err(InvalidMailError::Subject));
        assert_eq!(mail(&"x".repeat(LONGEST_SUBJECT + 1)), Err(InvalidMailError::LongSubject));
        assert_eq!(subject("plain"), "plain");
        assert_eq!(subject("Größe"), "=?utf-8?B?R3LDtsOfZQ==?=");
        assert_eq!(subject("=?utf-8?Q?x?="), "=?utf-8?B?PT91dGYtOD9RP3g/PQ==?=");
        assert!(subject(&"ö".repeat(200)).split("\r\n").all(|line| line.len() <= 76));
    }

    #[test]
    fn mail_body_cannot_end_the_message_or_inject_headers() {
        let body = "x\r\n.\r\nMAIL FROM:<a@b>\n\n.";
        let mail = Mail::new("1".to_owned(), Timestamp::UNIX_EPOCH, "s", body).unwrap();
        let written = mail.written("a@h.example", &["b@h.example", "c@h.example"]);
        assert!(!written.contains("MAIL FROM") && !written.lines().any(|line| line.starts_with('.')));
        let (head, body) = written.split_once("\r\n\r\n").unwrap();
        insta::assert_snapshot!(head.replace('\r', ""), @r"
        From: <a@h.example>
        To: <b@h.example>,
         <c@h.example>
        Subject: s
        Date: Thu, 1 Jan 1970 00:00:00 +0000
        Message-ID: <1@h.example>
        MIME-Version: 1.0
        Content-Type: text/plain; charset=utf-8
        Content-Transfer-Encoding: base64
        Auto-Submitted: auto-generated
        ");
        let decoded = STANDARD.decode(body.replace("\r\n", "")).unwrap();
        assert_eq!(String::from_utf8(decoded).unwrap(), "x\r\n.\r\nMAIL FROM:<a@b>\r\n\r\n.");
    }
}
