//! Configured service with the host's own headers. Secrets in them are injected here; no caller sees them.

use crate::credential::{Credential, InjectedSecret, read_source};
use crate::exchange::{ExchangeError, Exchanger, IncomingAnswer, OutgoingRequest};
use crate::upstream::{Upstream, read_user};
use belljar_contract::yaml::{Members, MistakeLog, Node, Value, below, place, quoted, text};
use std::borrow::Cow;
use std::sync::Arc;

/// Configured service.
#[derive(Debug, Clone, PartialEq)]
pub struct RemoteService {
    upstream: Upstream,
    headers: Vec<Header>,
}

/// Header that the host sets.
#[derive(Debug, Clone, PartialEq)]
struct Header {
    name: String,
    /// Value of the header, or its part before the secret.
    text: String,
    secret: Option<Arc<Credential>>,
}

/// There is no answer, or the answer may not be returned.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The secret of a header can't be obtained.
    #[error("there is no secret for the header {header}")]
    Credential {
        /// Name of the header.
        header: String,
        /// Reason.
        #[source]
        source: crate::credential::CredentialError,
    },
    /// The exchange failed.
    #[error(transparent)]
    Exchange(#[from] ExchangeError),
    /// The answer contains one of the host's secrets.
    #[error("the answer is withheld because it repeats a credential of this host")]
    Repeats,
}

/// Headers that requests have anyway, and that the configuration may not set.
const OWN: [&str; 12] = [
    "accept",
    "accept-encoding",
    "connection",
    "content-length",
    "content-type",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

const LONGEST_VALUE: usize = 4 << 10;

// === impl RemoteService ===

impl RemoteService {
    /// Reads `url`, `user` and `headers`. Other members may stand beside them. Returns `None` if there is no `url`.
    pub fn read(members: &mut Members<'_, '_>) -> Option<Self> {
        let upstream = members.optional("url", |node, log| {
            text(node, log, "a URL such as https://tools.example/mcp", |text| {
                let is_http = text.starts_with("http://") || text.starts_with("https://");
                is_http.then(|| Upstream::parse(text).ok()).flatten()
            })
        });
        let upstream = read_user(members, upstream);
        let place_of_headers = members.node("headers").map(|node| (node.position, node.path.clone()));
        let headers = members.section("headers", read_headers);
        let upstream = upstream?;
        let has_secret = headers.iter().any(|header| header.secret.is_some());
        let upstream = if has_secret { upstream } else { upstream.without_credential() };
        let is_told_to_all = !upstream.keeps_to_itself() && has_secret;
        if let Some((position, path)) = place_of_headers.filter(|_| is_told_to_all) {
            let expected = "https://, or an address of this machine";
            members.log.note(position, &path, "a secret for a URL without TLS", expected);
        }
        Some(Self { upstream, headers })
    }

    /// Returns the URL, without credentials.
    pub fn address(&self) -> String {
        self.upstream.address()
    }

    /// Sends a request to the service's URL.
    ///
    /// # Errors
    /// [`RemoteError`]; the request may have arrived all the same.
    pub async fn ask(
        &self,
        exchanger: &Exchanger,
        mut outgoing: OutgoingRequest,
        wanted: &'static [&'static str],
    ) -> Result<IncomingAnswer, RemoteError> {
        let mut injected = Vec::new();
        for Header { name, text, secret } in &self.headers {
            let mut value = text.clone();
            if let Some(secret) = secret {
                let failed = |source| RemoteError::Credential { header: name.clone(), source };
                let secret = secret.get_beside().await.map_err(failed)?;
                value.push_str(&String::from_utf8_lossy(secret.secret.expose()));
                injected.push(secret);
            }
            outgoing.headers.push((Cow::Owned(name.clone()), value));
        }
        if self.upstream.prefix().is_empty() && outgoing.target.is_empty() {
            outgoing.target.push('/');
        }
        // The answer is scanned, so it must come unencoded.
        outgoing.headers.push((Cow::Borrowed("accept-encoding"), "identity".to_owned()));
        let incoming = exchanger.ask(&self.upstream, outgoing, wanted).await?;
        match injected.iter().any(|injected| repeats(injected, &incoming)) {
            true => Err(RemoteError::Repeats),
            false => Ok(incoming),
        }
    }
}

fn repeats(injected: &InjectedSecret, incoming: &IncomingAnswer) -> bool {
    let in_headers = incoming.headers.iter().any(|(_, value)| injected.forms.are_told_by(value.as_bytes()));
    in_headers || injected.forms.are_told_by(&incoming.body)
}

fn read_headers(node: &Node, log: &mut MistakeLog) -> Vec<Header> {
    let Value::Mapping(members) = &node.value else {
        log.note(node.position, place(node), node.describe(), "a mapping");
        return Vec::new();
    };
    let mut read = Vec::<Header>::new();
    for (key, value) in members {
        let path = below(&node.path, &key.name);
        let name = key.name.to_ascii_lowercase();
        let is_token = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let is_name = (1..=100).contains(&name.len()) && name.bytes().all(is_token);
        if !is_name || OWN.contains(&name.as_str()) || name.starts_with("mcp-") {
            log.note(
                key.position,
                &path,
                quoted(&key.name),
                "the name of a header that belljar doesn't set itself",
            );
        }
        if read.iter().any(|header| header.name == name) {
            log.note(key.position, &path, "it twice", "each once");
        }
        read.extend(read_header(value, log, name));
    }
    read
}

fn read_header(node: &Node, log: &mut MistakeLog, name: String) -> Option<Header> {
    const VALUE: &str = "a line of visible ASCII";
    let visible = |node: &Node, log: &mut MistakeLog| {
        text(node, log, VALUE, |text| {
            let is_visible = text.bytes().all(|byte| byte == b' ' || byte.is_ascii_graphic());
            (is_visible && text.len() <= LONGEST_VALUE).then(|| text.to_owned())
        })
    };
    let mut members = Members::open(node, log)?;
    let value = members.optional("value", visible);
    let prefix = members.optional("prefix", visible);
    let secret =
        members.optional("secret", |node, log| Some(Arc::new(Credential::new(read_source(node, log)?))));
    let has_one = members.node("value").is_some() != members.node("secret").is_some();
    if !has_one || (prefix.is_some() && secret.is_none()) {
        let found = "neither a value nor a secret, or both";
        members.log.note(node.position, place(node), found, "`value`, or `secret` and perhaps `prefix`");
    }
    members.finish();
    Some(Header { name, text: value.or(prefix).unwrap_or_default(), secret })
}
