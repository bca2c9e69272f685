//! Credential injection: replaces the placeholders of a request. It happens only for an authenticated host, at a port and path
//! that a rule names, and in the credential's own headers or parameters. A request whose placeholders can't be replaced is
//! refused.

mod filler;
mod signing;

use super::config::{HeldCredential, WebConfig};
use super::decision::RequestRoute;
use super::hatch_server::WebProxy;
use super::header_filter::passed_on;
use super::placeholder::{first, is_in};
use super::refusal::Refusal;
use super::sigv4::SignatureClaim;
use crate::client::Client;
use crate::credential::InjectedSecret;
use crate::http1::RequestHead;
use crate::memory_quota::MemoryReservation;
use belljar_policy::egress::{AllowedDestination, Destination};
use filler::{CredentialInjector, basic};
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use zeroize::Zeroizing;

/// Header as it is sent.
pub(super) type Header = (Vec<u8>, Zeroizing<Vec<u8>>);

/// Result of credential injection; empty for most requests.
#[derive(Default)]
pub(super) struct CredentialInjection<'g> {
    /// All headers as they are sent; `None` if they stay unchanged.
    pub(super) headers: Option<Vec<Header>>,
    /// Query as it is sent.
    pub(super) query: Option<Zeroizing<String>>,
    /// Body, where it had to be held whole to be signed.
    pub(super) body: Option<Vec<u8>>,
    /// Memory reservation of the body.
    place: Option<MemoryReservation<'g>>,
    used: Vec<(String, Arc<InjectedSecret>)>,
    /// Credentials that could have been injected, and must not come back in the answer either.
    watched: Vec<Arc<InjectedSecret>>,
}

const AUTHORIZATION: &[u8] = b"authorization";
const TOKEN: &str = "x-amz-security-token";

/// Headers that ask for a part of an answer. A secret that the answer repeats could come in parts, too.
const OF_PARTS: [&[u8]; 2] = [b"range", b"if-range"];

/// Destination that a rule allows, and the route that a request takes to it.
#[derive(Clone, Copy)]
pub(super) struct AllowedRoute<'r> {
    pub(super) allowed: &'r AllowedDestination<Destination>,
    pub(super) way: RequestRoute<'r>,
}

/// Injects the credentials that a request has placeholders for.
pub(super) async fn fill<'g, S>(
    (client, gate): (&mut Client<S>, &'g WebProxy),
    head: &RequestHead,
    route: AllowedRoute<'_>,
    config: &WebConfig,
) -> Result<CredentialInjection<'g>, Refusal>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let AllowedRoute { allowed, way } = route;
    let Some(placeholder) = first_of(head) else {
        return Ok(watched(head, must_not_come_back(gate, (allowed, way), config).await));
    };
    // Credentials never go over a connection that others can read or whose host is not authenticated, nor into a path, which is
    // often logged.
    if !way.is_secure() || is_in(head.path.as_bytes()) {
        return Err(Refusal::Unfilled { placeholder });
    }
    let mut filler =
        CredentialInjector { allowed, credentials: &config.credentials, used: Vec::new(), count: 0 };
    let query = match &head.query {
        Some(query) if is_in(query.as_bytes()) => Some(filler.query(query).await?),
        _ => None,
    };
    let mut headers = Vec::new();
    let mut claim = None;
    for (name, value) in passed_on(&head.headers) {
        let text = std::str::from_utf8(value).ok().filter(|_| name == AUTHORIZATION && is_in(value));
        match text.and_then(SignatureClaim::parse) {
            Some(found) if claim.is_none() => claim = Some(found),
            Some(_) => return Err(Refusal::Unfilled { placeholder }),
            None if name == TOKEN.as_bytes() && is_in(value) => {}
            None => headers.push((name.to_vec(), filler.header(name, value).await?)),
        }
    }
    as_it_is(&mut headers);
    let mut filling = CredentialInjection { headers: Some(headers), query, ..CredentialInjection::default() };
    match claim {
        Some(claim) => filler.sign((client, gate), head, &claim, &mut filling).await?,
        // A session token is part of a signature.
        None if head.headers.all(TOKEN).any(is_in) => return Err(Refusal::Unfilled { placeholder }),
        None => filling.headers.iter_mut().for_each(|headers| {
            headers.retain(|(name, _)| !OF_PARTS.contains(&name.as_slice()));
        }),
    }
    filling.used = filler.used;
    filling.used.iter().for_each(|(_, injected)| gate.run.fill_in(injected));
    filling.watched = must_not_come_back(gate, (allowed, way), config).await;
    Ok(filling)
}

/// Asks for an unencoded answer, because the answer is scanned.
fn as_it_is(headers: &mut Vec<Header>) {
    headers.retain(|(name, _)| name != b"accept-encoding");
    headers.push((b"accept-encoding".to_vec(), Zeroizing::new(b"identity".to_vec())));
}

/// For a request without placeholders: the host may have stored a credential that was injected earlier.
fn watched<'g>(head: &RequestHead, watched: Vec<Arc<InjectedSecret>>) -> CredentialInjection<'g> {
    if watched.is_empty() {
        return CredentialInjection::default();
    }
    let as_said = |(name, value): (&[u8], &[u8])| (name.to_vec(), Zeroizing::new(value.to_vec()));
    let mut headers: Vec<Header> = passed_on(&head.headers).map(as_said).collect();
    as_it_is(&mut headers);
    headers.retain(|(name, _)| !OF_PARTS.contains(&name.as_slice()));
    CredentialInjection { headers: Some(headers), watched, ..CredentialInjection::default() }
}

/// Returns the secrets that no answer to this request may contain: the credentials of all rules for that host, whether or not
/// they allow this request, and everything injected for the run before. An upstream proxy that gets the whole URL sees
/// its own credential and may pass it on, so that is included.
async fn must_not_come_back(
    gate: &WebProxy,
    (allowed, way): (&AllowedDestination<Destination>, RequestRoute<'_>),
    config: &WebConfig,
) -> Vec<Arc<InjectedSecret>> {
    let host = &allowed.value().host;
    let through = config.through.as_ref().filter(|through| !way.is_secure() && through.leads_to(host));
    if let Some(credential) = through.and_then(|through| through.credential.as_ref())
        && let Ok(injected) = credential.get_beside().await
    {
        gate.run.fill_in(&injected);
    }
    let mut all = gate.run.filled_in();
    let there = config.policy.rules().iter().filter(|rule| rule.host.matches(host));
    let mut names: Vec<&String> = there.flat_map(|rule| &rule.credentials).collect();
    names.sort_unstable();
    names.dedup();
    for held in names.into_iter().filter_map(|name| config.credentials.get(name)) {
        let (first, second) = match &**held {
            HeldCredential::Text { credential, .. } => (credential, None),
            HeldCredential::Aws { secret_access_key, session_token, .. } => {
                (secret_access_key, session_token.as_ref())
            }
        };
        for credential in [Some(first), second].into_iter().flatten() {
            // A credential that can't be obtained isn't injected. If it was before, the run knows it.
            let Ok(injected) = credential.get_beside().await else { continue };
            if !all.iter().any(|known| known.secret.expose() == injected.secret.expose()) {
                all.push(injected);
            }
        }
    }
    all
}

/// Returns the first placeholder anywhere in a head.
pub(super) fn first_of(head: &RequestHead) -> Option<String> {
    let in_basic = || head.headers.all("authorization").filter_map(basic).find_map(|text| first(&text));
    first(head.path.as_bytes())
        .or_else(|| first(head.query.as_ref()?.as_bytes()))
        .or_else(|| first(head.headers.text()))
        .or_else(in_basic)
}

// === impl CredentialInjection ===

impl CredentialInjection<'_> {
    /// Returns the names of the injected credentials.
    pub(super) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.used.iter().map(|(name, _)| name.clone()).collect();
        names.sort();
        names.dedup();
        names
    }

    /// Returns true if the answer has to be scanned for secrets.
    pub(super) fn is_watched(&self) -> bool {
        self.injected().next().is_some()
    }

    /// Secrets that must not come back in the answer.
    pub(super) fn injected(&self) -> impl Iterator<Item = &InjectedSecret> {
        let all = || self.watched.iter().chain(self.used.iter().map(|(_, injected)| injected));
        // Each secret once.
        all().enumerate().filter_map(move |(at, one)| {
            let is_first = !all().take(at).any(|before| Arc::ptr_eq(before, one));
            is_first.then_some(&**one)
        })
    }
}
