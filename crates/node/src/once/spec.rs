//! What is run, where, and who hears of it.

use crate::inspection::Inspection;
use crate::web::policy_file::{Change, OpenPolicy};
use belljar_confine::plan::HostPath;
use belljar_contract::inference::CallRecord;
use belljar_contract::isolation::Required;
use belljar_egress::identity::CallMetadata;
use belljar_egress::inference::config::InferenceConfig;
use belljar_sandbox::limits::Limits;
use belljar_sandbox::spec::Lent;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::time::Duration;

/// What is run.
#[derive(Clone)]
pub struct OnceSpec {
    /// The program and its arguments, each as it is: nothing joins them, and no shell reads them.
    pub argv: Vec<OsString>,
    /// Which attempt it is.
    pub attempt: u32,
    /// The directory that it works on a copy of.
    pub source: HostPath,
    /// What is in `/workspace/.cogni/messages.json`, if it is to be there.
    pub messages: Option<Vec<u8>>,
    /// What it is lent besides, read-only.
    pub lent: Vec<Lent>,
    /// Variables for its environment.
    pub env: BTreeMap<String, String>,
    /// Files in its home, by their path below it.
    pub home: BTreeMap<String, String>,
    /// The models that it may call; none if there are none.
    pub models: Option<InferenceConfig>,
    /// Who its calls are made for; the grant's user is the grant's alone to say.
    pub metadata: CallMetadata,
    /// The web that it may reach; none if there is none.
    pub web: Option<OnceWeb>,
    /// How much it may have.
    pub limits: OnceLimits,
    /// The layers without which it shall not run.
    pub required: Required,
}

/// The web that it may reach, and who is told what becomes of the policy's file meanwhile.
#[derive(Clone)]
pub struct OnceWeb {
    /// As far as this lets.
    pub policy: OpenPolicy,
    /// Who is told.
    pub tell: fn(&Change),
    /// What it takes to look into connections, once it is made.
    pub inspection: Option<Inspection>,
}

/// How much it may have.
#[derive(Debug, Clone, Copy)]
pub struct OnceLimits {
    /// How long it may last.
    pub max_runtime: Duration,
    /// How much it may print, both streams together. What is beyond is read and dropped.
    pub max_output_bytes: usize,
    /// What its sandbox may use.
    pub sandbox: Limits,
}

/// Hears how a run goes on.
pub trait Watch {
    /// It has printed something to standard output. It comes from inside.
    fn printed(&mut self, _bytes: &[u8]) {}
    /// A call of a model is over.
    fn called(&mut self, _call: &CallRecord) {}
    /// Whether somebody wants it to stop.
    fn is_canceled(&self) -> bool {
        false
    }
}
