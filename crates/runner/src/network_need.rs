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
pub(crate) struct UnreachableDestination {
    /// The host, if the program named it.
    pub(crate) host: Option<String>,
}

/// Number of bytes at the end of an output that are searched.
const LOOKED_AT_BYTES: usize = 64 << 10;

/// Searches the ends of a failed program's outputs for such a message. One that names the host is preferred.
pub(crate) fn find(outputs: [&[u8]; 2]) -> Option<UnreachableDestination> {
    let ends = outputs.map(|output| &output[output.len().saturating_sub(LOOKED_AT_BYTES)..]);
    let mut nameless = None;
    for complaint in COMPLAINTS {
        // The table is tested: every pattern in it is one.
        let Ok(pattern) = Regex::new(complaint.pattern) else { continue };
        for found in ends.iter().flat_map(|end| pattern.captures_iter(end)) {
            match found.name("host").map(|host| String::from_utf8_lossy(host.as_bytes()).into_owned()) {
                Some(host) if is_of_this_machine(&host) => {}
                Some(host) => return Some(UnreachableDestination { host: Some(host) }),
                None => nameless = Some(UnreachableDestination { host: None }),
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
    fn every_network_error_pattern_matches_its_example() {
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
    fn loopback_connection_failure_is_no_network_need() {
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
    fn failures_unrelated_to_the_network_are_no_network_need() {
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
    fn network_need_prefers_an_error_that_names_the_host() {
        let stdout = b"urllib3: Temporary failure in name resolution\n";
        let stderr =
            b"fatal: unable to access 'https://example.com/r': Could not resolve host: example.com\n";
        assert_eq!(
            find([stdout, stderr]),
            Some(UnreachableDestination { host: Some("example.com".to_owned()) })
        );
    }
}
