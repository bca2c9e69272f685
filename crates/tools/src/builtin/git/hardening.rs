//! Hardens git so that a repository can't make it run a program, connect to a server, or prompt.
//!
//! Some settings run programs under a name that the repository chooses (`filter.NAME.clean`). So the settings' names are listed
//! first, which runs nothing, and every setting that may run a program is overridden by its name. The overrides are passed in
//! environment variables, which can express any name.

use crate::answer::Failure;
use belljar_contract::tool::DomainCode;
use std::collections::BTreeMap;

/// Settings that are overridden in every repository.
const ALWAYS: [(&str, &str); 35] = [
    // Settings that run programs.
    ("core.hooksPath", "/dev/null"),
    ("core.fsmonitor", "false"),
    ("core.pager", "cat"),
    ("core.editor", "false"),
    ("core.askPass", ""),
    ("core.sshCommand", "false"),
    ("core.gitProxy", ""),
    ("core.alternateRefsCommand", ""),
    ("sequence.editor", "false"),
    ("credential.helper", ""),
    ("diff.external", ""),
    ("gpg.program", "false"),
    ("gpg.openpgp.program", "false"),
    ("gpg.x509.program", "false"),
    ("gpg.ssh.program", "false"),
    ("gpg.ssh.defaultKeyCommand", ""),
    ("interactive.diffFilter", ""),
    ("uploadpack.packObjectsHook", ""),
    ("gc.recentObjectsHook", ""),
    // Settings that make git start other processes.
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
    ("commit.gpgSign", "false"),
    ("tag.gpgSign", "false"),
    ("log.showSignature", "false"),
    ("column.ui", "never"),
    ("color.ui", "false"),
    ("rerere.enabled", "false"),
    // A nested repository has settings of its own, which were not checked.
    ("submodule.recurse", "false"),
    ("diff.ignoreSubmodules", "all"),
    ("status.submoduleSummary", "false"),
    ("diff.submodule", "short"),
    // Attribute and ignore files outside of the repository.
    ("core.attributesFile", "/dev/null"),
    ("core.excludesFile", "/dev/null"),
    ("protocol.allow", "never"),
    ("advice.graftFileDeprecated", "false"),
];

/// Environment variables of git.
const VARIABLES: [(&str, &str); 18] = [
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_PROTOCOL_FROM_USER", "0"),
    // The list of allowed protocols has no real protocol, and overrides every setting.
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_SSH_COMMAND", "false"),
    ("GIT_ASKPASS", "false"),
    ("SSH_ASKPASS", "false"),
    ("GIT_EDITOR", "false"),
    ("GIT_PAGER", "cat"),
    ("GIT_LITERAL_PATHSPECS", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("LC_ALL", "C.UTF-8"),
    // The repository's place is given, so git doesn't search parent directories.
    ("GIT_DIR", ".git"),
    ("GIT_WORK_TREE", "."),
];

/// Last parts of names of settings whose values are run, in any section.
const RUN: [&str; 17] = [
    "askpass",
    "clean",
    "cmd",
    "command",
    "driver",
    "editor",
    "helper",
    "pager",
    "process",
    "program",
    "proxy",
    "receivepack",
    "smudge",
    "sshcommand",
    "textconv",
    "uploadpack",
    "vcs",
];

/// Maximum number of overridden settings. No real repository has more.
const MOST_SETTINGS: usize = 10_000;

/// Returns git's environment before the repository's settings are known.
pub(super) fn environment() -> BTreeMap<String, String> {
    let mut env: BTreeMap<String, String> =
        VARIABLES.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    overrule(&mut env, ALWAYS.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
    env
}

/// Returns the environment for a repository with these settings, named as `git config --list --name-only -z` prints them.
///
/// # Errors
/// [`Failure`] for a repository with settings that can't be overridden by name.
pub(super) fn environment_for(names: &[u8]) -> Result<BTreeMap<String, String>, Failure> {
    let mut overruled: BTreeMap<String, String> =
        ALWAYS.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let name = std::str::from_utf8(name).map_err(|_| strange())?;
        overruled.extend(instead(name));
        if overruled.len() > MOST_SETTINGS {
            return Err(strange());
        }
    }
    let mut env = environment();
    overrule(&mut env, overruled);
    Ok(env)
}

/// Returns the overrides of a setting, if it may run a program.
fn instead(name: &str) -> Vec<(String, String)> {
    let Some((section, rest)) = name.split_once('.') else { return Vec::new() };
    let (subsection, last) =
        rest.rsplit_once('.').map_or((None, rest), |(middle, last)| (Some(middle), last));
    let last = last.to_ascii_lowercase();
    let mut said = Vec::new();
    if RUN.contains(&last.as_str()) || last.ends_with("hook") || last.ends_with("command") {
        said.push((name.to_owned(), String::new()));
    }
    if let Some(subsection) = subsection {
        match section.to_ascii_lowercase().as_str() {
            // A required filter that does nothing would fail.
            "filter" => said.push((format!("{section}.{subsection}.required"), "false".to_owned())),
            "hook" => said.push((format!("{section}.{subsection}.enabled"), "false".to_owned())),
            "submodule" => said.push((format!("{section}.{subsection}.ignore"), "all".to_owned())),
            "protocol" => said.push((format!("{section}.{subsection}.allow"), "never".to_owned())),
            "pager" | "gpg" | "alias" => said.push((name.to_owned(), "false".to_owned())),
            _ => {}
        }
    }
    said
}

fn overrule(env: &mut BTreeMap<String, String>, settings: impl IntoIterator<Item = (String, String)>) {
    let mut count = 0;
    for (name, value) in settings {
        env.insert(format!("GIT_CONFIG_KEY_{count}"), name);
        env.insert(format!("GIT_CONFIG_VALUE_{count}"), value);
        count += 1;
    }
    env.insert("GIT_CONFIG_COUNT".to_owned(), count.to_string());
}

fn strange() -> Failure {
    Failure::new(
        DomainCode::NotSupported,
        "the repository's git configuration contains setting names \
    that are not supported",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn overruled(names: &[u8]) -> BTreeMap<String, String> {
        let env = environment_for(names).unwrap();
        let count: usize = env["GIT_CONFIG_COUNT"].parse().unwrap();
        let setting = |number: usize| {
            let of = |what: &str| env[&format!("GIT_CONFIG_{what}_{number}")].clone();
            (of("KEY"), of("VALUE"))
        };
        (0..count).map(setting).collect()
    }

    #[test]
    fn git_settings_that_run_programs_are_overridden() {
        let names: &[u8] = b"core.bare\0filter.a=b.c\nd.clean\0filter.X.required\0diff.x.textconv\0diff.x.command\0\
            merge.m.driver\0hook.mine.command\0mergetool.x.cmd\0remote.origin.url\0credential.https://a.b.helper\0\
            submodule.s.url\0protocol.ext.allow\0some.future.newHook\0difftool.z.cmd\0tar.x.command\0";
        let said = overruled(names);
        for (name, value) in [
            ("filter.a=b.c\nd.clean", ""),
            ("filter.a=b.c\nd.required", "false"),
            ("filter.X.required", "false"),
            ("diff.x.textconv", ""),
            ("diff.x.command", ""),
            ("merge.m.driver", ""),
            ("hook.mine.command", ""),
            ("hook.mine.enabled", "false"),
            ("mergetool.x.cmd", ""),
            ("credential.https://a.b.helper", ""),
            ("submodule.s.ignore", "all"),
            ("protocol.ext.allow", "never"),
            ("some.future.newHook", ""),
            ("tar.x.command", ""),
            ("core.hooksPath", "/dev/null"),
        ] {
            assert_eq!(said.get(name).map(String::as_str), Some(value), "{name:?}");
        }
        assert!(!said.contains_key("core.bare") && !said.contains_key("remote.origin.url"));
        assert!(environment_for(b"filter.\xff.clean\0").is_err());
    }
}
