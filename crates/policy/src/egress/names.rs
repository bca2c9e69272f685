//! Limits on names that only wildcard patterns allow.
//!
//! Below `*.NAME` and `**.NAME` the client chooses the part before the name, and the zone's name server sees all of it, even if
//! nothing is dialed. So names could carry data out. The length, the information content and the number of such names are
//! limited.

use super::host::Host;
use super::rule::{HostPattern, Rule};

/// Limits of a rule's wildcard names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameLimits {
    /// Burst of different names that one run may request.
    pub at_once: u32,
    /// Number of further names per hour.
    pub an_hour: u32,
    /// Maximum number of characters before the rule's own name, including dots.
    pub characters: u32,
    /// Maximum information content of these characters in bits, by their frequencies.
    pub bits: u32,
}

/// Wildcard pattern that allows a name, with its limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wildcard {
    /// The pattern.
    pub pattern: HostPattern,
    /// Limits on its names.
    pub limits: NameLimits,
}

/// Maximum length of a DNS name.
pub(super) const MOST_CHARACTERS: u32 = 253;
/// Maximum information content of a name in bits: that many characters out of thirty-eight.
pub(super) const MOST_BITS: u32 = 1_328;

impl Default for NameLimits {
    /// Default limits. They allow the longest usual names of stores, accounts and functions: 32 random letters and digits, with
    /// a service and a region. They refuse a file that is cut into as few names as possible.
    fn default() -> Self {
        Self { at_once: 512, an_hour: 512, characters: 64, bits: 264 }
    }
}

// === impl NameLimits ===

impl NameLimits {
    /// Returns true if that may stand before a rule's own name.
    fn allow(&self, before: &str) -> bool {
        u32::try_from(before.len()).is_ok_and(|length| length <= self.characters)
            && bits(before) <= f64::from(self.bits)
    }
}

// === impl Rule ===

impl Rule {
    /// Returns true if the limits of the rule allow the name of that host.
    pub(super) fn allows_name(&self, host: &Host) -> bool {
        self.host.before(host).is_none_or(|before| self.names.allow(before))
    }

    /// Returns the wildcard pattern of the rule; `None` if it names a host, or matches every host.
    pub(super) fn wildcard(&self) -> Option<Wildcard> {
        let wildcard = || Wildcard { pattern: self.host.clone(), limits: self.names };
        (!matches!(self.host, HostPattern::One(_) | HostPattern::Any)).then(wildcard)
    }
}

/// Returns the information content of a text in bits: the maximum that identifies it among all texts with the same character
/// frequencies.
fn bits(text: &str) -> f64 {
    let mut counts = [0_u16; 256];
    text.bytes().for_each(|byte| counts[usize::from(byte)] += 1);
    let whole: f64 = counts.iter().copied().map(f64::from).sum();
    let of_one = |count: f64| count * (whole / count).log2();
    counts.into_iter().filter(|count| *count > 0).map(|count| of_one(f64::from(count))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Usual first parts of names of stores, delivery networks, registries, functions and previews.
    const USUAL: &[&str] = &[
        "d111111abcdef8",
        "d3k81ch9hvuctc",
        "e1a2b3c4d5e6f7g8",
        "my-bucket.s3.eu-west-1",
        "prod-eu-west-1-starport-layer-bucket.s3.dualstack",
        "123456789012.dkr.ecr.us-east-1",
        "bedrock-runtime.us-east-1",
        "ec2-203-0-113-25.compute-1",
        "0a1b2c3d4e5f60718293a4b5c6d7e8f9.r2",
        "shebu8j3nygbf079wm2lnj80y8nuvd06.lambda-url.us-east-1",
        "productionresultssa17.blob.core",
        "pipelinesghubeus12.actions",
        "objects-origin",
        "release-assets",
        "avatars.githubassets",
        "rr3---sn-4g5edn6k",
        "lh3",
        "r4---sn-ab5l6nzr.c",
        "oauth2",
        "eu-west-1.console",
        "registry-1",
        "production.cloudflare",
        "auth.dev",
        "files",
        "cdn-lfs-us-1",
        "cas-bridge.xethub",
        "transfer.xethub.eu",
        "us-central1-docker",
        "europe-west4-aiplatform",
        "a-b-c-my-feature-branch-of-a-team",
        "app-git-feature-login-page-my-team-x7f3k2",
        "xn--bcher-kva",
        "_acme-challenge.www",
        "2f7a9c1e-5b3d-4e6f-8a0b-1c2d3e4f5a6b",
        "mirror.a.b.c.d.e.f",
    ];

    #[test]
    fn ordinary_wildcard_names_are_allowed() {
        let limits = NameLimits::default();
        for before in USUAL {
            assert!(limits.allow(before), "{before}: {}", bits(before));
        }
    }

    /// File that is cut into names.
    #[test]
    fn data_encoded_in_dns_names_is_denied() {
        let limits = NameLimits::default();
        for before in [
            // All letters and digits, whole and in parts; base 32, and hexadecimal.
            "q7w2e9r4t5y6u1i8o3p0as2d4f6g8h1j3k5l7z9x0cv2b4n6m8q1w3e5r7t9",
            "q7w2e9r4t5y6u1i8o3p0a.s2d4f6g8h1j3k5l7z9x0c.v2b4n6m8q1w3e5r7t9",
            "mzxw6ytboi2gk3tf.nvqxi4tpn5wxg5ds.orzhk2lomvzxg2lt.pfuw4z3fabcdef",
            "9f86d081884c7d659a2feaa0c55ad015.a3bf4f1b2b0b822cd15d6c15b0f00a08",
            // Long only.
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.aa",
            "0.1.0.1.1.0.1.0.0.1.0.1.1.1.0.0.1.0.1.0.1.1.0.0.1.0.1.1.0.1.0.1.0",
        ] {
            assert!(!limits.allow(before), "{before}: {}", bits(before));
        }
        // Control: a rule with higher limits allows it.
        let wide = NameLimits { characters: MOST_CHARACTERS, bits: MOST_BITS, ..limits };
        assert!(wide.allow(&"mzxw6ytboi2gk3tfnvqxi4tpn5wxg5ds.".repeat(7)));
    }

    proptest! {
        /// A text's information content is at most the number that its characters can carry.
        #[test]
        fn name_entropy_is_bounded_by_its_characters(text in "[a-z0-9.-]{0,253}") {
            let most = f64::from(u32::try_from(text.len()).unwrap()) * f64::from(38_u8).log2();
            prop_assert!(bits(&text) <= most + 1e-6 && bits(&text) >= 0.0);
            let backwards: String = text.chars().rev().collect();
            prop_assert!((bits(&backwards) - bits(&text)).abs() < 1e-6);
            prop_assert!(most <= f64::from(MOST_BITS) + 1e-6);
        }
    }
}
