//! What git gets of its user's environment and settings: who the user is for servers, and nothing that would have it go
//! somewhere else, work somewhere else, or run something.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

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
    /// The files that they come from. One that isn't absolute is the repository's own, which is the host's.
    pub(super) origins: Vec<PathBuf>,
}

/// Variables that every program needs, or that programs which ask for passwords do. The search path goes another way: it is checked.
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

/// Variables that tell git and ssh what to run and what to read.
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

    /// What programs the variables name, and what authorities.
    pub(super) fn of_programs(&self) -> impl Iterator<Item = &OsStr> {
        ["SSH_ASKPASS"].into_iter().chain(OF_SERVERS).filter_map(|name| self.get(name))
    }

    /// What it needs to list the user's settings. Paths that aren't absolute are left out: git would begin them somewhere else.
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

// === impl Settings ===

impl Settings {
    /// Reads what `git config --list --show-origin -z` has said: where each setting comes from, and the setting.
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
        assert_eq!(settings.origins, [Path::new("/home/u/.gitconfig")]);
        let env = HostEnv::of([("GIT_SSH".into(), "/a b/ssh".into())]);
        assert_eq!(Settings::read(listed, &env).ssh_command.as_deref(), Some("'/a b/ssh'"));
        let env = HostEnv::of([("GIT_SSH".into(), "x".into()), ("GIT_SSH_COMMAND".into(), "ssh -v".into())]);
        assert_eq!(Settings::read(listed, &env).ssh_command.as_deref(), Some("ssh -v"));
    }
}
