//! What git gets of its user's environment and settings: who the user is for servers, and nothing that would have it go
//! somewhere else, work somewhere else, or run something.

use std::ffi::{OsStr, OsString};

/// The environment that git is started from.
#[derive(Debug, Clone, Default)]
pub struct HostEnv {
    variables: Vec<(OsString, OsString)>,
}

/// Settings of the user's that go with git to a server.
#[derive(Debug, Clone, Default)]
pub(super) struct Settings {
    /// By name, in order. They may have secrets in them, so they go by the environment, never by the command line.
    pub(super) kept: Vec<(String, String)>,
    /// How ssh is called.
    pub(super) ssh_command: Option<String>,
    /// What the user is called, and where mail gets to the user.
    pub(super) name: Option<String>,
    pub(super) email: Option<String>,
}

/// Variables that every program needs, or that programs which ask for passwords do.
const PLAIN: [&str; 13] = [
    "PATH",
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

/// Variables that say who the user is for servers.
const OF_SERVERS: [&str; 3] = ["GIT_ASKPASS", "GIT_SSH_VARIANT", "GIT_SSL_CAINFO"];

/// Members of `http` and `http.URL` that say by what to trust a server, and what to show it.
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
    /// That of this process.
    pub fn of_process() -> Self {
        Self { variables: std::env::vars_os().collect() }
    }

    /// These variables and no others.
    pub fn of(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        Self { variables: variables.into_iter().collect() }
    }

    pub(super) fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_os_str())
    }

    /// What git needs to run at all.
    pub(super) fn path(&self) -> Option<&OsStr> {
        self.get("PATH")
    }

    /// What it gets when it goes to a server.
    pub(super) fn for_servers(&self) -> impl Iterator<Item = (&str, &OsStr)> {
        PLAIN.into_iter().chain(OF_SERVERS).filter_map(|name| Some((name, self.get(name)?)))
    }

    /// What it needs to list the user's settings.
    pub(super) fn for_settings(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        let is_needed = |name: &OsStr| {
            let name = name.to_str().unwrap_or_default();
            matches!(name, "HOME" | "XDG_CONFIG_HOME" | "GIT_CONFIG_GLOBAL" | "GIT_CONFIG_COUNT")
                || name.starts_with("GIT_CONFIG_KEY_")
                || name.starts_with("GIT_CONFIG_VALUE_")
        };
        let all = self.variables.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()));
        all.filter(move |(name, _)| is_needed(name))
    }
}

// === impl Settings ===

impl Settings {
    /// Reads what `git config --list -z` has said.
    pub(super) fn read(listed: &[u8], env: &HostEnv) -> Self {
        let mut settings = Self::default();
        for entry in listed.split(|byte| *byte == 0).filter_map(|entry| str::from_utf8(entry).ok()) {
            let Some((name, value)) = entry.split_once('\n') else { continue };
            match name {
                "core.sshcommand" => settings.ssh_command = Some(value.to_owned()),
                "user.name" => settings.name = Some(value.to_owned()),
                "user.email" => settings.email = Some(value.to_owned()),
                name if is_kept(name) => settings.kept.push((name.to_owned(), value.to_owned())),
                _ => {}
            }
        }
        let text = |name| env.get(name).and_then(OsStr::to_str).map(str::to_owned);
        // As git has it: the variables win, and the one that is a command before the one that is a program.
        let program = || text("GIT_SSH").map(|program| quoted(&program));
        if let Some(command) = text("GIT_SSH_COMMAND").or_else(program) {
            settings.ssh_command = Some(command);
        }
        settings
    }
}

/// Names come with section and member in lower case.
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

/// As a shell reads it as one word.
pub(super) fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_the_users_settings_those_are_kept_that_say_who_the_user_is() {
        let listed = b"credential.helper\nstore\0credential.https://h.example.helper\n!f\0http.sslcainfo\n/ca\0\
            http.https://h.example/.extraheader\nAuthorization: x\0http.proxy\nhttp://evil:1\0http.https://h.example.proxy\nx\0\
            http.sslverify\nfalse\0http.curloptresolve\nh:443:10.0.0.1\0url.https://evil/.insteadof\nhttps://\0\
            core.fsmonitor\ntouch x\0core.hookspath\n/x\0core.sshcommand\nssh -i key\0core.askpass\n/ask\0\
            push.followtags\ntrue\0push.pushoption\nx\0include.path\n/x\0core.gitproxy\nx\0filter.x.clean\ny\0";
        let settings = Settings::read(listed, &HostEnv::default());
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
        let env = HostEnv::of([("GIT_SSH".into(), "/a b/ssh".into())]);
        assert_eq!(Settings::read(listed, &env).ssh_command.as_deref(), Some("'/a b/ssh'"));
        let env = HostEnv::of([("GIT_SSH".into(), "x".into()), ("GIT_SSH_COMMAND".into(), "ssh -v".into())]);
        assert_eq!(Settings::read(listed, &env).ssh_command.as_deref(), Some("ssh -v"));
    }
}
