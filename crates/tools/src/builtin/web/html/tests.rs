//! Tests of extracted parts, also of hostile pages.

use super::super::offline;
use super::*;
use belljar_contract::tool::{AgentKind, DomainCode};

async fn called(arguments: Value) -> Answer {
    let tool = offline().unwrap().remove(0);
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    tool.call(&Caller::of(AgentKind::Sandbox), arguments).await
}

async fn of(html: &str, mode: &str) -> Value {
    let arguments =
        json!({ "html_content": html, "extract_mode": mode, "base_url": "https://a.example/docs/page?x" });
    called(arguments).await.unwrap().data
}

/// Maximum size of an answer that the gateway passes on.
const LARGEST_ANSWER_BYTES: usize = 1 << 20;

#[tokio::test]
async fn html_text_is_visible_text_marked_untrusted() {
    let page =
        "<title>T</title><h1>Head</h1><p>seen <a href=/x>there</a><p hidden>HIDDEN<script>HIDDEN</script>";
    let told = of(page, "text").await;
    let expected = json!({
        "content": "# Head\n\nseen there <https://a.example/x>", "title": "T", "truncated": false, "untrusted": true
    });
    assert_eq!(told, expected);
    // Without a base URL and an extract mode.
    let told = called(json!({ "html_content": page })).await.unwrap().data;
    assert_eq!(told["content"], "# Head\n\nseen there");
}

#[tokio::test]
async fn html_links_are_absolute_unique_and_unusable_ones_counted() {
    let page = "<a href=/x><img src=i></a><a href=../y?z#part rel='nofollow  ugc'>the <b>other</b>\n one</a>\
        <a href=https://a.example/x>x</a><a href=mailto:a@b.example>write</a><a href=#here>here</a><a>none</a>\
        <a href=javascript:alert(1)>no</a><a href='&#106;ava\nscript:alert(1)'>no</a><a href=' JaVaScRiPt:x'>no</a>\
        <a href=data:text/html,x>no</a><a href=vbscript:x>no</a><a href=file:///etc/passwd>no</a>\
        <a href='https://['>no</a><div hidden><a href=/hidden>HIDDEN</a></div>";
    let told = of(page, "links").await;
    let expected = json!({
        "links": [
            { "url": "https://a.example/x", "text": "x" },
            { "url": "https://a.example/y?z#part", "text": "the other one", "rel": "nofollow ugc" },
            { "url": "mailto:a@b.example", "text": "write" },
        ],
        "left_out": 7, "truncated": false, "untrusted": true
    });
    assert_eq!(told, expected);
    // Without a base URL, links are returned as written.
    let bare = called(json!({ "html_content": page, "extract_mode": "links" })).await.unwrap().data;
    assert_eq!(bare["links"][0], json!({ "url": "/x", "text": "" }));
    // The page's own base element counts, as in a browser.
    let own = of("<base href=//b.example/sub/><a href=z>z</a>", "links").await;
    assert_eq!(own["links"][0]["url"], "https://b.example/sub/z");
    let own = of("<base href=javascript:x><a href=z>z</a>", "links").await;
    assert_eq!(own["links"][0]["url"], "https://a.example/docs/z");
}

#[tokio::test]
async fn html_metadata_is_extracted() {
    let page = r#"<html lang="de-AT"><head><title> A
        title </title><meta name=Description content="what it is about"><meta name=description content=second>
        <meta name=author content="A. N."><meta name=viewport content=x><link rel="alternate Canonical" href=/c>
        <meta property="og:title" content="OG"><meta property="og:title" content="again">
        <meta name="twitter:card" content="summary"><meta property="article:author" content="B">
        <script type="application/ld+json">{"@type": "Article", "author": [{"@type": ["Person", "Article"]}]}</script>
        <script type="application/ld+json">{"@type": </script><script>{"@type": "Not"}</script></head>"#;
    let told = of(page, "metadata").await;
    let expected = json!({
        "title": "A title", "description": "what it is about", "language": "de-AT",
        "canonical": "https://a.example/c", "named": { "author": "A. N." },
        "open_graph": { "og:title": "OG", "article:author": "B" }, "twitter": { "twitter:card": "summary" },
        "json_ld_types": ["Article", "Person"], "truncated": false, "untrusted": true
    });
    assert_eq!(told, expected);
}

#[tokio::test]
async fn hostile_pages_have_bounded_answers_in_every_mode() {
    let fill = |one: &str| one.repeat((MOST_BYTES - 64) / one.len());
    let attributes = format!("<p {}>seen", fill("a=\"b\" "));
    let pages = [
        fill("<div>"),
        fill("<a href=x><b>"),
        attributes.chars().take(MOST_BYTES).collect(),
        format!("<a href='{}'>x</a>", fill("\u{1}\"")),
        (0..30_000).map(|number| format!("<a href=/{number}>\"\"\"</a>")).collect(),
        (0..20_000).map(|number| format!("<meta property=og:{number} content='\"\\'>")).collect(),
        format!("<script type=application/ld+json>{}", fill("[")),
        format!("<script type=application/ld+json>{}1{}", "[".repeat(100_000), "]".repeat(100_000)),
        fill("<table><td>"),
        fill("\u{0}"),
    ];
    for page in pages {
        let begin: String = page.chars().take(40).collect();
        assert!(page.len() <= MOST_BYTES, "{begin}");
        for mode in ["text", "links", "metadata"] {
            let arguments =
                json!({ "html_content": page, "extract_mode": mode, "base_url": "https://a.example/" });
            match called(arguments).await {
                Ok(told) => {
                    let bytes = told.data.to_string().len();
                    assert!(bytes < LARGEST_ANSWER_BYTES, "{begin}, {mode}: {bytes}");
                }
                // On a busy processor it may time out, which is an acceptable limit, too.
                Err(failure) => assert_eq!(failure.code, DomainCode::LimitExceeded, "{begin}, {mode}"),
            }
        }
    }
    let many: String = (0..2_000).map(|number| format!("<a href=/{number}>x</a>")).collect();
    let told = of(&many, "links").await;
    assert_eq!((told["links"].as_array().unwrap().len(), &told["truncated"]), (1_000, &json!(true)));
}

#[tokio::test]
async fn html_parser_rejects_oversized_pages_and_invalid_base_urls() {
    let too_long = json!({ "html_content": "ä".repeat(600_000) });
    let failure = called(too_long).await.unwrap_err();
    assert_eq!(failure.message, "/html_content: 1200000 bytes; at most 1048576 are allowed");
    for base_url in ["a.example", "javascript:x", "file:///x", "https://"] {
        let failure = called(json!({ "html_content": "x", "base_url": base_url })).await.unwrap_err();
        assert!(failure.message.starts_with("/base_url: not an absolute URL"), "{base_url}: {failure}");
    }
    let failure = called(json!({ "html_content": "x", "extract_mode": "scripts" })).await.unwrap_err();
    assert_eq!(failure.code, DomainCode::InvalidArgument);
}
