//! DNS messages (RFC 1035), as far as looking up addresses needs them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A kind of address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DnsRecordType {
    V4,
    V6,
}

/// Answer of a DNS server.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum DnsReply {
    /// Addresses; none if there is no such name, or none of that type.
    Addresses(Vec<IpAddr>),
    /// The answer is truncated.
    Cut,
    /// A response code (RFC 1035 §4.1.1).
    Failed(u8),
}

const HEAD_BYTES: usize = 12;
const INTERNET: u16 = 1;
const NO_SUCH_NAME: u8 = 3;
/// Bits of the third byte.
const IS_ANSWER: u8 = 0x80;
const IS_CUT: u8 = 0x02;
const RECURSION_DESIRED: u8 = 0x01;

// === impl DnsRecordType ===

impl DnsRecordType {
    fn number(self) -> u16 {
        match self {
            Self::V4 => 1,
            Self::V6 => 28,
        }
    }
}

/// Returns a query for a name; `None` if the name is not valid.
pub(super) fn question(id: u16, name: &str, kind: DnsRecordType) -> Option<Vec<u8>> {
    let mut bytes = id.to_be_bytes().to_vec();
    bytes.extend([RECURSION_DESIRED, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
    for label in name.split('.') {
        let length = u8::try_from(label.len()).ok().filter(|length| (1..=63).contains(length))?;
        bytes.push(length);
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
    bytes.extend(kind.number().to_be_bytes());
    bytes.extend(INTERNET.to_be_bytes());
    (bytes.len() <= HEAD_BYTES + 255 + 4).then_some(bytes)
}

/// Returns the answer to that query; `None` for any other message.
pub(super) fn read(message: &[u8], question: &[u8]) -> Option<DnsReply> {
    let asked = question.get(HEAD_BYTES..)?;
    let repeated = message.get(HEAD_BYTES..HEAD_BYTES + asked.len())?;
    let is_answer = message.get(2)? & IS_ANSWER != 0 && message.get(..2)? == question.get(..2)?;
    if !is_answer || number(message, 4)? != 1 || !repeated.eq_ignore_ascii_case(asked) {
        return None;
    }
    if message[2] & IS_CUT != 0 {
        return Some(DnsReply::Cut);
    }
    match message[3] & 0x0f {
        0 => {}
        NO_SUCH_NAME => return Some(DnsReply::Addresses(Vec::new())),
        code => return Some(DnsReply::Failed(code)),
    }
    let mut at = HEAD_BYTES + asked.len();
    let mut addresses = Vec::new();
    for _ in 0..number(message, 6)? {
        at = behind_name(message, at)?;
        let (kind, class, length) =
            (number(message, at)?, number(message, at + 2)?, number(message, at + 8)?);
        let data = message.get(at + 10..at + 10 + usize::from(length))?;
        // The answer to an alias includes the addresses of its target.
        if class == INTERNET && is_asked_for(kind, asked) {
            addresses.push(address(data)?);
        }
        at += 10 + data.len();
    }
    Some(DnsReply::Addresses(addresses))
}

fn is_asked_for(kind: u16, asked: &[u8]) -> bool {
    asked.len().checked_sub(4).and_then(|at| number(asked, at)) == Some(kind)
}

fn address(data: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(data).map(|bytes| Ipv4Addr::from(bytes).into());
    v4.or_else(|_| <[u8; 16]>::try_from(data).map(|bytes| Ipv6Addr::from(bytes).into())).ok()
}

fn number(message: &[u8], at: usize) -> Option<u16> {
    let bytes = message.get(at..at.checked_add(2)?)?;
    Some(u16::from_be_bytes([bytes[0], bytes[1]]))
}

/// Returns the offset behind a name; a pointer ends a name.
fn behind_name(message: &[u8], mut at: usize) -> Option<usize> {
    loop {
        match *message.get(at)? {
            0 => return Some(at + 1),
            length if length & 0xc0 == 0xc0 => return Some(at + 2),
            length if length & 0xc0 == 0 => at += 1 + usize::from(length),
            _ => return None,
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// The answer to a question, with these addresses.
    pub(in super::super) fn answer(question: &[u8], addresses: &[[u8; 4]]) -> Vec<u8> {
        let mut answer = question.to_vec();
        answer[2] |= IS_ANSWER;
        answer[7] = u8::try_from(addresses.len()).unwrap();
        for address in addresses {
            answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
            answer.extend(address);
        }
        answer
    }

    #[test]
    fn truncated_or_mismatched_dns_reply_is_rejected() {
        let asked = question(7, "a.example", DnsRecordType::V4).unwrap();
        let whole = answer(&asked, &[[192, 0, 2, 1], [192, 0, 2, 2]]);
        let expected: Vec<IpAddr> = vec!["192.0.2.1".parse().unwrap(), "192.0.2.2".parse().unwrap()];
        assert_eq!(read(&whole, &asked), Some(DnsReply::Addresses(expected)));
        for length in 0..whole.len() {
            assert_eq!(read(&whole[..length], &asked), None, "{length}");
        }
        let other = question(7, "b.example", DnsRecordType::V4).unwrap();
        assert_eq!(read(&whole, &other), None);
        assert_eq!(read(&whole, &question(8, "a.example", DnsRecordType::V4).unwrap()), None);
        assert_eq!(read(&asked, &asked), None, "a question");
    }

    #[test]
    fn dns_cname_records_are_skipped() {
        let asked = question(7, "a.example", DnsRecordType::V4).unwrap();
        let mut answer = answer(&asked, &[]);
        answer[7] = 2;
        // An alias for a name of one label, then the address of that.
        answer.extend([0xc0, 12, 0, 5, 0, 1, 0, 0, 0, 60, 0, 3, 1, b'b', 0]);
        answer.extend([1, b'b', 0, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 192, 0, 2, 9]);
        assert_eq!(read(&answer, &asked), Some(DnsReply::Addresses(vec!["192.0.2.9".parse().unwrap()])));
    }

    #[test]
    fn dns_failures_and_truncated_replies_are_distinguished() {
        let asked = question(7, "a.example", DnsRecordType::V6).unwrap();
        let with = |at: usize, bits: u8| {
            let mut answer = answer(&asked, &[]);
            answer[at] |= bits;
            read(&answer, &asked)
        };
        assert_eq!(with(3, 3), Some(DnsReply::Addresses(Vec::new())));
        assert_eq!(with(3, 2), Some(DnsReply::Failed(2)));
        assert_eq!(with(2, IS_CUT), Some(DnsReply::Cut));
    }

    #[test]
    fn hostname_too_long_for_dns_is_not_queried() {
        for name in ["", "a..b", &"x".repeat(64), &"x.".repeat(140)] {
            assert_eq!(question(1, name, DnsRecordType::V4), None, "{name}");
        }
    }
}
