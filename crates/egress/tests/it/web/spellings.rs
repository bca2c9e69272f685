//! Addresses and hosts in every spelling that somebody somewhere understands: the same verdict by both forms of a request, and
//! the upstream never hears of any.

use super::house::House;

/// Spellings of this machine, of the cloud's metadata and of private machines, and of no host at all.
const SPELLINGS: &[&str] = &[
    "127.0.0.1",
    "127.0.0.2",
    "127.255.255.254",
    "127.1",
    "127.0.1",
    "0127.0.0.1",
    "0177.0.0.1",
    "0177.0.0.01",
    "127.0.0.01",
    "0x7f.0.0.1",
    "0x7f.1",
    "0x7f000001",
    "0X7F000001",
    "2130706433",
    "017700000001",
    "127.0.0.1.",
    "127.0.0.1..",
    "0",
    "0.0",
    "0.0.0.0",
    "00.00.00.00",
    "0x0",
    "localhost",
    "LOCALHOST",
    "localhost.",
    "localhost.localdomain",
    "ip6-localhost",
    "foo.localhost",
    "[::1]",
    "[0:0:0:0:0:0:0:1]",
    "[0000:0000:0000:0000:0000:0000:0000:0001]",
    "[::0001]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::FFFF:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:ffff:7f00:0001]",
    "[::127.0.0.1]",
    "[::7f00:1]",
    "[::ffff:0:127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::7f00:1]",
    "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]",
    "[2002:7f00:0001::1]",
    "[2001:0:7f00:1::]",
    "[fe80::1]",
    "[fe80::1%25lo]",
    "[fe80::1%lo]",
    "[::1%25lo]",
    "[::1%lo]",
    "169.254.169.254",
    "169.254.169.254.",
    "0xa9fea9fe",
    "2852039166",
    "0251.0376.0251.0376",
    "169.254.43518",
    "169.16689662",
    "[::ffff:169.254.169.254]",
    "[::ffff:a9fe:a9fe]",
    "[64:ff9b::a9fe:a9fe]",
    "[2002:a9fe:a9fe::]",
    "[fd00:ec2::254]",
    "[fd20:ce::254]",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "metadata",
    "metadata.google.internal",
    "instance-data",
    "10.0.0.1",
    "10.255.255.255",
    "012.0.0.1",
    "10.1",
    "0xa000001",
    "167772161",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "192.168.1",
    "0xc0a80001",
    "3232235521",
    "100.64.0.1",
    "100.127.255.255",
    "198.18.0.1",
    "192.0.2.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "[ff02::1]",
    "[fc00::1]",
    "[fdff::1]",
    "[fec0::1]",
    "[2001:db8::1]",
    "[100::1]",
    "[3fff::1]",
    "[2001:2::1]",
    "[5f00::1]",
    "1.2.3.4.5",
    "256.0.0.1",
    "1.2.3.256",
    "4294967296",
    "0x100000000",
    "[::1",
    "::1",
    "[127.0.0.1]",
    "[localhost]",
    "[]",
    "[::1]x",
    "%31%32%37.0.0.1",
    "127.0.0.1%00.allowed.test",
    "127.0.0.1%2eallowed.test",
    "allowed.test%00.evil.test",
    "user@127.0.0.1",
    "allowed.test@127.0.0.1",
    "127.0.0.1#.allowed.test",
    "127.0.0.1?.allowed.test",
    "127.0.0.1\\.allowed.test",
    "127.0.0.1;.allowed.test",
    "127.0.0.1,allowed.test",
    "*.allowed.test",
    "*",
    "-",
    "a..b",
    ".allowed.test",
    "allowed.test..",
    "1",
    "0x",
    "1.0x7f",
    "allowed.test.127.0.0.1",
    "xn--a.1",
];

/// Those that are no ASCII, which no head may have in its first line.
const FOREIGN: &[&str] = &[
    "１２７.0.0.1",
    "127。0。0。1",
    "①②⑦.0.0.1",
    "ｌｏｃａｌｈｏｓｔ",
    "allowed\u{200b}.test",
    "аllowed.test",
    "allowed。test",
    "ⓐllowed.test",
    "loc\u{ad}alhost",
    "127.0.0.1\u{0}",
];

#[test]
fn no_spelling_of_an_address_gets_anywhere() {
    let house = House::with("- {host: allowed.test, ports: [PORT]}\n");
    let mut count = 0;
    for host in SPELLINGS.iter().chain(FOREIGN) {
        let tunnel =
            house.send(format!("CONNECT {host}:PORT HTTP/1.1\r\nHost: {host}:PORT\r\n\r\n").as_bytes());
        let whole =
            house.send(format!("GET http://{host}:PORT/ HTTP/1.1\r\nHost: {host}:PORT\r\n\r\n").as_bytes());
        for told in [&tunnel, &whole] {
            assert!([400, 403].contains(&told.status), "{host}: {told:?}");
        }
        // In a URL some characters end the host; what is left of it is no more allowed.
        let ends_early = host.contains(['#', '?', '\\', '/']);
        assert!(tunnel.code() == whole.code() || ends_early, "{host}: {tunnel:?} and {whole:?}");
        count += 1;
    }
    assert!(count >= 120, "{count}");
    assert_eq!((house.names.asked(), house.upstream.connections()), (0, 0));
}

/// The same when all networks are granted to everything that can be named: what is no address of its own is still nothing.
#[test]
fn what_is_no_host_is_none_whatever_rules_say() {
    let house = House::with(
        "- {host: \"**.allowed.test\", ports: [PORT], networks: [0.0.0.0/0, \"::/0\"]}\n\
         - {host: 127.0.0.1, ports: [PORT], networks: [127.0.0.0/8]}\n",
    );
    // The control, in each spelling that is one of it.
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
