//! What is filled in for a request's placeholders: for the host that has shown to be it, at the port and path that a rule names, and
//! in no other place than the credential's own. What can't be filled in doesn't go out.

use super::config::{Credentials, Held};
use super::decision::Way;
use super::gate::Gate;
use super::passed_on::passed_on;
use super::placeholder::{Piece, first, is_in, pieces};
use super::refusal::Refusal;
use super::sigv4::{self, Claim};
use crate::client::{Client, Stop};
use crate::credential::{Credential, Injected};
use crate::http1::{BodyLength, RequestHead};
use crate::room::Place;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use belljar_policy::egress::{Allowed, Destination};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use zeroize::Zeroizing;

/// A header as it goes out.
pub(super) type Header = (Vec<u8>, Zeroizing<Vec<u8>>);

/// What is filled in. Nothing, for most.
#[derive(Default)]
pub(super) struct Filling<'g> {
    /// All headers as they go out; nothing where they go as they came.
    pub(super) headers: Option<Vec<Header>>,
    /// The query as it goes out.
    pub(super) query: Option<Zeroizing<String>>,
    /// The body, where it had to be there to be signed.
    pub(super) body: Option<Vec<u8>>,
    /// Where that body is, as long as it is.
    place: Option<Place<'g>>,
    used: Vec<(String, Arc<Injected>)>,
    /// What could have been filled in, and must not come back either.
    watched: Vec<Arc<Injected>>,
}

/// What may be filled in for one request.
struct Filler<'f> {
    allowed: &'f Allowed<Destination>,
    credentials: &'f Credentials,
    used: Vec<(String, Arc<Injected>)>,
    /// Placeholders so far.
    count: usize,
}

const AUTHORIZATION: &[u8] = b"authorization";
const PAYLOAD: &str = "x-amz-content-sha256";
const TOKEN: &str = "x-amz-security-token";

/// A body is held whole where its digest is signed and the client has not said it.
const MOST_SIGNED: usize = 8 << 20;

/// No request has more placeholders.
const MOST_PLACEHOLDERS: usize = 8;

/// A scheme of authentication that stands before one.
const LONGEST_SCHEME: usize = 16;

/// By these an answer would come in parts, and with it what it repeats.
const OF_PARTS: [&[u8]; 2] = [b"range", b"if-range"];

/// With these, what is signed for one place would be about another.
const COPIES: &[u8] = b"x-amz-copy-source";

/// Fills in what a request has placeholders for.
pub(super) async fn fill<'g, S>(
    (client, gate): (&mut Client<S>, &'g Gate),
    head: &RequestHead,
    (allowed, way): (&Allowed<Destination>, Way<'_>),
    credentials: &Credentials,
) -> Result<Filling<'g>, Refusal>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let Some(placeholder) = first_of(head) else {
        return Ok(match way.is_secure() && !allowed.credentials().is_empty() {
            true => watched(head, allowed, credentials).await,
            false => Filling::default(),
        });
    };
    // Never where it could be read on the way, or by whoever only says to be the host; and a path is told to everybody.
    if !way.is_secure() || is_in(head.path.as_bytes()) {
        return Err(Refusal::Unfilled { placeholder });
    }
    let mut filler = Filler { allowed, credentials, used: Vec::new(), count: 0 };
    let query = match &head.query {
        Some(query) if is_in(query.as_bytes()) => Some(filler.query(query).await?),
        _ => None,
    };
    let mut headers = Vec::new();
    let mut claim = None;
    for (name, value) in passed_on(&head.headers) {
        let text = std::str::from_utf8(value).ok().filter(|_| name == AUTHORIZATION && is_in(value));
        match text.and_then(Claim::parse) {
            Some(found) if claim.is_none() => claim = Some(found),
            Some(_) => return Err(Refusal::Unfilled { placeholder }),
            None if name == TOKEN.as_bytes() && is_in(value) => {}
            None => headers.push((name.to_vec(), filler.header(name, value).await?)),
        }
    }
    as_it_is(&mut headers);
    let mut filling = Filling { headers: Some(headers), query, ..Filling::default() };
    match claim {
        Some(claim) => filler.sign((client, gate), head, &claim, &mut filling).await?,
        // A token is part of a signature.
        None if head.headers.all(TOKEN).any(is_in) => return Err(Refusal::Unfilled { placeholder }),
        None => filling.headers.iter_mut().for_each(|headers| {
            headers.retain(|(name, _)| !OF_PARTS.contains(&name.as_slice()));
        }),
    }
    filling.used = filler.used;
    filling.watched = bound(allowed, credentials).await;
    Ok(filling)
}

/// What comes back is looked at, so it has to come as it is.
fn as_it_is(headers: &mut Vec<Header>) {
    headers.retain(|(name, _)| name != b"accept-encoding");
    headers.push((b"accept-encoding".to_vec(), Zeroizing::new(b"identity".to_vec())));
}

/// Nothing is filled in, and what was at another time may have been stored where it goes.
async fn watched<'g>(
    head: &RequestHead,
    allowed: &Allowed<Destination>,
    credentials: &Credentials,
) -> Filling<'g> {
    let as_said = |(name, value): (&[u8], &[u8])| (name.to_vec(), Zeroizing::new(value.to_vec()));
    let mut headers: Vec<Header> = passed_on(&head.headers).map(as_said).collect();
    as_it_is(&mut headers);
    headers.retain(|(name, _)| !OF_PARTS.contains(&name.as_slice()));
    Filling { headers: Some(headers), watched: bound(allowed, credentials).await, ..Filling::default() }
}

/// All that could be filled in there. What can't be had isn't, and has never been.
async fn bound(allowed: &Allowed<Destination>, credentials: &Credentials) -> Vec<Arc<Injected>> {
    let mut all = Vec::new();
    for held in allowed.credentials().iter().filter_map(|name| credentials.get(name)) {
        let (first, second) = match &**held {
            Held::Text { credential, .. } => (credential, None),
            Held::Aws { secret_access_key, session_token, .. } => (secret_access_key, session_token.as_ref()),
        };
        for credential in [Some(first), second].into_iter().flatten() {
            all.extend(credential.get_beside().await.ok());
        }
    }
    all
}

/// The first placeholder of a head, wherever it stands.
fn first_of(head: &RequestHead) -> Option<String> {
    let in_basic = || head.headers.all("authorization").filter_map(basic).find_map(|text| first(&text));
    first(head.path.as_bytes())
        .or_else(|| first(head.query.as_ref()?.as_bytes()))
        .or_else(|| first(head.headers.text()))
        .or_else(in_basic)
}

/// What a header of basic authentication says.
fn basic(value: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let (scheme, rest) = value.split_at_checked("basic ".len())?;
    let text = scheme.eq_ignore_ascii_case(b"basic ").then(|| STANDARD.decode(rest.trim_ascii()).ok())?;
    text.map(Zeroizing::new)
}

// === impl Filling ===

impl Filling<'_> {
    /// The credentials that it has, by their names.
    pub(super) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.used.iter().map(|(name, _)| name.clone()).collect();
        names.sort();
        names.dedup();
        names
    }

    /// Whether there is anything that must not come back.
    pub(super) fn is_watched(&self) -> bool {
        self.injected().next().is_some()
    }

    /// What must not come back.
    pub(super) fn injected(&self) -> impl Iterator<Item = &Injected> {
        let all = || self.watched.iter().chain(self.used.iter().map(|(_, injected)| injected));
        // Each once.
        all().enumerate().filter_map(move |(at, one)| {
            let is_first = !all().take(at).any(|before| Arc::ptr_eq(before, one));
            is_first.then_some(&**one)
        })
    }
}

// === impl Filler ===

impl<'f> Filler<'f> {
    /// What the host holds by that name, if a rule has it filled in where the request goes.
    fn held(&self, name: &str) -> Result<&'f Held, Refusal> {
        let is_bound = self.allowed.credentials().iter().any(|bound| bound == name);
        let held = self.credentials.get(name).filter(|_| is_bound);
        held.map(|held| &**held).ok_or_else(|| unfilled(name))
    }

    async fn secret(&mut self, name: &str, credential: &Arc<Credential>) -> Result<Arc<Injected>, Refusal> {
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

    async fn header(&mut self, name: &[u8], value: &[u8]) -> Result<Zeroizing<Vec<u8>>, Refusal> {
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

    async fn query(&mut self, query: &str) -> Result<Zeroizing<String>, Refusal> {
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

    /// Signs a request anew that a placeholder has signed.
    async fn sign<'g, S>(
        &mut self,
        (client, gate): (&mut Client<S>, &'g Gate),
        head: &RequestHead,
        claim: &Claim<'_>,
        filling: &mut Filling<'g>,
    ) -> Result<(), Refusal>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let [Piece::Placeholder(name)] = pieces(claim.key_id.as_bytes())[..] else {
            return Err(Refusal::Unsigned { why: "it is signed with more than a placeholder" });
        };
        let Held::Aws { access_key_id, secret_access_key, session_token, services, regions } =
            self.held(name)?
        else {
            return Err(unfilled(name));
        };
        if !claim.is_for(services, regions) {
            return Err(Refusal::Unsigned { why: "its key is not for that service and region" });
        }
        if head.headers.iter().any(|(name, _)| name.starts_with(COPIES)) {
            return Err(Refusal::Unsigned { why: "it is about another place than it is for" });
        }
        let id = self.secret(name, access_key_id).await?;
        let key = self.secret(name, secret_access_key).await?;
        let headers = filling.headers.get_or_insert_default();
        headers.retain(|(name, _)| name != TOKEN.as_bytes());
        if let Some(token) = session_token {
            let token = self.secret(name, token).await?;
            headers.push((TOKEN.into(), Zeroizing::new(token.secret.expose().to_vec())));
        }
        let said = head.header(PAYLOAD).and_then(|said| std::str::from_utf8(said).ok());
        let is_digest = |said: &&str| said.len() == 64 && said.bytes().all(|byte| byte.is_ascii_hexdigit());
        let payload = match said {
            Some(said) if said == "UNSIGNED-PAYLOAD" || is_digest(&said) => said.to_owned(),
            // Each chunk would be signed by itself.
            Some(_) => return Err(Refusal::Unsigned { why: "its body is signed in pieces" }),
            None => {
                let mut place = gate.room.begin();
                let body = client.body(head, MOST_SIGNED, &mut place).await;
                let body = body.map_err(|stop| Refusal::of_stop(&stop))?;
                let digest = sigv4::digest(&body);
                (filling.body, filling.place) = (Some(body), Some(place));
                digest
            }
        };
        let (mut all, query) = (headers.clone(), filling.query.as_ref().map(|query| query.as_str()));
        let authority = super::forward::authority(self.allowed.value(), true);
        all.push((b"host".to_vec(), Zeroizing::new(authority.into_bytes())));
        if claim.signs("content-length") {
            all.extend(
                length(head, filling.body.as_ref())
                    .map(|length| (b"content-length".to_vec(), Zeroizing::new(length))),
            );
        }
        let request = sigv4::Request {
            method: &head.method,
            path: &head.path,
            query: query.or(head.query.as_deref()),
            headers: &all,
            payload: &payload,
        };
        let signed = claim.sign(&request, id.secret.expose(), (key.secret.expose(), session_token.is_some()));
        let signed = signed.ok_or(Refusal::Unsigned { why: "a header isn't there that is signed" })?;
        headers.push((AUTHORIZATION.to_vec(), signed));
        Ok(())
    }
}

fn length(head: &RequestHead, body: Option<&Vec<u8>>) -> Option<Vec<u8>> {
    match (body, head.body) {
        (Some(body), _) => Some(body.len().to_string().into_bytes()),
        (None, BodyLength::Exact(length)) => Some(length.to_string().into_bytes()),
        (None, BodyLength::Chunked | BodyLength::UntilClose) => None,
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

/// The same for a user and a password: a placeholder is all of one of them.
fn basic_stands_alone(said: &[u8]) -> bool {
    match pieces(said)[..] {
        [Piece::Text(before), Piece::Placeholder(_)] => before.ends_with(b":"),
        [Piece::Placeholder(_), Piece::Text(after)] => after.starts_with(b":"),
        [Piece::Placeholder(_), Piece::Text(b":"), Piece::Placeholder(_)] => true,
        _ => false,
    }
}

fn unfilled_in(text: &[u8]) -> Refusal {
    Refusal::Unfilled { placeholder: first(text).unwrap_or_default() }
}

fn unfilled(name: &str) -> Refusal {
    Refusal::Unfilled { placeholder: format!("belljar:cred:{name}") }
}

// === impl Refusal ===

impl Refusal {
    fn of_stop(stop: &Stop) -> Self {
        match stop {
            Stop::Gone => Self::TooSlow,
            Stop::Faulty(fault) => (*fault).into(),
        }
    }
}
