//! Scans answers of tools for secrets. The agent's autonomy decides how a secret is handled.
//!
//! Answers contain what agents work with: source code, settings, program output. So only known secrets of the host and texts with
//! the precise form of a token are detected, never a name beside a value: an agent that reads `token: int = 3` must be able to
//! edit it. Redactions are listed beside the data.

use crate::Gateway;
use crate::recording::Recording;
use belljar_contract::tool::{DomainCode, RedactionReport};
use belljar_policy::autonomy::AutonomyLevel;
use belljar_policy::secret::{KnownSecrets, hide};
use belljar_sandbox::shipping::Redactor;
use belljar_tools::answer::{Answer, Failure};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Handling of an answer with secrets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SecretHandling {
    /// It is forwarded unchanged, and the finding is recorded.
    Record,
    /// The secrets are redacted.
    Redact,
    /// It is not forwarded.
    Withhold,
}

/// Redacts a value, and notes the places.
struct SecretScan<'g> {
    secrets: &'g dyn KnownSecrets,
    tokens: &'g Redactor,
    /// JSON pointer to the current value.
    place: String,
    /// Number of texts with secrets.
    texts: u64,
    /// Pointers to the first of them.
    at: Vec<String>,
}

/// Maximum number of places that an answer lists.
const MOST_PLACES: usize = 32;

/// Notice in a redacted answer.
const NOTICE: &str = "`***` stands for a secret that is not passed on. It is not in the original: don't write it back, and don't \
    use a text with it as `old_text`.";

/// Suffix of a redacted failure message.
const NOTICE_OF_MESSAGE: &str = " (`***` stands for a secret)";

// === impl Gateway ===

impl Gateway {
    /// Returns the answer as the agent may have it. Only answers for agents with access rules are scanned.
    pub(crate) fn scanned(&self, answer: Answer, recording: &mut Recording) -> Answer {
        let Some(level) = recording.autonomy() else { return answer };
        let mut success = answer?;
        let mut scan = SecretScan::new(self.secrets.as_ref(), &self.token_forms);
        let redacted = scan.value(&success.data);
        let Some(found) = scan.found() else { return Ok(success) };
        recording.secrets(found.texts);
        match SecretHandling::of(level) {
            SecretHandling::Record => Ok(success),
            SecretHandling::Redact => {
                success.data = redacted;
                success.redacted = Some(found);
                Ok(success)
            }
            SecretHandling::Withhold => Err(Failure::new(
                DomainCode::PermissionDenied,
                format!("the answer is withheld because it contains a secret, {}", places(&found)),
            )),
        }
    }

    /// Returns a failure message without secrets (`docs/contracts/tools.md#t12.6`). Names such as `code:write` are kept, as
    /// agents must be able to use them.
    pub(crate) fn scrubbed(&self, message: &str) -> String {
        let scrubbed = self.token_forms.text(&hide(self.secrets.as_ref(), message));
        if scrubbed == message { scrubbed } else { scrubbed + NOTICE_OF_MESSAGE }
    }
}

/// Returns the places of secrets, for a message.
fn places(found: &RedactionReport) -> String {
    let at = found.at.iter().map(|place| if place.is_empty() { "the top" } else { place.as_str() });
    format!("at {}", at.collect::<Vec<_>>().join(", "))
}

// === impl SecretHandling ===

impl SecretHandling {
    const fn of(level: AutonomyLevel) -> Self {
        match level {
            AutonomyLevel::Full => Self::Record,
            AutonomyLevel::Semi | AutonomyLevel::Supervised => Self::Redact,
            AutonomyLevel::Locked => Self::Withhold,
        }
    }
}

// === impl SecretScan ===

impl<'g> SecretScan<'g> {
    fn new(secrets: &'g dyn KnownSecrets, tokens: &'g Redactor) -> Self {
        Self { secrets, tokens, place: String::new(), texts: 0, at: Vec::new() }
    }

    /// Returns the value without secrets, in texts and in member names.
    fn value(&mut self, value: &Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(items) => {
                let items = items.iter().enumerate();
                items.map(|(at, item)| self.within(&at.to_string(), |scan| scan.value(item))).collect()
            }
            Value::Object(members) => {
                let mut left = Map::new();
                for (name, member) in members {
                    let mut shown = self.text(name);
                    // Two names may be equal after redaction.
                    while left.contains_key(&shown) {
                        shown.push('*');
                    }
                    let member = self.within(&shown, |scan| scan.value(member));
                    left.insert(shown, member);
                }
                Value::Object(left)
            }
            other => other.clone(),
        }
    }

    fn text(&mut self, text: &str) -> String {
        let left = self.tokens.text(&hide(self.secrets, text));
        if left != text {
            self.texts += 1;
            if self.at.len() < MOST_PLACES {
                self.at.push(self.place.clone());
            }
        }
        left
    }

    /// Visits the member or element with that name or index.
    fn within<T>(&mut self, name: &str, look: impl FnOnce(&mut Self) -> T) -> T {
        let length = self.place.len();
        self.place.push('/');
        self.place.push_str(&name.replace('~', "~0").replace('/', "~1"));
        let seen = look(self);
        self.place.truncate(length);
        seen
    }

    /// Returns what was redacted; `None` if nothing was.
    fn found(self) -> Option<RedactionReport> {
        (self.texts > 0).then_some(RedactionReport {
            texts: self.texts,
            at: self.at,
            notice: Cow::Borrowed(NOTICE),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[derive(Debug)]
    struct FixedSecrets;

    impl KnownSecrets for FixedSecrets {
        fn find(&self, text: &str) -> Vec<std::ops::Range<usize>> {
            text.match_indices("hunter22").map(|(at, found)| at..at + found.len()).collect()
        }
    }

    fn scanned(value: &Value) -> (Value, Option<RedactionReport>) {
        let tokens = Redactor::of_token_forms();
        let mut scan = SecretScan::new(&FixedSecrets, &tokens);
        (scan.value(value), scan.found())
    }

    #[test]
    fn source_code_that_mentions_secrets_is_not_redacted() {
        let code = "code: int = 3\npassword = getpass()\nPWD=/workspace\ntoken = next(tokens)\nAuthorization: Bearer TOKEN_FROM_ENV\n\
            npm_config_registry=https://registry.example/\nALTER TABLE users ADD CONSTRAINT pk_user_accounts_history;\n\
            .sk-folding-cube-container {}\nclient_secret: \"${SECRET}\"\nhttps://user@host/\nASIAPACIFICREGION = 3\n\
            hf_model_repository_identifier\n-----BEGIN PRIVATE KEY-----\nsomeVeryLongIdentifierName()\n";
        let value = json!({ "content": code, "password": "getpass()", "token": 3, "api_key": "os.environ" });
        assert_eq!(scanned(&value), (value, None));
    }

    #[test]
    fn known_secrets_and_tokens_are_redacted_and_located() {
        let token = format!("ghp_{}", "a1B2c3D4e5F6".repeat(3));
        let key = format!(
            "-----BEGIN PRIVATE KEY-----\\n{}\\nAAAA\\n-----END",
            "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC".repeat(2)
        );
        let value = json!({ "content": format!("a = '{token}'; b = 1"), "more": [1, "x hunter22 y"], "a/hunter22": key });
        let (left, found) = scanned(&value);
        let expected = json!({
            "content": "a = '***'; b = 1", "more": [1, "x *** y"], "a/***": "-----BEGIN PRIVATE KEY-----***\\n-----END"
        });
        assert_eq!(left, expected);
        let mut found = found.unwrap();
        found.at.sort();
        assert_eq!((found.texts, found.at.join(" ").as_str()), (4, " /a~1*** /content /more/1"));
    }

    #[test]
    fn member_names_that_collide_after_redaction_are_kept() {
        let (left, _) = scanned(&json!({ "hunter22": 1, "hunter22hunter22": 2, "***": 3 }));
        assert_eq!(left.as_object().unwrap().len(), 3, "{left}");
    }
}
