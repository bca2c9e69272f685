//! Whose a request is, by the token that it shows: once, in the one header for it, and nowhere else.

use crate::admission::Place;
use crate::seat::Seat;
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

/// Those who may come, by their tokens.
pub trait Tokens: Send + Sync + 'static {
    /// The seat of whoever has this token. It is looked up for each request.
    ///
    /// # Errors
    /// [`NoSeat`].
    fn seat(&self, token: &str) -> impl Future<Output = Result<Seat, NoSeat>> + Send;
}

/// There is no seat for a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoSeat {
    /// Nobody has that token, or not any more.
    #[error("nobody has that token")]
    Unknown,
    /// Nobody knows just now whose it is: who has it may come again.
    #[error("it can't be told just now whose a token is")]
    NotKnown,
}

/// One token, for one seat. What is kept of it is its hash.
pub struct OneToken {
    hash: [u8; 32],
    seat: Seat,
}

/// The text is no token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a token: {SHORTEST} to {LONGEST} visible characters of ASCII")]
pub struct InvalidTokenError;

/// What is shorter can be guessed.
const SHORTEST: usize = 32;
const LONGEST: usize = 4_096;

/// Why a request is nobody's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refused {
    /// It shows no token.
    Missing,
    /// It shows one otherwise than it should, or more than one.
    Malformed,
    /// It shows one for which there is no seat.
    NoSeat(NoSeat),
}

/// Who may come again waits so long, in seconds.
const AGAIN_AFTER: HeaderValue = HeaderValue::from_static("1");

// === impl OneToken ===

impl OneToken {
    /// Has whoever shows this token sit there.
    ///
    /// # Errors
    /// [`InvalidTokenError`] for a text that is none.
    pub fn new(token: &str, seat: Seat) -> Result<Self, InvalidTokenError> {
        let is_token =
            (SHORTEST..=LONGEST).contains(&token.len()) && token.bytes().all(|byte| byte.is_ascii_graphic());
        is_token.then(|| Self { hash: Sha256::digest(token).into(), seat }).ok_or(InvalidTokenError)
    }
}

impl Tokens for OneToken {
    async fn seat(&self, token: &str) -> Result<Seat, NoSeat> {
        // Hashes are compared, and in a time that says nothing of where they differ.
        let hash: [u8; 32] = Sha256::digest(token).into();
        bool::from(hash.ct_eq(&self.hash)).then(|| self.seat.clone()).ok_or(NoSeat::Unknown)
    }
}

// === impl Refused ===

impl Refused {
    /// What is said of it (RFC 6750, section 3): to whoever shows nothing, no more than what to show. Nothing is wrong with a token of
    /// which nobody knows.
    fn challenge(self) -> Option<HeaderValue> {
        let said = match self {
            Self::Missing => "Bearer realm=\"belljar\"",
            Self::Malformed => "Bearer realm=\"belljar\", error=\"invalid_request\"",
            Self::NoSeat(NoSeat::Unknown) => "Bearer realm=\"belljar\", error=\"invalid_token\"",
            Self::NoSeat(NoSeat::NotKnown) => return None,
        };
        Some(HeaderValue::from_static(said))
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        match self.challenge() {
            Some(challenge) => {
                (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, challenge)], "a token is needed")
                    .into_response()
            }
            None => (
                StatusCode::SERVICE_UNAVAILABLE,
                [(RETRY_AFTER, AGAIN_AFTER)],
                "it can't be told just now whose that token is",
            )
                .into_response(),
        }
    }
}

/// These routes, for those who have a token: each request that comes so far has its [`Seat`] among its extensions.
pub fn guarded(routes: Router, tokens: Arc<impl Tokens>) -> Router {
    routes.layer(middleware::from_fn(move |request, next| {
        let tokens = Arc::clone(&tokens);
        async move { admitted(&*tokens, request, next).await }
    }))
}

async fn admitted(tokens: &impl Tokens, mut request: Request, next: Next) -> Response {
    let seat = match shown(request.uri(), request.headers()) {
        Ok(token) => match tokens.seat(token).await {
            Ok(seat) if seat.is_over() => Err(Refused::NoSeat(NoSeat::Unknown)),
            found => found.map_err(Refused::NoSeat),
        },
        Err(refused) => Err(refused),
    };
    match seat {
        Ok(seat) => {
            // What is behind this needs no token, and so gets none to pass on.
            request.headers_mut().remove(AUTHORIZATION);
            if let Some(place) = request.extensions().get::<Arc<Place>>() {
                place.authenticated();
            }
            request.extensions_mut().insert(seat);
            next.run(request).await
        }
        Err(refused) => refused.into_response(),
    }
}

/// The token that a request shows.
fn shown<'a>(uri: &Uri, headers: &'a HeaderMap) -> Result<&'a str, Refused> {
    // Addresses are written down on the way: whoever says anything there may have said a token.
    if uri.query().is_some() {
        return Err(Refused::Malformed);
    }
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let value = match (values.next(), values.next()) {
        (None, _) => return Err(Refused::Missing),
        (Some(value), None) => value.to_str().map_err(|_| Refused::Malformed)?,
        (Some(_), Some(_)) => return Err(Refused::Malformed),
    };
    let (scheme, token) = value.split_once(' ').ok_or(Refused::Malformed)?;
    let token = token.trim_matches(' ');
    let is_one = !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',');
    match scheme.eq_ignore_ascii_case("bearer") && is_one {
        true => Ok(token),
        false => Err(Refused::Malformed),
    }
}
