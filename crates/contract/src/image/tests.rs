//! Names are read as engines read them, and the schema's pattern takes the same ones.

use super::*;

const DIGEST: &str = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

fn read(text: &str) -> String {
    ImageReference::parse(text).unwrap().to_string()
}

#[test]
fn image_reference_expands_like_container_engines() {
    for (text, whole) in [
        ("debian", "docker.io/library/debian:latest"),
        ("debian:12", "docker.io/library/debian:12"),
        ("library/debian:12", "docker.io/library/debian:12"),
        ("docker.io/debian:12", "docker.io/library/debian:12"),
        ("index.docker.io/library/debian:12", "docker.io/library/debian:12"),
        ("team/tools", "docker.io/team/tools:latest"),
        ("localhost/tools:1", "localhost/tools:1"),
        ("localhost:5000/tools", "localhost:5000/tools:latest"),
        ("registry.example/a/b__c/d--e:v1.2_3-4", "registry.example/a/b__c/d--e:v1.2_3-4"),
    ] {
        assert_eq!(read(text), whole, "{text}");
    }
    assert_eq!(read(&format!("debian@{DIGEST}")), format!("docker.io/library/debian@{DIGEST}"));
    assert_eq!(read(&format!("debian:12@{DIGEST}")), format!("docker.io/library/debian@{DIGEST}"));
}

#[test]
fn image_reference_rejects_names_that_engines_reject() {
    let long = "a/".repeat(256) + "a";
    for text in [
        "",
        "/",
        "a/",
        "/a",
        "a//b",
        "A",
        "a/B",
        "Registry.example/a",
        "registry.example/",
        "a:",
        "a:.x",
        "a: x",
        "a b",
        "-a",
        "a-",
        ".a",
        "a..b",
        "a._b",
        "a___b",
        "../a",
        "a/../b",
        "a@",
        "a@sha256:",
        "a@sha512:00",
        "a@sha256:ABC",
        "a:1:2",
        "localhost:0/a",
        "localhost:05/a",
        "localhost:100000/a",
        "a_b.c/d",
        "registry..example/a",
        "-registry.example/a",
        "a:*",
        "*",
        "a\n",
        "ä",
        "--privileged",
        "a@b@c",
        long.as_str(),
    ] {
        assert!(ImageReference::parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn image_reference_round_trips() {
    for text in ["debian", "team/tools:1", "localhost:5000/x/y"] {
        assert_eq!(read(&read(text)), read(text));
    }
}

fn is_by_the_pattern(text: &str) -> bool {
    let schema = serde_json::json!({ "type": "string", "pattern": PATTERN, "maxLength": LONGEST_NAME });
    jsonschema::is_valid(&schema, &serde_json::json!(text))
}

proptest::proptest! {
    /// Names made of the pieces at which the two could differ.
    #[test]
    fn image_name_pattern_agrees_with_parser(
        pieces in proptest::collection::vec(
            proptest::sample::select(vec![
                "a", "b1", "A", ".", "-", "_", "__", ":", "/", "@", "0", "80", "localhost", "docker.io", "sha256:", "@sha256:", DIGEST, "*",
            ]),
            0..9,
        )
    ) {
        let text = pieces.concat();
        proptest::prop_assert_eq!(ImageReference::parse(&text).is_ok(), is_by_the_pattern(&text), "{}", text);
    }
}
