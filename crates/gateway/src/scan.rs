//! What tools have answered, looked through for what looks like a secret; what becomes of that depends on how much the agent does by
//! itself.

use crate::Gateway;
use crate::recording::Recording;
use belljar_contract::tool::DomainCode;
use belljar_policy::autonomy::AutonomyLevel;
use belljar_tools::answer::{Answer, Failure};
use serde_json::Value;

/// What becomes of an answer in which something was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Handling {
    /// It is passed on as it is; that is recorded.
    Record,
    /// What was found is taken out.
    Redact,
    /// It is not passed on.
    Withhold,
}

// === impl Gateway ===

impl Gateway {
    /// The answer as the agent may have it. Only what agents with rules of their own get is looked at.
    pub(crate) fn scanned(&self, answer: Answer, recording: &mut Recording) -> Answer {
        let Some(level) = recording.autonomy() else { return answer };
        let mut success = answer?;
        let redacted = self.redactor.value(&success.data);
        let found = differences(&success.data, &redacted);
        if found == 0 {
            return Ok(success);
        }
        recording.secrets(found);
        match Handling::of(level) {
            Handling::Record => Ok(success),
            Handling::Redact => {
                success.data = redacted;
                Ok(success)
            }
            Handling::Withhold => Err(Failure::new(
                DomainCode::PermissionDenied,
                "the answer has something in it that looks like a secret, and is withheld",
            )),
        }
    }
}

// === impl Handling ===

impl Handling {
    const fn of(level: AutonomyLevel) -> Self {
        match level {
            AutonomyLevel::Full => Self::Record,
            AutonomyLevel::Semi | AutonomyLevel::Supervised => Self::Redact,
            AutonomyLevel::Locked => Self::Withhold,
        }
    }
}

/// How many texts differ, those among names included.
fn differences(one: &Value, other: &Value) -> u64 {
    match (one, other) {
        (Value::Array(one), Value::Array(other)) => {
            one.iter().zip(other).map(|(one, other)| differences(one, other)).sum()
        }
        (Value::Object(one), Value::Object(other)) => {
            let gone = one.keys().filter(|name| !other.contains_key(*name)).count() as u64;
            let shared = one.iter().filter_map(|(name, one)| Some(differences(one, other.get(name)?)));
            gone + shared.sum::<u64>()
        }
        (one, other) => u64::from(one != other),
    }
}
