//! Address of an upstream.

use belljar_contract::text::escaped;
use belljar_trusted::tcp_server::ServerUser;
use rustls::pki_types::ServerName;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Address and protocol of an upstream.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Upstream {
    pub(super) place: UpstreamAddress,
    /// Without TLS, others on the network path can read the traffic.
    pub(super) tls: Option<UpstreamTls>,
    /// Value of the `Host` header.
    host: String,
    /// Prefix of every path.
    prefix: String,
    /// Users who may serve it without TLS on this machine; `None` if not configured.
    user: Option<ServerUser>,
}

/// Address that is dialed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum UpstreamAddress {
    /// IP address.
    Address { address: SocketAddr },
    /// Name that is resolved for each connection.
    Name { name: String, port: u16 },
    /// Local socket.
    Local { path: PathBuf },
}

/// Name that the server has to prove, and the authority for it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct UpstreamTls {
    pub(super) server: ServerName<'static>,
    /// File with the authorities that are trusted instead of the system's.
    pub(super) authority: Option<PathBuf>,
}

/// Text that is no address of an upstream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{found:?} is not a valid upstream: {why}")]
pub struct UpstreamError {
    /// Text that was given.
    pub found: String,
    /// Error in it.
    pub why: &'static str,
}

const HTTP: u16 = 80;
const HTTPS: u16 = 443;

// === impl Upstream ===

impl Upstream {
    /// Parses `https://HOST[:PORT][/PREFIX]`, `http://HOST[:PORT][/PREFIX]` or `unix:/PATH`.
    ///
    /// # Errors
    /// [`UpstreamError`].
    pub fn parse(text: &str) -> Result<Self, UpstreamError> {
        parse(text).map_err(|why| UpstreamError { found: without_secrets(text), why })
    }

    /// Trusts only the authorities in a file. Returns `None` if there is no TLS.
    pub fn trusting(self, authority: PathBuf) -> Option<Self> {
        let tls = self.tls.map(|tls| UpstreamTls { authority: Some(authority), ..tls })?;
        Some(Self { tls: Some(tls), ..self })
    }

    /// Trusts a server of that user with a credential, too. Returns `None` if TLS or a socket's permissions decide about that.
    pub fn served_by(self, user: ServerUser) -> Option<Self> {
        let is_plain_tcp = self.tls.is_none() && !matches!(self.place, UpstreamAddress::Local { .. });
        is_plain_tcp.then_some(Self { user: Some(user), ..self })
    }

    /// Marks an upstream that gets no credential. Unless a user is configured, any user may run its server.
    #[must_use]
    pub fn without_credential(self) -> Self {
        Self { user: self.user.or(Some(ServerUser::Any)), ..self }
    }

    /// Returns the users whose server may get a credential without TLS.
    pub(super) fn server_user(&self) -> ServerUser {
        self.user.unwrap_or_default()
    }

    /// Returns true if the traffic can't be read on a network.
    pub(crate) fn keeps_to_itself(&self) -> bool {
        let is_of_this_machine = match &self.place {
            UpstreamAddress::Address { address } => address.ip().to_canonical().is_loopback(),
            UpstreamAddress::Local { .. } => true,
            UpstreamAddress::Name { .. } => false,
        };
        self.tls.is_some() || is_of_this_machine
    }

    /// Returns true if it is a socket, a loopback address or `localhost` of this machine.
    pub fn is_on_this_machine(&self) -> bool {
        match &self.place {
            UpstreamAddress::Address { address } => address.ip().to_canonical().is_loopback(),
            UpstreamAddress::Local { .. } => true,
            UpstreamAddress::Name { name, .. } => name.eq_ignore_ascii_case("localhost"),
        }
    }

    /// Returns the address as a URL: scheme, host, port and prefix, or the path of a socket. It contains no credential.
    pub fn address(&self) -> String {
        match (&self.place, &self.tls) {
            (UpstreamAddress::Local { path }, _) => format!("unix:{}", escaped(path.as_os_str().as_bytes())),
            (_, Some(_)) => format!("https://{}{}", self.host, self.prefix),
            (_, None) => format!("http://{}{}", self.host, self.prefix),
        }
    }

    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    pub(crate) fn prefix(&self) -> &str {
        &self.prefix
    }
}

/// Returns the text without possible secrets: a user and password before the host, and everything after `?` or `#`. It is
/// recorded, and shown to others than its author.
fn without_secrets(text: &str) -> String {
    let (text, has_more) = match text.find(['?', '#']) {
        Some(at) => (&text[..at], true),
        None => (text, false),
    };
    let begin = text.find("://").map_or(0, |at| at + "://".len());
    let (scheme, rest) = text.split_at(begin);
    // This works even if the password contains a `/`.
    let (user, rest) = rest.rsplit_once('@').map_or(("", rest), |(_, rest)| ("…@", rest));
    format!("{scheme}{user}{rest}{}", if has_more { "…" } else { "" })
}

fn parse(text: &str) -> Result<Upstream, &'static str> {
    if let Some(path) = text.strip_prefix("unix:") {
        if !path.starts_with('/') {
            return Err("unix: must be followed by the absolute path of a socket");
        }
        let place = UpstreamAddress::Local { path: path.into() };
        return Ok(Upstream {
            place,
            tls: None,
            host: "localhost".to_owned(),
            prefix: String::new(),
            user: None,
        });
    }
    let schemes = [("https://", HTTPS), ("http://", HTTP)];
    let mut found = schemes.iter().filter_map(|(scheme, port)| Some((text.strip_prefix(scheme)?, *port)));
    let (rest, default_port) = found.next().ok_or("it must begin with https://, http:// or unix:")?;
    let (host, prefix) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
    let prefix = prefix.trim_end_matches('/');
    let is_plain =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic() && !b"?#@\\%".contains(&byte));
    if !is_plain(host) || !is_plain(prefix) {
        return Err("it may contain only a host, a port and a path");
    }
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !port.ends_with(']') => (name, parse_port(port)?),
        _ => (host, default_port),
    };
    let (place, server) = parse_host(name, port)?;
    let tls = (default_port == HTTPS).then_some(UpstreamTls { server, authority: None });
    Ok(Upstream { place, tls, host: host.to_owned(), prefix: prefix.to_owned(), user: None })
}

fn parse_port(text: &str) -> Result<u16, &'static str> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse()
        .ok()
        .filter(|port| is_number && *port != 0)
        .ok_or("the port must be a number from 1 to 65535")
}

/// Parses a host into its address, and the name that its certificate must have.
fn parse_host(text: &str, port: u16) -> Result<(UpstreamAddress, ServerName<'static>), &'static str> {
    let at = |address: IpAddr| UpstreamAddress::Address { address: SocketAddr::new(address, port) };
    if let Some(inner) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        let address: Ipv6Addr = inner.parse().map_err(|_| "there is no IP address between the brackets")?;
        return Ok((at(address.into()), IpAddr::from(address).into()));
    }
    if let Ok(address) = text.parse::<Ipv4Addr>() {
        return Ok((at(address.into()), IpAddr::from(address).into()));
    }
    let name = text.to_ascii_lowercase();
    if !is_name(&name) {
        return Err("the host is neither an address nor a name");
    }
    let server = ServerName::try_from(name.clone()).map_err(|_| "the host is not a valid server name")?;
    match name.as_str() {
        // `localhost` always means this machine, whatever a name server returns.
        "localhost" => Ok((at(Ipv4Addr::LOCALHOST.into()), server)),
        _ => Ok((UpstreamAddress::Name { name, port }, server)),
    }
}

/// Returns true if it is a name that no library could take for an address.
fn is_name(text: &str) -> bool {
    let is_label = |label: &str| {
        let is_inside = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
        (1..=63).contains(&label.len())
            && label.bytes().all(is_inside)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    let last = text.rsplit('.').next().unwrap_or_default();
    // Some libraries take 127.1, 2130706433 and 0x7f000001 for addresses.
    let is_number = last.bytes().all(|byte| byte.is_ascii_digit()) || last.starts_with("0x");
    text.len() <= 253 && text.split('.').all(is_label) && !is_number
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upstream_url_error_omits_password_and_query() {
        for text in [
            "http://user:pw@a.example:80/b",
            "http://user:p/w@a.example/b",
            "https://a.example/b?key=pw",
            "https://a.example/b#pw",
            "user:pw@a.example",
        ] {
            let error = Upstream::parse(text).unwrap_err().to_string();
            assert!(!error.contains("pw") && !error.contains("/w"), "{error}");
            assert!(error.contains("a.example"), "{error}");
        }
    }

    #[test]
    fn upstream_url_is_parsed_into_address_host_and_prefix() {
        let parse = |text: &str| Upstream::parse(text).map(|it| (it.place, it.host, it.prefix));
        let tcp = |text: &str| UpstreamAddress::Address { address: text.parse().unwrap() };
        let named = |name: &str, port| UpstreamAddress::Name { name: name.to_owned(), port };
        assert_eq!(
            parse("http://127.0.0.1:4000/v0/"),
            Ok((tcp("127.0.0.1:4000"), "127.0.0.1:4000".to_owned(), "/v0".to_owned()))
        );
        assert_eq!(
            parse("http://[::1]:4000"),
            Ok((tcp("[::1]:4000"), "[::1]:4000".to_owned(), String::new()))
        );
        assert_eq!(parse("http://[::1]").unwrap().0, tcp("[::1]:80"));
        assert_eq!(parse("http://localhost:1").unwrap().0, tcp("127.0.0.1:1"));
        assert_eq!(parse("https://127.0.0.1").unwrap().0, tcp("127.0.0.1:443"));
        assert_eq!(parse("unix:/run/model").unwrap().0, UpstreamAddress::Local { path: "/run/model".into() });
        assert_eq!(
            parse("https://API.example.com/openai/v1"),
            Ok((named("api.example.com", 443), "API.example.com".to_owned(), "/openai/v1".to_owned()))
        );
        assert_eq!(parse("http://lite_llm:4000").unwrap().0, named("lite_llm", 4000));
        for bad in [
            "https//a",
            "localhost:4000",
            "http://",
            "https://",
            "http://a b",
            "http://user@127.0.0.1",
            "https://user:word@api.example.com",
            "http://127.0.0.1?a",
            "http://127.0.0.1/%2e%2e",
            "http://127.0.0.1:99999",
            "http://127.0.0.1:0",
            "http://127.0.0.1:+80",
            "http://127.0.0.1:",
            "unix:run/model",
            "http://127.0.0.1\r\nX: y",
            "http://[127.0.0.1]",
            "http://[::1",
            "http://::1",
            "http://127.1",
            "http://2130706433",
            "http://0x7f000001",
            "http://1.0x7f",
            "https://api.example.com.",
            "https://api..example.com",
            "https://-a.example.com",
            "https://*.example.com",
            "ftp://api.example.com",
            "HTTPS://api.example.com",
            &format!("https://{}.com", "a".repeat(64)),
        ] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn https_upstream_must_prove_the_configured_host_name() {
        let server = |text: &str| Upstream::parse(text).unwrap().tls.map(|tls| tls.server);
        let name = |text: &str| Some(ServerName::try_from(text.to_owned()).unwrap());
        assert_eq!(server("https://API.example.com:8443/v1"), name("api.example.com"));
        assert_eq!(server("https://localhost"), name("localhost"));
        assert_eq!(server("https://127.0.0.1"), name("127.0.0.1"));
        assert_eq!(server("https://[::1]:1"), name("::1"));
        assert_eq!(server("http://api.example.com"), None);
        let plain = Upstream::parse("http://api.example.com").unwrap();
        assert_eq!(plain.trusting("/ca.pem".into()), None);
        let house = Upstream::parse("https://api.example.com").unwrap();
        assert_ne!(house.clone().trusting("/ca.pem".into()), Some(house));
    }
}
