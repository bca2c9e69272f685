//! Configured HTTP destination for messages of agents, signed if it has a secret.

use crate::callback::{Destination, KeyError, Message, SendError, Sender, SigningKey};
use crate::credential::{Credential, CredentialError};
use crate::upstream::read_server_user;
use belljar_contract::yaml::{Members, text};
use std::sync::Arc;

/// Configured destination of messages.
#[derive(Debug, Clone, PartialEq)]
pub struct Webhook {
    destination: Destination,
    secret: Option<Arc<Credential>>,
}

/// The message may not have been received.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// The secret can't be obtained.
    #[error("the signing secret is not available")]
    NoSecret {
        /// Reason.
        #[source]
        source: CredentialError,
    },
    /// The secret is no signing key.
    #[error("the signing secret is not a valid key")]
    NoKey {
        /// Reason.
        #[source]
        source: KeyError,
    },
    /// The message could not be sent, or was not answered.
    #[error(transparent)]
    Send(#[from] SendError),
}

// === impl Webhook ===

impl Webhook {
    /// Reads `url` and `secret`. Other members may stand beside them.
    pub fn read(members: &mut Members<'_, '_>) -> Option<Self> {
        let destination = Self::read_url(members);
        let secret = members.optional("secret", Credential::read_from);
        Some(Self { destination: destination?, secret })
    }

    /// Reads `url` alone: anyone who has the URL may send there.
    pub fn read_bare(members: &mut Members<'_, '_>) -> Option<Self> {
        Some(Self { destination: Self::read_url(members)?, secret: None })
    }

    fn read_url(members: &mut Members<'_, '_>) -> Option<Destination> {
        let url = members.required("url", |node, log| {
            text(node, log, "a URL such as https://hooks.example/team", |text| Destination::parse(text).ok())
        });
        let user = read_server_user(members);
        Some(url?.served_by(user))
    }

    /// Returns the credential that messages are signed with.
    pub fn secret(&self) -> Option<&Arc<Credential>> {
        self.secret.as_ref()
    }

    /// Returns the scheme, host and port of the URL. The rest of a webhook's URL may be a credential.
    pub fn origin(&self) -> &str {
        self.destination.origin()
    }

    /// Returns the whole URL, which may be a credential.
    pub fn url(&self) -> String {
        self.destination.url()
    }

    /// Sends a message. Returns the status of the answer.
    ///
    /// # Errors
    /// [`WebhookError`]; the message may have arrived all the same.
    pub async fn send(&self, sender: &Sender, message: &Message) -> Result<u16, WebhookError> {
        let key = match &self.secret {
            Some(secret) => {
                let injected =
                    secret.get_beside().await.map_err(|source| WebhookError::NoSecret { source })?;
                Some(SigningKey::of(&injected.secret).map_err(|source| WebhookError::NoKey { source })?)
            }
            None => None,
        };
        Ok(sender.send(&self.destination, message, key.as_ref()).await?)
    }
}
