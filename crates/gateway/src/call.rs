//! The processing of a call.

use crate::Gateway;
use crate::access::CallJudgement;
use crate::approval_calls::is_asking;
use crate::arguments;
use crate::caller_slot::CallerSlot;
use crate::recording::{RecordError, Recording};
use belljar_contract::tool::{DomainCode, Envelope, ToolName, ToolStatus};
use belljar_policy::tool::DeniedCall;
use belljar_policy::verdict::Verdict;
use belljar_tools::Arguments;
use belljar_tools::answer::{Answer, Attachment, Failure, envelope};
use belljar_tools::caller::Caller;
use belljar_tools::registry::Entry;
use futures_util::FutureExt;
use std::fmt;
use std::panic::AssertUnwindSafe;

/// Result of a call.
#[derive(Debug)]
pub enum CallOutcome {
    /// The tool has answered, or the call was rejected because of its arguments.
    Answered(ToolAnswer),
    /// The tool was not called.
    Refused(Refusal),
}

/// Answer of a tool.
#[derive(Debug)]
pub struct ToolAnswer {
    /// The answer's envelope.
    pub envelope: Envelope,
    /// Attachments, which the envelope can't contain.
    pub attachments: Vec<Attachment>,
}

/// Reasons why no tool was called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// There is no tool of that name.
    #[error("there is no tool {name:?}; there are: {}", ToolNameList(.known))]
    Unknown {
        /// The given name.
        name: String,
        /// The tools that the caller may call.
        known: Vec<ToolName>,
    },
    /// The caller may not call it.
    #[error("{denied}")]
    Denied {
        /// The reason.
        denied: DeniedCall,
    },
    /// An argument names a task, job or project that the caller is not bound to.
    #[error("{argument} differs from the one that this agent is bound to")]
    OutOfBounds {
        /// The argument.
        argument: &'static str,
    },
    /// The run has used up its quota of calls.
    #[error("the tool call quota of this run is used up")]
    AuditQuota,
    /// The run is over.
    #[error("the run is over")]
    Over,
    /// The call can't be recorded. It was not made, or it was made and its record is lost.
    #[error("calls can't be recorded")]
    Unrecorded,
}

/// Names of tools, for messages.
struct ToolNameList<'a>(&'a [ToolName]);

/// Maximum number of names in a message.
const MOST_TOLD: usize = 100;

/// Maximum size of an answer as JSON, in bytes.
const LARGEST_ANSWER_BYTES: usize = 1 << 20;

/// `denied_by` of calls that their tool or a guard has refused.
const BY_TOOL: &str = "tool";
const BY_GUARDRAIL: &str = "guardrail";

/// Maximum length of a given name that is repeated, in bytes.
const LONGEST_REPEATED: usize = 128;

// === impl ToolNameList ===

impl fmt::Display for ToolNameList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told: Vec<&str> = self.0.iter().take(MOST_TOLD).map(ToolName::as_str).collect();
        match (told.is_empty(), self.0.len().saturating_sub(MOST_TOLD)) {
            (true, _) => f.write_str("none for this caller"),
            (_, 0) => f.write_str(&told.join(", ")),
            (_, more) => write!(f, "{} and {more} more", told.join(", ")),
        }
    }
}

// === impl Gateway ===

impl Gateway {
    /// Calls the tool of that name, if the caller may. The call is canceled when its slot is removed.
    pub async fn call(&self, seat: &CallerSlot, name: &str, arguments: Arguments) -> CallOutcome {
        match self.called(seat, name, arguments).await {
            Ok(answered) => CallOutcome::Answered(answered),
            Err(refusal) => CallOutcome::Refused(refusal),
        }
    }

    async fn called(
        &self,
        seat: &CallerSlot,
        name: &str,
        arguments: Arguments,
    ) -> Result<ToolAnswer, Refusal> {
        let caller = seat.caller();
        if let Err(used_up) = seat.turn().await {
            // Only the first, second, fourth and so on are recorded.
            if used_up.beyond.is_power_of_two() {
                self.recording(seat, (name, None), &arguments)
                    .deny("audit_quota")
                    .await
                    .map_err(unrecorded)?;
            }
            return Err(Refusal::AuditQuota);
        }
        let entry = ToolName::parse(name).ok().and_then(|name| self.registry.find(&name));
        // Callers without access rules can't use the approval tool: no rule denies them a call that an approval would permit.
        let entry = entry.filter(|entry| !is_asking(entry.name()) || caller.identity.is_some());
        // Secret marks in another server's schema are ignored: they would hide its tools' arguments from the audit log.
        let own = entry.as_ref().map(|entry| entry.tool.definition()).filter(|own| !own.is_installed);
        let schema = own.map(|definition| &definition.input);
        let mut recording = self.recording(seat, (name, schema), &arguments);
        let Some(entry) = entry else {
            recording.deny("unknown").await.map_err(unrecorded)?;
            let name = name[..name.floor_char_boundary(LONGEST_REPEATED)].to_owned();
            let known = self.listed(caller).iter().map(|entry| entry.name().clone()).collect();
            return Err(Refusal::Unknown { name, known });
        };
        let refusal = match self.decide(caller, &entry) {
            _ if seat.is_over() => Some(("over", Refusal::Over)),
            Err(denied) => Some((denied.reason.as_str(), Refusal::Denied { denied })),
            Ok(_) => arguments::within_bounds(caller, &arguments)
                .err()
                .map(|argument| ("out_of_bounds", Refusal::OutOfBounds { argument })),
        };
        if let Some((by, refusal)) = refusal {
            recording.deny(by).await.map_err(unrecorded)?;
            return Err(refusal);
        }
        // The approval tool itself requires no approval.
        let access = self.access.as_deref().filter(|_| !is_asking(entry.name()));
        let mut case =
            access.and_then(|access| CallJudgement::judge(access, caller, entry.tool.definition()));
        let checked = checked(seat, &entry, &arguments);
        if let Some(case) = &mut case {
            if checked.is_ok() {
                self.ask_for_tool(case, caller, (&entry, &arguments)).await;
            }
            recording.judged(case);
        }
        if entry.tool.definition().is_verbatim {
            recording.verbatim();
        }
        if let Some(case) = case.filter(|case| case.judged.verdict != Verdict::Allow) {
            // No approval is requested for a call that could not be made.
            match checked {
                Err(failure) if case.can_be_approved() => {
                    return self.finish(Some(Err(failure)), recording).await;
                }
                _ => {}
            }
            recording = match self.approved(seat, (&entry, &arguments), &case, recording).await? {
                Ok(recording) => recording,
                Err(answered) => return Ok(answered),
            };
        }
        recording.allow();
        let answer = match checked {
            Ok(()) => self.run(seat, &entry, arguments, &recording).await?,
            Err(failure) => Some(Err(failure)),
        };
        self.finish(answer, recording).await
    }

    /// Escalates an allowed call if the tool itself requires an approval, and there is an approver.
    async fn ask_for_tool(
        &self,
        case: &mut CallJudgement,
        caller: &Caller,
        (entry, arguments): (&Entry, &Arguments),
    ) {
        if self.asking.is_none() || case.judged.verdict != Verdict::Allow {
            return;
        }
        let asks = entry.tool.takes_approval(caller, arguments.clone());
        // If the tool can't determine this, it reports the reason when it is called.
        let asks = tokio::time::timeout(entry.tool.definition().within, asks).await;
        if let Ok(Ok(Some(change))) = asks {
            case.asked_by_tool(change, entry.name());
        }
    }

    /// Runs the tool. Returns `None` if the slot is removed meanwhile.
    async fn run(
        &self,
        seat: &CallerSlot,
        entry: &Entry,
        arguments: Arguments,
        recording: &Recording,
    ) -> Result<Option<Answer>, Refusal> {
        let definition = entry.tool.definition();
        if definition.effect.is_change() {
            recording.begin().await.map_err(unrecorded)?;
        }
        let call = async {
            match recording.approved_scope() {
                Some(scope) => entry.tool.call_approved(seat.caller(), arguments, scope).await,
                None => entry.tool.call(seat.caller(), arguments).await,
            }
        };
        // A panic of a tool is answered and recorded as any failure.
        let call = AssertUnwindSafe(call).catch_unwind().map(|answer| {
            answer.unwrap_or_else(|_| {
                tracing::error!(tool = %entry.name(), "a tool has panicked");
                Err(Failure::new(
                    DomainCode::Internal,
                    "the tool failed unexpectedly; it is unknown how far it got",
                ))
            })
        });
        let call = tokio::time::timeout(definition.within, call);
        tokio::select! {
            biased;
            () = seat.over() => Ok(None),
            answer = call => Ok(Some(answer.unwrap_or_else(|_| {
                let within = definition.within.as_secs();
                Err(Failure::new(DomainCode::LimitExceeded, format!("it took longer than {within} s")))
            }))),
        }
    }

    pub(crate) async fn finish(
        &self,
        answer: Option<Answer>,
        mut recording: Recording,
    ) -> Result<ToolAnswer, Refusal> {
        let Some(answer) = answer else {
            recording.end(ToolStatus::Cancelled, None).await.map_err(unrecorded)?;
            return Err(Refusal::Over);
        };
        let answer = bounded(answer).map_err(|mut failure| {
            failure.message = self.scrubbed(&failure.message);
            failure
        });
        let answer = self.scanned(answer, &mut recording);
        let (status, code) = match &answer {
            Ok(_) => (ToolStatus::Success, None),
            Err(failure) => {
                if let Some(by) = refused_by(failure.code) {
                    recording.refused(by);
                }
                (ToolStatus::Error, Some(failure.code))
            }
        };
        recording.end(status, code).await.map_err(unrecorded)?;
        let attachments = answer.as_ref().map(|success| success.attachments.clone()).unwrap_or_default();
        Ok(ToolAnswer { envelope: envelope(answer), attachments })
    }
}

/// Returns `denied_by` for a refusal by a guard or by the tool itself.
fn refused_by(code: DomainCode) -> Option<&'static str> {
    match code {
        DomainCode::PermissionDenied => Some(BY_TOOL),
        DomainCode::GuardrailViolated => Some(BY_GUARDRAIL),
        _ => None,
    }
}

/// Checks the arguments against the guards and the schema.
fn checked(seat: &CallerSlot, entry: &Entry, arguments: &Arguments) -> Result<(), Failure> {
    arguments::guarded(seat.caller(), entry.tool.definition(), arguments)?;
    entry.schema.check(arguments).map_err(|mistakes| Failure::argument(mistakes.join("; ")))
}

/// Replaces an answer that is too large by a failure.
fn bounded(answer: Answer) -> Answer {
    let success = answer?;
    let of_data = serde_json::to_vec(&success.data).map_or(usize::MAX, |data| data.len());
    let of_attachments: usize = success.attachments.iter().map(|attachment| attachment.base64.len()).sum();
    match of_data.saturating_add(of_attachments) {
        0..=LARGEST_ANSWER_BYTES => Ok(success),
        bytes => Err(Failure::new(
            DomainCode::LimitExceeded,
            format!("the answer has {bytes} bytes; {LARGEST_ANSWER_BYTES} are allowed: request less"),
        )),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "it is what errors are mapped by")]
pub(crate) fn unrecorded(error: RecordError) -> Refusal {
    tracing::error!(%error, "a call of a tool can't be recorded");
    Refusal::Unrecorded
}
