//! Tests of where names may lead.

use super::super::tests::{RULES, policy, to};
use super::*;

fn vetted(host: &str, port: u16, found: &[&str]) -> Result<Vec<String>, &'static str> {
    let found: Vec<IpAddr> = found.iter().map(|address| address.parse().unwrap()).collect();
    let allowed = policy(RULES).decide(to(host, port), EgressRequest::Tunnel).unwrap();
    let own = ["203.0.113.7".parse().unwrap(), "93.184.216.1".parse().unwrap(), "10.0.0.9".parse().unwrap()];
    match allowed.vet(&found, &own) {
        Ok(vetted) => Ok(vetted.value().addresses().iter().map(ToString::to_string).collect()),
        Err(denied) => Err(denied.reason.code()),
    }
}

#[test]
fn one_forbidden_address_refuses_the_whole_name() {
    let open = "93.184.216.34";
    assert_eq!(
        vetted("pkgs.example", 443, &[open, "2606:4700::1"]).unwrap(),
        ["93.184.216.34:443", "[2606:4700::1]:443"]
    );
    for (found, code) in [
        (vec![], "no_address"),
        (vec![open, "10.0.0.1"], "private_address"),
        (vec!["10.0.0.1", open], "private_address"),
        (vec![open, "::1"], "loopback_address"),
        (vec!["::ffff:127.0.0.1"], "loopback_address"),
        (vec!["169.254.169.254"], "link_local_address"),
        (vec!["fd00:ec2::254"], "metadata_address"),
        (vec!["64:ff9b::a9fe:a9fe"], "link_local_address"),
        (vec!["2002:a00:1::"], "tunnel_address"),
        (vec!["93.184.216.1"], "own_address"),
        (vec![open; 65], "too_many_addresses"),
    ] {
        assert_eq!(vetted("pkgs.example", 443, &found), Err(code), "{found:?}");
    }
    assert!(vetted("pkgs.example", 443, &[open; 64]).is_ok());
}

#[test]
fn rule_may_allow_a_private_network_but_no_forbidden_class() {
    assert_eq!(vetted("git.house", 3000, &["10.0.0.1"]).unwrap(), ["10.0.0.1:3000"]);
    assert_eq!(vetted("git.house", 3000, &["10.0.0.9"]).unwrap(), ["10.0.0.9:3000"], "its own, and granted");
    assert_eq!(
        vetted("git.house", 3000, &["11.0.0.1"]).unwrap(),
        ["11.0.0.1:3000"],
        "the open internet is open"
    );
    assert_eq!(vetted("git.house", 3000, &["192.168.0.1"]), Err("private_address"));
    let everything = policy("rules:\n- host: all.house\n  networks: [0.0.0.0/0, \"::/0\"]\n");
    for (address, code) in [
        ("169.254.169.254", "link_local_address"),
        ("100.100.100.200", "metadata_address"),
        ("fd00:ec2::254", "metadata_address"),
        ("fe80::1", "link_local_address"),
        ("0.0.0.0", "unspecified_address"),
        ("255.255.255.255", "broadcast_address"),
        ("224.0.0.1", "multicast_address"),
        ("2002:7f00:1::", "tunnel_address"),
    ] {
        let allowed = everything.decide(to("all.house", 80), EgressRequest::Tunnel).unwrap();
        let denied = allowed.vet(&[address.parse().unwrap()], &[]).unwrap_err();
        assert_eq!(denied.reason.code(), code, "{address}");
        assert_eq!(denied.needed(), None, "no rule would allow {address}");
    }
}
