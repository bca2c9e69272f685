//! Tests of all spellings of addresses and hosts that some library understands: both forms of a request have the same result,
//! and none reaches the upstream.

use super::house::ProxyRig;
use belljar_testkit::spellings::{FOREIGN, SPELLINGS};

#[test]
fn unusual_spellings_of_addresses_are_refused() {
    let house = ProxyRig::with("- {host: allowed.test, ports: [PORT]}\n");
    let mut count = 0;
    for host in SPELLINGS.iter().chain(FOREIGN) {
        let tunnel =
            house.send(format!("CONNECT {host}:PORT HTTP/1.1\r\nHost: {host}:PORT\r\n\r\n").as_bytes());
        let whole =
            house.send(format!("GET http://{host}:PORT/ HTTP/1.1\r\nHost: {host}:PORT\r\n\r\n").as_bytes());
        for told in [&tunnel, &whole] {
            assert!([400, 403].contains(&told.status), "{host}: {told:?}");
        }
        // In a URL some characters end the host; the rest of it is not allowed, either.
        let ends_early = host.contains(['#', '?', '\\', '/']);
        assert!(tunnel.code() == whole.code() || ends_early, "{host}: {tunnel:?} and {whole:?}");
        count += 1;
    }
    assert!(count >= 120, "{count}");
    assert_eq!((house.names.asked(), house.upstream.connections()), (0, 0));
}

/// Control with all networks granted: a text that is no canonical address is still refused.
#[test]
fn noncanonical_addresses_are_refused_even_if_all_networks_are_granted() {
    let house = ProxyRig::with(
        "- {host: \"**.allowed.test\", ports: [PORT], networks: [0.0.0.0/0, \"::/0\"]}\n\
         - {host: 127.0.0.1, ports: [PORT], networks: [127.0.0.0/8]}\n",
    );
    // Control, in each spelling of the address.
    for host in ["127.0.0.1", "127.0.0.1.", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]"] {
        assert!(house.tunnel(&format!("{host}:PORT")).is_ok(), "{host}");
        assert_eq!(house.get(&format!("http://{host}:PORT/")).status, 200, "{host}");
    }
    let before = house.upstream.connections();
    for host in [
        "127.1",
        "0x7f.1",
        "2130706433",
        "017700000001",
        "127.0.0.01",
        "[::127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "0.0.0.0",
        "[::1]",
    ] {
        assert!(house.tunnel(&format!("{host}:PORT")).is_err(), "{host}");
        assert!([400, 403].contains(&house.get(&format!("http://{host}:PORT/")).status), "{host}");
    }
    assert_eq!(house.upstream.connections(), before);
}

/// NT3: no rule can allow metadata services of clouds or link-local addresses.
#[test]
fn metadata_services_are_unreachable_even_if_a_rule_lists_them() {
    let listed = [
        "169.254.169.254",
        "169.254.170.2",
        "[fd00:ec2::254]",
        "[fd00:ec2::253]",
        "[fd20:ce::254]",
        "[fd00:42::42]",
        "100.100.100.200",
        "168.63.129.16",
        "192.0.0.192",
        "[fe80::1]",
        "[fe80::a9fe:a9fe]",
    ];
    let rule =
        |host: &str| format!("- {{host: \"{host}\", ports: [PORT], networks: [0.0.0.0/0, \"::/0\"]}}\n");
    let house = ProxyRig::with(&listed.into_iter().chain(["127.0.0.1"]).map(rule).collect::<String>());
    for host in listed {
        let denied = house.tunnel(&format!("{host}:PORT")).unwrap_err();
        assert_eq!((denied.status, denied.code()), (403, "address_not_allowed"), "{host}");
        assert_eq!(house.get(&format!("http://{host}:PORT/")).code(), "address_not_allowed", "{host}");
    }
    // A zone is no part of a host.
    for host in ["[fe80::1%25lo]", "[fe80::1%lo]", "[fe80::1%1]"] {
        assert_eq!(house.tunnel(&format!("{host}:PORT")).unwrap_err().code(), "invalid_host", "{host}");
    }
    assert_eq!(house.upstream.connections(), 0);
    // Control.
    assert!(house.tunnel("127.0.0.1:PORT").is_ok());
}

/// NT2: no name is resolved before a rule allows it, however many there are.
#[test]
fn names_without_a_rule_are_never_sent_to_a_name_server() {
    let house = ProxyRig::with("- {host: \"*.up.test\", ports: [PORT]}\n");
    for number in 0..200_u32 {
        let secret = format!("{:08x}", number.wrapping_mul(2_654_435_761));
        for host in [
            format!("{secret}.other.test"),
            format!("{secret}.{secret}.up.test"),
            format!("up.test.{secret}.test"),
        ] {
            assert_eq!(house.tunnel(&format!("{host}:PORT")).unwrap_err().code(), "not_allowed", "{host}");
        }
    }
    assert_eq!(house.names.asked(), 0);
    // Control: an allowed name is resolved.
    assert_eq!(house.tunnel("some.up.test:PORT").unwrap_err().code(), "no_such_host");
    assert!(house.names.asked() > 0);
}
