//! What takes the place of placeholders in headers and queries.

use super::AUTHORIZATION;
use crate::credential::{Credential, Injected};
use crate::web::config::{Credentials, Held};
use crate::web::placeholder::{Piece, first, is_in, pieces};
use crate::web::refusal::Refusal;
use crate::web::sigv4;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use belljar_policy::egress::{Allowed, Destination};
use std::sync::Arc;
use zeroize::Zeroizing;

/// What may be filled in for one request.
pub(super) struct Filler<'f> {
    pub(super) allowed: &'f Allowed<Destination>,
    pub(super) credentials: &'f Credentials,
    pub(super) used: Vec<(String, Arc<Injected>)>,
    /// Placeholders so far.
    pub(super) count: usize,
}

/// No request has more placeholders.
const MOST_PLACEHOLDERS: usize = 8;

/// A scheme of authentication that stands before one.
const LONGEST_SCHEME: usize = 16;

/// A user of basic authentication that stands before a password.
const LONGEST_USER: usize = 64;

// === impl Filler ===

impl<'f> Filler<'f> {
    /// What the host holds by that name, if a rule has it filled in where the request goes.
    pub(super) fn held(&self, name: &str) -> Result<&'f Held, Refusal> {
        let is_bound = self.allowed.credentials().iter().any(|bound| bound == name);
        let held = self.credentials.get(name).filter(|_| is_bound);
        held.map(|held| &**held).ok_or_else(|| unfilled(name))
    }

    pub(super) async fn secret(
        &mut self,
        name: &str,
        credential: &Arc<Credential>,
    ) -> Result<Arc<Injected>, Refusal> {
        let injected = credential.get_beside().await.map_err(|_| Refusal::NoCredential)?;
        if !self.used.iter().any(|(_, known)| Arc::ptr_eq(known, &injected)) {
            self.used.push((name.to_owned(), Arc::clone(&injected)));
        }
        Ok(injected)
    }

    /// A text with what is held in the place of each placeholder, written as `write` does.
    async fn filled(
        &mut self,
        text: &[u8],
        may_stand: impl Fn(&Held) -> bool,
        write: impl Fn(&[u8], &mut Vec<u8>),
    ) -> Result<Zeroizing<Vec<u8>>, Refusal> {
        let mut out = Zeroizing::new(Vec::with_capacity(text.len() + 256));
        for piece in pieces(text) {
            match piece {
                Piece::Text(text) => out.extend_from_slice(text),
                Piece::Placeholder(name) => {
                    self.count += 1;
                    if self.count > MOST_PLACEHOLDERS {
                        return Err(unfilled(name));
                    }
                    let Held::Text { credential, .. } = self.held(name)? else { return Err(unfilled(name)) };
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
        let may_stand = |held: &Held| match held {
            Held::Text { headers, .. } => headers.iter().any(|own| own.as_bytes() == name),
            Held::Aws { .. } => false,
        };
        let plain = |secret: &[u8], out: &mut Vec<u8>| out.extend_from_slice(secret);
        if !stands_alone(value, name == AUTHORIZATION) {
            return Err(unfilled_in(value));
        }
        let said = if name == AUTHORIZATION { basic(value) } else { None };
        match said.filter(|said| is_in(said)) {
            Some(said) => {
                // A user and a password, each of them a placeholder or something else.
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
            let may_stand = |held: &Held| match held {
                Held::Text { query, .. } => query.iter().any(|own| own == name),
                Held::Aws { .. } => false,
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
            // It was a text before, and so is what took the place of others in it.
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

/// Whether a placeholder is all that there is, or all but a scheme. Whoever could put a text of any length around it could move what is
/// filled in to where somebody cuts what they repeat.
fn stands_alone(value: &[u8], may_have_scheme: bool) -> bool {
    match pieces(value)[..] {
        [Piece::Placeholder(_)] => true,
        [Piece::Text(before), Piece::Placeholder(_)] => {
            let scheme = before.strip_suffix(b" ").unwrap_or_default();
            may_have_scheme
                && (1..=LONGEST_SCHEME).contains(&scheme.len())
                && scheme.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
        }
        ref pieces => !pieces.iter().any(|piece| matches!(piece, Piece::Placeholder(_))),
    }
}

/// The same for a user and a password: a placeholder is all of one of them, and a user before it is no longer than users are.
fn basic_stands_alone(said: &[u8]) -> bool {
    match pieces(said)[..] {
        [Piece::Text(before), Piece::Placeholder(_)] => {
            before.strip_suffix(b":").is_some_and(|user| user.len() <= LONGEST_USER)
        }
        [Piece::Placeholder(_), Piece::Text(after)] => after.starts_with(b":"),
        [Piece::Placeholder(_), Piece::Text(b":"), Piece::Placeholder(_)] => true,
        _ => false,
    }
}

fn unfilled_in(text: &[u8]) -> Refusal {
    Refusal::Unfilled { placeholder: first(text).unwrap_or_default() }
}

pub(super) fn unfilled(name: &str) -> Refusal {
    Refusal::Unfilled { placeholder: format!("belljar:cred:{name}") }
}

/// What a header of basic authentication says.
pub(super) fn basic(value: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let (scheme, rest) = value.split_at_checked("basic ".len())?;
    let text = scheme.eq_ignore_ascii_case(b"basic ").then(|| STANDARD.decode(rest.trim_ascii()).ok())?;
    text.map(Zeroizing::new)
}
