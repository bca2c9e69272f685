//! `tools.channels`.

use super::{NamedResource, named, together};
use crate::bridge::config::read_name;
use belljar_contract::yaml::{Members, MistakeLog, Node, one_of};
use belljar_egress::credential::Credential;
use belljar_egress::mail::Mailbox;
use belljar_egress::webhook::Webhook;
use std::sync::Arc;

/// A message channel.
#[derive(Debug, Clone, PartialEq)]
pub struct ChannelConfig {
    /// Name by which agents refer to it.
    pub name: String,
    /// Its transport.
    pub way: ChannelTransport,
    /// Its audience. Default: external.
    pub audience: Audience,
}

/// Transport of messages.
#[derive(Debug, Clone, PartialEq)]
pub enum ChannelTransport {
    /// A webhook that gets JSON in our own format.
    Webhook(Webhook),
    /// A webhook that gets JSON in Slack's format.
    Slack(Webhook),
    /// Mail.
    Mail(Mailbox),
}

/// Audience of messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// Only members of the organisation.
    Internal,
    /// Others.
    External,
}

/// Reads the section.
pub(super) fn read(node: &Node, log: &mut MistakeLog) -> Vec<ChannelConfig> {
    let Some(mut members) = Members::open(node, log) else { return Vec::new() };
    let webhook =
        |_: &Node, members: &mut Members<'_, '_>| Webhook::read(members).map(ChannelTransport::Webhook);
    let slack =
        |_: &Node, members: &mut Members<'_, '_>| Webhook::read_bare(members).map(ChannelTransport::Slack);
    let mail =
        |node: &Node, members: &mut Members<'_, '_>| Mailbox::read(members, node).map(ChannelTransport::Mail);
    let lists = [
        members.or("webhooks", Vec::new(), |node, log| Some(channels(node, log, webhook))),
        members.or("slack", Vec::new(), |node, log| Some(channels(node, log, slack))),
        members.or("mail", Vec::new(), |node, log| Some(channels(node, log, mail))),
    ];
    let all = together(node, members.log, lists);
    members.finish();
    all
}

/// Reads a list of channels with that transport.
fn channels(
    node: &Node,
    log: &mut MistakeLog,
    way: impl Fn(&Node, &mut Members<'_, '_>) -> Option<ChannelTransport>,
) -> Vec<ChannelConfig> {
    const AUDIENCES: [(&str, Audience); 2] =
        [("external", Audience::External), ("internal", Audience::Internal)];
    named(node, log, |node, log| {
        let mut members = Members::open(node, log)?;
        let name = members.required("name", read_name);
        let way = way(node, &mut members);
        // The default is the cautious one.
        let audience = members.or("audience", Audience::External, |node, log| one_of(node, log, &AUDIENCES));
        members.finish();
        Some(ChannelConfig { name: name?, way: way?, audience })
    })
}

// === impl ChannelConfig ===

impl ChannelConfig {
    /// Returns its secret, if it has one.
    pub(crate) fn secret(&self) -> Option<&Arc<Credential>> {
        match &self.way {
            ChannelTransport::Webhook(webhook) | ChannelTransport::Slack(webhook) => webhook.secret(),
            ChannelTransport::Mail(mailbox) => mailbox.password(),
        }
    }
}

impl NamedResource for ChannelConfig {
    fn name(&self) -> &str {
        &self.name
    }
}
