//! Connects git to one remote: only at the vetted addresses, without a proxy or redirects.

use super::environment::UserGitSettings;
use belljar_egress::git::PinnedRemote;
use belljar_policy::egress::{Destination, Host};
use belljar_policy::git::Scheme;
use std::net::IpAddr;

/// Returns settings for the command line; none of them is a secret.
pub(super) fn settings(pinned: &PinnedRemote) -> Vec<String> {
    let remote = pinned.remote();
    let mut settings = vec![
        "protocol.allow=never".to_owned(),
        format!("protocol.{}.allow=always", remote.scheme().name()),
        // No proxy, whatever the environment sets, and no redirect, whatever the server answers.
        "http.proxy=".to_owned(),
        "http.followRedirects=false".to_owned(),
        "http.sslVerify=true".to_owned(),
        "transfer.bundleURI=false".to_owned(),
    ];
    if let (Scheme::Https | Scheme::Http, Some(destination)) = (remote.scheme(), remote.destination())
        && let Host::Name(name) = &destination.host
    {
        let addresses: Vec<String> = pinned.addresses().iter().map(in_brackets).collect();
        settings.push(format!("http.curloptResolve={name}:{}:{}", destination.port, addresses.join(",")));
    }
    settings.into_iter().flat_map(|setting| ["-c".to_owned(), setting]).collect()
}

fn in_brackets(address: &IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

/// Returns the addresses to try one after the other, for ssh, which accepts only one. HTTP gets all addresses at once.
pub(super) fn ways(pinned: &PinnedRemote) -> Vec<Option<IpAddr>> {
    match pinned.remote().scheme() {
        Scheme::Ssh => pinned.addresses().iter().copied().map(Some).collect(),
        Scheme::Https | Scheme::Http | Scheme::File => vec![None],
    }
}

/// Returns the ssh command for a remote: it connects to a vetted address, and looks up the host key by the remote's name.
/// Forwarding, local commands and connection sharing are off, and unknown host keys are rejected.
pub(super) fn ssh_command(
    (pinned, way): (&PinnedRemote, Option<IpAddr>),
    settings: &UserGitSettings,
) -> String {
    let said = settings.ssh_command.as_deref().unwrap_or("ssh").trim();
    let options = ssh_options(pinned, way);
    let (program, rest) = said.split_once(' ').unwrap_or((said, ""));
    let is_ssh = program.rsplit('/').next() == Some("ssh");
    // For ssh the first value of an option counts, so ours come first. Another program, such as a script, passes on its last
    // arguments.
    match is_ssh {
        true => format!("{program} {options} {rest}"),
        false => format!("{said} {options}"),
    }
}

fn ssh_options(pinned: &PinnedRemote, way: Option<IpAddr>) -> String {
    // With other addresses to try, the timeout is shorter.
    let patience = if pinned.addresses().len() > 1 { 10 } else { 30 };
    let mut options = vec![
        "BatchMode=yes".to_owned(),
        "StrictHostKeyChecking=yes".to_owned(),
        "VerifyHostKeyDNS=no".to_owned(),
        "UpdateHostKeys=no".to_owned(),
        "KnownHostsCommand=none".to_owned(),
        "CanonicalizeHostname=no".to_owned(),
        "ProxyCommand=none".to_owned(),
        "ProxyJump=none".to_owned(),
        "ControlMaster=no".to_owned(),
        "ControlPath=none".to_owned(),
        "ForwardAgent=no".to_owned(),
        "ForwardX11=no".to_owned(),
        "ClearAllForwardings=yes".to_owned(),
        "PermitLocalCommand=no".to_owned(),
        "Tunnel=no".to_owned(),
        "RequestTTY=no".to_owned(),
        format!("ConnectTimeout={patience}"),
        "ServerAliveInterval=15".to_owned(),
        "ServerAliveCountMax=4".to_owned(),
    ];
    if let Some(Destination { host, port }) = pinned.remote().destination() {
        options.extend(way.map(|address| format!("HostName={address}")));
        options.push(format!("HostKeyAlias={}", known_as(host, *port)));
        options.push(format!("Port={port}"));
    }
    let words = options.iter().map(|option| format!("-o '{option}'"));
    words.collect::<Vec<_>>().join(" ")
}

/// Returns ssh's name of a host in its list of keys.
fn known_as(host: &Host, port: u16) -> String {
    let bare = match host {
        Host::Name(name) => name.to_string(),
        Host::Address(address) => address.to_string(),
    };
    if port == 22 { bare } else { format!("[{bare}]:{port}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_egress::upstream::names::NameSource;
    use belljar_policy::egress::Network;
    use belljar_policy::git::{GitRules, Remote};

    fn pinned(url: &str) -> PinnedRemote {
        let folder = tempfile::tempdir().unwrap();
        let hosts = folder.path().join("hosts");
        std::fs::write(&hosts, "10.0.0.7 git.house.test\nfd00::7 git.house.test\n").unwrap();
        let networks = ["10.0.0.0/8", "fd00::/8", "127.0.0.0/8"].map(|text| Network::parse(text).unwrap());
        let rules = GitRules { networks: networks.to_vec(), ..GitRules::default() };
        PinnedRemote::pin(Remote::parse(url, false).unwrap(), &rules, NameSource::at(hosts, Vec::new()))
            .unwrap()
    }

    #[test]
    fn git_remote_is_pinned_to_the_checked_addresses() {
        let of = |url| settings(&pinned(url)).join(" ");
        let https = of("https://git.house.test:8443/a");
        assert!(https.contains("-c http.curloptResolve=git.house.test:8443:10.0.0.7,[fd00::7]"), "{https}");
        assert!(
            https.contains("-c http.proxy= ") && https.contains("-c protocol.https.allow=always"),
            "{https}"
        );
        assert!(!of("http://127.0.0.1:80/a").contains("curloptResolve"));
    }

    #[test]
    fn ssh_connects_to_pinned_address_and_checks_host_key_by_name() {
        let command = |url: &str, said: Option<&str>| {
            let settings =
                UserGitSettings { ssh_command: said.map(str::to_owned), ..UserGitSettings::default() };
            let pinned = pinned(url);
            ssh_command((&pinned, ways(&pinned)[0]), &settings)
        };
        let usual = command("git@git.house.test:a", None);
        assert!(usual.starts_with("ssh -o 'BatchMode=yes'"), "{usual}");
        assert!(
            usual.contains("-o 'HostName=10.0.0.7' -o 'HostKeyAlias=git.house.test' -o 'Port=22'"),
            "{usual}"
        );
        assert!(usual.contains("-o 'ConnectTimeout=10'"), "{usual}");
        let all = ways(&pinned("git@git.house.test:a"));
        let other = ssh_command((&pinned("git@git.house.test:a"), all[1]), &UserGitSettings::default());
        assert!(all.len() == 2 && other.contains("-o 'HostName=fd00::7'"), "{other}");
        let port =
            command("ssh://git@git.house.test:2222/a", Some("/usr/bin/ssh -i key -o ProxyCommand=evil"));
        assert!(port.contains("-o 'HostKeyAlias=[git.house.test]:2222'"), "{port}");
        assert!(
            port.starts_with("/usr/bin/ssh -o") && port.ends_with("-i key -o ProxyCommand=evil"),
            "{port}"
        );
        assert!(port.find("ProxyCommand=none") < port.find("ProxyCommand=evil"), "to ssh the first counts");
        assert!(command("git@git.house.test:a", Some("wrapper -x")).starts_with("wrapper -x -o"));
    }
}
