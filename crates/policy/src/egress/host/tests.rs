//! Tests of canonical hosts, and of texts that could mean another host.

use super::*;
use proptest::prelude::*;

fn parsed(text: &str) -> Result<String, InvalidHost> {
    Host::parse(text).map(|host| host.to_string())
}

#[test]
fn each_host_has_one_canonical_form() {
    for (text, form) in [
        ("example.com", "example.com"),
        ("EXAMPLE.Com", "example.com"),
        ("example.com.", "example.com"),
        ("a_b.example.com", "a_b.example.com"),
        ("xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("localhost", "localhost"),
        ("1.example", "1.example"),
        ("0x7f.example", "0x7f.example"),
        ("0xg", "0xg"),
        ("127.0.0.1", "127.0.0.1"),
        ("127.0.0.1.", "127.0.0.1"),
        ("[::1]", "[::1]"),
        ("[0:0:0:0:0:0:0:1]", "[::1]"),
        ("[2001:DB8::A]", "[2001:db8::a]"),
        ("[::ffff:127.0.0.1]", "127.0.0.1"),
        ("[::FFFF:7f00:1]", "127.0.0.1"),
    ] {
        assert_eq!(parsed(text).as_deref(), Ok(form), "{text}");
    }
}

/// A text that some library takes for an address is no host.
#[test]
fn ambiguous_host_text_is_refused() {
    let almost = [
        "127.1",
        "127.0.1",
        "2130706433",
        "0x7f000001",
        "0x7f.1",
        "0x7f.0.0.1",
        "0177.0.0.1",
        "017700000001",
        "127.0.0.01",
        "127.0.0.001",
        "1.2.3.4.5",
        "256.1.1.1",
        "127.0.0.0x1",
        "example.1",
        "example.0x1",
        "0",
        "00000000",
        "0x",
        "1.0x",
        "127.0.0.256",
        "4294967295",
        "0X7F000001",
        "127.0.0.1.1",
        "1.",
    ];
    for text in almost {
        assert_eq!(parsed(text), Err(InvalidHost::AlmostAddress), "{text}");
    }
    let odd = [
        ("", InvalidHost::Empty),
        (".", InvalidHost::Empty),
        ("a..b", InvalidHost::Part),
        ("example.com..", InvalidHost::Part),
        (".example.com", InvalidHost::Part),
        ("-a.example", InvalidHost::Part),
        ("a-.example", InvalidHost::Part),
        ("a b", InvalidHost::Character),
        ("a\0.example.com", InvalidHost::Character),
        ("example.com\0.evil", InvalidHost::Character),
        ("example.com%00.evil", InvalidHost::Character),
        ("%31%32%37.0.0.1", InvalidHost::Character),
        ("example%2ecom", InvalidHost::Character),
        ("user@example.com", InvalidHost::Character),
        ("example.com:80", InvalidHost::Character),
        ("example.com/x", InvalidHost::Character),
        ("example.com\\x", InvalidHost::Character),
        ("example.com#x", InvalidHost::Character),
        ("example.com?x", InvalidHost::Character),
        ("example.com\r\nx", InvalidHost::Character),
        ("example.com\t", InvalidHost::Character),
        ("*.example.com", InvalidHost::Character),
        ("::1", InvalidHost::Character),
        ("fe80::1%eth0", InvalidHost::Character),
        ("[::1", InvalidHost::Brackets),
        ("[]", InvalidHost::Brackets),
        ("[::1]x", InvalidHost::Brackets),
        ("[fe80::1%eth0]", InvalidHost::Brackets),
        ("[fe80::1%251]", InvalidHost::Brackets),
        ("[127.0.0.1]", InvalidHost::Brackets),
        ("[example.com]", InvalidHost::Brackets),
        ("[v1.fe80::a]", InvalidHost::Brackets),
        ("[::1].", InvalidHost::Brackets),
        ("[:::1]", InvalidHost::Brackets),
        ("[0:0:0:0:0:0:0:0:1]", InvalidHost::Brackets),
        ("bücher.example", InvalidHost::Unicode),
        ("１２７.0.0.1", InvalidHost::Unicode),
        ("127。0。0。1", InvalidHost::Unicode),
        ("①②⑦.0.0.1", InvalidHost::Unicode),
        ("ⓔxample.com", InvalidHost::Unicode),
        ("example\u{200b}.com", InvalidHost::Unicode),
        ("exаmple.com", InvalidHost::Unicode),
    ];
    for (text, why) in odd {
        assert_eq!(parsed(text), Err(why), "{text:?}");
    }
}

#[test]
fn dns_label_is_limited_to_63_and_name_to_253_characters() {
    let part = "a".repeat(64);
    assert_eq!(parsed(&format!("{part}.example")), Err(InvalidHost::TooLong));
    assert_eq!(parsed(&["a"; 128].join(".")), Err(InvalidHost::TooLong));
    // Control: names of the maximum length.
    assert!(parsed(&format!("{}.example", &part[1..])).is_ok());
    let whole = ["a"; 127].join(".");
    assert_eq!((whole.len(), parsed(&whole).as_deref()), (253, Ok(whole.as_str())));
    assert_eq!(parsed(&format!("{whole}a")), Err(InvalidHost::TooLong));
}

proptest! {
    /// The canonical form of each parsed host is parsed as the same host.
    #[test]
    fn canonical_host_parses_to_itself(text in "[\\[\\]a-zA-Z0-9.:_%-]{0,40}") {
        if let Ok(host) = Host::parse(&text) {
            prop_assert_eq!(Host::parse(&host.to_string()), Ok(host.clone()));
            prop_assert_eq!(Host::parse(&text.to_ascii_uppercase()), Ok(host));
        }
    }

    /// A text that the standard library parses as an address is the same address here, or no host.
    #[test]
    fn host_parser_agrees_with_standard_library_addresses_or_refuses(text in "[0-9a-fx.:]{1,20}") {
        if let Ok(address) = text.parse::<IpAddr>() {
            match Host::parse(&text) {
                Ok(Host::Address(read)) => prop_assert_eq!(read, address),
                Ok(Host::Name(name)) => prop_assert!(false, "{} is a name", name),
                Err(_) => {}
            }
        }
    }
}
