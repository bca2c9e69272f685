//! The package registries for this machine: those that its clients are configured for, or the public ones.

use belljar_testkit::clients;
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::ToSocketAddrs;
use std::path::PathBuf;
use std::process::Command;

/// A registry, and the configuration of its client inside.
pub(super) struct PackageRegistry {
    /// Hosts that it needs, with their ports.
    pub(super) hosts: BTreeSet<(String, u16)>,
    /// Environment variables that point the client to it.
    pub(super) variables: Vec<String>,
}

/// Returns the Rust toolchain of this build, to mount in a sandbox.
pub(super) fn toolchain() -> PathBuf {
    said(Command::new("rustc").args(["--print", "sysroot"])).unwrap().trim().into()
}

/// Returns the folder of a Node.js with npm, to mount in a sandbox.
pub(super) fn node() -> PathBuf {
    let node = clients::node().unwrap();
    node.parent().unwrap().parent().unwrap().to_owned()
}

// === impl PackageRegistry ===

impl PackageRegistry {
    /// Returns pip's registry.
    pub(super) fn of_python() -> Result<Self, String> {
        let set = std::env::var("PIP_INDEX_URL").ok().or_else(|| {
            said(Command::new("python3").args(["-m", "pip", "config", "get", "global.index-url"])).ok()
        });
        let index = set.unwrap_or_else(|| "https://pypi.org/simple".to_owned());
        let index = index.trim().trim_end_matches('/').to_owned();
        let page = fetched(&format!("{index}/six/"))?;
        let links = page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
        let hosts = links.filter_map(authority).chain(authority(&index)).collect();
        Ok(Self { hosts, variables: vec![format!("PIP_INDEX_URL={index}")] })
    }

    /// Returns npm's registry.
    pub(super) fn of_node() -> Result<Self, String> {
        let npm = node().join("lib/node_modules/npm/bin/npm-cli.js");
        let set = said(Command::new(node().join("bin/node")).arg(npm).args(["config", "get", "registry"]));
        let index = set?.trim().trim_end_matches('/').to_owned();
        let package: Value = serde_json::from_str(&fetched(&format!("{index}/left-pad"))?)
            .map_err(|error| error.to_string())?;
        let versions = package["versions"].as_object().into_iter().flatten();
        let files = versions.filter_map(|(_, version)| authority(version["dist"]["tarball"].as_str()?));
        let hosts = files.chain(authority(&index)).collect();
        Ok(Self { hosts, variables: vec![format!("npm_config_registry={index}/")] })
    }

    /// Returns Cargo's registry.
    pub(super) fn of_rust() -> Result<Self, String> {
        let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
        let home = home.or_else(|| Some(std::env::home_dir()?.join(".cargo"))).unwrap_or_default();
        let settings = std::fs::read_to_string(home.join("config.toml")).unwrap_or_default();
        let set = settings.split("\"sparse+").nth(1).and_then(|rest| rest.split('"').next());
        let index = set.unwrap_or("https://index.crates.io/").trim_end_matches('/').to_owned();
        let config: Value = serde_json::from_str(&fetched(&format!("{index}/config.json"))?)
            .map_err(|error| error.to_string())?;
        let files = config["dl"].as_str().and_then(authority);
        let hosts = files.into_iter().chain(authority(&index)).collect();
        let sources = set.map_or(String::new(), |_| {
            format!(
                "[source.crates-io]\nreplace-with = \"machine\"\n[source.machine]\nregistry = \"sparse+{index}/\"\n"
            )
        });
        let variables = vec![format!("SOURCES={sources}")];
        Ok(Self { hosts, variables })
    }

    /// Returns rules that allow only this registry. They include its networks, because on some machines it has a private
    /// address.
    pub(super) fn rules(&self) -> String {
        let rules = self.hosts.iter().map(|(host, port)| {
            let addresses = (host.as_str(), *port).to_socket_addrs().unwrap();
            let networks: BTreeSet<String> =
                addresses.map(|address| format!("\"{}\"", address.ip())).collect();
            let networks = Vec::from_iter(networks).join(", ");
            format!("{{host: \"{host}\", ports: [{port}], networks: [{networks}]}}")
        });
        format!("[{}]", Vec::from_iter(rules).join(", "))
    }
}

/// Returns the host and port of a URL that has them.
fn authority(url: &str) -> Option<(String, u16)> {
    let schemes = [("https://", 443), ("http://", 80)];
    let (rest, usual) = schemes.iter().find_map(|(scheme, port)| Some((url.strip_prefix(scheme)?, *port)))?;
    let authority = rest.split(['/', '?', '#']).next()?;
    match authority.split_once(':') {
        Some((host, port)) => Some((host.to_owned(), port.parse().ok()?)),
        None => Some((authority.to_owned(), usual)),
    }
}

fn fetched(url: &str) -> Result<String, String> {
    said(Command::new("curl").args(["-fsSL", "--retry", "2", "--max-time", "60", url]))
}

fn said(command: &mut Command) -> Result<String, String> {
    let program = command.get_program().display().to_string();
    let output = command.output().map_err(|error| format!("{program}: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
        false => Err(format!("{program}: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}
