//! Reads a mailbox from the configuration.

use super::{Address, Login, Mailbox};
use crate::credential::Credential;
use crate::upstream::Upstream;
use belljar_contract::yaml::{Members, MistakeLog, Node, below, list, one_of, text, whole};
use std::path::PathBuf;

/// Submission ports: with STARTTLS, and with TLS from the first byte.
const SUBMISSION: u64 = 587;
const SUBMISSIONS: u64 = 465;

const ADDRESS: &str = "an address such as owner@house.example";

// === impl Mailbox ===

impl Mailbox {
    /// Reads `host`, `port`, `tls`, `ca`, `login`, `from` and `to`. Other members may stand beside them.
    pub fn read(members: &mut Members<'_, '_>, at: &Node) -> Option<Self> {
        const MODES: [(&str, bool); 2] = [("starttls", false), ("implicit", true)];
        let host = members.required("host", |node, log| {
            text(node, log, "a name or an address", |text| {
                // An IPv6 address must stand in brackets, as in a URL.
                let is_host = Upstream::parse(&format!("https://{text}")).is_ok() && !text.contains('/');
                is_host.then(|| text.to_owned())
            })
        });
        let is_implicit = members.or("tls", false, |node, log| one_of(node, log, &MODES));
        let usual = if is_implicit { SUBMISSIONS } else { SUBMISSION };
        let port = members.or("port", usual, |node, log| whole(node, log, 1..=65_535));
        let authority: Option<PathBuf> = members.optional("ca", |node, log| {
            text(node, log, "the absolute path of a file", |text| text.starts_with('/').then(|| text.into()))
        });
        let login = members.optional("login", Login::read);
        let from = members.required("from", Address::read);
        let to = members.required("to", |node, log| list(node, log, Address::read));
        if to.as_ref().is_some_and(Vec::is_empty) {
            members.log.note(at.position, &below(&at.path, "to"), "no address", "at least one address");
        }
        let server = Upstream::parse(&format!("https://{}:{port}", host?)).ok()?;
        let server = match authority {
            Some(authority) => server.trusting(authority)?,
            None => server,
        };
        Some(Self { server, is_implicit, login, from: from?, to: to? })
    }
}

// === impl Login ===

impl Login {
    fn read(node: &Node, log: &mut MistakeLog) -> Option<Self> {
        let mut members = Members::open(node, log)?;
        let user = members.required("user", |node, log| {
            let is_word = |text: &str| !text.is_empty() && !text.contains(char::is_control);
            text(node, log, "a name", |text| is_word(text).then(|| text.to_owned()))
        });
        let password = members.required("password", Credential::read_from);
        members.finish();
        Some(Self { user: user?, password: password? })
    }
}

// === impl Address ===

impl Address {
    fn read(node: &Node, log: &mut MistakeLog) -> Option<Self> {
        text(node, log, ADDRESS, |text| is_address(text).then(|| Self(text.to_owned())))
    }
}

/// Returns true for a plain address. Quoted parts and comments are not supported, so no character has a special meaning.
fn is_address(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".!#$%&'*+-/=?^_`{|}~".contains(&byte);
    let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-".contains(&byte);
    text.len() <= 254
        && text.split_once('@').is_some_and(|(user, host)| {
            !user.is_empty() && user.bytes().all(is_plain) && !host.is_empty() && host.bytes().all(is_host)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mail_address_with_line_ends_or_delimiters_is_rejected() {
        for good in ["a@b", "a.b+c@d.example", "o'hara@x-y.example"] {
            assert!(is_address(good), "{good}");
        }
        for bad in
            ["", "a", "@b", "a@", "a@b>", "a@b\r\nRCPT TO:<c@d>", "a b@c", "a@b,c@d", "\"a\"@b", "a@b@c"]
        {
            assert!(!is_address(bad), "{bad:?}");
        }
    }
}
