//! A place that the configuration names for messages of agents' own: by HTTP, signed if there is a secret for it.

use crate::callback::{Destination, KeyError, Message, SendError, Sender, SigningKey};
use crate::credential::{Credential, CredentialError};
use belljar_contract::yaml::{Members, text};
use std::sync::Arc;

/// Such a place.
#[derive(Debug, Clone, PartialEq)]
pub struct Webhook {
    destination: Destination,
    secret: Option<Arc<Credential>>,
}

/// The message is not known to have arrived.
#[derive(Debug, thiserror::Error)]
pub enum WebhookError {
    /// There is nothing to sign it with.
    #[error("there is no secret to sign it with")]
    NoSecret {
        /// Why.
        #[source]
        source: CredentialError,
    },
    /// What there is can't sign.
    #[error("the secret to sign it with is no key")]
    NoKey {
        /// Why.
        #[source]
        source: KeyError,
    },
    /// Nobody has answered.
    #[error(transparent)]
    Send(#[from] SendError),
}

// === impl Webhook ===

impl Webhook {
    /// Reads `url` and `secret`, which may stand beside others.
    pub fn read(members: &mut Members<'_, '_>) -> Option<Self> {
        let destination = Self::read_url(members);
        let secret = members.optional("secret", Credential::read_from);
        Some(Self { destination: destination?, secret })
    }

    /// Reads `url` alone: who has it may send there.
    pub fn read_bare(members: &mut Members<'_, '_>) -> Option<Self> {
        Some(Self { destination: Self::read_url(members)?, secret: None })
    }

    fn read_url(members: &mut Members<'_, '_>) -> Option<Destination> {
        members.required("url", |node, log| {
            text(node, log, "a URL such as https://hooks.example/team", |text| Destination::parse(text).ok())
        })
    }

    /// What it signs with.
    pub fn secret(&self) -> Option<&Arc<Credential>> {
        self.secret.as_ref()
    }

    /// The scheme, host and port of its URL. The rest of a webhook's URL may be a credential.
    pub fn origin(&self) -> &str {
        self.destination.origin()
    }

    /// The whole URL, which may be a credential.
    pub fn url(&self) -> String {
        self.destination.url()
    }

    /// Sends a message; the status that it is answered with.
    ///
    /// # Errors
    /// [`WebhookError`]; it may have arrived all the same.
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
