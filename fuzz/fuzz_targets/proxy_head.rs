//! The head of a request for a proxy is read as a reader reads it who knows lines and colons and nothing else, or not at all.

#![no_main]

use belljar_egress::http1::{BodyLength, RequestHead, Target};
use belljar_egress::web::explain::ExplainQuery;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
    let Some(bytes) = end.map(|end| &bytes[..end + 4]) else { return };
    let Ok((head, target)) = RequestHead::parse_for_proxy(bytes) else { return };
    let text = std::str::from_utf8(&bytes[..bytes.len() - 4]);
    assert!(!bytes.contains(&0), "a zero");
    // Nothing ends a line but both of its characters.
    let ends = bytes.windows(2).filter(|window| window == b"\r\n").count();
    for alone in [b'\r', b'\n'] {
        assert_eq!(bytes.iter().filter(|byte| **byte == alone).count(), ends);
    }
    let mut lines = bytes[..bytes.len() - 4].split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let first: Vec<&[u8]> = lines.next().unwrap_or_default().split(|byte| *byte == b' ').collect();
    assert!(first.len() == 3 && first[0] == head.method.as_bytes(), "{text:?}");
    let (mut hosts, mut lengths, mut codings) = (0, 0, 0);
    for line in lines {
        let colon = line.iter().position(|byte| *byte == b':').expect("a colon");
        let name = &line[..colon];
        assert!(!name.is_empty() && name.iter().all(|byte| byte.is_ascii_graphic()), "{text:?}");
        hosts += usize::from(name.eq_ignore_ascii_case(b"host"));
        lengths += usize::from(name.eq_ignore_ascii_case(b"content-length"));
        codings += usize::from(name.eq_ignore_ascii_case(b"transfer-encoding"));
    }
    assert!(hosts <= 1 && lengths <= 1 && codings <= 1 && lengths + codings <= 1, "{text:?}");
    assert_eq!(codings == 1, head.body == BodyLength::Chunked, "{text:?}");
    match target {
        Target::Origin => assert!(head.path.starts_with('/') || head.path == "*", "{text:?}"),
        Target::Absolute { authority } => {
            assert!(head.path.starts_with('/') && first[1].len() >= "http://".len() + authority.len(), "{text:?}");
            assert!(!authority.contains(['/', '?', '#', ' ']), "{text:?}");
        }
        Target::Authority { authority } => {
            assert!(first[1] == authority.as_bytes() && head.method == "CONNECT", "{text:?}");
            // Parsing an authority as a question must not panic.
            let _ = ExplainQuery::parse(&authority, None);
        }
    }
});
