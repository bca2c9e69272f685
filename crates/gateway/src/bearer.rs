//! Authentication by a bearer token, which a request must present exactly once, in the `Authorization` header.

use crate::admission::ConnectionSlot;
use crate::caller_slot::CallerSlot;
use axum::Router;
use axum::extract::Request;
use axum::http::header::{AUTHORIZATION, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use sha2::{Digest, Sha256};
use std::future::Future;
use std::sync::Arc;
use subtle::ConstantTimeEq;

/// Store of callers' tokens.
pub trait Tokens: Send + Sync + 'static {
    /// Returns the caller slot of a token. Called for each request.
    ///
    /// # Errors
    /// [`TokenLookupError`].
    fn seat(&self, token: &str) -> impl Future<Output = Result<CallerSlot, TokenLookupError>> + Send;
}

/// Reasons why a token has no slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TokenLookupError {
    /// The token is unknown or no longer valid.
    #[error("the token is unknown or no longer valid")]
    Unknown,
    /// The token can't be looked up at the moment; the client may retry.
    #[error("the token can't be looked up at present")]
    NotKnown,
}

/// A single token with its slot. Only the token's hash is kept.
pub struct OneToken {
    hash: [u8; 32],
    seat: CallerSlot,
}

/// The text is not a valid token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a token: {SHORTEST} to {LONGEST} visible characters of ASCII")]
pub struct InvalidTokenError;

/// Minimum and maximum length in bytes. A shorter token could be guessed.
const SHORTEST: usize = 32;
const LONGEST: usize = 4_096;

/// Reasons why a request is not authenticated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AuthenticationFailure {
    /// It has no token.
    Missing,
    /// It has a malformed token, or several.
    Malformed,
    /// Its token has no slot.
    NoSeat(TokenLookupError),
}

/// `Retry-After`, in seconds.
const AGAIN_AFTER: HeaderValue = HeaderValue::from_static("1");

// === impl OneToken ===

impl OneToken {
    /// Returns a store with only this token.
    ///
    /// # Errors
    /// [`InvalidTokenError`] for a text that is not a valid token.
    pub fn new(token: &str, seat: CallerSlot) -> Result<Self, InvalidTokenError> {
        let is_token =
            (SHORTEST..=LONGEST).contains(&token.len()) && token.bytes().all(|byte| byte.is_ascii_graphic());
        is_token.then(|| Self { hash: Sha256::digest(token).into(), seat }).ok_or(InvalidTokenError)
    }
}

impl Tokens for OneToken {
    async fn seat(&self, token: &str) -> Result<CallerSlot, TokenLookupError> {
        // Hashes are compared, in constant time.
        let hash: [u8; 32] = Sha256::digest(token).into();
        bool::from(hash.ct_eq(&self.hash)).then(|| self.seat.clone()).ok_or(TokenLookupError::Unknown)
    }
}

// === impl AuthenticationFailure ===

impl AuthenticationFailure {
    /// Returns the challenge (RFC 6750, section 3). Without a token it has no error code. A token that can't be looked up gets no
    /// challenge, as it may be valid.
    fn challenge(self) -> Option<HeaderValue> {
        let said = match self {
            Self::Missing => "Bearer realm=\"belljar\"",
            Self::Malformed => "Bearer realm=\"belljar\", error=\"invalid_request\"",
            Self::NoSeat(TokenLookupError::Unknown) => "Bearer realm=\"belljar\", error=\"invalid_token\"",
            Self::NoSeat(TokenLookupError::NotKnown) => return None,
        };
        Some(HeaderValue::from_static(said))
    }
}

impl IntoResponse for AuthenticationFailure {
    fn into_response(self) -> Response {
        match self.challenge() {
            Some(challenge) => (
                StatusCode::UNAUTHORIZED,
                [(WWW_AUTHENTICATE, challenge)],
                "authentication required: send a valid bearer token",
            )
                .into_response(),
            None => (
                StatusCode::SERVICE_UNAVAILABLE,
                [(RETRY_AFTER, AGAIN_AFTER)],
                "the token can't be looked up at present; try again",
            )
                .into_response(),
        }
    }
}

/// Requires a token for these routes: each admitted request has its [`CallerSlot`] among its extensions.
pub fn guarded(routes: Router, tokens: Arc<impl Tokens>) -> Router {
    routes.layer(middleware::from_fn(move |request, next| {
        let tokens = Arc::clone(&tokens);
        async move { admitted(&*tokens, request, next).await }
    }))
}

async fn admitted(tokens: &impl Tokens, mut request: Request, next: Next) -> Response {
    let seat = match shown(request.uri(), request.headers()) {
        Ok(token) => match tokens.seat(token).await {
            Ok(seat) if seat.is_over() => Err(AuthenticationFailure::NoSeat(TokenLookupError::Unknown)),
            found => found.map_err(AuthenticationFailure::NoSeat),
        },
        Err(refused) => Err(refused),
    };
    match seat {
        Ok(seat) => {
            // The inner routes don't need the token, so they must not be able to leak it.
            request.headers_mut().remove(AUTHORIZATION);
            if let Some(place) = request.extensions().get::<Arc<ConnectionSlot>>() {
                place.authenticated();
            }
            request.extensions_mut().insert(seat);
            next.run(request).await
        }
        Err(refused) => refused.into_response(),
    }
}

/// Returns the token of a request.
fn shown<'a>(uri: &Uri, headers: &'a HeaderMap) -> Result<&'a str, AuthenticationFailure> {
    // URLs are logged on the way, so a query could leak a token.
    if uri.query().is_some() {
        return Err(AuthenticationFailure::Malformed);
    }
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = match (values.next(), values.next()) {
        (None, _) => return Err(AuthenticationFailure::Missing),
        (Some(value), None) => value.to_str().map_err(|_| AuthenticationFailure::Malformed)?,
        (Some(_), Some(_)) => return Err(AuthenticationFailure::Malformed),
    };
    let (scheme, token) = value.split_once(' ').ok_or(AuthenticationFailure::Malformed)?;
    let token = token.trim_matches(' ');
    let is_one = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',');
    match scheme.eq_ignore_ascii_case("bearer") && is_one {
        true => Ok(token),
        false => Err(AuthenticationFailure::Malformed),
    }
}
