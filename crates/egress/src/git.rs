//! Where the host's git may connect to: the name of a remote is resolved here, once, and all that it leads to is looked at. Git
//! then gets addresses, and asks nobody.

use crate::upstream::is_of_this_machine;
use crate::upstream::names::{NameSource, Names};
use belljar_policy::egress::{Denied, Destination, Host};
use belljar_policy::git::{GitRules, Remote};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;
use tokio::runtime::LocalOptions;
use tokio::time::timeout;

/// A remote, and where it may be reached. It can't be made outside of this module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pinned {
    remote: Remote,
    addresses: Vec<IpAddr>,
}

/// Why git doesn't go there.
#[derive(Debug, thiserror::Error)]
pub enum PinError {
    /// It leads where git may not go.
    #[error(transparent)]
    Denied(#[from] Denied),
    /// Nobody has said in time where its name leads.
    #[error("nobody has said in time where {host} leads")]
    NoAnswer {
        /// Its host.
        host: Host,
    },
    /// Nobody can be asked.
    #[error("can't ask where names lead")]
    Ask {
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// So long somebody is asked where a name leads.
const PATIENCE: Duration = Duration::from_secs(5);

/// So many of its addresses git is given.
const MOST_ADDRESSES: usize = 8;

// === impl Pinned ===

impl Pinned {
    /// Looks where a remote leads, and whether git may go there.
    ///
    /// # Errors
    /// [`PinError`]; nothing was connected to.
    pub fn pin(remote: Remote, rules: &GitRules, names: NameSource) -> Result<Self, PinError> {
        let Some(allowed) = rules.decide(&remote)? else { return Ok(Self { remote, addresses: Vec::new() }) };
        let found = resolve(allowed.value(), names)?;
        // Whoever names a host or a network means what is there, this machine included.
        let own: Vec<_> = found.iter().copied().filter(|address| is_of_this_machine(*address)).collect();
        let vetted = allowed.vet(&found, &own)?;
        let mut addresses: Vec<_> = vetted.value().addresses().iter().map(SocketAddr::ip).collect();
        addresses.truncate(MOST_ADDRESSES);
        Ok(Self { remote, addresses })
    }

    /// The remote.
    pub fn remote(&self) -> &Remote {
        &self.remote
    }

    /// Where it may be reached; empty for a directory of this host alone.
    pub fn addresses(&self) -> &[IpAddr] {
        &self.addresses
    }
}

// === impl PinError ===

impl PinError {
    /// The stable code.
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
    let names = Names::new(names);
    match runtime.block_on(async { timeout(PATIENCE, names.resolve_whole(name)).await }) {
        // One that leads nowhere leads to no addresses.
        Ok(found) => Ok(found.unwrap_or_default()),
        Err(_) => Err(PinError::NoAnswer { host: destination.host.clone() }),
    }
}
