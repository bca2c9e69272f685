//! Tests of the variables that are passed on, of those that aren't, and of their precedence.

use super::*;

fn own() -> PrivateDirectories<'static> {
    PrivateDirectories { home: Path::new("/own/home"), temporary: Path::new("/own/tmp") }
}

fn made(host: &[(&str, &str)], asked: &[(&str, &str)]) -> Result<Vec<(String, String)>, EnvironmentError> {
    made_with(host, asked, &SubprocessSettings::default())
}

fn made_with(
    host: &[(&str, &str)],
    asked: &[(&str, &str)],
    settings: &SubprocessSettings,
) -> Result<Vec<(String, String)>, EnvironmentError> {
    let host = host.iter().map(|(name, value)| (name.into(), value.into()));
    let asked = asked.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let made = made_from_nothing(host, &asked, settings, own())?;
    let text = |text: OsString| text.into_string().unwrap();
    Ok(made.into_iter().map(|(name, value)| (text(name), text(value))).collect())
}

fn value<'m>(made: &'m [(String, String)], name: &str) -> Option<&'m str> {
    made.iter().find(|(one, _)| one == name).map(|(_, value)| value.as_str())
}

#[test]
fn what_is_allowed_comes_through_and_nothing_else() {
    let host =
        [("LANG", "de"), ("LC_ALL", "C"), ("LC_X", "1"), ("EXTRA", "no"), ("lang", "no"), ("PATH", "/bin")];
    let made = made(&host, &[]).unwrap();
    let names: Vec<&str> = made.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["HOME", "LANG", "LC_ALL", "LC_X", "PATH", "TMPDIR"]);
}

#[test]
fn what_is_denied_does_not_come_through_allowed_or_not() {
    let settings: SubprocessSettings =
        serde_json::from_str(r#"{"env_allowlist": ["*"], "env_denylist_patterns": ["*KEY*", "*Token*"]}"#)
            .unwrap();
    let host = [("API_KEY", "1"), ("api_key", "1"), ("MY_TOKEN", "1"), ("PLAIN", "1"), ("PATH", "/bin")];
    let made = made_with(&host, &[], &settings).unwrap();
    let names: Vec<&str> = made.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["HOME", "PATH", "PLAIN", "TMPDIR"]);
    // The control: without the list they do.
    let settings: SubprocessSettings =
        serde_json::from_str(r#"{"env_allowlist": ["*"], "env_denylist_patterns": []}"#).unwrap();
    assert_eq!(made_with(&host, &[], &settings).unwrap().len(), 7);
}

#[test]
fn what_was_asked_for_wins_also_if_it_sounds_like_a_secret() {
    let made =
        made(&[("LANG", "de"), ("PATH", "/bin")], &[("LANG", "fr"), ("GIVEN_TOKEN", "meant")]).unwrap();
    assert_eq!(value(&made, "LANG"), Some("fr"));
    assert_eq!(value(&made, "GIVEN_TOKEN"), Some("meant"));
}

#[test]
fn what_makes_programs_load_something_else_comes_from_nobody() {
    let everything: SubprocessSettings =
        serde_json::from_str(r#"{"env_allowlist": ["*"], "env_denylist_patterns": []}"#).unwrap();
    for name in [
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "LD_AUDIT",
        "DYLD_INSERT_LIBRARIES",
        "DYLD_LIBRARY_PATH",
        "PYTHONPATH",
        "PYTHONSTARTUP",
        "NODE_PATH",
        "NODE_OPTIONS",
        "RUBYLIB",
        "RUBYOPT",
        "PERL5LIB",
        "PERL5OPT",
        "BASH_ENV",
        "ENV",
        "GIT_SSH_COMMAND",
        "GIT_EXEC_PATH",
        "GIT_CONFIG_COUNT",
        "GIT_CONFIG_KEY_0",
        "GIT_EXTERNAL_DIFF",
        "GIT_DIR",
        "BASH_FUNC_ls%%",
        "GCONV_PATH",
        "ld_preload",
    ] {
        let refused = made(&[], &[(name, "/x")]);
        assert_eq!(refused, Err(EnvironmentError::Injection { name: name.to_owned() }));
        let made = made_with(&[(name, "/x"), ("PATH", "/bin")], &[], &everything).unwrap();
        assert_eq!(value(&made, name), None, "{name}");
    }
}

#[test]
fn what_hardens_git_may_be_asked_for() {
    let asked =
        [("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_TERMINAL_PROMPT", "0"), ("GIT_CONFIG_NOSYSTEM", "1")];
    let made = made(&[("PATH", "/bin")], &asked).unwrap();
    assert_eq!(value(&made, "GIT_CONFIG_GLOBAL"), Some("/dev/null"));
    assert!(check("GIT_CONFIG_GLOBAL", "/workspace/evil").is_err());
}

#[test]
fn a_search_path_that_was_asked_for_is_restricted_too_however_it_is_written() {
    for name in ["PATH", "Path", "path"] {
        let made = made(&[("PATH", "/bin")], &[(name, "/workspace/bin:/usr/bin-evil:/usr/bin")]).unwrap();
        assert_eq!(value(&made, "PATH"), Some("/usr/bin"));
        assert_eq!(made.iter().filter(|(name, _)| name.eq_ignore_ascii_case("path")).count(), 1);
    }
}

#[test]
fn names_that_are_none_are_refused() {
    for name in ["", "A=B", "A\0"] {
        assert_eq!(made(&[], &[(name, "x")]), Err(EnvironmentError::Name { name: name.to_owned() }));
    }
}

#[test]
fn home_and_temporary_directory_are_the_sandboxs_own_unless_all_files_are_open() {
    let host = [("HOME", "/root"), ("TMPDIR", "/tmp"), ("TMP", "/tmp"), ("PATH", "/bin")];
    let own = made(&host, &[]).unwrap();
    let values = ["HOME", "TMPDIR", "TMP", "TEMP"].map(|name| value(&own, name));
    assert_eq!(values, [Some("/own/home"), Some("/own/tmp"), Some("/own/tmp"), None]);
    let open = SubprocessSettings { workspace_only: false, ..SubprocessSettings::default() };
    let made = made_with(&host, &[], &open).unwrap();
    assert_eq!(["HOME", "TMPDIR"].map(|name| value(&made, name)), [Some("/root"), Some("/tmp")]);
}
