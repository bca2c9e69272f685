//! Addresses: whether what a name leads to may be dialed for a sandbox.

use super::address::AddressClass;
use super::{Allowed, Asked, Denied, DenyReason, Destination};
use core::net::{IpAddr, SocketAddr};

/// A destination with the addresses that it may be dialed at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vetted {
    destination: Destination,
    addresses: Vec<SocketAddr>,
}

/// A name that leads to more addresses leads nowhere.
pub const MOST_ADDRESSES: usize = 64;

// === impl Allowed ===

impl Allowed<Destination> {
    /// What whoever has asked for it is told when patterns let in no more names for now: who counts them is none of this module.
    pub fn too_many_names(self, asked: &Asked<'_>) -> Denied {
        Denied::new(self.value, asked, DenyReason::TooManyNames)
    }

    /// Whether it may be dialed at the addresses that it leads to; `own` are those of this machine.
    ///
    /// # Errors
    /// [`Denied`] when one of them is none for a sandbox, or there are none, or too many.
    pub fn vet(self, found: &[IpAddr], own: &[IpAddr]) -> Result<Allowed<Vetted>, Denied> {
        let Self { value: destination, networks, .. } = &self;
        let refuse = |destination: &Destination, reason| {
            let denied = Denied::new(destination.clone(), &Asked::Tunnel, reason);
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
        Ok(self.map(|destination| Vetted { destination, addresses }))
    }
}

// === impl Vetted ===

impl Vetted {
    /// The destination.
    pub fn destination(&self) -> &Destination {
        &self.destination
    }

    /// Where it may be dialed, in the order in which it was found; never empty.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }
}

#[cfg(test)]
mod tests;
