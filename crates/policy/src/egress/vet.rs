//! Checks the addresses of a name before they are dialed for a sandbox.

use super::address::AddressClass;
use super::{AllowedDestination, DenyReason, Destination, EgressDenial, EgressRequest};
use core::net::{IpAddr, SocketAddr};

/// Destination with the checked addresses at which it may be dialed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VettedDestination {
    destination: Destination,
    addresses: Vec<SocketAddr>,
}

/// Maximum number of addresses of a name; a name with more is refused.
pub const MOST_ADDRESSES: usize = 64;

// === impl AllowedDestination ===

impl AllowedDestination<Destination> {
    /// Returns the denial of a name beyond the limit of wildcard names. The caller counts the names.
    pub fn too_many_names(self, asked: &EgressRequest<'_>) -> EgressDenial {
        EgressDenial::new(self.value, asked, DenyReason::TooManyNames)
    }

    /// Checks the addresses of the destination; `own` are those of this machine.
    ///
    /// # Errors
    /// [`EgressDenial`], if a sandbox may not reach one of them, or if there are none or too many.
    pub fn vet(
        self,
        found: &[IpAddr],
        own: &[IpAddr],
    ) -> Result<AllowedDestination<VettedDestination>, EgressDenial> {
        let Self { value: destination, networks, .. } = &self;
        let refuse = |destination: &Destination, reason| {
            let denied = EgressDenial::new(destination.clone(), &EgressRequest::Tunnel, reason);
            Err(denied.leading_to(found, own))
        };
        if found.is_empty() {
            return refuse(destination, DenyReason::NoAddress);
        }
        if found.len() > MOST_ADDRESSES {
            return refuse(destination, DenyReason::TooManyAddresses);
        }
        for &address in found {
            let address = address.to_canonical();
            let class = AddressClass::of(address);
            let is_own = own.iter().any(|own| own.to_canonical() == address);
            let is_granted = class.may_be_granted() && networks.iter().any(|network| network.holds(address));
            if !is_granted && class != AddressClass::Global {
                return refuse(destination, DenyReason::Address { address, class });
            }
            if !is_granted && is_own {
                return refuse(destination, DenyReason::OwnAddress { address });
            }
        }
        let port = destination.port;
        let mut addresses: Vec<_> =
            found.iter().map(|address| SocketAddr::new(address.to_canonical(), port)).collect();
        addresses.dedup();
        Ok(self.map(|destination| VettedDestination { destination, addresses }))
    }
}

// === impl VettedDestination ===

impl VettedDestination {
    /// Returns the destination.
    pub fn destination(&self) -> &Destination {
        &self.destination
    }

    /// Returns the addresses in the order in which they were found; never empty.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

#[cfg(test)]
mod tests;
