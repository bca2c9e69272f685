//! Settings of Git that variables hold, and the files of settings that they name.

use super::syntax::{named, parameters};
use belljar_policy::handoff::GitSetting;
use std::ffi::OsString;
use std::path::PathBuf;

/// Variables that stand for settings.
const FOR_SETTINGS: [(&str, &str); 26] = [
    ("BROWSER", "browser.x.cmd"),
    ("EDITOR", "core.editor"),
    ("GIT_ASKPASS", "core.askpass"),
    ("GIT_EDITOR", "core.editor"),
    ("GIT_EXEC_PATH", "core.execpath"),
    ("GIT_EXTERNAL_DIFF", "diff.external"),
    ("GIT_MAN_VIEWER", "man.viewer"),
    ("GIT_PAGER", "core.pager"),
    ("GIT_PROXY_COMMAND", "core.gitproxy"),
    ("GIT_SEQUENCE_EDITOR", "sequence.editor"),
    ("GIT_SSH", "core.sshcommand"),
    ("GIT_SSH_COMMAND", "core.sshcommand"),
    ("GIT_SSL_CAINFO", "http.sslcainfo"),
    ("GIT_SSL_CAPATH", "http.sslcapath"),
    ("GIT_TEMPLATE_DIR", "init.templatedir"),
    ("LESS", "core.pager"),
    ("LESSCLOSE", "core.pager"),
    ("LESSKEY", "pager.keyfile"),
    ("LESSKEYIN", "pager.keyfile"),
    ("LESSKEYIN_SYSTEM", "pager.keyfile"),
    ("LESSKEY_SYSTEM", "pager.keyfile"),
    ("LESSOPEN", "core.pager"),
    ("MANPAGER", "core.pager"),
    ("PAGER", "core.pager"),
    ("SSH_ASKPASS", "core.askpass"),
    ("VISUAL", "core.editor"),
];

/// Maximum number of settings by numbered variables.
const MOST_NUMBERED: usize = 10_000;

/// Gives the value of a variable.
pub(super) type Variables<'v> = &'v dyn Fn(&str) -> Option<OsString>;

/// The settings in variables.
pub(super) fn settings(variables: Variables<'_>) -> Vec<GitSetting> {
    let text = |name: &str| variables(name).map(|value| value.to_string_lossy().into_owned());
    let mut settings = parameters(&text("GIT_CONFIG_PARAMETERS").unwrap_or_default());
    let count = text("GIT_CONFIG_COUNT").and_then(|count| count.trim().parse().ok()).unwrap_or(0);
    for number in 0..MOST_NUMBERED.min(count) {
        let name = text(&format!("GIT_CONFIG_KEY_{number}"));
        let value = text(&format!("GIT_CONFIG_VALUE_{number}"));
        settings.extend(name.zip(value).and_then(|(name, value)| named(&name, &value)));
    }
    let for_settings = FOR_SETTINGS.iter().filter_map(|(variable, name)| named(name, &text(variable)?));
    settings.extend(for_settings);
    settings
}

/// Returns the files by which Git gives attributes to paths in each repository, if no setting names another.
pub(super) fn attributes(variables: Variables<'_>) -> Vec<PathBuf> {
    let of_user = user_directory(variables).map(|git| git.join("attributes"));
    of_user.into_iter().chain(["/etc/gitattributes".into(), "/usr/local/etc/gitattributes".into()]).collect()
}

fn from(variables: Variables<'_>, name: &str) -> Option<PathBuf> {
    variables(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// The user's directory of Git.
fn user_directory(variables: Variables<'_>) -> Option<PathBuf> {
    let of_home = || from(variables, "HOME").map(|home| home.join(".config"));
    from(variables, "XDG_CONFIG_HOME").or_else(of_home).map(|config| config.join("git"))
}

/// Returns the files with the settings of the user and of the system.
pub(super) fn files(variables: Variables<'_>) -> Vec<PathBuf> {
    let from = |name: &str| from(variables, name);
    let config = user_directory(variables).map(|git| git.join("config"));
    let of_user = match from("GIT_CONFIG_GLOBAL") {
        Some(global) => vec![Some(global)],
        None => {
            vec![from("HOME").map(|home| home.join(".gitconfig")), config]
        }
    };
    let of_system = match from("GIT_CONFIG_SYSTEM") {
        Some(system) => vec![system],
        None => ["/etc/gitconfig", "/usr/local/etc/gitconfig"].map(PathBuf::from).to_vec(),
    };
    of_user.into_iter().flatten().chain(of_system).collect()
}
