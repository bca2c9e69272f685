//! Environment of programs: built from an empty one, with the variables that are allowed and not denied. Pure.
//!
//! A variable that the caller sets by name is set, also if its name sounds like a secret's: it was meant. Variables that
//! make a program load or run something else are refused from every caller, because the caller seldom knows their effect.

use super::search_path::{NoSafePathError, restrict};
use super::settings::SubprocessSettings;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Variables by name.
pub type Variables = BTreeMap<OsString, OsString>;

/// The sandbox's own directories.
#[derive(Debug, Clone, Copy)]
pub struct PrivateDirectories<'a> {
    /// Home directory.
    pub home: &'a Path,
    /// Temporary directory.
    pub temporary: &'a Path,
}

/// Why there is no environment.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EnvironmentError {
    /// A variable may not be set.
    #[error("variable {name} cannot be set: it makes programs load or run other code")]
    Injection {
        /// Name of the variable.
        name: String,
    },
    /// A variable can't be set.
    #[error("invalid variable name {name:?}")]
    Name {
        /// Name of the variable.
        name: String,
    },
    /// No directory is left in which programs could be looked up.
    #[error(transparent)]
    SearchPath(#[from] NoSafePathError),
}

/// Whole names of variables that make programs load or run something else.
const INJECTING: [&str; 67] = [
    "BASHOPTS",
    "BASH_ENV",
    "BUNDLE_GEMFILE",
    "BROWSER",
    "CDPATH",
    "CLASSPATH",
    "DOTNET_STARTUP_HOOKS",
    "EDITOR",
    "ENV",
    "GCONV_PATH",
    "GEM_HOME",
    "GEM_PATH",
    "GETCONF_DIR",
    "GLIBC_TUNABLES",
    "GOFLAGS",
    "GRADLE_OPTS",
    "HOSTALIASES",
    "IFS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "LESSOPEN",
    "LESSCLOSE",
    "LOCPATH",
    "MAKEFLAGS",
    "MANPAGER",
    "MAVEN_OPTS",
    "NIS_PATH",
    "NLSPATH",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NODE_EXTRA_CA_CERTS",
    "OPENSSL_CONF",
    "OPENSSL_ENGINES",
    "OPENSSL_MODULES",
    "PAGER",
    "PERL5DB",
    "PERL5LIB",
    "PERL5OPT",
    "PERLLIB",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "PROMPT_COMMAND",
    "PS4",
    "PYTHONBREAKPOINT",
    "PYTHONEXECUTABLE",
    "PYTHONHOME",
    "PYTHONINSPECT",
    "PYTHONPATH",
    "PYTHONPLATLIBDIR",
    "PYTHONPYCACHEPREFIX",
    "PYTHONSTARTUP",
    "PYTHONUSERBASE",
    "PYTHONWARNINGS",
    "RESOLV_HOST_CONF",
    "RES_OPTIONS",
    "RUBYLIB",
    "RUBYOPT",
    "RUSTC",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTDOC",
    "SHELLOPTS",
    "SSH_ASKPASS",
    "SSLKEYLOGFILE",
    "VISUAL",
    "ZDOTDIR",
    "_JAVA_OPTIONS",
];

/// Prefixes of whole families of such variables. All of Git's are listed: those that can do no harm are listed below.
const INJECTING_FAMILIES: [&str; 11] = [
    "BASH_FUNC_",
    "CORECLR_",
    "COR_PROFILER",
    "DYLD_",
    "GIT_",
    "LD_",
    "LUA_CPATH",
    "LUA_INIT",
    "LUA_PATH",
    "NPM_CONFIG_",
    "MALLOC_",
];

/// Git's variables that name neither a program nor a place.
const HARMLESS_OF_GIT: [&str; 13] = [
    "GIT_AUTHOR_DATE",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_NAME",
    "GIT_CEILING_DIRECTORIES",
    "GIT_COMMITTER_DATE",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_CONFIG_NOSYSTEM",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OPTIONAL_LOCKS",
    "GIT_PROTOCOL_FROM_USER",
    "GIT_TERMINAL_PROMPT",
];

/// Variables that may name a path if nothing exists there.
const HARMLESS_IF_NOWHERE: [&str; 2] = ["GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"];

/// Returns the environment: the host's variables as far as the settings allow them, the sandbox's own directories, and the
/// requested variables, which override the others.
///
/// # Errors
/// [`EnvironmentError`] for the first variable that may not be set.
pub fn made_from_nothing(
    host: impl IntoIterator<Item = (OsString, OsString)>,
    asked: &BTreeMap<String, String>,
    settings: &SubprocessSettings,
    own: PrivateDirectories<'_>,
) -> Result<Variables, EnvironmentError> {
    let mut made: Variables = let_through(host, settings).collect();
    if settings.workspace_only {
        // The host's are out of reach then, and a program that only finds its home closed gives up.
        let temporary =
            ["TEMP", "TMP"].map(OsString::from).into_iter().filter(|name| made.contains_key(name));
        let temporary: Vec<_> = temporary.chain(["TMPDIR".into()]).collect();
        made.extend(temporary.into_iter().map(|name| (name, own.temporary.into())));
        made.insert("HOME".into(), own.home.into());
    }
    for (name, value) in asked {
        check(name, value)?;
        made.insert(folded(name).into(), value.into());
    }
    let path = made.remove(OsStr::new("PATH")).unwrap_or_default();
    let path = match settings.restricted_path {
        true => restrict(&path, &settings.extra_safe_path_prefixes, Path::is_dir)?,
        false => path,
    };
    if !path.is_empty() {
        made.insert("PATH".into(), path);
    }
    Ok(made)
}

/// The host's variables that these settings let through.
pub(crate) fn let_through(
    host: impl IntoIterator<Item = (OsString, OsString)>,
    settings: &SubprocessSettings,
) -> impl Iterator<Item = (OsString, OsString)> {
    host.into_iter().filter(|(name, value)| comes_through(name, value, settings))
}

fn comes_through(name: &OsStr, value: &OsStr, settings: &SubprocessSettings) -> bool {
    let Some(name) = name.to_str() else { return false };
    settings.env_allowlist.iter().any(|pattern| pattern.fits(name))
        && !settings.env_denylist_patterns.iter().any(|pattern| pattern.fits_in_any_case(name))
        && !injects(name, value)
}

fn check(name: &str, value: &str) -> Result<(), EnvironmentError> {
    if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
        return Err(EnvironmentError::Name { name: name.to_owned() });
    }
    match injects(name, OsStr::new(value)) {
        true => Err(EnvironmentError::Injection { name: name.to_owned() }),
        false => Ok(()),
    }
}

/// Returns the name to compare by: there is one search path, however it is written.
fn folded(name: &str) -> &str {
    if name.eq_ignore_ascii_case("PATH") { "PATH" } else { name }
}

fn injects(name: &str, value: &OsStr) -> bool {
    let name = name.to_ascii_uppercase();
    let is_harmless = HARMLESS_OF_GIT.contains(&name.as_str())
        || (HARMLESS_IF_NOWHERE.contains(&name.as_str()) && value == "/dev/null");
    let is_listed = INJECTING.contains(&name.as_str())
        || INJECTING_FAMILIES.iter().any(|family| name.starts_with(family));
    is_listed && !is_harmless
}

#[cfg(test)]
mod tests;
