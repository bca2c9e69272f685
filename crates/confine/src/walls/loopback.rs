//! The network: a namespace of its own, in which there is loopback and nothing else.

use super::{About, Fault};
use crate::kernel::bring_loopback_up;

/// Names the machine and brings its loopback interface up.
pub(crate) fn put_up(hostname: &str) -> Result<(), Fault> {
    rustix::system::sethostname(hostname.as_bytes()).about("host name")?;
    bring_loopback_up().about("lo")
}
