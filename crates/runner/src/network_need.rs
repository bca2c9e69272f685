//! Detection of programs that failed because they could not reach an external host.
//!
//! Programs report that only in their own words, so their output is searched. This is done only for programs that
//! failed. A host of this machine is never external.

mod complaints;

use complaints::COMPLAINTS;
use regex::bytes::Regex;
use std::net::IpAddr;

/// Destination that a program could not reach.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unreached {
    /// The host, if the program named it.
    pub(crate) host: Option<String>,
}

/// Number of bytes at the end of an output that are searched.
const LOOKED_AT_BYTES: usize = 64 << 10;

/// Searches the ends of a failed program's outputs for such a message. One that names the host is preferred.
pub(crate) fn find(outputs: [&[u8]; 2]) -> Option<Unreached> {
    let ends = outputs.map(|output| &output[output.len().saturating_sub(LOOKED_AT_BYTES)..]);
    let mut nameless = None;
    for complaint in COMPLAINTS {
        // The table is tested: every pattern in it is one.
        let Ok(pattern) = Regex::new(complaint.pattern) else { continue };
        for found in ends.iter().flat_map(|end| pattern.captures_iter(end)) {
            match found.name("host").map(|host| String::from_utf8_lossy(host.as_bytes()).into_owned()) {
                Some(host) if is_of_this_machine(&host) => {}
                Some(host) => return Some(Unreached { host: Some(host) }),
                None => nameless = Some(Unreached { host: None }),
            }
        }
    }
    nameless
}

fn is_of_this_machine(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']).trim_end_matches('.').to_ascii_lowercase();
    let is_own_address = |address: IpAddr| {
        let address = address.to_canonical();
        address.is_loopback() || address.is_unspecified()
    };
    host == "localhost" || host.ends_with(".localhost") || host.parse().is_ok_and(is_own_address)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_complaint_is_recognised_by_its_example() {
        for complaint in COMPLAINTS {
            let pattern = Regex::new(complaint.pattern).unwrap();
            let captures = pattern.captures(complaint.example.as_bytes());
            let captures = captures.unwrap_or_else(|| panic!("{}: {}", complaint.tool, complaint.pattern));
            let host = captures.name("host").map(|host| std::str::from_utf8(host.as_bytes()).unwrap());
            assert_eq!(host, complaint.host, "{}: {}", complaint.tool, complaint.example);
            let found = find([b"", complaint.example.as_bytes()]).unwrap();
            assert_eq!(found.host.is_some(), complaint.host.is_some(), "{}", complaint.example);
        }
    }

    #[test]
    fn a_host_of_this_machine_is_not_outside() {
        for refused in [
            "curl: (7) Failed to connect to localhost port 5432 after 0 ms: Could not connect to server",
            "curl: (7) Failed to connect to 127.0.0.1 port 80 after 0 ms: Connection refused",
            "Error: connect ECONNREFUSED 127.0.0.1:5432",
            "Error: connect ECONNREFUSED ::1:5432",
            "dial tcp [::1]:6379: connect: connection refused",
            "HTTPConnectionPool(host='localhost', port=8000): Max retries exceeded with url: /",
        ] {
            assert_eq!(find([refused.as_bytes(), b""]), None, "{refused}");
        }
    }

    #[test]
    fn failures_of_another_kind_are_none_of_the_network() {
        for output in [
            "error[E0308]: mismatched types\n --> src/main.rs:3:5",
            "FAILED tests/test_hosts.py::test_resolve - assert 1 == 2",
            "cat: host: No such file or directory",
            "make: *** [Makefile:3: all] Error 2",
            "bash: line 1: frobnicate: command not found",
        ] {
            assert_eq!(find([output.as_bytes(), output.as_bytes()]), None, "{output}");
        }
    }

    #[test]
    fn a_host_that_is_named_wins_over_one_that_is_not() {
        let stdout = b"urllib3: Temporary failure in name resolution\n";
        let stderr =
            b"fatal: unable to access 'https://example.com/r': Could not resolve host: example.com\n";
        assert_eq!(find([stdout, stderr]), Some(Unreached { host: Some("example.com".to_owned()) }));
    }
}
