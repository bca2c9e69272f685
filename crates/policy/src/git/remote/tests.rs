//! Tests of canonical and invalid remotes.

use super::*;
use proptest::prelude::*;

#[test]
fn remote_url_has_one_canonical_form() {
    for (text, form) in [
        ("https://Example.COM./a.git", "https://example.com/a.git"),
        ("https://example.com:443/a", "https://example.com/a"),
        ("https://example.com:8443/a", "https://example.com:8443/a"),
        ("https://[::FFFF:10.0.0.1]/a", "https://10.0.0.1/a"),
        ("https://[2001:DB8::1]:8443/a", "https://[2001:db8::1]:8443/a"),
        ("ssh://git@Example.com:22/a", "ssh://git@example.com/a"),
        ("ssh://example.com:2222/~/a", "ssh://example.com:2222/~/a"),
        ("git@Example.com:a/b.git", "git@example.com:a/b.git"),
        ("http://127.0.0.1:8000/a", "http://127.0.0.1:8000/a"),
        ("http://[::1]/a", "http://[::1]/a"),
        ("http://localhost/a", "http://localhost/a"),
        ("file:///srv/a", "file:///srv/a"),
    ] {
        let remote = Remote::parse(text, true).unwrap();
        assert_eq!(remote.to_string(), form);
        assert_eq!(Remote::parse(form, true).as_ref(), Ok(&remote), "{text}");
    }
}

#[test]
fn remote_that_git_reads_differently_is_refused() {
    let refused = [
        "",
        "/srv/a",
        "a",
        "../a",
        "file:///srv/a",
        "http://example.com/a",
        "http://127.0.0.1.example.com/a",
        "git://example.com/a",
        "ftp://example.com/a",
        "HTTPS://example.com/a",
        "ext::sh -c true",
        "ext::sh",
        "fd::17",
        "--upload-pack=true",
        "-a@b:c",
        "git@-oProxyCommand:a",
        "git@example.com::a",
        "git@example.com:-a",
        "git@example.com:/a",
        "git@example.com:a;b",
        "git@example.com:a/../b",
        "example.com:a",
        "ssh://-oProxyCommand=true/a",
        "ssh://git@-oProxyCommand=true/a",
        "ssh://-git@example.com/a",
        "ssh://example.com",
        "ssh://example.com/",
        "https:///a",
        "https://example.com",
        "https://example.com/a b",
        "https://example.com/a\n",
        "https://example.com/a?b",
        "https://example.com/a#b",
        "https://example.com/../a",
        "https://example.com\\@other.example/a",
        "https://example.com:0/a",
        "https://example.com:/a",
        "https://example.com:99999/a",
        "https://example.com:443:22/a",
        "https://127.1/a",
        "https://2130706433/a",
        "https://0x7f000001/a",
        "https://017700000001/a",
        "https://[::1%25eth0]/a",
        "https://[::1/a",
        "https://exam%70le.com/a",
        "https://bücher.example/a",
    ];
    for text in refused {
        assert!(Remote::parse(text, false).is_err(), "{text:?}");
    }
    for text in [
        "https://user:token@example.com/a",
        "https://token@example.com/a",
        "http://127.0.0.1@example.com/a",
        "ssh://git:password@example.com/a",
    ] {
        assert_eq!(Remote::parse(text, false), Err(InvalidRemote::Credential), "{text}");
    }
}

#[test]
fn remote_url_is_limited_to_2048_visible_characters() {
    let of_length = |length: usize| format!("https://h.example/{:a<1$}", "", length - 18);
    assert_eq!(of_length(2048).len(), 2048);
    assert!(Remote::parse(&of_length(2048), false).is_ok());
    for length in [2049, 2050, 4096] {
        assert_eq!(Remote::parse(&of_length(length), false), Err(InvalidRemote::Path), "{length}");
    }
    for text in ["https://h .example/a", "https://h\u{7f}.example/a", "https://h\u{e4}.example/a"] {
        assert_eq!(Remote::parse(text, false), Err(InvalidRemote::Path), "{text:?}");
    }
}

proptest! {
    #[test]
    fn parsed_remote_displays_in_canonical_form(text in "(https|ssh|http)://[a-zA-Z0-9@:./\\[\\]-]{1,40}") {
        if let Ok(remote) = Remote::parse(&text, true) {
            let form = remote.to_string();
            prop_assert_eq!(Remote::parse(&form, true), Ok(remote));
        }
    }
}
