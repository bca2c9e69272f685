//! `send_notification` and `send_external_message`: send messages to configured channels. Only the configuration sets their
//! addresses: an agent names a channel, and can't add an address.

use super::Tools;
use super::configured::config::{Audience, ChannelConfig, ChannelTransport};
use crate::answer::{Answer, Failure, Success};
use crate::caller::Caller;
use crate::canonical::digest_of;
use crate::definition::{Definition, Effect};
use crate::typed::{TypedTool, schema_of, tool};
use belljar_contract::action::BuiltInAction;
use belljar_contract::approval::CallScope;
use belljar_contract::category::Category;
use belljar_contract::tool::{CostTier, DomainCode, InvalidToolNameError};
use belljar_egress::callback::{Message, Sender};
use belljar_egress::mail::{Mail, MailError, Mailer};
use belljar_egress::webhook::{Webhook, WebhookError};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// Channels, and the clients that send to them.
#[derive(Debug, Clone)]
pub struct Messengers(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    channels: Vec<ChannelConfig>,
    sender: Sender,
    mailer: Mailer,
}

/// The message and its channel.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Name of the channel.
    #[schemars(length(min = 1, max = 32))]
    channel: String,
    /// Subject, in one line.
    #[schemars(length(min = 1, max = 200))]
    subject: String,
    /// The message, as plain text.
    #[schemars(length(min = 1, max = 16_384))]
    message: String,
}

struct SendMessageTool {
    messengers: Messengers,
    audience: Audience,
}

const NOTIFICATION: &str = "Sends a message to an internal channel. An unknown channel is rejected with \
    the list of available ones; the operator configures their recipients. Returns once the receiver \
    has accepted the message; after `unavailable` the message may have been delivered nevertheless.";

const EXTERNAL: &str = "Sends a message to an external channel, which people outside of the organisation \
    read. An unknown channel is rejected with the list of available ones; the operator configures \
    their recipients. Returns once the receiver has accepted the message; after `unavailable` the \
    message may have been delivered nevertheless.";

/// Time limit; longer than any sending takes.
const WITHIN: Duration = Duration::from_secs(60);

/// Returns the tools: one for each audience that has channels.
///
/// # Errors
/// Never: the names are valid.
pub fn tools(messengers: &Messengers) -> Tools {
    let kinds = [
        (Audience::Internal, "send_notification", NOTIFICATION, BuiltInAction::CommsInternal),
        (Audience::External, "send_external_message", EXTERNAL, BuiltInAction::CommsExternal),
    ];
    let there = kinds.into_iter().filter(|(audience, ..)| messengers.of(*audience).next().is_some());
    let tools = there.map(|(audience, name, description, action)| {
        let summary = match audience {
            Audience::Internal => "Sends a message to an internal channel.",
            Audience::External => "Sends a message to an external channel.",
        };
        let definition = Definition {
            description: description.to_owned(),
            action: action.into(),
            cost: CostTier::Moderate,
            effect: Effect::Additive,
            reaches_out: true,
            within: WITHIN,
            ..Definition::named(name, Category::Communication, summary, schema_of::<Arguments>())?
        };
        Ok::<_, InvalidToolNameError>(tool(
            definition,
            SendMessageTool { messengers: messengers.clone(), audience },
        ))
    });
    tools.collect()
}

impl TypedTool for SendMessageTool {
    type Arguments = Arguments;

    async fn call(&self, _: &Caller, arguments: Arguments) -> Answer {
        let Arguments { channel, subject, message } = arguments;
        let channel = self.find(&channel)?;
        if subject.contains(char::is_control) {
            return Err(Failure::argument("subject: must be one line without control characters"));
        }
        self.messengers.send(channel, &subject, &message).await
    }

    async fn scope(&self, _: &Caller, arguments: Arguments) -> Result<CallScope, Failure> {
        let channel = match &self.find(&arguments.channel)?.way {
            ChannelTransport::Webhook(webhook) => json!({ "webhook": place_of(webhook) }),
            ChannelTransport::Slack(webhook) => json!({ "slack": place_of(webhook) }),
            ChannelTransport::Mail(mailbox) => {
                json!({ "mail": { "server": mailbox.server(), "to": mailbox.addresses().collect::<Vec<_>>() } })
            }
        };
        Ok(CallScope::from_iter([("channel".to_owned(), channel)]))
    }
}

/// Returns the identity of a webhook for approvals. The URL is given only as a digest, as it may be a credential.
fn place_of(webhook: &Webhook) -> Value {
    json!({ "origin": webhook.origin(), "url_sha256": digest_of(&webhook.url()) })
}

// === impl SendMessageTool ===

impl SendMessageTool {
    fn find(&self, name: &str) -> Result<&ChannelConfig, Failure> {
        let mut there = self.messengers.of(self.audience);
        there.find(|channel| channel.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.messengers.of(self.audience).map(|one| one.name.as_str()).collect();
            let said = format!("unknown channel; available: {}", names.join(", "));
            Failure::new(DomainCode::NotFound, said)
        })
    }
}

// === impl Messengers ===

impl Messengers {
    /// Starts the clients that send.
    ///
    /// # Errors
    /// [`io::Error`] when a thread can't be started.
    pub fn start(channels: Vec<ChannelConfig>) -> io::Result<Self> {
        Ok(Self(Arc::new(Inner { channels, sender: Sender::start()?, mailer: Mailer::start()? })))
    }

    fn of(&self, audience: Audience) -> impl Iterator<Item = &ChannelConfig> {
        self.0.channels.iter().filter(move |channel| channel.audience == audience)
    }

    async fn send(&self, channel: &ChannelConfig, subject: &str, message: &str) -> Answer {
        let id = Uuid::now_v7().to_string();
        match &channel.way {
            ChannelTransport::Webhook(webhook) => {
                let body = json!({ "id": id, "type": "message", "subject": subject, "message": message });
                self.post(webhook, id, &body).await
            }
            ChannelTransport::Slack(webhook) => {
                let text = format!("*{}*\n{}", of_slack(subject), of_slack(message));
                self.post(webhook, id, &json!({ "text": text })).await
            }
            ChannelTransport::Mail(mailbox) => {
                let mail = Mail::new(id.clone(), Timestamp::now(), subject, message);
                let mail = mail.map_err(|error| Failure::argument(error.to_string()))?;
                self.0.mailer.send(mailbox, mail).await.map_err(|error| of_mail(&error))?;
                Ok(Success::of(json!({ "id": id, "recipients": mailbox.recipients() })))
            }
        }
    }

    async fn post(&self, webhook: &Webhook, id: String, body: &Value) -> Answer {
        let message = Message { id: id.clone(), at: Timestamp::now(), body: body.to_string().into_bytes() };
        let status = webhook.send(&self.0.sender, &message).await.map_err(|error| of_webhook(&error))?;
        match status {
            200..300 => Ok(Success::of(json!({ "id": id, "http_status": status }))),
            _ => {
                let said = format!("the receiver of this channel responded with status {status}");
                Err(Failure::new(DomainCode::ToolFailed, said))
            }
        }
    }
}

/// Escapes Slack's markup: otherwise a message could mention everyone, or disguise a link.
fn of_slack(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn of_webhook(error: &WebhookError) -> Failure {
    tracing::warn!(error = error as &dyn std::error::Error, "sending a message failed");
    let said = match error {
        WebhookError::NoSecret { .. } | WebhookError::NoKey { .. } => {
            "this host's signing secret for the channel is not available"
        }
        WebhookError::Send(_) => "the receiver of this channel did not respond",
    };
    Failure::new(DomainCode::Unavailable, said)
}

fn of_mail(error: &MailError) -> Failure {
    tracing::warn!(error = error as &dyn std::error::Error, "sending a mail failed");
    let code = match error {
        MailError::Refused { code: 500.., .. } | MailError::NoTls | MailError::Malformed => {
            DomainCode::ToolFailed
        }
        _ => DomainCode::Unavailable,
    };
    Failure::new(code, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slack_message_escapes_mentions_and_links() {
        assert_eq!(of_slack("<!channel> a & <https://x|y>"), "&lt;!channel&gt; a &amp; &lt;https://x|y&gt;");
    }
}
