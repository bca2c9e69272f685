//! `node` in the configuration file: limits, timeouts, callbacks, images, services and traces.

use super::settings::{Retention, SessionLimits, Settings, Timeouts};
use crate::managed::{ManagedService, ManagedSettings};
use belljar_contract::image::ImageReference;
use belljar_contract::worker::assignment::NATIVE_IMAGE;
use belljar_contract::yaml::{Members, MistakeLog, Node, boolean, list, place, seconds, size, text, whole};
use belljar_egress::callback::Destination;
use belljar_egress::identity::is_plain;
use belljar_egress::upstream::{Upstream, read_server_user, read_user};
use belljar_policy::image::{ImagePattern, ImageRules};
use belljar_trusted::tcp_server::ServerUser;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

/// The `node` section of a configuration file; `None` for members that it doesn't have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NodeConfig {
    /// The node's name for orchestrators.
    pub id: Option<String>,
    /// Maximum number of concurrent jobs.
    pub max_concurrency: Option<usize>,
    /// Maximum number of waiting jobs.
    pub max_waiting: Option<u64>,
    /// Maximum size of a request body, in bytes.
    pub max_request_bytes: Option<usize>,
    /// Time limits of jobs.
    pub timeouts: Timeouts,
    /// Limits of sessions.
    pub sessions: SessionLimits,
    /// Retention of job results.
    pub retention: Retention,
    /// Receiver of job callbacks.
    pub callback: Option<CallbackConfig>,
    /// Billing account of model calls.
    pub billing_account: Option<String>,
    /// Allowed images.
    pub sandbox: SandboxConfig,
    /// Services that requests are proxied to.
    pub managed: ManagedSettings,
    /// The trace collector.
    pub traces: Option<TracesConfig>,
}

/// Configuration of the trace collector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracesConfig {
    /// URL of the collector, without `/v1/traces`.
    pub endpoint: Upstream,
    /// Maximum duration of a response. Default: 10 s.
    pub timeout: Duration,
}

/// Allowed images.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SandboxConfig {
    /// The allowlist.
    pub rules: ImageRules,
    /// Image for jobs that name none; `None` for the node's own programs.
    pub default_image: Option<ImageReference>,
}

/// Configuration of job callbacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallbackConfig {
    /// Default URL, for jobs that name none.
    pub url: Option<Destination>,
    /// User whose server on this machine gets messages by plain HTTP, besides the node's own user and root.
    pub user: Option<ServerUser>,
    /// File with the key that messages are signed with.
    pub secret_file: PathBuf,
    /// Origins that jobs may name as receivers, as `http://HOST[:PORT]`.
    pub allowed_origins: Vec<String>,
}

const DAY: Duration = Duration::from_secs(86_400);

// === impl NodeConfig ===

impl NodeConfig {
    /// Reads the section.
    pub fn read(node: &Node, log: &mut MistakeLog) -> Self {
        let Some(mut members) = Members::open(node, log) else { return Self::default() };
        let number = |range: std::ops::RangeInclusive<u64>| {
            move |node: &Node, log: &mut MistakeLog| whole(node, log, range.clone())
        };
        let read = Self {
            id: members.optional("id", |node, log| {
                text(node, log, "1 to 256 visible characters of ASCII", |text| {
                    is_plain(text).then(|| text.to_owned())
                })
            }),
            max_concurrency: members
                .optional("max_concurrency", number(1..=4_096))
                .and_then(|number| usize::try_from(number).ok()),
            max_waiting: members.optional("max_waiting", number(1..=1_000_000)),
            max_request_bytes: members
                .optional("max_request_bytes", |node, log| size(node, log, 1_024))
                .and_then(|bytes| usize::try_from(bytes).ok()),
            timeouts: members.section("timeouts", read_timeouts),
            sessions: members.section("sessions", read_sessions),
            retention: members.section("retention", read_retention),
            callback: members.optional("callback", read_callback),
            billing_account: members.optional("billing_account", |node, log| {
                text(node, log, "1 to 256 visible characters of ASCII", |text| {
                    is_plain(text).then(|| text.to_owned())
                })
            }),
            sandbox: members.section("sandbox", read_sandbox),
            managed: read_managed(&mut members),
            traces: members.optional("traces", read_traces),
        };
        members.finish();
        read
    }

    /// Overrides the settings with the members that the file has.
    pub fn apply(&self, settings: &mut Settings) {
        settings.max_concurrency = self.max_concurrency.unwrap_or(settings.max_concurrency);
        settings.max_waiting = self.max_waiting.unwrap_or(settings.max_waiting);
        settings.max_request_bytes = self.max_request_bytes.unwrap_or(settings.max_request_bytes);
        settings.timeouts = self.timeouts;
        settings.sessions = self.sessions;
        settings.retention = self.retention;
        settings.managed = self.managed.clone();
        settings.images.rules = self.sandbox.rules.clone();
        settings.images.default = self.sandbox.default_image.clone();
        settings.node_slug = self.id.clone().unwrap_or_else(|| std::mem::take(&mut settings.node_slug));
        settings.billing_account_id =
            self.billing_account.clone().unwrap_or_else(|| std::mem::take(&mut settings.billing_account_id));
    }
}

fn read_timeouts(node: &Node, log: &mut MistakeLog) -> Timeouts {
    let default = Timeouts::default();
    let Some(mut members) = Members::open(node, log) else { return default };
    let time = |node: &Node, log: &mut MistakeLog| seconds(node, log, Duration::from_secs(1)..=30 * DAY);
    let read = Timeouts {
        default: members.or("default_seconds", default.default, time),
        max: members.or("max_seconds", default.max, time),
        may_extend: members.or("may_extend", default.may_extend, boolean),
    };
    members.finish();
    read
}

fn read_sessions(node: &Node, log: &mut MistakeLog) -> SessionLimits {
    let default = SessionLimits::default();
    let Some(mut members) = Members::open(node, log) else { return default };
    let time = |node: &Node, log: &mut MistakeLog| seconds(node, log, Duration::from_secs(1)..=30 * DAY);
    let count = |node: &Node, log: &mut MistakeLog| {
        whole(node, log, 0..=100_000).and_then(|number| usize::try_from(number).ok())
    };
    let read = SessionLimits {
        max: members.or("max", default.max, count),
        max_lifetime: members.or("max_lifetime_seconds", default.max_lifetime, time),
        idle_timeout: members.or("idle_timeout_seconds", default.idle_timeout, time),
    };
    members.finish();
    read
}

fn read_sandbox(node: &Node, log: &mut MistakeLog) -> SandboxConfig {
    const PATTERN: &str = "an image such as debian:12, debian:* or registry.example/team/*";
    let Some(mut members) = Members::open(node, log) else { return SandboxConfig::default() };
    let allowed = members.or("allowed_images", Vec::new(), |node, log| {
        list(node, log, |node, log| text(node, log, PATTERN, |text| ImagePattern::parse(text).ok()))
    });
    let requires_digest = members.or("require_digest_pinning", false, boolean);
    let rules = ImageRules { allowed, requires_digest };
    let default_image = members.optional("default_image", |node, log| {
        let image = text(node, log, "an image such as debian:12, or native", |text| match text {
            NATIVE_IMAGE => Some(None),
            text => ImageReference::parse(text).ok().map(Some),
        })??;
        match rules.decide(image.clone()) {
            Ok(_) => Some(image),
            Err(denied) => {
                log.note(node.position, place(node), denied.to_string(), "one that may be run");
                None
            }
        }
    });
    members.finish();
    SandboxConfig { rules, default_image }
}

fn read_managed(members: &mut Members<'_, '_>) -> ManagedSettings {
    let mut known = BTreeSet::new();
    let services = members.or("managed_services", Vec::new(), |node, log| {
        list(node, log, |node, log| {
            let service = read_service(node, log)?;
            if !known.insert(service.id.clone()) {
                log.note(node.position, place(node), format!("{} again", service.id), "each id once");
            }
            Some(service)
        })
    });
    let usual = ManagedSettings::default().timeout;
    let timeout = members.or("managed_proxy_timeout_seconds", usual, |node, log| {
        seconds(node, log, Duration::from_secs(1)..=Duration::from_secs(3_600))
    });
    ManagedSettings { services, timeout }
}

fn read_traces(node: &Node, log: &mut MistakeLog) -> Option<TracesConfig> {
    let mut members = Members::open(node, log)?;
    let endpoint = members.required("endpoint", |node, log| {
        text(node, log, "a URL such as http://127.0.0.1:4318", |text| {
            let is_http = text.starts_with("http://") || text.starts_with("https://");
            is_http.then(|| Upstream::parse(text).ok()).flatten()
        })
    });
    let endpoint = read_user(&mut members, endpoint);
    let timeout = members.or("timeout_seconds", Duration::from_secs(10), |node, log| {
        seconds(node, log, Duration::from_secs(1)..=Duration::from_secs(60))
    });
    members.finish();
    Some(TracesConfig { endpoint: endpoint?, timeout })
}

fn read_service(node: &Node, log: &mut MistakeLog) -> Option<ManagedService> {
    const NAME: &str = "1 to 64 letters, digits, `-` and `_`";
    let name = |node: &Node, log: &mut MistakeLog| {
        text(node, log, NAME, |text| {
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
            ((1..=64).contains(&text.len()) && text.bytes().all(is_plain)).then(|| text.to_owned())
        })
    };
    let mut members = Members::open(node, log)?;
    let id = members.required("id", |node, log| name(node, log).unwrap_or_default());
    let kind = members.required("type", |node, log| name(node, log).unwrap_or_default());
    let upstream = members.required("url", |node, log| {
        text(node, log, "a URL such as http://127.0.0.1:8090", |text| {
            let is_http = text.starts_with("http://") || text.starts_with("https://");
            is_http.then(|| Upstream::parse(text).ok()).flatten()
        })
    });
    let upstream = read_user(&mut members, upstream);
    members.finish();
    // It gets the headers of the orchestrator's request, which may hold a credential.
    Some(ManagedService { id, kind, upstream: upstream? })
}

fn read_retention(node: &Node, log: &mut MistakeLog) -> Retention {
    let default = Retention::default();
    let Some(mut members) = Members::open(node, log) else { return default };
    let time = |node: &Node, log: &mut MistakeLog| seconds(node, log, Duration::ZERO..=3_650 * DAY);
    let read = Retention {
        acknowledged: members.or("acknowledged_seconds", default.acknowledged, time),
        unacknowledged: members.or("unacknowledged_seconds", default.unacknowledged, time),
    };
    members.finish();
    read
}

fn read_callback(node: &Node, log: &mut MistakeLog) -> Option<CallbackConfig> {
    let mut members = Members::open(node, log)?;
    let url = |node: &Node, log: &mut MistakeLog| {
        text(node, log, "a URL such as https://orchestrator.example/status", |text| {
            Destination::parse(text).ok()
        })
    };
    let read = CallbackConfig {
        url: members.optional("url", url),
        user: read_server_user(&mut members),
        secret_file: members.required("secret_file", |node, log| {
            let path = text(node, log, "a file", |text| (!text.is_empty()).then(|| PathBuf::from(text)));
            path.unwrap_or_default()
        }),
        allowed_origins: members.or("allowed_origins", Vec::new(), |node, log| {
            list(node, log, |node, log| url(node, log).map(|to| to.origin().to_owned()))
        }),
    };
    members.finish();
    Some(read)
}
