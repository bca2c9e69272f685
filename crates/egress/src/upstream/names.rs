//! Resolves names of upstreams on the host: by its hosts file and its name servers.

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{
    ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts,
};
use hickory_resolver::lookup::Lookup;
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::system_conf::parse_resolv_conf;
use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::sync::Mutex;
use tokio::time::timeout;

/// Sources for name lookups.
#[derive(Debug, Clone)]
pub struct NameSource {
    /// Hosts file.
    hosts: PathBuf,
    servers: NameServers,
}

/// Name servers.
#[derive(Debug, Clone)]
enum NameServers {
    /// Name servers in this file.
    Listed(PathBuf),
    /// These name servers.
    At(Vec<SocketAddr>),
}

/// Name resolver. Nothing is loaded before the first lookup.
pub(crate) struct NameResolver {
    source: NameSource,
    known: Mutex<Option<LoadedNames>>,
}

#[derive(Clone)]
struct LoadedNames {
    hosts: Rc<HashMap<String, Vec<IpAddr>>>,
    /// `None` if there is no usable name server.
    resolver: Option<TokioResolver>,
    read_at: Instant,
}

/// Configuration of the resolver.
type ResolverSetup = (ResolverConfig, ResolverOpts);

/// Time after which the files are read again, because networks change.
const FRESH_TIME: Duration = Duration::from_secs(60);

/// Maximum wait for addresses of the other family once some have come.
const GRACE_TIME: Duration = Duration::from_millis(200);

// === impl NameSource ===

impl NameSource {
    /// Returns the sources that all programs of this machine use.
    pub fn of_system() -> Self {
        Self { hosts: "/etc/hosts".into(), servers: NameServers::Listed("/etc/resolv.conf".into()) }
    }

    /// Returns sources with another hosts file and other name servers.
    pub fn at(hosts: PathBuf, servers: Vec<SocketAddr>) -> Self {
        Self { hosts, servers: NameServers::At(servers) }
    }

    fn read(&self) -> (HashMap<String, Vec<IpAddr>>, Option<ResolverSetup>) {
        // A missing file has no entries.
        let hosts = std::fs::read(&self.hosts).unwrap_or_default();
        let asking = match &self.servers {
            NameServers::Listed(path) => listed(path),
            NameServers::At(servers) => Some(asking(servers)),
        };
        (parse_hosts(&String::from_utf8_lossy(&hosts)), asking)
    }
}

fn listed(path: &Path) -> Option<ResolverSetup> {
    parse_resolv_conf(std::fs::read(path).ok()?).ok()
}

fn asking(servers: &[SocketAddr]) -> ResolverSetup {
    let each = servers.iter().map(|server| {
        let connections = [ConnectionConfig::udp(), ConnectionConfig::tcp()];
        let connections = connections.map(|mut connection| {
            connection.port = server.port();
            connection
        });
        NameServerConfig::new(server.ip(), true, connections.into())
    });
    (ResolverConfig::from_parts(None, Vec::new(), each.collect()), ResolverOpts::default())
}

/// Parses a hosts file: each line has an address and its names.
fn parse_hosts(text: &str) -> HashMap<String, Vec<IpAddr>> {
    let mut hosts: HashMap<String, Vec<IpAddr>> = HashMap::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default();
        let mut words = line.split_whitespace();
        let Some(address) = words.next().and_then(|word| word.parse().ok()) else { continue };
        for name in words {
            hosts.entry(name.to_ascii_lowercase()).or_default().push(address);
        }
    }
    hosts
}

// === impl NameResolver ===

impl NameResolver {
    pub(crate) fn new(source: NameSource) -> Self {
        Self { source, known: Mutex::default() }
    }

    /// Returns every address of a lower-case name, without a check.
    pub(super) async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        self.resolve_as(name, name).await
    }

    /// Like [`Self::resolve`] for a fully qualified name: no search domain is appended.
    pub(crate) async fn resolve_whole(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        self.resolve_as(name, &format!("{name}.")).await
    }

    async fn resolve_as(&self, name: &str, asked: &str) -> io::Result<Vec<IpAddr>> {
        let known = self.known().await?;
        if let Some(addresses) = known.hosts.get(name) {
            return Ok(addresses.clone());
        }
        let resolver = known.resolver.ok_or(io::ErrorKind::NotFound)?;
        let (old, new) = (v4(&resolver, asked), v6(&resolver, asked));
        match both(old, new).await {
            addresses if addresses.is_empty() => Err(io::ErrorKind::NotFound.into()),
            addresses => Ok(addresses),
        }
    }

    async fn known(&self) -> io::Result<LoadedNames> {
        // Other tasks wait for the lock, and then get the loaded value.
        let mut slot = self.known.lock().await;
        if let Some(known) = slot.as_ref().filter(|known| known.read_at.elapsed() < FRESH_TIME) {
            return Ok(known.clone());
        }
        let source = self.source.clone();
        let (hosts, asking) = tokio::task::spawn_blocking(move || source.read()).await?;
        let resolver = asking.and_then(resolver);
        let known = LoadedNames { hosts: Rc::new(hosts), resolver, read_at: Instant::now() };
        *slot = Some(known.clone());
        Ok(known)
    }
}

fn resolver((config, mut options): ResolverSetup) -> Option<TokioResolver> {
    // The hosts file was read before.
    options.use_hosts_file = ResolveHosts::Never;
    let builder = TokioResolver::builder_with_config(config, TokioRuntimeProvider::default());
    builder.with_options(options).build().ok()
}

async fn v4(resolver: &TokioResolver, name: &str) -> Vec<IpAddr> {
    addresses(&resolver.ipv4_lookup(name).await)
}

async fn v6(resolver: &TokioResolver, name: &str) -> Vec<IpAddr> {
    addresses(&resolver.ipv6_lookup(name).await)
}

fn addresses(found: &Result<Lookup, NetError>) -> Vec<IpAddr> {
    let records = found.as_ref().map(Lookup::answers).unwrap_or_default();
    records.iter().filter_map(|record| record.data.ip_addr()).collect()
}

/// Returns the addresses of both families. Once some have come, it waits only a little longer: some servers never answer for
/// IPv6.
async fn both(old: impl Future<Output = Vec<IpAddr>>, new: impl Future<Output = Vec<IpAddr>>) -> Vec<IpAddr> {
    let (mut old, mut new) = (pin!(old), pin!(new));
    let other: Pin<&mut dyn Future<Output = Vec<IpAddr>>>;
    let first = tokio::select! {
        found = &mut old => { other = new; found }
        found = &mut new => { other = old; found }
    };
    let rest = match first.is_empty() {
        true => other.await,
        false => timeout(GRACE_TIME, other).await.unwrap_or_default(),
    };
    [first, rest].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_file_is_parsed_with_aliases_and_comments() {
        let hosts = parse_hosts(
            "127.0.0.1\tlocalhost\n# 10.0.0.1 commented\n10.0.0.7  Models.house models # ours\n\
             fd00::7 models.house\n10.0.0.8\nnonsense models.house\n\n",
        );
        let of = |name: &str| {
            let found = hosts.get(name).map(Vec::as_slice).unwrap_or_default();
            found.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(of("models.house"), ["10.0.0.7", "fd00::7"]);
        assert_eq!(of("models"), ["10.0.0.7"]);
        assert_eq!(of("localhost"), ["127.0.0.1"]);
        assert!(of("commented").is_empty() && of("ours").is_empty());
    }
}
