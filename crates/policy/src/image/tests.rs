//! Tests that names are parsed as engines do, and that each image has one decision.

use super::*;

const DIGEST: &str = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

fn rules(allowed: &[&str], requires_digest: bool) -> ImageRules {
    let allowed = allowed.iter().map(|text| ImagePattern::parse(text).unwrap()).collect();
    ImageRules { allowed, requires_digest }
}

fn may(rules: &ImageRules, image: &str) -> bool {
    rules.decide(ImageReference::parse(image).unwrap()).is_ok()
}

#[test]
fn image_pattern_allows_that_image_in_every_spelling_only() {
    let one = rules(&["debian:12"], false);
    for image in ["debian:12", "docker.io/debian:12", "index.docker.io/library/debian:12"] {
        assert!(may(&one, image), "{image}");
    }
    let pinned = format!("debian:12@{DIGEST}");
    for image in [
        "debian",
        "debian:13",
        "team/debian:12",
        "registry.example/debian:12",
        "debian:12-x",
        pinned.as_str(),
    ] {
        assert!(!may(&one, image), "{image}");
    }
    // Control: where there is a digest, it decides.
    let by_digest = rules(&[&format!("debian@{DIGEST}")], false);
    assert!(may(&by_digest, &pinned));
    assert!(!may(&by_digest, "debian:12"));
}

#[test]
fn image_wildcard_covers_a_repository_or_all_below_a_prefix() {
    let repository = rules(&["registry.example/tools:*"], false);
    let pinned = format!("registry.example/tools@{DIGEST}");
    for image in ["registry.example/tools", "registry.example/tools:1", pinned.as_str()] {
        assert!(may(&repository, image), "{image}");
    }
    for image in
        ["registry.example/tools/more", "registry.example/toolsmith", "tools:1", "registry.example.org/tools"]
    {
        assert!(!may(&repository, image), "{image}");
    }
    let below = rules(&["registry.example/team/*"], false);
    assert!(may(&below, "registry.example/team/a") && may(&below, "registry.example/team/a/b:1"));
    for image in ["registry.example/team", "registry.example/teams/a", "registry.example/a", "team/a"] {
        assert!(!may(&below, image), "{image}");
    }
    let registry = rules(&["localhost:5000/*"], false);
    assert!(may(&registry, "localhost:5000/a") && may(&registry, "localhost:5000/a/b"));
    assert!(!may(&registry, "localhost:5001/a") && !may(&registry, "localhost/a"));
    assert!(may(&rules(&["docker.io/*"], false), "debian") && may(&rules(&["docker.io/*"], false), "team/a"));
    assert!(may(&rules(&["team/*"], false), "team/a") && !may(&rules(&["team/*"], false), "debian"));
    assert!(may(&rules(&["library/*"], false), "debian") && !may(&rules(&["library/*"], false), "team/a"));
}

#[test]
fn a_pattern_reads_as_it_was_written() {
    for text in ["debian:12", "debian:*", "registry.example/team/*", "index.docker.io/library/debian"] {
        assert_eq!(ImagePattern::parse(text).unwrap().to_string(), text);
    }
}

#[test]
fn image_pattern_that_matches_nothing_is_refused() {
    for text in ["*", "a*", "*/a", "a/*/b", "a:1*", "a:**", "/*", ":*", "A/*", "a@*", "a/*:*"] {
        assert!(ImagePattern::parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn image_is_denied_without_allowlist_or_required_digest() {
    let decide = |rules: &ImageRules, image: &str| rules.decide(ImageReference::parse(image).unwrap());
    assert_eq!(decide(&rules(&[], false), "debian"), Err(ImageDenial::None));
    let pinned = rules(&["debian:*"], true);
    let image = "docker.io/library/debian".to_owned();
    assert_eq!(decide(&pinned, "debian:12"), Err(ImageDenial::NotPinned { image }));
    let allowed = decide(&pinned, &format!("debian@{DIGEST}")).unwrap();
    assert!(allowed.reference().is_pinned());
    let denied = decide(&pinned, "other").unwrap_err();
    assert_eq!(
        denied.to_string(),
        "image docker.io/library/other:latest is not allowed on this node; allowed: debian:*"
    );
}
