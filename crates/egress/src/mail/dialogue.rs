//! SMTP dialogue with a mail server (RFC 5321).

use super::MailError;
use crate::upstream::Stream;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use zeroize::Zeroizing;

/// Connection to a mail server.
pub(super) struct Dialogue {
    stream: Stream,
    /// Received bytes that aren't read yet.
    inbox: Vec<u8>,
}

/// Code of an answer's last line.
type Code = u16;

/// Maximum size of an answer in bytes.
const LONGEST_ANSWER: usize = 16 << 10;

// === impl Dialogue ===

impl Dialogue {
    pub(super) fn new(stream: Stream) -> Self {
        Self { stream, inbox: Vec::new() }
    }

    /// Waits for the server's greeting.
    pub(super) async fn greeted(&mut self) -> Result<(), MailError> {
        let code = self.answer().await?;
        taken(code, 220, "nothing yet")
    }

    pub(super) async fn hello(&mut self) -> Result<(), MailError> {
        self.say("EHLO belljar.invalid", 250, "EHLO").await
    }

    /// Sends STARTTLS and returns the stream for the TLS handshake.
    pub(super) async fn begin_tls(mut self) -> Result<Stream, MailError> {
        self.write("STARTTLS").await?;
        if self.answer().await? != 220 {
            return Err(MailError::NoTls);
        }
        // Bytes before TLS are unauthenticated. They must not be taken for answers within TLS.
        if !self.inbox.is_empty() {
            return Err(MailError::Malformed);
        }
        Ok(self.stream)
    }

    /// Logs in. Called only over TLS, like everything after STARTTLS.
    pub(super) async fn log_in(&mut self, user: &str, password: &str) -> Result<(), MailError> {
        let plain = Zeroizing::new(format!("\0{user}\0{password}"));
        let line = Zeroizing::new(format!("AUTH PLAIN {}", STANDARD.encode(plain.as_bytes())));
        self.say(&line, 235, "AUTH").await
    }

    /// Sends the sender and the recipients. One refused recipient ends the mail for all.
    pub(super) async fn envelope(&mut self, from: &str, to: &[&str]) -> Result<(), MailError> {
        self.say(&format!("MAIL FROM:<{from}>"), 250, "MAIL").await?;
        for address in to {
            self.say(&format!("RCPT TO:<{address}>"), 250, "RCPT").await?;
        }
        Ok(())
    }

    /// Sends the mail, whose lines must not begin with a dot.
    pub(super) async fn content(&mut self, mail: &str) -> Result<(), MailError> {
        self.say("DATA", 354, "DATA").await?;
        self.say(&format!("{mail}."), 250, "the mail").await?;
        // The mail was accepted, so an error of this command doesn't matter.
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

    /// Reads lines up to the last one of an answer.
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
        // A server that forwards answers 251.
        code if code == expected || (code == 251 && expected == 250) => Ok(()),
        code => Err(MailError::Refused { said, code }),
    }
}
