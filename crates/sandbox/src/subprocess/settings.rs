//! Settings of the subprocess backend. Unknown members and invalid values are refused.

use super::search_path::SafePrefix;
use serde::Deserialize;
use std::time::Duration;

/// The settings (`sandboxing.subprocess`).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SubprocessSettings {
    /// Time limit of a program if its caller sets none. The caller has to enforce it: a sandbox has no clock.
    #[serde(rename = "timeout_seconds")]
    pub timeout: Timeout,
    /// True if files outside of the workspace are out of reach, except for the system's programs and libraries.
    pub workspace_only: bool,
    /// True if `PATH` holds only directories of the system.
    pub restricted_path: bool,
    /// The host's variables that programs get; names are compared as they are written.
    pub env_allowlist: Vec<VariablePattern>,
    /// Variables that programs never get, allowed or not; the case is ignored.
    pub env_denylist_patterns: Vec<VariablePattern>,
    /// Further directories that `PATH` may hold, and that may be read.
    pub extra_safe_path_prefixes: Vec<SafePrefix>,
}

/// Time limit of a program: more than zero, ten minutes at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "f64")]
pub struct Timeout(Duration);

/// Pattern for the name of a variable: `*` matches any characters and `?` any one.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct VariablePattern(String);

/// A setting that can't be.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SettingsError {
    /// No such time.
    #[error("timeout_seconds is {found}; it must be more than 0 and at most 600")]
    Timeout {
        /// Value that was found.
        found: f64,
    },
    /// The pattern matches no possible name of a variable.
    #[error("invalid variable name pattern {pattern:?}")]
    Pattern {
        /// Pattern that was found.
        pattern: String,
    },
}

const ALLOWED: [&str; 10] = ["HOME", "PATH", "USER", "LANG", "LC_*", "TERM", "TZ", "TMPDIR", "TEMP", "TMP"];
const DENIED: [&str; 6] = ["*KEY*", "*SECRET*", "*TOKEN*", "*PASSWORD*", "*CREDENTIAL*", "*PRIVATE*"];

// === impl SubprocessSettings ===

impl Default for SubprocessSettings {
    fn default() -> Self {
        let patterns =
            |names: &[&str]| names.iter().map(|name| VariablePattern((*name).to_owned())).collect();
        Self {
            timeout: Timeout(Duration::from_secs(30)),
            workspace_only: true,
            restricted_path: true,
            env_allowlist: patterns(&ALLOWED),
            env_denylist_patterns: patterns(&DENIED),
            extra_safe_path_prefixes: Vec::new(),
        }
    }
}

// === impl Timeout ===

impl Timeout {
    /// The time.
    pub fn duration(self) -> Duration {
        self.0
    }
}

impl TryFrom<f64> for Timeout {
    type Error = SettingsError;

    fn try_from(seconds: f64) -> Result<Self, SettingsError> {
        match Duration::try_from_secs_f64(seconds) {
            Ok(duration) if !duration.is_zero() && seconds <= 600.0 => Ok(Self(duration)),
            _ => Err(SettingsError::Timeout { found: seconds }),
        }
    }
}

// === impl VariablePattern ===

impl VariablePattern {
    /// Returns true if it matches a name.
    pub fn fits(&self, name: &str) -> bool {
        fits(self.0.as_bytes(), name.as_bytes())
    }

    /// Returns true if it matches a name, ignoring case.
    pub fn fits_in_any_case(&self, name: &str) -> bool {
        fits(self.0.to_ascii_uppercase().as_bytes(), name.to_ascii_uppercase().as_bytes())
    }
}

impl TryFrom<String> for VariablePattern {
    type Error = SettingsError;

    fn try_from(pattern: String) -> Result<Self, SettingsError> {
        match pattern.is_empty() || pattern.contains(['=', '\0', '[', ']']) {
            true => Err(SettingsError::Pattern { pattern }),
            false => Ok(Self(pattern)),
        }
    }
}

/// Matches a name. It backtracks to the last star at most, so it takes no more than length times length steps.
fn fits(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(byte) if *byte == b'?' || *byte == name[n] => {
                p += 1;
                n += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    (p, n) = (at + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> VariablePattern {
        VariablePattern::try_from(text.to_owned()).unwrap()
    }

    #[test]
    fn a_star_stands_for_any_characters() {
        for (text, name, expected) in [
            ("LC_*", "LC_ALL", true),
            ("LC_*", "LC_", true),
            ("LC_*", "XLC_ALL", false),
            ("*KEY*", "AWS_KEY_ID", true),
            ("*KEY*", "KEY", true),
            ("*KEY*", "KE_Y", false),
            ("A*B*C", "AxxBxxBC", true),
            ("A*B*C", "AxxBxx", false),
            ("T?", "TZ", true),
            ("T?", "T", false),
            ("HOME", "HOMES", false),
        ] {
            assert_eq!(pattern(text).fits(name), expected, "{text} {name}");
        }
        assert!(!pattern("HOME").fits("Home"));
        assert!(pattern("*key*").fits_in_any_case("My_Key"));
    }

    #[test]
    fn the_defaults_are_those_of_the_specification() {
        let settings: SubprocessSettings = serde_json::from_str("{}").unwrap();
        assert_eq!(settings, SubprocessSettings::default());
        assert_eq!(settings.timeout.duration(), Duration::from_secs(30));
        assert!(settings.workspace_only && settings.restricted_path);
    }

    #[test]
    fn what_is_unknown_or_makes_no_sense_is_refused() {
        for text in [
            r#"{"timeout": 30}"#,
            r#"{"timeout_seconds": 0}"#,
            r#"{"timeout_seconds": 600.5}"#,
            r#"{"timeout_seconds": -1}"#,
            r#"{"env_allowlist": [""]}"#,
            r#"{"env_denylist_patterns": ["A=B"]}"#,
            r#"{"extra_safe_path_prefixes": ["relative"]}"#,
        ] {
            assert!(serde_json::from_str::<SubprocessSettings>(text).is_err(), "{text}");
        }
        let settings: SubprocessSettings = serde_json::from_str(r#"{"timeout_seconds": 0.5}"#).unwrap();
        assert_eq!(settings.timeout.duration(), Duration::from_millis(500));
    }
}
