//! How much names may say that a pattern alone lets in.
//!
//! Below `*.NAME` and `**.NAME` whoever asks chooses what stands before the name, and whoever answers for names there hears all of
//! it, whether or not anything is ever dialed. So it is only so long and says only so much, and there are only so many of them.

use super::host::Host;
use super::rule::{HostPattern, Rule};

/// What a rule says of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameLimits {
    /// Different names that one run may ask for at once.
    pub at_once: u32,
    /// How many more each hour.
    pub an_hour: u32,
    /// Characters before the rule's own name, with the dots between them.
    pub characters: u32,
    /// What these say, in bits, by how often each of them stands there.
    pub bits: u32,
}

/// A pattern that lets a name in, and what it says of such names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wildcard {
    /// The pattern.
    pub pattern: HostPattern,
    /// How many of them there may be.
    pub limits: NameLimits,
}

/// A name of DNS is no longer.
pub(super) const MOST_CHARACTERS: u32 = 253;
/// No name says more: that many characters, of which there are thirty-eight.
pub(super) const MOST_BITS: u32 = 1_328;

impl Default for NameLimits {
    /// What the longest names have that are made for stores, accounts and functions, 32 letters and digits by chance with a service
    /// and a region behind them; and not what a file has that is cut into as few names as there can be.
    fn default() -> Self {
        Self { at_once: 512, an_hour: 512, characters: 64, bits: 264 }
    }
}

// === impl NameLimits ===

impl NameLimits {
    /// Whether that may stand before a rule's own name.
    fn allow(&self, before: &str) -> bool {
        u32::try_from(before.len()).is_ok_and(|length| length <= self.characters)
            && bits(before) <= f64::from(self.bits)
    }
}

// === impl Rule ===

impl Rule {
    /// Whether a host of its kind may be called that.
    pub(super) fn allows_name(&self, host: &Host) -> bool {
        self.host.before(host).is_none_or(|before| self.names.allow(before))
    }

    /// The pattern by which it is for a host that it doesn't name.
    pub(super) fn wildcard(&self) -> Option<Wildcard> {
        let wildcard = || Wildcard { pattern: self.host.clone(), limits: self.names };
        (!matches!(self.host, HostPattern::One(_) | HostPattern::Any)).then(wildcard)
    }
}

/// How much a text says: among all texts with the same characters as often, it takes so many bits at most to tell which one it is.
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

    /// What stands before the names of stores, networks of delivery, registries, functions and previews.
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
    fn names_that_programs_have_are_let_in() {
        let limits = NameLimits::default();
        for before in USUAL {
            assert!(limits.allow(before), "{before}: {}", bits(before));
        }
    }

    /// A file, cut into names.
    #[test]
    fn what_is_cut_into_names_is_not() {
        let limits = NameLimits::default();
        for before in [
            // In all letters and digits, at once and in parts; in base 32, and in hexadecimal.
            "q7w2e9r4t5y6u1i8o3p0as2d4f6g8h1j3k5l7z9x0cv2b4n6m8q1w3e5r7t9",
            "q7w2e9r4t5y6u1i8o3p0a.s2d4f6g8h1j3k5l7z9x0c.v2b4n6m8q1w3e5r7t9",
            "mzxw6ytboi2gk3tf.nvqxi4tpn5wxg5ds.orzhk2lomvzxg2lt.pfuw4z3fabcdef",
            "9f86d081884c7d659a2feaa0c55ad015.a3bf4f1b2b0b822cd15d6c15b0f00a08",
            // Nothing but long.
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.aa",
            "0.1.0.1.1.0.1.0.0.1.0.1.1.1.0.0.1.0.1.0.1.1.0.0.1.0.1.1.0.1.0.1.0",
        ] {
            assert!(!limits.allow(before), "{before}: {}", bits(before));
        }
        // The control: whoever wants that says so.
        let wide = NameLimits { characters: MOST_CHARACTERS, bits: MOST_BITS, ..limits };
        assert!(wide.allow(&"mzxw6ytboi2gk3tfnvqxi4tpn5wxg5ds.".repeat(7)));
    }

    proptest! {
        /// As texts with the same characters are told apart by that much.
        #[test]
        fn a_text_says_no_more_than_its_characters_can(text in "[a-z0-9.-]{0,253}") {
            let most = f64::from(u32::try_from(text.len()).unwrap()) * f64::from(38_u8).log2();
            prop_assert!(bits(&text) <= most + 1e-6 && bits(&text) >= 0.0);
            let backwards: String = text.chars().rev().collect();
            prop_assert!((bits(&backwards) - bits(&text)).abs() < 1e-6);
            prop_assert!(most <= f64::from(MOST_BITS) + 1e-6);
        }
    }
}
