//! Pins the addresses of a git remote. The host name is resolved here, once, and all its addresses are checked. Git then gets
//! addresses and makes no lookup of its own, which prevents DNS rebinding.

use crate::upstream::is_of_this_machine;
use crate::upstream::names::{NameResolver, NameSource};
use belljar_policy::egress::{Destination, EgressDenial, Host};
use belljar_policy::git::{GitRules, Remote};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::runtime::LocalOptions;
use tokio::time::timeout;

/// Remote with its checked addresses. It can't be created outside of this module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PinnedRemote {
    remote: Remote,
    addresses: Vec<IpAddr>,
}

/// Reason why git may not connect to a remote.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// The remote's host or address is not allowed.
    #[error(transparent)]
    Denied(#[from] EgressDenial),
    /// The name lookup timed out.
    #[error("name lookup for {host} timed out")]
    NoAnswer {
        /// Host of the remote.
        host: Host,
    },
    /// The lookup can't be started.
    #[error("can't start a name lookup")]
    Ask {
        /// Reason.
        #[source]
        source: io::Error,
    },
}

/// Time limit for a name lookup: 5 s.
const PATIENCE: Duration = Duration::from_secs(5);

/// Maximum number of addresses that git gets.
const MOST_ADDRESSES: usize = 8;

// === impl PinnedRemote ===

impl PinnedRemote {
    /// Resolves the host of a remote and checks whether git may connect to it.
    ///
    /// # Errors
    /// [`PinError`]; nothing was connected to.
    pub fn pin(remote: Remote, rules: &GitRules, names: NameSource) -> Result<Self, PinError> {
        let Some(allowed) = rules.decide(&remote)? else { return Ok(Self { remote, addresses: Vec::new() }) };
        let found = resolve(allowed.value(), names)?;
        // A rule that names a host or a network includes addresses of this machine.
        let own: Vec<_> = found.iter().copied().filter(|address| is_of_this_machine(*address)).collect();
        let vetted = allowed.vet(&found, &own)?;
        let mut addresses: Vec<_> = vetted.value().addresses().iter().map(SocketAddr::ip).collect();
        addresses.truncate(MOST_ADDRESSES);
        Ok(Self { remote, addresses })
    }

    /// Returns the remote.
    pub fn remote(&self) -> &Remote {
        &self.remote
    }

    /// Returns the remote's addresses; empty only for a directory of this host.
    pub fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }
}

// === impl PinError ===

impl PinError {
    /// Returns the stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Denied(denied) => denied.reason.code(),
            Self::NoAnswer { .. } => "name_timeout",
            Self::Ask { .. } => "names_unavailable",
        }
    }
}

fn resolve(destination: &Destination, names: NameSource) -> Result<Vec<IpAddr>, PinError> {
    let name = match &destination.host {
        Host::Address(address) => return Ok(vec![*address]),
        Host::Name(name) => name.as_str(),
    };
    let ask = |source| PinError::Ask { source };
    let mut builder = tokio::runtime::Builder::new_current_thread();
    let runtime = builder.enable_all().build_local(LocalOptions::default()).map_err(ask)?;
    let names = NameResolver::new(names);
    match runtime.block_on(async { timeout(PATIENCE, names.resolve_whole(name)).await }) {
        // A name that doesn't resolve has no addresses.
        Ok(found) => Ok(found.unwrap_or_default()),
        Err(_) => Err(PinError::NoAnswer { host: destination.host.clone() }),
    }
}
