//! What is said to a mail server, in its turn (RFC 5321), and what it answers.

use super::MailError;
use crate::upstream::Stream;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use zeroize::Zeroizing;

/// A connection to a server.
pub(super) struct Dialogue {
    stream: Stream,
    /// What it has said that isn't read yet.
    inbox: Vec<u8>,
}

/// What it answers: the code of its last line.
type Code = u16;

/// No answer is longer, in bytes.
const LONGEST_ANSWER: usize = 16 << 10;

// === impl Dialogue ===

impl Dialogue {
    pub(super) fn new(stream: Stream) -> Self {
        Self { stream, inbox: Vec::new() }
    }

    /// Waits until it is greeted.
    pub(super) async fn greeted(&mut self) -> Result<(), MailError> {
        let code = self.answer().await?;
        taken(code, 220, "nothing yet")
    }

    pub(super) async fn hello(&mut self) -> Result<(), MailError> {
        self.say("EHLO belljar.invalid", 250, "EHLO").await
    }

    /// Asks for TLS; what comes then is TLS.
    pub(super) async fn begin_tls(mut self) -> Result<Stream, MailError> {
        self.write("STARTTLS").await?;
        if self.answer().await? != 220 {
            return Err(MailError::NoTls);
        }
        // What was said before could be anybody's, and must not pass for what is said then.
        if !self.inbox.is_empty() {
            return Err(MailError::Malformed);
        }
        Ok(self.stream)
    }

    /// Over TLS alone, as all of this but its beginning.
    pub(super) async fn log_in(&mut self, user: &str, password: &str) -> Result<(), MailError> {
        let plain = Zeroizing::new(format!("\0{user}\0{password}"));
        let line = Zeroizing::new(format!("AUTH PLAIN {}", STANDARD.encode(plain.as_bytes())));
        self.say(&line, 235, "AUTH").await
    }

    /// Whose it is, and whom it is for. One that isn't taken ends it for all.
    pub(super) async fn envelope(&mut self, from: &str, to: &[&str]) -> Result<(), MailError> {
        self.say(&format!("MAIL FROM:<{from}>"), 250, "MAIL").await?;
        for address in to {
            self.say(&format!("RCPT TO:<{address}>"), 250, "RCPT").await?;
        }
        Ok(())
    }

    /// The mail, in lines none of which begins with a dot.
    pub(super) async fn content(&mut self, mail: &str) -> Result<(), MailError> {
        self.say("DATA", 354, "DATA").await?;
        self.say(&format!("{mail}."), 250, "the mail").await?;
        // It has been taken; whoever doesn't hear the end of it may hang up.
        let _ = self.write("QUIT").await;
        Ok(())
    }

    async fn say(&mut self, line: &str, expected: Code, said: &'static str) -> Result<(), MailError> {
        self.write(line).await?;
        taken(self.answer().await?, expected, said)
    }

    async fn write(&mut self, line: &str) -> Result<(), MailError> {
        let line = Zeroizing::new(format!("{line}\r\n"));
        let written = async {
            self.stream.write_all(line.as_bytes()).await?;
            self.stream.flush().await
        };
        written.await.map_err(|source| MailError::Broken { source })
    }

    /// Reads lines until one is the last of an answer.
    async fn answer(&mut self) -> Result<Code, MailError> {
        let mut read = 0;
        loop {
            let line = self.line().await?;
            read += line.len();
            let code = line.get(..3).and_then(|code| std::str::from_utf8(code).ok()?.parse().ok());
            let code = code.filter(|code| (200..600).contains(code)).ok_or(MailError::Malformed)?;
            match line.get(3) {
                None | Some(b' ') => return Ok(code),
                Some(b'-') if read <= LONGEST_ANSWER => {}
                Some(_) => return Err(MailError::Malformed),
            }
        }
    }

    async fn line(&mut self) -> Result<Vec<u8>, MailError> {
        loop {
            if let Some(end) = self.inbox.windows(2).position(|pair| pair == b"\r\n") {
                let rest = self.inbox.split_off(end + 2);
                let mut line = std::mem::replace(&mut self.inbox, rest);
                line.truncate(end);
                return Ok(line);
            }
            if self.inbox.len() > LONGEST_ANSWER {
                return Err(MailError::Malformed);
            }
            let read = self.stream.read_buf(&mut self.inbox).await;
            if read.map_err(|source| MailError::Broken { source })? == 0 {
                return Err(MailError::Broken { source: std::io::ErrorKind::UnexpectedEof.into() });
            }
        }
    }
}

fn taken(code: Code, expected: Code, said: &'static str) -> Result<(), MailError> {
    match code {
        // A server that forwards says 251.
        code if code == expected || (code == 251 && expected == 250) => Ok(()),
        code => Err(MailError::Refused { said, code }),
    }
}
