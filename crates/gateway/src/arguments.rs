//! Checks of arguments besides the schema, checks of whether they can be reviewed, and their form in audit records.

use belljar_contract::approval::{
    CallScope, DEEPEST_ARGUMENTS, LARGEST_ARGUMENTS_BYTES, LARGEST_SCOPE_BYTES,
};
use belljar_contract::tool::{DomainCode, ToolCallRecord};
use belljar_policy::secret::{self, KnownSecrets};
use belljar_policy::untrusted::{escaped_length, escaped_prefix};
use belljar_sandbox::shipping::Redactor;
use belljar_tools::answer::Failure;
use belljar_tools::caller::Caller;
use belljar_tools::definition::{Definition, SECRET_MARK};
use belljar_tools::{Arguments, canonical};
use serde_json::{Map, Value, json};

/// Maximum length of arguments that are recorded whole, in bytes of JSON as the log escapes it. Longer ones get a preview.
const LONGEST_RECORDED_BYTES: usize = 16 << 10;

/// Length of a preview, as escaped in the log.
const PREVIEW_BYTES: usize = 4 << 10;

/// Maximum recorded length for refused calls.
const REFUSED_BYTES: usize = 1 << 10;

/// Refuses ids of other tasks, jobs and projects than the caller is bound to, in any spelling.
pub(crate) fn within_bounds(caller: &Caller, arguments: &Arguments) -> Result<(), &'static str> {
    let is_outside = |(name, bound): &(&'static str, &str)| {
        arguments
            .get(*name)
            .is_some_and(|value| !value.as_str().is_some_and(|text| is_same(name, text, bound)))
    };
    caller.bounds().find(is_outside).map_or(Ok(()), |(name, _)| Err(name))
}

/// Returns true if two ids are equal. UUIDs are compared without case; project ids are case-sensitive.
fn is_same(name: &str, text: &str, bound: &str) -> bool {
    match name {
        "project_id" => text == bound,
        _ => text.eq_ignore_ascii_case(bound),
    }
}

/// Refuses an irreversible call without a known actor, a confirmation and a reason (`docs/contracts/tools.md#t12.8`).
pub(crate) fn guarded(
    caller: &Caller,
    definition: &Definition,
    arguments: &Arguments,
) -> Result<(), Failure> {
    if !definition.is_guarded {
        return Ok(());
    }
    let has_actor = caller.actor.is_some() || caller.user_id.is_some();
    let has_reason =
        arguments.get("reason").and_then(Value::as_str).is_some_and(|text| !text.trim().is_empty());
    let missing = [
        (!has_actor, "missing_actor: the caller must have a known name"),
        (arguments.get("confirm") != Some(&Value::Bool(true)), "missing_confirm: `confirm` must be true"),
        (!has_reason, "missing_reason: `reason` must say why"),
    ];
    match missing.into_iter().find(|(is_missing, _)| *is_missing) {
        Some((_, message)) => Err(Failure::new(DomainCode::GuardrailViolated, message)),
        None => Ok(()),
    }
}

/// Returns the schema for this caller: ids that it is bound to are constants.
pub(crate) fn told_schema(caller: &Caller, schema: &Value) -> Map<String, Value> {
    let mut told = schema.as_object().cloned().unwrap_or_default();
    if let Some(properties) = told.get_mut("properties").and_then(Value::as_object_mut) {
        for (name, bound) in caller.bounds() {
            if let Some(property) = properties.get_mut(name) {
                *property = json!({ "type": "string", "const": bound });
            }
        }
    }
    told
}

/// Reasons why a call can't be presented for approval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum UnreviewableCall {
    /// The arguments are too large.
    #[error(
        "its arguments are too large to be reviewed: {bytes} bytes as JSON, of at most {LARGEST_ARGUMENTS_BYTES}; make smaller calls"
    )]
    TooLarge { bytes: usize },
    /// The arguments are nested too deep.
    #[error("its arguments are nested too deep to be reviewed: at most {DEEPEST_ARGUMENTS} levels")]
    TooDeep,
    /// The scope is too large.
    #[error("its scope, which it acts on besides its arguments, is too large to be reviewed")]
    Scope,
    /// They contain a secret of the host, which no approver may see.
    #[error(
        "it contains a secret that this host knows, which can't be shown to a person; make the call without it"
    )]
    Secret,
}

/// Checks that the arguments can be shown to a person completely; otherwise the call can't be approved.
pub(crate) fn reviewable(secrets: &dyn KnownSecrets, arguments: &Arguments) -> Result<(), UnreviewableCall> {
    let text = canonical::text(arguments);
    if text.len() > LARGEST_ARGUMENTS_BYTES {
        return Err(UnreviewableCall::TooLarge { bytes: text.len() });
    }
    if arguments.values().any(|value| is_deeper(value, DEEPEST_ARGUMENTS - 1)) {
        return Err(UnreviewableCall::TooDeep);
    }
    let is_clean = secrets.find(&text).is_empty();
    if is_clean { Ok(()) } else { Err(UnreviewableCall::Secret) }
}

/// Checks that the scope of a call can be shown to a person.
pub(crate) fn showable(secrets: &dyn KnownSecrets, scope: &CallScope) -> Result<(), UnreviewableCall> {
    let text = canonical::text(scope);
    match text.len() {
        LARGEST_SCOPE_BYTES.. => Err(UnreviewableCall::Scope),
        _ if !secrets.find(&text).is_empty() => Err(UnreviewableCall::Secret),
        _ => Ok(()),
    }
}

/// Arguments in their recorded form.
pub(crate) struct RecordedArguments {
    /// The complete value, or the beginning of its JSON as a text.
    pub(crate) arguments: Value,
    /// Length of the JSON, in bytes.
    pub(crate) bytes: u64,
    /// Digest of that JSON ([`canonical::digest`]).
    pub(crate) sha256: String,
    pub(crate) is_preview: bool,
}

/// Redaction of recorded arguments.
pub(crate) struct ArgumentRedaction<'a> {
    /// Secrets that the host knows.
    pub(crate) secrets: &'a dyn KnownSecrets,
    /// Redactor of texts with the precise form of a token.
    pub(crate) tokens: &'a Redactor,
    /// Schema of the tool; values that it marks as secret are left out, their names are not.
    pub(crate) schema: Option<&'a Value>,
}

// === impl ArgumentRedaction ===

impl ArgumentRedaction<'_> {
    /// Returns the recorded form of arguments: the complete value, or a preview that is marked as one. `***` stands for known
    /// secrets and tokens.
    pub(crate) fn recorded(&self, arguments: &Arguments) -> RecordedArguments {
        let text = canonical::text(arguments);
        let (bytes, sha256) = (text.len() as u64, canonical::digest_of(&text));
        let is_deep = arguments.values().any(|value| is_deeper(value, DEEPEST_ARGUMENTS - 1));
        let is_preview = is_deep || escaped_length(&text) > LONGEST_RECORDED_BYTES;
        let shorten = |left: &str| Value::from(preview(left, PREVIEW_BYTES, (bytes, &sha256)));
        let arguments = match (is_deep, is_preview) {
            // A deeply nested value isn't traversed; its text is redacted instead.
            (true, _) => shorten(&self.text(&text)),
            (false, true) => {
                drop(text);
                // Only as much as the preview shows is redacted and copied.
                let left = self.members(self.schema, arguments, &mut { PREVIEW_BYTES });
                shorten(&Value::Object(left).to_string())
            }
            (false, false) => Value::Object(self.members(self.schema, arguments, &mut { usize::MAX })),
        };
        RecordedArguments { arguments, bytes, sha256, is_preview }
    }

    fn text(&self, text: &str) -> String {
        self.tokens.text(&secret::hide(self.secrets, text))
    }

    /// Redacts members until `room` is used up; further ones are left out.
    fn members(&self, schema: Option<&Value>, members: &Arguments, room: &mut usize) -> Map<String, Value> {
        let mut left = Map::new();
        for (name, member) in members {
            if *room == 0 {
                break;
            }
            let of_member = schema.and_then(|schema| schema.get("properties")?.get(name));
            let mut shown = self.text(name);
            while left.contains_key(&shown) {
                shown.push('*');
            }
            *room = room.saturating_sub(shown.len());
            let member = self.value(of_member, member, room);
            left.insert(shown, member);
        }
        left
    }

    fn value(&self, schema: Option<&Value>, value: &Value, room: &mut usize) -> Value {
        if schema.is_some_and(|schema| schema[SECRET_MARK] == true) {
            return marked(value);
        }
        *room = room.saturating_sub(1);
        match value {
            Value::Object(members) => Value::Object(self.members(schema, members, room)),
            Value::Array(items) => {
                let of_items = schema.and_then(|schema| schema.get("items"));
                let mut left = Vec::new();
                for item in items {
                    if *room == 0 {
                        break;
                    }
                    left.push(self.value(of_items, item, room));
                }
                Value::Array(left)
            }
            Value::String(text) => {
                let text = self.text(text);
                *room = room.saturating_sub(text.len());
                Value::from(text)
            }
            plain => plain.clone(),
        }
    }
}

/// Redacts a marked value: keeps the names of its members.
fn marked(value: &Value) -> Value {
    match value {
        Value::Object(members) => {
            members.iter().map(|(name, member)| (name.clone(), marked(member))).collect()
        }
        Value::Null => Value::Null,
        _ => Value::from(secret::HIDDEN),
    }
}

/// Reduces the arguments of a refused call to a preview, unless they are short.
pub(crate) fn shorten(record: &mut ToolCallRecord) {
    let text = match &record.arguments {
        // It is a preview already: its suffix is removed first.
        Value::String(text) if record.is_preview => {
            text.rsplit_once(CUT).map_or(text.as_str(), |(shown, _)| shown).to_owned()
        }
        whole => whole.to_string(),
    };
    if !record.is_preview && escaped_length(&text) <= REFUSED_BYTES {
        return;
    }
    let of = (record.arguments_bytes, record.arguments_sha256.as_str());
    record.arguments = Value::from(preview(&text, REFUSED_BYTES, of));
    record.is_preview = true;
}

/// Separates a preview's text from its suffix.
const CUT: char = '…';

fn preview(text: &str, longest: usize, (bytes, digest): (u64, &str)) -> String {
    let shown = escaped_prefix(text, longest);
    format!("{shown}{CUT} ({} of {bytes} bytes; sha256 {digest})", shown.len())
}

fn is_deeper(value: &Value, levels: usize) -> bool {
    match value {
        Value::Object(_) | Value::Array(_) if levels == 0 => true,
        Value::Object(members) => members.values().any(|member| is_deeper(member, levels - 1)),
        Value::Array(items) => items.iter().any(|item| is_deeper(item, levels - 1)),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_contract::id::TaskId;
    use belljar_contract::tool::AgentKind;

    const TASK: &str = "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e";

    fn arguments(value: &Value) -> Arguments {
        value.as_object().unwrap().clone()
    }

    fn bound() -> Caller {
        Caller { task_id: Some(TaskId::parse(TASK).unwrap()), ..Caller::of(AgentKind::Sandbox) }
    }

    #[test]
    fn task_id_argument_of_another_task_is_refused() {
        let check = |value| within_bounds(&bound(), &arguments(&json!({ "task_id": value })));
        assert_eq!(check(json!(TASK)), Ok(()));
        assert_eq!(check(json!(TASK.to_uppercase())), Ok(()));
        let others =
            ["0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0f", "", "*", " 0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e"];
        for other in others {
            assert_eq!(check(json!(other)), Err("task_id"), "{other}");
        }
        for other in [json!(null), json!([TASK]), json!({ "a": 1 }), json!(1)] {
            assert_eq!(check(other.clone()), Err("task_id"), "{other}");
        }
    }

    #[test]
    fn project_id_is_compared_case_sensitively() {
        let caller = Caller { project_id: Some("mean".to_owned()), ..Caller::of(AgentKind::ProjectManager) };
        let check = |project| within_bounds(&caller, &arguments(&json!({ "project_id": project })));
        assert_eq!(check("mean"), Ok(()));
        assert_eq!(check("Mean"), Err("project_id"));
    }

    #[derive(Debug)]
    struct OneKnownSecret;

    impl KnownSecrets for OneKnownSecret {
        fn find(&self, text: &str) -> Vec<std::ops::Range<usize>> {
            text.match_indices("hunter22").map(|(at, found)| at..at + found.len()).collect()
        }
    }

    fn recorded(schema: Option<&Value>, given: &Value) -> RecordedArguments {
        let tokens = Redactor::of_token_forms();
        ArgumentRedaction { secrets: &OneKnownSecret, tokens: &tokens, schema }.recorded(&arguments(given))
    }

    #[test]
    fn recorded_arguments_redact_secrets_tokens_and_marked_values_only() {
        let schema = json!({ "properties": {
            "key": { SECRET_MARK: true },
            "env": { SECRET_MARK: true },
            "list": { "items": { SECRET_MARK: true } }
        }});
        let jwt = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJlLW9mLWEtand0";
        let given = json!({
            "key": "pin", "env": { "BASH_ENV": "pin" }, "list": ["pin"], "password": "not known", "code": "import os",
            "line": format!("export TOKEN=\"$(cmd)\"; cat x hunter22 {jwt}")
        });
        let recorded = recorded(Some(&schema), &given);
        assert!(!recorded.is_preview);
        let expected = json!({
            "key": "***", "env": { "BASH_ENV": "***" }, "list": ["***"], "password": "not known", "code": "import os",
            "line": "export TOKEN=\"$(cmd)\"; cat x *** ***"
        });
        assert_eq!(recorded.arguments, expected);
        assert_eq!(recorded.bytes, given.to_string().len() as u64);
    }

    #[test]
    fn long_or_deep_arguments_are_recorded_as_a_marked_preview() {
        let whole = json!({ "code": "x".repeat(LONGEST_RECORDED_BYTES - 11) });
        assert_eq!(recorded(None, &whole).arguments, whole);
        let deep = (0..100).fold(json!("hunter22"), |inner, _| json!([inner]));
        for given in [json!({ "code": "x".repeat(LONGEST_RECORDED_BYTES) }), json!({ "deep": deep })] {
            let recorded = recorded(None, &given);
            let text = recorded.arguments.as_str().unwrap();
            assert!(recorded.is_preview && text.len() < PREVIEW_BYTES + 200, "{text}");
            let digest = canonical::digest(&arguments(&given));
            assert!(text.ends_with(&format!("of {} bytes; sha256 {digest})", recorded.bytes)), "{text}");
            assert!(!text.contains("hunter22"));
        }
    }

    /// Counts the texts that are scanned.
    #[derive(Debug, Default)]
    struct ScanCounter(std::sync::atomic::AtomicUsize);

    impl KnownSecrets for ScanCounter {
        fn find(&self, _: &str) -> Vec<std::ops::Range<usize>> {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Vec::new()
        }
    }

    #[test]
    fn preview_scans_only_the_values_that_it_shows() {
        let looked_through = |count: usize| {
            let (secrets, tokens) = (ScanCounter::default(), Redactor::of_token_forms());
            let given = arguments(&json!({ "list": vec![json!({ "a": "hunter" }); count] }));
            let recorded =
                ArgumentRedaction { secrets: &secrets, tokens: &tokens, schema: None }.recorded(&given);
            assert_eq!(recorded.sha256, canonical::digest(&given));
            let shown = recorded.arguments.to_string();
            (secrets.0.into_inner(), recorded.is_preview, shown.len())
        };
        let (looked, is_preview, shown) = looked_through(100_000);
        assert!(is_preview && looked <= PREVIEW_BYTES && shown >= PREVIEW_BYTES, "{looked} {shown}");
        // Control: arguments that are recorded whole are scanned completely.
        assert_eq!(looked_through(100).0, 201);
    }

    #[test]
    fn arguments_that_cannot_be_shown_completely_are_not_reviewable() {
        let of = |value: Value| reviewable(&OneKnownSecret, &arguments(&value));
        assert_eq!(of(json!({ "line": format!("echo{}; evil", " ".repeat(300)) })), Ok(()));
        assert_eq!(of(json!({ "code": "x".repeat(LARGEST_ARGUMENTS_BYTES - 11) })), Ok(()));
        let bytes = LARGEST_ARGUMENTS_BYTES + 1;
        assert_eq!(
            of(json!({ "code": "x".repeat(LARGEST_ARGUMENTS_BYTES - 10) })),
            Err(UnreviewableCall::TooLarge { bytes })
        );
        assert_eq!(of(json!({ "argv": ["echo", "hunter22"] })), Err(UnreviewableCall::Secret));
        assert_eq!(of(json!({ "hunter22": 1 })), Err(UnreviewableCall::Secret));
        let nested = |levels| (0..levels).fold(json!(1), |inner, _| json!([inner]));
        assert_eq!(of(json!({ "a": nested(DEEPEST_ARGUMENTS - 1) })), Ok(()));
        assert_eq!(of(json!({ "a": nested(DEEPEST_ARGUMENTS) })), Err(UnreviewableCall::TooDeep));
    }
}
