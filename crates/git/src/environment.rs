//! Environment and settings that git gets: the user's identity and credentials for servers, and nothing that would redirect
//! it or make it run other programs.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The environment that git is started with.
#[derive(Debug, Clone, Default)]
pub struct HostEnv {
    variables: Vec<(OsString, OsString)>,
}

/// Settings of the user that git gets for a server.
#[derive(Debug, Clone, Default)]
pub(super) struct UserGitSettings {
    /// By name, in order. They may contain secrets, so they are passed in the environment, never on the command line.
    pub(super) kept: Vec<(String, String)>,
    /// The ssh command.
    pub(super) ssh_command: Option<String>,
    /// The user's name and email address.
    pub(super) name: Option<String>,
    pub(super) email: Option<String>,
    /// Files that the settings come from. A relative one is the repository's own, which belongs to the host.
    pub(super) origins: Vec<PathBuf>,
}

/// Variables for every program, and for programs that ask for passwords. `PATH` is passed separately, after a check.
const PLAIN: [&str; 12] = [
    "HOME",
    "USER",
    "LOGNAME",
    "TMPDIR",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_CACHE_HOME",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "DBUS_SESSION_BUS_ADDRESS",
    "SSH_AUTH_SOCK",
    "SSH_ASKPASS",
];

/// Variables that name programs and files of git and ssh.
const OF_SERVERS: [&str; 3] = ["GIT_ASKPASS", "GIT_SSH_VARIANT", "GIT_SSL_CAINFO"];

/// Members of `http` and `http.URL` with trust anchors and credentials.
const OF_HTTP: [&str; 8] = [
    "sslcainfo",
    "sslcapath",
    "sslcert",
    "sslkey",
    "sslcertpasswordprotected",
    "extraheader",
    "emptyauth",
    "cookiefile",
];

// === impl HostEnv ===

impl HostEnv {
    /// Returns the environment of this process.
    pub fn of_process() -> Self {
        Self { variables: std::env::vars_os().collect() }
    }

    /// Returns an environment of only these variables.
    pub fn of(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        Self { variables: variables.into_iter().collect() }
    }

    pub(super) fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_os_str())
    }

    /// Returns the search path.
    pub(super) fn path(&self) -> Option<&OsStr> {
        self.get("PATH")
    }

    /// Returns the variables for a connection to a server.
    pub(super) fn for_servers(&self) -> impl Iterator<Item = (&str, &OsStr)> {
        PLAIN.into_iter().chain(OF_SERVERS).filter_map(|name| Some((name, self.get(name)?)))
    }

    /// Returns the values that name programs and CA certificates.
    pub(super) fn of_programs(&self) -> impl Iterator<Item = &OsStr> {
        ["SSH_ASKPASS"].into_iter().chain(OF_SERVERS).filter_map(|name| self.get(name))
    }

    /// Returns the variables for listing the user's settings. Relative paths are left out: git would resolve them from
    /// another directory.
    pub(super) fn for_settings(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        let is_needed = |name: &OsStr, value: &OsStr| match name.to_str().unwrap_or_default() {
            "HOME" | "XDG_CONFIG_HOME" | "GIT_CONFIG_GLOBAL" => Path::new(value).is_absolute(),
            "GIT_CONFIG_COUNT" => true,
            name => name.starts_with("GIT_CONFIG_KEY_") || name.starts_with("GIT_CONFIG_VALUE_"),
        };
        let all = self.variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()));
        all.filter(move |(name, value)| is_needed(name, value))
    }
}

// === impl UserGitSettings ===

impl UserGitSettings {
    /// Parses the output of `git config --list --show-origin -z`: the origin of each setting, and the setting.
    pub(super) fn read(listed: &[u8], env: &HostEnv) -> Self {
        let mut settings = Self::default();
        let mut parts = listed.split(|byte| *byte == 0);
        while let (Some(origin), Some(entry)) = (parts.next(), parts.next()) {
            if let Some(file) = origin.strip_prefix(b"file:").map(|file| Path::new(OsStr::from_bytes(file)))
                && file.is_absolute()
                && !settings.origins.iter().any(|known| known == file)
            {
                settings.origins.push(file.to_owned());
            }
            let Some((name, value)) = str::from_utf8(entry).ok().and_then(|entry| entry.split_once('\n'))
            else {
                continue;
            };
            match name {
                "core.sshcommand" => settings.ssh_command = Some(value.to_owned()),
                "user.name" => settings.name = Some(value.to_owned()),
                "user.email" => settings.email = Some(value.to_owned()),
                name if is_kept(name) => settings.kept.push((name.to_owned(), value.to_owned())),
                _ => {}
            }
        }
        let text = |name| env.get(name).and_then(OsStr::to_str).map(str::to_owned);
        // The precedence is git's: variables override settings, and `GIT_SSH_COMMAND` overrides `GIT_SSH`.
        let program = || text("GIT_SSH").map(|program| quoted(&program));
        if let Some(command) = text("GIT_SSH_COMMAND").or_else(program) {
            settings.ssh_command = Some(command);
        }
        settings
    }
}

/// Returns true for settings that are passed on. Section and member are in lower case.
fn is_kept(name: &str) -> bool {
    let Some((section, rest)) = name.split_once('.') else { return false };
    let member = rest.rsplit_once('.').map_or(rest, |(_, member)| member);
    match section {
        "credential" => true,
        "http" => OF_HTTP.contains(&member),
        "core" => rest == "askpass",
        _ => false,
    }
}

/// Quotes a word for a shell.
pub(super) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_credential_and_ca_settings_of_the_user_are_kept() {
        let listed = [
            "credential.helper\nstore",
            "credential.https://h.example.helper\n!f",
            "http.sslcainfo\n/ca",
            "http.https://h.example/.extraheader\nAuthorization: x",
            "http.proxy\nhttp://evil:1",
            "http.https://h.example.proxy\nx",
            "http.sslverify\nfalse",
            "http.curloptresolve\nh:443:10.0.0.1",
            "url.https://evil/.insteadof\nhttps://",
            "core.fsmonitor\ntouch x",
            "core.hookspath\n/x",
            "core.sshcommand\nssh -i key",
            "core.askpass\n/ask",
            "push.followtags\ntrue",
            "push.pushoption\nx",
            "include.path\n/x",
            "core.gitproxy\nx",
            "filter.x.clean\ny",
            "no.value",
        ];
        let listed = listed.map(|entry| format!("file:/home/u/.gitconfig\0{entry}\0")).concat();
        let listed = format!("{listed}command line:\0a.b\nc\0file:.git/config\0a.c\nd\0");
        let listed = listed.as_bytes();
        let settings = UserGitSettings::read(listed, &HostEnv::default());
        let names: Vec<&str> = settings.kept.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(
            names,
            [
                "credential.helper",
                "credential.https://h.example.helper",
                "http.sslcainfo",
                "http.https://h.example/.extraheader",
                "core.askpass"
            ]
        );
        assert_eq!(settings.ssh_command.as_deref(), Some("ssh -i key"));
        assert_eq!(settings.origins, [Path::new("/home/u/.gitconfig")]);
        let env = HostEnv::of([("GIT_SSH".into(), "/a b/ssh".into())]);
        assert_eq!(UserGitSettings::read(listed, &env).ssh_command.as_deref(), Some("'/a b/ssh'"));
        let env = HostEnv::of([("GIT_SSH".into(), "x".into()), ("GIT_SSH_COMMAND".into(), "ssh -v".into())]);
        assert_eq!(UserGitSettings::read(listed, &env).ssh_command.as_deref(), Some("ssh -v"));
    }
}
