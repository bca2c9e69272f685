//! Tests of tunnel openings, byte by byte.

use super::*;
use rustls::pki_types::ServerName;
use std::sync::Arc;

/// Returns the ClientHello that rustls sends.
fn hello(name: &str) -> Vec<u8> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let builder =
        rustls::ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = builder.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).unwrap();
    let mut client = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut sent = Vec::new();
    client.write_tls(&mut sent).unwrap();
    sent
}

fn opening(bytes: &[u8]) -> Opening {
    OpeningReader::default().read(bytes)
}

#[test]
fn server_name_is_found_in_a_client_hello_split_anywhere() {
    let whole = hello("API.example.com");
    let found = Opening::Tls { server_name: Some("api.example.com".to_owned()), bytes: whole.len() };
    assert_eq!(opening(&whole), found);
    let mut by_bytes = OpeningReader::default();
    for end in 0..whole.len() {
        assert_eq!(opening(&whole[..end]), Opening::Incomplete, "{end} of {}", whole.len());
        assert_eq!(by_bytes.read(&whole[..end]), Opening::Incomplete, "{end} of {}", whole.len());
    }
    assert_eq!(by_bytes.read(&whole), found);
    let more = [whole.as_slice(), b"behind it"].concat();
    assert_eq!(opening(&more), found);
    let nameless = hello("93.184.216.34");
    assert_eq!(opening(&nameless), Opening::Tls { server_name: None, bytes: nameless.len() });
}

#[test]
fn no_changed_byte_makes_a_client_hello_pass_as_another_protocol() {
    let whole = hello("up.test");
    for at in 1..11 {
        for byte in 0..=u8::MAX {
            let mut changed = whole.clone();
            changed[at] = byte;
            assert_ne!(opening(&changed), Opening::Plain, "byte {at} is {byte}");
        }
    }
}

#[test]
fn bytes_that_a_tls_server_may_accept_first_are_malformed() {
    let whole = hello("up.test");
    let before = |prefix: &[u8]| [prefix, whole.as_slice()].concat();
    let records = |version: [u8; 2]| [&[22][..], &version, &whole[3..]].concat();
    for (what, bytes) in [
        ("a warning alert", before(&[21, 3, 1, 0, 2, 1, 0])),
        ("a ChangeCipherSpec record", before(&[20, 3, 3, 0, 1, 1])),
        ("application data", before(&[23, 3, 3, 0, 1, 0])),
        ("a heartbeat", before(&[24, 3, 3, 0, 3, 1, 0, 0])),
        ("an empty handshake record", before(&[22, 3, 1, 0, 0])),
        ("a HelloRequest", before(&[22, 3, 1, 0, 4, 0, 0, 0, 0])),
        ("an alert of version 2.1", before(&[21, 2, 1, 0, 2, 1, 0])),
        ("records of SSL 3.0", records([3, 0])),
        ("records of TLS 1.3's number", records([3, 4])),
        ("records of version 3.255", records([3, 255])),
        ("records of version 2.1", records([2, 1])),
        ("records of version 15.255", records([15, 255])),
        ("records of version 200.0", records([200, 0])),
        ("DTLS 1.2", records([0xfe, 0xfd])),
        ("DTLS 1.0", records([0xfe, 0xff])),
        ("SSL 2.0", vec![0x80, 0x2e, 1, 0, 2, 0, 0x15, 0, 0, 0, 0x10]),
        ("a hello of SSL 2 for TLS 1.2", vec![0x80, 0x2e, 1, 3, 3, 0, 0x15, 0, 0, 0, 0x10]),
        ("a PROXY header", before(b"PROXY TCP4 192.0.2.1 192.0.2.2 1 443\r\n")),
        ("a PROXY header without addresses", before(b"PROXY UNKNOWN\r\n")),
        ("a PROXY header of version 2", before(b"\r\n\r\n\0\r\nQUIT\n\x20\0\0\0")),
        ("a blank line", before(b"\r\n")),
        ("a NUL", before(b"\0")),
        ("many NULs", vec![0; 1_000]),
        ("a long hello of SSL 2", vec![0xff, 0xfd, 1, 3, 1, 0, 0x15]),
    ] {
        assert_eq!(opening(&bytes), Opening::Malformed, "{what}");
        let mut by_bytes = OpeningReader::default();
        let found = (1..=bytes.len()).map(|end| by_bytes.read(&bytes[..end]));
        let first_known = found.into_iter().find(|found| *found != Opening::Incomplete);
        assert_eq!(first_known, Some(Opening::Malformed), "{what}, byte by byte");
    }
}

#[test]
fn other_protocols_are_recognized_from_their_first_bytes() {
    for plain in [
        &b"SSH-2.0-x"[..],
        b"GET / HTTP/1.1\r\n",
        b"PRI * HTTP/2.0\r\n",
        b"a",
        b"PRO\r\n",
        b"PROXYING",
        b"\r\nroot\r\n",
        b"\0user\0user\0xterm/38400\0",
        // PostgreSQL message whose length looks like a content type.
        b"\0\0\0\x16\0\x03\0\0user\0a\0\0",
        b"\x10\x00",
        // MySQL and MongoDB begin with lengths that may look like content types of records.
        b"\x16\x01\x00\x01\x85\xa6\xff\x01",
        b"\x15\x01\x00\x00\x01\x00\x00\x00",
        b"\x17\x00\x00\x01",
        // Telnet, memcached.
        b"\xff\xfb\x01\xff",
        b"\x80\x00\x00\x03",
    ] {
        assert_eq!(opening(plain), Opening::Plain, "{plain:x?}");
    }
}

#[test]
fn starttls_request_of_database_clients_is_recognized() {
    let request = [0, 0, 0, 8, 4, 0xd2, 0x16, 0x2f];
    for end in 1..request.len() {
        assert_eq!(opening(&request[..end]), Opening::Incomplete);
    }
    assert_eq!(opening(&[&request[..], b"more"].concat()), Opening::Upgrade { bytes: 8 });
    let startup = [0, 0, 0, 84, 0, 3, 0, 0];
    assert_eq!(opening(&startup), Opening::Plain);
    let mut mysql = [0; 36];
    mysql[..6].copy_from_slice(&[0x20, 0, 0, 1, 0x85, 0xae]);
    assert_eq!(opening(&mysql), Opening::Upgrade { bytes: 36 });
    mysql[5] = 0xa6;
    assert_eq!(opening(&mysql), Opening::Plain, "without CLIENT_SSL");
}

#[test]
fn truncated_tls_record_is_malformed() {
    let whole = hello("up.test");
    assert_eq!(OpeningReader::at_end(&whole[..1]), Opening::Malformed);
    assert_eq!(OpeningReader::at_end(&whole[..50]), Opening::Malformed);
    assert_eq!(OpeningReader::at_end(b""), Opening::Nothing);
    assert_eq!(OpeningReader::at_end(b"\x80"), Opening::Plain);
}
