//! Notes destinations that a run did not reach: denied by its rules, refused by an upstream proxy, or unreachable.

use super::super::refusal::Refusal;
use super::super::run::Denial;
use super::ProxiedRequest;
use crate::http1::ResponseHead;
use crate::upstream::ProxyHeaders;
use belljar_policy::egress::Destination;

/// Statuses by which an upstream proxy refuses a request, if a header shows that the proxy itself answers.
const NOT_PASSED_ON: [u16; 4] = [403, 502, 503, 504];

// === impl ProxiedRequest ===

impl ProxiedRequest<'_> {
    /// Notes that the run did not reach its destination, if the refusal means that.
    pub(super) fn note_kept_out(&self, refusal: &Refusal) {
        if !refusal.keeps_out() {
            return;
        }
        let (destination, needed) = match refusal {
            Refusal::Denied(denied) => (Some(&denied.destination), denied.needed()),
            _ => (self.destination.as_ref(), None),
        };
        let Some(destination) = destination.cloned() else { return };
        let reason = refusal.recorded_code();
        let needed = needed.map(str::to_owned);
        self.gate.run.keep_out(Denial { destination, reason, needed, last_at: self.started_at });
    }

    /// Notes whether an answer comes from the destination, or from the upstream proxy that refused the request.
    ///
    /// # Errors
    /// [`Refusal`], if the proxy asks this host for authentication (407): the run must not see that.
    pub(in crate::web) fn note_answer(
        &self,
        destination: &Destination,
        proxy: Option<&ProxyHeaders>,
        answer: &ResponseHead,
    ) -> Result<(), Refusal> {
        if proxy.is_none() {
            return Ok(());
        }
        let refusal = Refusal::RefusedElsewhere { host: destination.host.to_string() };
        if answer.status == 407 {
            return Err(refusal);
        }
        match is_of_proxy(answer) {
            true => self.note_kept_out(&refusal),
            false => self.gate.run.reached(destination),
        }
        Ok(())
    }
}

/// Returns true if the answer means that the upstream proxy refused the request. A proxy adds `Via` to answers that it forwards
/// (RFC 9110 §7.6.3). To its own errors it adds `Proxy-Status` (RFC 9209) or, like Squid, a header of its own.
fn is_of_proxy(answer: &ResponseHead) -> bool {
    let says_so = answer.header("x-squid-error").is_some()
        || answer
            .header("proxy-status")
            .is_some_and(|status| memchr::memmem::find(status, b"error=").is_some());
    let is_unmarked = answer.status == 403 && answer.header("via").is_none();
    is_unmarked || (says_so && NOT_PASSED_ON.contains(&answer.status))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_answers_of_an_upstream_proxy_are_recognized() {
        for (head, expected) in [
            ("403 No\r\nX-Squid-Error: ERR_ACCESS_DENIED 0\r\nVia: 1.1 squid", true),
            ("503 No\r\nX-Squid-Error: ERR_DNS_FAIL 0\r\nVia: 1.1 squid", true),
            ("403 No\r\nProxy-Status: belljar; error=http_request_denied", true),
            ("403 No\r\nServer: any", true),
            ("403 No\r\nVia: 1.1 proxy", false),
            ("503 No\r\nServer: any", false),
            ("200 Yes\r\nX-Squid-Error: ERR_ACCESS_DENIED 0", false),
        ] {
            let head = format!("HTTP/1.1 {head}\r\nContent-Length: 0\r\n\r\n");
            let answer = ResponseHead::parse(head.as_bytes()).unwrap();
            assert_eq!(is_of_proxy(&answer), expected, "{head}");
        }
    }
}
