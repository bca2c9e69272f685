//! `tools.channels`.

use super::{Named, named, together};
use crate::bridge::config::read_name;
use belljar_contract::yaml::{Log, Members, Node, one_of};
use belljar_egress::credential::Credential;
use belljar_egress::mail::Mailbox;
use belljar_egress::webhook::Webhook;
use std::sync::Arc;

/// Where messages may go.
#[derive(Debug, Clone, PartialEq)]
pub struct ChannelConfig {
    /// The name by which agents send there.
    pub name: String,
    /// How they get there.
    pub way: Way,
    /// Who reads them.
    pub audience: Audience,
}

/// How messages get there.
#[derive(Debug, Clone, PartialEq)]
pub enum Way {
    /// As JSON of our own.
    Webhook(Webhook),
    /// As JSON that Slack reads, and whoever reads the same.
    Slack(Webhook),
    /// As mail.
    Mail(Mailbox),
}

/// Who reads messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// The house alone.
    Internal,
    /// Others.
    External,
}

/// Reads the section.
pub(super) fn read(node: &Node, log: &mut Log) -> Vec<ChannelConfig> {
    let Some(mut members) = Members::open(node, log) else { return Vec::new() };
    let webhook = |_: &Node, members: &mut Members<'_, '_>| Webhook::read(members).map(Way::Webhook);
    let slack = |_: &Node, members: &mut Members<'_, '_>| Webhook::read_bare(members).map(Way::Slack);
    let mail = |node: &Node, members: &mut Members<'_, '_>| Mailbox::read(members, node).map(Way::Mail);
    let lists = [
        members.or("webhooks", Vec::new(), |node, log| Some(channels(node, log, webhook))),
        members.or("slack", Vec::new(), |node, log| Some(channels(node, log, slack))),
        members.or("mail", Vec::new(), |node, log| Some(channels(node, log, mail))),
    ];
    let all = together(node, members.log, lists);
    members.finish();
    all
}

/// Channels of which the way is read so.
fn channels(
    node: &Node,
    log: &mut Log,
    way: impl Fn(&Node, &mut Members<'_, '_>) -> Option<Way>,
) -> Vec<ChannelConfig> {
    const AUDIENCES: [(&str, Audience); 2] =
        [("external", Audience::External), ("internal", Audience::Internal)];
    named(node, log, |node, log| {
        let mut members = Members::open(node, log)?;
        let name = members.required("name", read_name);
        let way = way(node, &mut members);
        // Whoever says nothing may mean anybody.
        let audience = members.or("audience", Audience::External, |node, log| one_of(node, log, &AUDIENCES));
        members.finish();
        Some(ChannelConfig { name: name?, way: way?, audience })
    })
}

// === impl ChannelConfig ===

impl ChannelConfig {
    /// The secret that it takes, if it takes one.
    pub(crate) fn secret(&self) -> Option<&Arc<Credential>> {
        match &self.way {
            Way::Webhook(webhook) | Way::Slack(webhook) => webhook.secret(),
            Way::Mail(mailbox) => mailbox.password(),
        }
    }
}

impl Named for ChannelConfig {
    fn name(&self) -> &str {
        &self.name
    }
}
