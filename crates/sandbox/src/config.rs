//! The configuration: the backend for each category of tools, the limits of each backend, and the reporting of runs.
//!
//! YAML in the shape of `docs/contracts/tools.md#t4`, a strict subset of it: no unknown or duplicate
//! keys, no anchors, no tags, and nothing that YAML 1.1 and 1.2 read differently. All mistakes are reported at once, each
//! with its line, its column and the expected value. Pure: text comes in, a configuration or all its mistakes go out.
//!
//! Two defaults depend on the given settings. The overrides of the contract apply where the default backend is the weak
//! `subprocess`; a configuration with one override keeps the others. With a default that is a real sandbox, every category
//! goes there. A given `network_overrides` replaces that of the contract: settings that open the network are never added to.

mod docker;
mod kubernetes;
mod lifecycle;
mod native;
mod sandboxing;
mod shipping;
mod subprocess;

pub use belljar_contract::yaml::{LARGEST_BYTES, Mistake, Mistakes, Position};
pub use docker::{DockerConfig, MountMode, Network};
pub use lifecycle::{LifecycleConfig, Strategy};
pub use native::NativeConfig;
pub use sandboxing::{BackendName, Sandboxing};
pub use shipping::LogShippingConfig;
pub use subprocess::SubprocessConfig;

use belljar_contract::yaml::{self, Members, MistakeLog, Node};

/// A configuration, checked.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Config {
    /// `sandboxing`: which backend for what.
    pub sandboxing: Sandboxing,
    /// `log.container_log_shipping`: the reporting of executions.
    pub log_shipping: LogShippingConfig,
}

// === impl Config ===

impl Config {
    /// Reads a configuration.
    ///
    /// # Errors
    /// [`Mistakes`]: all that are found.
    pub fn parse(bytes: &[u8]) -> Result<Self, Mistakes> {
        let mut log = MistakeLog::default();
        let config = yaml::parse(bytes, &mut log).map(|root| Self::read(&root, &mut log));
        log.finish()?;
        // Nothing is read of a document that is none, and that has been noted.
        Ok(config.unwrap_or_default())
    }

    /// Reads it where it has to be: what other sections there are is for others to read.
    pub fn read_from(members: &mut Members<'_, '_>) -> Self {
        let sandboxing = members.required("sandboxing", Sandboxing::read);
        Self { sandboxing, log_shipping: members.section("log", read_log) }
    }

    /// Reads what a document with other sections has of it.
    pub fn read_if_there(members: &mut Members<'_, '_>) -> Self {
        let sandboxing = members.section("sandboxing", Sandboxing::read);
        Self { sandboxing, log_shipping: members.section("log", read_log) }
    }

    fn read(root: &Node, log: &mut MistakeLog) -> Self {
        let Some(mut members) = Members::open(root, log) else { return Self::default() };
        let config = Self::read_from(&mut members);
        members.finish();
        config
    }
}

fn read_log(node: &Node, log: &mut MistakeLog) -> LogShippingConfig {
    let Some(mut members) = Members::open(node, log) else { return LogShippingConfig::default() };
    let shipping = members.section("container_log_shipping", LogShippingConfig::read);
    members.finish();
    shipping
}
