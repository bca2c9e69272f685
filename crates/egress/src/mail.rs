//! Mail to configured addresses through a configured server. No caller can choose an address or a header line.
//!
//! ```text
//! Mailer::send ─► one thread: dialed ─► greeting ─► [STARTTLS ─►] TLS ─► login ─► sender, recipients ─► content ─► taken
//! ```

mod config;
mod content;
mod dialogue;

pub use content::{InvalidMailError, Mail};

use crate::credential::{Credential, CredentialError};
use crate::upstream::names::NameSource;
use crate::upstream::{ConnectError, Connector, Upstream};
use dialogue::Dialogue;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;
use zeroize::Zeroizing;

/// Mail addresses, and the server that accepts mail for them.
#[derive(Debug, Clone, PartialEq)]
pub struct Mailbox {
    /// Mail server, authenticated by TLS.
    server: Upstream,
    /// True if the connection begins with TLS; otherwise the client sends STARTTLS first.
    is_implicit: bool,
    login: Option<Login>,
    from: Address,
    to: Vec<Address>,
}

/// Mail address that contains nothing which ends a line or an address.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Address(String);

/// Login at the mail server.
#[derive(Debug, Clone, PartialEq)]
struct Login {
    user: String,
    password: Arc<Credential>,
}

/// Sends mail. Dropping it cancels what is under way.
#[derive(Debug)]
pub struct Mailer {
    orders: mpsc::UnboundedSender<MailOrder>,
}

/// The server may not have accepted the mail.
#[derive(Debug, thiserror::Error)]
pub enum MailError {
    /// The password can't be obtained.
    #[error("there is no password for the mail server")]
    NoPassword {
        /// Reason.
        #[source]
        source: CredentialError,
    },
    /// The connection failed.
    #[error("no connection to the mail server")]
    Connect {
        /// Reason.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The connection broke.
    #[error("the connection to the mail server broke")]
    Broken {
        /// Reason.
        #[source]
        source: io::Error,
    },
    /// The server doesn't support TLS, so nothing was sent.
    #[error("the mail server does not support TLS")]
    NoTls,
    /// The server's answer is not valid SMTP.
    #[error("the mail server's answer is malformed")]
    Malformed,
    /// The server refused.
    #[error("the mail server answers {code} to {said}")]
    Refused {
        /// Command that was refused.
        said: &'static str,
        /// SMTP code.
        code: u16,
    },
    /// The time limit was exceeded.
    #[error("the mail server did not accept the mail in time")]
    OutOfTime,
    /// The mailer is shut down.
    #[error("mail is no longer sent: the mailer has stopped")]
    Over,
}

struct MailOrder {
    mailbox: Mailbox,
    password: Option<Zeroizing<String>>,
    mail: Mail,
    answer: oneshot::Sender<Result<(), MailError>>,
}

/// Time limit for one mail: 45 s.
const WITHIN: Duration = Duration::from_secs(45);

// === impl Mailbox ===

impl Mailbox {
    /// Returns the credential that the server is logged in to with.
    pub fn password(&self) -> Option<&Arc<Credential>> {
        self.login.as_ref().map(|login| &login.password)
    }

    /// Returns the address of the server.
    pub fn server(&self) -> String {
        self.server.address()
    }

    /// Returns the addresses that mail goes to.
    pub fn addresses(&self) -> impl Iterator<Item = &str> {
        self.to.iter().map(|Address(address)| address.as_str())
    }

    /// Returns the number of addresses.
    pub fn recipients(&self) -> usize {
        self.to.len()
    }
}

// === impl Mailer ===

impl Mailer {
    /// Starts the thread.
    ///
    /// # Errors
    /// [`io::Error`], if the thread can't be started.
    pub fn start() -> io::Result<Self> {
        let (orders, taken) = mpsc::unbounded_channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
        let named = std::thread::Builder::new().name("belljar-mail".to_owned());
        named.spawn(move || {
            let local = tokio::task::LocalSet::new();
            local.block_on(&runtime, take_orders(taken));
        })?;
        Ok(Self { orders })
    }

    /// Sends a mail to all addresses of a mailbox. If the server refuses one, it goes to none.
    ///
    /// # Errors
    /// [`MailError`]; the mail may have been accepted all the same.
    pub async fn send(&self, mailbox: &Mailbox, mail: Mail) -> Result<(), MailError> {
        let password = match &mailbox.login {
            Some(login) => {
                let password = login.password.password().await;
                Some(password.map_err(|source| MailError::NoPassword { source })?)
            }
            None => None,
        };
        let (answer, answered) = oneshot::channel();
        let order = MailOrder { mailbox: mailbox.clone(), password, mail, answer };
        self.orders.send(order).map_err(|_| MailError::Over)?;
        answered.await.map_err(|_| MailError::Over)?
    }
}

async fn take_orders(mut orders: mpsc::UnboundedReceiver<MailOrder>) {
    let connector = Rc::new(Connector::new(NameSource::of_system()));
    while let Some(order) = orders.recv().await {
        let connector = Rc::clone(&connector);
        tokio::task::spawn_local(async move {
            let MailOrder { mailbox, password, mail, mut answer } = order;
            tokio::select! {
                sent = timeout(WITHIN, deliver(&connector, &mailbox, password, &mail)) => {
                    let _ = answer.send(sent.unwrap_or(Err(MailError::OutOfTime)));
                }
                () = answer.closed() => {}
            }
        });
    }
}

async fn deliver(
    connector: &Connector,
    mailbox: &Mailbox,
    password: Option<Zeroizing<String>>,
    mail: &Mail,
) -> Result<(), MailError> {
    let mut dialogue = match mailbox.is_implicit {
        true => {
            let mut dialogue = Dialogue::new(connector.connect(&mailbox.server).await?);
            dialogue.greeted().await?;
            dialogue
        }
        false => {
            let mut plain = Dialogue::new(connector.dial(&mailbox.server).await?);
            plain.greeted().await?;
            plain.hello().await?;
            let stream = plain.begin_tls().await?;
            Dialogue::new(connector.upgrade(stream, &mailbox.server).await?)
        }
    };
    dialogue.hello().await?;
    if let (Some(login), Some(password)) = (&mailbox.login, &password) {
        dialogue.log_in(&login.user, password).await?;
    }
    let to: Vec<&str> = mailbox.to.iter().map(|Address(address)| address.as_str()).collect();
    let from = mailbox.from.0.as_str();
    dialogue.envelope(from, &to).await?;
    dialogue.content(&mail.written(from, &to)).await
}

impl From<ConnectError> for MailError {
    fn from(error: ConnectError) -> Self {
        Self::Connect { source: Box::new(error) }
    }
}
