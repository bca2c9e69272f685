//! Signs requests anew that were signed with a placeholder key.

use super::filler::{CredentialInjector, unfilled};
use super::{AUTHORIZATION, CredentialInjection, TOKEN};
use crate::client::{Client, ClientStop};
use crate::http1::{BodyLength, RequestHead};
use crate::web::config::HeldCredential;
use crate::web::forward;
use crate::web::hatch_server::WebProxy;
use crate::web::other_resource::names_source;
use crate::web::placeholder::{TextPiece, pieces};
use crate::web::refusal::Refusal;
use crate::web::sigv4::{self, SignatureClaim};
use tokio::io::{AsyncRead, AsyncWrite};
use zeroize::Zeroizing;

const PAYLOAD: &str = "x-amz-content-sha256";

/// Maximum size of a body whose digest is signed and not stated by the client, in bytes. Such a body is held whole.
const MOST_SIGNED: usize = 8 << 20;

// === impl CredentialInjector ===

impl CredentialInjector<'_> {
    /// Signs a request anew that was signed with a placeholder key.
    pub(super) async fn sign<'g, S>(
        &mut self,
        (client, gate): (&mut Client<S>, &'g WebProxy),
        head: &RequestHead,
        claim: &SignatureClaim<'_>,
        filling: &mut CredentialInjection<'g>,
    ) -> Result<(), Refusal>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let [TextPiece::Placeholder(name)] = pieces(claim.key_id.as_bytes())[..] else {
            return Err(Refusal::Unsigned { why: "its key id is not exactly one placeholder" });
        };
        let HeldCredential::Aws { access_key_id, secret_access_key, session_token, services, regions } =
            self.held(name)?
        else {
            return Err(unfilled(name));
        };
        if !claim.is_for(services, regions) {
            return Err(Refusal::Unsigned { why: "its key is not for that service and region" });
        }
        // The signature would cover a copy from another place, which no rule has decided about.
        if head.headers.iter().any(|(name, _)| names_source(name)) {
            return Err(Refusal::Unsigned { why: "it copies from another resource" });
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
            // Each chunk would have a signature of its own.
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
        let authority = forward::authority(self.allowed.value(), true);
        all.push((b"host".to_vec(), Zeroizing::new(authority.into_bytes())));
        if claim.signs("content-length") {
            all.extend(
                length(head, filling.body.as_ref())
                    .map(|length| (b"content-length".to_vec(), Zeroizing::new(length))),
            );
        }
        let request = sigv4::UnsignedRequest {
            method: &head.method,
            path: &head.path,
            query: query.or(head.query.as_deref()),
            headers: &all,
            payload: &payload,
        };
        let signed = claim.sign(&request, id.secret.expose(), (key.secret.expose(), session_token.is_some()));
        let signed = signed.ok_or(Refusal::Unsigned { why: "a signed header is missing" })?;
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

// === impl Refusal ===

impl Refusal {
    fn of_stop(stop: &ClientStop) -> Self {
        match stop {
            ClientStop::Gone => Self::TooSlow,
            ClientStop::Faulty(fault) => (*fault).into(),
        }
    }
}
