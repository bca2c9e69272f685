//! Takes out of texts what looks like a secret: what keys are named, and what secrets look like by themselves.
//!
//! Better too much than too little: a word too many that is hidden costs a reader a moment. What is hidden stays hidden
//! when it is redacted again.

use regex::{Captures, Regex};
use serde_json::Value;
use std::time::Instant;

/// Takes out secrets.
#[derive(Debug)]
pub struct Redactor {
    /// Nothing if they can't be had; then everything is hidden.
    patterns: Option<Patterns>,
}

#[derive(Debug)]
struct Patterns {
    secrets: Vec<Regex>,
    /// The name of a member that holds a secret; `None` if values alone are looked at.
    name: Option<Regex>,
}

/// What stands where a secret was.
const HIDDEN: &str = "***";

/// How often a text is looked at for secrets.
const LOOKS: usize = 8;

/// The names under which secrets are passed around.
const NAMES: &str = "client_secret|client_id|refresh_token|access_token|code_verifier|api[_-]?key|api[_-]?secret|\
    id_token|assertion|passwd|password|passphrase|pwd|bearer|authorization|proxy-authorization|secret|token|\
    private[_-]?key|credentials?|cookie|session[_-]?key|auth";

/// Tokens that are known by their beginning: Fernet, JWT, Belljar's own, and those of large services. Each form consists of letters,
/// digits, `-`, `_`, `.` and `=` alone.
const TOKEN_FORMS: [&str; 6] = [
    r"\bgAAAAA[A-Za-z0-9_-]{20,}={0,2}",
    r"\beyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]+(?:\.[A-Za-z0-9_-]*)?",
    r"\b(?:sk|pk|rk)[-_][A-Za-z0-9_-]{16,}",
    r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}",
    r"\b(?:gh[pousr]_|github_pat_|glpat-|npm_|pypi-|xox[abeoprs]-|hf_|AIza)[A-Za-z0-9_-]{10,}",
    r"\bbjt_[0-9a-f]{64}",
];

/// The Base64 of a private key: whole lines of it alone, so that nothing else that follows is hidden.
const PRIVATE_KEY: &str = r"(?<keep>-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----)(?:\s*[A-Za-z0-9+/]{16,}={0,2})+";

// === impl Redactor ===

impl Redactor {
    /// One for all that is known.
    pub fn new() -> Self {
        let secrets = [
            // A private key, whole or cut off.
            r"(?s)(?<keep>-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----)(?:.*?(?<after>-----END [A-Z0-9 ]*PRIVATE KEY-----)|.*)".to_owned(),
            // Who logs in, in an address.
            r"(?<keep>[A-Za-z][A-Za-z0-9+.-]*://)[^/\s@'\x22]+(?<after>@)".to_owned(),
            // A header, and its value alone.
            r"(?i)(?<keep>\b(?:bearer|basic|token)\s+)[A-Za-z0-9._~+/=-]{8,}".to_owned(),
            // A member of JSON, escaped or not.
            format!(r#"(?i)(?<keep>\\?["'](?:(?:[\w-]*[_-])?(?:{NAMES})|code)\\?["']\s*:\s*\\?["'])(?:[^"'\\]|\\[^"'])+"#),
            // A field of a form, a variable, a setting.
            format!(r#"(?i)(?<keep>\b(?:(?:[\w-]*[_-])?(?:{NAMES})|code)\s*[=:]\s*["']?)[^\s&;,"']+"#),
        ];
        let secrets = secrets.into_iter().chain(TOKEN_FORMS.map(str::to_owned));
        let secrets = secrets.map(|pattern| Regex::new(&pattern)).collect::<Result<_, _>>();
        let name = Regex::new(&format!("(?i)^(?:(?:.*[_-])?(?:{NAMES})|code)$"));
        Self {
            patterns: secrets
                .ok()
                .zip(name.ok())
                .map(|(secrets, name)| Patterns { secrets, name: Some(name) }),
        }
    }

    /// One that hides only what has the precise form of a token or a private key. Names beside a value say nothing to it, so it never
    /// hides a command that stands where a secret is expected (`TOKEN="$(cmd)"`).
    pub fn of_token_forms() -> Self {
        let secrets = [PRIVATE_KEY].into_iter().chain(TOKEN_FORMS).map(Regex::new).collect::<Result<_, _>>();
        Self { patterns: secrets.ok().map(|secrets| Patterns { secrets, name: None }) }
    }

    /// The text without secrets.
    pub fn text(&self, text: &str) -> String {
        self.text_until(text, None).unwrap_or_default()
    }

    /// The same, unless it takes until the deadline; nothing then.
    ///
    /// What is hidden can put together what looks like a secret again (`https://password=a/b,c@`), so the text is
    /// looked at until nothing changes. A text that keeps on changing is made to, and hidden as a whole.
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

// === impl Patterns ===

impl Patterns {
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
