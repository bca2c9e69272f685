//! Takes secrets out of texts. Two scanners share one table of token forms.
//!
//! - The scanner for logs ([`Redactor::new`]) also goes by the names beside values and by wide forms. Better too much than too
//!   little: a word too many that is hidden costs a reader of a log a moment.
//! - The exact scanner ([`Redactor::of_token_forms`]) hides only what has the precise form of a token or a private key. It is for
//!   texts that are worked with, such as source code in the answer of a tool: `token: int = 3` and `npm_config_registry` stay.
//!
//! Redacted text stays redacted when it is redacted again.

use regex::{Captures, Regex};
use serde_json::Value;
use std::time::Instant;

/// Takes out secrets.
#[derive(Debug)]
pub struct Redactor {
    /// `None` if the patterns can't be compiled; then everything is hidden.
    patterns: Option<RedactionPatterns>,
}

#[derive(Debug)]
struct RedactionPatterns {
    secrets: Vec<Regex>,
    /// The name of a member that holds a secret; `None` if values alone are looked at.
    name: Option<Regex>,
}

/// Replacement for a secret.
const HIDDEN: &str = "***";

/// Maximum number of passes over a text.
const LOOKS: usize = 8;

/// The names under which secrets are passed around.
const NAMES: &str = "client_secret|client_id|refresh_token|access_token|code_verifier|api[_-]?key|api[_-]?secret|\
    id_token|assertion|passwd|password|passphrase|pwd|bearer|authorization|proxy-authorization|secret|token|\
    private[_-]?key|credentials?|cookie|session[_-]?key|auth";

/// A token that is known by its beginning. Both patterns consist of letters, digits, `-`, `_`, `.` and `=` alone.
struct TokenForm {
    /// The form as its issuer makes it: nothing else has it but by intent.
    exact: &'static str,
    /// Pattern for logs: it also matches truncated tokens, and other text that begins like one.
    wide: &'static str,
}

/// Fernet, JWT (signed or encrypted), and the tokens of large services and of Belljar.
const TOKEN_FORMS: [TokenForm; 6] = [
    TokenForm { exact: r"\bgAAAAA[A-Za-z0-9_-]{90,}={0,2}", wide: r"\bgAAAAA[A-Za-z0-9_-]{20,}={0,2}" },
    TokenForm {
        exact: r"\beyJ[A-Za-z0-9_-]{10,}\.(?:eyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]{16,}|[A-Za-z0-9_-]*\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{16,})",
        wide: r"\beyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?",
    },
    TokenForm {
        exact: r"\b(?:sk-(?:proj|svcacct|admin|ant|or|lf)-[A-Za-z0-9_-]{20,}|sk-[A-Za-z0-9]{20,}|(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{16,})",
        wide: r"\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}",
    },
    TokenForm { exact: r"\b(?:AKIA|ASIA)[A-Z2-7]{16}\b", wide: r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}" },
    TokenForm {
        exact: r"\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{60,}|glpat-[A-Za-z0-9_-]{20,}|npm_[A-Za-z0-9]{36,}|pypi-AgE[A-Za-z0-9_-]{50,}|xox[abeoprs]-[0-9]{6,}-[A-Za-z0-9-]{10,}|hf_[A-Za-z0-9]{34,}|AIza[A-Za-z0-9_-]{35})",
        wide: r"\b(?:gh[pousr]_|github_pat_|glpat-|npm_|pypi-|xox[abeoprs]-|hf_|AIza)[A-Za-z0-9_-]{10,}",
    },
    TokenForm { exact: r"\bbjt_[0-9a-f]{64}", wide: r"\bbjt_[0-9a-f]{64}" },
];

/// The Base64 of a private key: its whole lines and the last one before its end, so that nothing else that follows is hidden. Lines may
/// be separated as a string of JSON writes it.
const PRIVATE_KEY: &str = r"(?<keep>-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----)(?:(?:\s|\\[rn])*[A-Za-z0-9+/]{40,}={0,2})+(?:(?:(?:\s|\\[rn])*[A-Za-z0-9+/]+={0,2})?(?<after>(?:\s|\\[rn])*-----END))?";

// === impl Redactor ===

impl Redactor {
    /// The scanner for logs.
    pub fn new() -> Self {
        let secrets = [
            // A private key, whole or cut off.
            r"(?s)(?<keep>-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----)(?:.*?(?<after>-----END [A-Z0-9 ]*PRIVATE KEY-----)|.*)".to_owned(),
            // User and password in a URL.
            r"(?<keep>[A-Za-z][A-Za-z0-9+.-]*://)[^/\s@'\x22]+(?<after>@)".to_owned(),
            // A header, and its value alone.
            r"(?i)(?<keep>\b(?:bearer|basic|token)\s+)[A-Za-z0-9._~+/=-]{8,}".to_owned(),
            // A member of JSON, escaped or not.
            format!(r#"(?i)(?<keep>\\?["'](?:(?:[\w-]*[_-])?(?:{NAMES})|code)\\?["']\s*:\s*\\?["'])(?:[^"'\\]|\\[^"'])+"#),
            // A field of a form, a variable, a setting.
            format!(r#"(?i)(?<keep>\b(?:(?:[\w-]*[_-])?(?:{NAMES})|code)\s*[=:]\s*["']?)[^\s&;,"']+"#),
        ];
        let secrets = secrets.into_iter().chain(TOKEN_FORMS.map(|form| form.wide.to_owned()));
        let secrets = secrets.map(|pattern| Regex::new(&pattern)).collect::<Result<_, _>>();
        let name = Regex::new(&format!("(?i)^(?:(?:.*[_-])?(?:{NAMES})|code)$"));
        Self {
            patterns: secrets
                .ok()
                .zip(name.ok())
                .map(|(secrets, name)| RedactionPatterns { secrets, name: Some(name) }),
        }
    }

    /// The exact scanner. Names beside a value say nothing to it, so it never hides a command that stands where a secret is expected
    /// (`TOKEN="$(cmd)"`).
    pub fn of_token_forms() -> Self {
        let forms = TOKEN_FORMS.map(|form| form.exact);
        let secrets = [PRIVATE_KEY].into_iter().chain(forms).map(Regex::new).collect::<Result<_, _>>();
        Self { patterns: secrets.ok().map(|secrets| RedactionPatterns { secrets, name: None }) }
    }

    /// The text without secrets.
    pub fn text(&self, text: &str) -> String {
        self.text_until(text, None).unwrap_or_default()
    }

    /// Redacts a text, unless that takes until the deadline: then `None`.
    ///
    /// Redaction can produce text that looks like a secret again (`https://password=a/b,c@`), so it is repeated until
    /// nothing changes. A text that keeps on changing is hidden as a whole.
    pub(super) fn text_until(&self, text: &str, deadline: Option<Instant>) -> Option<String> {
        let Some(patterns) = &self.patterns else { return Some(HIDDEN.to_owned()) };
        let mut text = text.to_owned();
        for _ in 0..LOOKS {
            let redacted = patterns.hide(&text, deadline)?;
            if redacted == text {
                return Some(text);
            }
            text = redacted;
        }
        Some(HIDDEN.to_owned())
    }

    /// The value without secrets, in texts and under names that say that one stands there.
    pub fn value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => items.iter().map(|item| self.value(item)).collect(),
            Value::Object(members) => {
                let redacted = members.iter().map(|(name, value)| {
                    let is_secret = value.is_string() && self.is_secret(name);
                    let value = if is_secret { Value::from(HIDDEN) } else { self.value(value) };
                    (self.text(name), value)
                });
                Value::Object(redacted.collect())
            }
            other => other.clone(),
        }
    }

    fn is_secret(&self, name: &str) -> bool {
        match &self.patterns {
            None => true,
            Some(patterns) => patterns.name.as_ref().is_some_and(|pattern| pattern.is_match(name)),
        }
    }
}

// === impl RedactionPatterns ===

impl RedactionPatterns {
    /// The text after one look for each pattern, unless the deadline passes.
    fn hide(&self, text: &str, deadline: Option<Instant>) -> Option<String> {
        self.secrets.iter().try_fold(text.to_owned(), |text, pattern| {
            let hide = |found: &Captures<'_>| {
                let [keep, after] =
                    ["keep", "after"].map(|part| found.name(part).map_or("", |part| part.as_str()));
                format!("{keep}{HIDDEN}{after}")
            };
            let is_in_time = deadline.is_none_or(|deadline| Instant::now() < deadline);
            is_in_time.then(|| pattern.replace_all(&text, hide).into_owned())
        })
    }
}

impl Default for Redactor {
    fn default() -> Self {
        Self::new()
    }
}
