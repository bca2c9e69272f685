//! `log.container_log_shipping`: the report of an execution (`docs/contracts/tools.md#t6.6`).

use belljar_contract::yaml::{Members, MistakeLog, Node, boolean, seconds, whole};
use std::time::Duration;

/// Reporting of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogShippingConfig {
    /// True if executions are reported.
    pub enabled: bool,
    /// Maximum time to wait for the logs of hatches.
    pub collection_timeout: Duration,
    /// Maximum number of reported bytes of output, all streams together.
    pub max_log_bytes: usize,
    /// True if the output itself is reported, and not only its size.
    pub ship_raw_logs: bool,
}

const LEAST_TIMEOUT: Duration = Duration::from_millis(100);
const LONGEST_TIMEOUT: Duration = Duration::from_secs(30);
const MOST_LOG_BYTES: u64 = 1 << 30;

// === impl LogShippingConfig ===

impl LogShippingConfig {
    pub(super) fn read(node: &Node, log: &mut MistakeLog) -> Self {
        let default = Self::default();
        let Some(mut members) = Members::open(node, log) else { return default };
        let read = Self {
            enabled: members.or("enabled", default.enabled, boolean),
            collection_timeout: members.or(
                "collection_timeout_seconds",
                default.collection_timeout,
                |node, log| seconds(node, log, LEAST_TIMEOUT..=LONGEST_TIMEOUT),
            ),
            max_log_bytes: members.or("max_log_bytes", default.max_log_bytes, |node, log| {
                usize::try_from(whole(node, log, 1..=MOST_LOG_BYTES)?).ok()
            }),
            ship_raw_logs: members.or("ship_raw_logs", default.ship_raw_logs, boolean),
        };
        members.finish();
        read
    }
}

impl Default for LogShippingConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            collection_timeout: Duration::from_secs(5),
            max_log_bytes: 10 << 20,
            ship_raw_logs: false,
        }
    }
}
