//! Replaces placeholders in headers and queries.

use super::AUTHORIZATION;
use crate::credential::{Credential, InjectedSecret};
use crate::web::config::{Credentials, HeldCredential};
use crate::web::placeholder::{TextPiece, first, is_in, pieces};
use crate::web::refusal::Refusal;
use crate::web::sigv4;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use belljar_policy::egress::{AllowedDestination, Destination};
use std::sync::Arc;
use zeroize::Zeroizing;

/// Credentials that may be injected into one request.
pub(super) struct CredentialInjector<'f> {
    pub(super) allowed: &'f AllowedDestination<Destination>,
    pub(super) credentials: &'f Credentials,
    pub(super) used: Vec<(String, Arc<InjectedSecret>)>,
    /// Number of placeholders so far.
    pub(super) count: usize,
}

/// Maximum number of placeholders of one request.
const MOST_PLACEHOLDERS: usize = 8;

/// Maximum length of an authentication scheme before a placeholder, in bytes.
const LONGEST_SCHEME: usize = 16;

/// Maximum length of a user before a password in basic authentication, in bytes.
const LONGEST_USER: usize = 64;

// === impl CredentialInjector ===

impl<'f> CredentialInjector<'f> {
    /// Returns the credential of that name, if a rule allows it where the request goes.
    pub(super) fn held(&self, name: &str) -> Result<&'f HeldCredential, Refusal> {
        let is_bound = self.allowed.credentials().iter().any(|bound| bound == name);
        let held = self.credentials.get(name).filter(|_| is_bound);
        held.map(|held| &**held).ok_or_else(|| unfilled(name))
    }

    pub(super) async fn secret(
        &mut self,
        name: &str,
        credential: &Arc<Credential>,
    ) -> Result<Arc<InjectedSecret>, Refusal> {
        let injected = credential.get_beside().await.map_err(|_| Refusal::NoCredential)?;
        if !self.used.iter().any(|(_, known)| Arc::ptr_eq(known, &injected)) {
            self.used.push((name.to_owned(), Arc::clone(&injected)));
        }
        Ok(injected)
    }

    /// Returns the text with each placeholder replaced, written as `write` does.
    async fn filled(
        &mut self,
        text: &[u8],
        may_stand: impl Fn(&HeldCredential) -> bool,
        write: impl Fn(&[u8], &mut Vec<u8>),
    ) -> Result<Zeroizing<Vec<u8>>, Refusal> {
        let mut out = Zeroizing::new(Vec::with_capacity(text.len() + 256));
        for piece in pieces(text) {
            match piece {
                TextPiece::Text(text) => out.extend_from_slice(text),
                TextPiece::Placeholder(name) => {
                    self.count += 1;
                    if self.count > MOST_PLACEHOLDERS {
                        return Err(unfilled(name));
                    }
                    let HeldCredential::Text { credential, .. } = self.held(name)? else {
                        return Err(unfilled(name));
                    };
                    if !self.held(name).is_ok_and(&may_stand) {
                        return Err(unfilled(name));
                    }
                    let injected = self.secret(name, credential).await?;
                    write(injected.secret.expose(), &mut out);
                }
            }
        }
        Ok(out)
    }

    pub(super) async fn header(&mut self, name: &[u8], value: &[u8]) -> Result<Zeroizing<Vec<u8>>, Refusal> {
        let may_stand = |held: &HeldCredential| match held {
            HeldCredential::Text { headers, .. } => headers.iter().any(|own| own.as_bytes() == name),
            HeldCredential::Aws { .. } => false,
        };
        let plain = |secret: &[u8], out: &mut Vec<u8>| out.extend_from_slice(secret);
        if !stands_alone(value, name == AUTHORIZATION) {
            return Err(unfilled_in(value));
        }
        let said = if name == AUTHORIZATION { basic(value) } else { None };
        match said.filter(|said| is_in(said)) {
            Some(said) => {
                // A user and a password; each is a placeholder or plain text.
                if !basic_stands_alone(&said) {
                    return Err(unfilled_in(&said));
                }
                let filled = self.filled(&said, may_stand, plain).await?;
                let encoded = Zeroizing::new(STANDARD.encode(&*filled));
                Ok(Zeroizing::new([b"Basic ", encoded.as_bytes()].concat()))
            }
            None => self.filled(value, may_stand, plain).await,
        }
    }

    pub(super) async fn query(&mut self, query: &str) -> Result<Zeroizing<String>, Refusal> {
        let mut out = Zeroizing::new(String::with_capacity(query.len() + 256));
        for (at, pair) in query.split('&').enumerate() {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let may_stand = |held: &HeldCredential| match held {
                HeldCredential::Text { query, .. } => query.iter().any(|own| own == name),
                HeldCredential::Aws { .. } => false,
            };
            if let Some(placeholder) = first(name.as_bytes()) {
                return Err(Refusal::Unfilled { placeholder });
            }
            let encode = |secret: &[u8], out: &mut Vec<u8>| {
                out.extend_from_slice(Zeroizing::new(sigv4::encoded(secret, b"")).as_bytes());
            };
            if !stands_alone(value.as_bytes(), false) {
                return Err(unfilled_in(value.as_bytes()));
            }
            let filled = self.filled(value.as_bytes(), may_stand, encode).await?;
            // The text was UTF-8 before, and so is each replacement.
            let filled = std::str::from_utf8(&filled).map_err(|_| unfilled(name))?;
            if at > 0 {
                out.push('&');
            }
            out.push_str(name);
            if pair.contains('=') {
                out.push('=');
            }
            out.push_str(filled);
        }
        Ok(out)
    }
}

/// Returns true if the value is a placeholder alone, or a scheme and a placeholder. With text of any length around it, a client
/// could move the secret to where a host cuts off what it repeats.
fn stands_alone(value: &[u8], may_have_scheme: bool) -> bool {
    match pieces(value)[..] {
        [TextPiece::Placeholder(_)] => true,
        [TextPiece::Text(before), TextPiece::Placeholder(_)] => {
            let scheme = before.strip_suffix(b" ").unwrap_or_default();
            may_have_scheme
                && (1..=LONGEST_SCHEME).contains(&scheme.len())
                && scheme.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
        }
        ref pieces => !pieces.iter().any(|piece| matches!(piece, TextPiece::Placeholder(_))),
    }
}

/// Returns true if a placeholder is the whole user or the whole password, and a user before it has at most [`LONGEST_USER`]
/// bytes.
fn basic_stands_alone(said: &[u8]) -> bool {
    match pieces(said)[..] {
        [TextPiece::Text(before), TextPiece::Placeholder(_)] => {
            before.strip_suffix(b":").is_some_and(|user| user.len() <= LONGEST_USER)
        }
        [TextPiece::Placeholder(_), TextPiece::Text(after)] => after.starts_with(b":"),
        [TextPiece::Placeholder(_), TextPiece::Text(b":"), TextPiece::Placeholder(_)] => true,
        _ => false,
    }
}

fn unfilled_in(text: &[u8]) -> Refusal {
    Refusal::Unfilled { placeholder: first(text).unwrap_or_default() }
}

pub(super) fn unfilled(name: &str) -> Refusal {
    Refusal::Unfilled { placeholder: format!("belljar:cred:{name}") }
}

/// Returns the decoded credentials of a basic authentication header.
pub(super) fn basic(value: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let (scheme, rest) = value.split_at_checked("basic ".len())?;
    let text = scheme.eq_ignore_ascii_case(b"basic ").then(|| STANDARD.decode(rest.trim_ascii()).ok())?;
    text.map(Zeroizing::new)
}
