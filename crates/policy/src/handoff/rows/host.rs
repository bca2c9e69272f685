//! Files that Belljar obeys on the host: its configuration names commands that run there, and its policies decide what
//! sandboxes reach.

use super::PathCondition::{In, Named};
use super::{Row, row};
use crate::handoff::TrustKind::Belljar;

pub(super) const ROWS: &[Row] = &[
    row(
        Named(&[
            "belljar.yaml",
            "belljar.yml",
            "belljar.json",
            "belljar.toml",
            "belljar.local.yaml",
            "belljar.config.yaml",
            "belljar-config.yaml",
        ]),
        Belljar,
        "Belljar uses it on the host: it names commands, credentials and policies",
    ),
    row(In(&[".belljar", "belljar.d"]), Belljar, "Belljar may take its configuration or its state from it"),
    row(
        Named(&[
            "policy.yaml",
            "policy.yml",
            "egress.yaml",
            "egress.yml",
            "egress-policy.yaml",
            "egress-policy.yml",
        ]),
        Belljar,
        "it may be a policy that says what sandboxes reach",
    ),
];
