//! The audit record of each call, which is on the disk before the call is answered.

use crate::Gateway;
use crate::access::{CallJudgement, ExactCall};
use crate::arguments::{self, ArgumentRedaction};
use crate::caller_slot::{CallQuota, CallerSlot};
use belljar_contract::approval::CallScope;
use belljar_contract::tool::{
    DomainCode, TOOL_BEGUN, TOOL_CALLED, ToolCallRecord, ToolDecision, ToolName, ToolStatus, ToolSubject,
};
use belljar_policy::autonomy::AutonomyLevel;
use belljar_policy::verdict::Rule;
use belljar_store::audit::{AuditError, AuditLog, Event, EventError};
use belljar_tools::Arguments;
use belljar_tools::caller::Caller;
use serde_json::Value;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::oneshot;
use uuid::Uuid;

/// A call that is under way. Its end is always recorded; if it is dropped, as cancelled.
pub(crate) struct Recording {
    audit: Arc<AuditLog>,
    /// Counter of its records.
    counter: Option<Arc<CallQuota>>,
    /// `None` once it has been recorded.
    record: Option<ToolCallRecord>,
    since: Instant,
    autonomy: Option<AutonomyLevel>,
    /// The scope of the approval, if the call was approved.
    approved_scope: Option<CallScope>,
}

/// Reasons why a call can't be recorded.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordError {
    #[error(transparent)]
    Audit(#[from] AuditError),
    #[error(transparent)]
    Event(#[from] EventError),
}

/// Maximum length of a given name that is recorded, in bytes.
const LONGEST_NAME: usize = 128;

// === impl Gateway ===

impl Gateway {
    /// Begins the record of a call of the named tool.
    pub(crate) fn recording(
        &self,
        seat: &CallerSlot,
        (name, schema): (&str, Option<&Value>),
        arguments: &Arguments,
    ) -> Recording {
        let left_out =
            ArgumentRedaction { secrets: self.secrets.as_ref(), tokens: &self.token_forms, schema };
        let recorded = left_out.recorded(arguments);
        let record = ToolCallRecord {
            call_id: Uuid::now_v7(),
            tool_name: name[..name.floor_char_boundary(LONGEST_NAME)].to_owned(),
            subject: subject(seat.caller()),
            decision: ToolDecision::Deny,
            denied_by: None,
            judged: None,
            status: None,
            error_type: None,
            duration_ms: None,
            arguments_sha256: recorded.sha256,
            arguments_bytes: recorded.bytes,
            arguments: recorded.arguments,
            is_preview: recorded.is_preview,
        };
        Recording {
            audit: Arc::clone(&self.audit),
            counter: seat.counter(),
            record: Some(record),
            since: Instant::now(),
            autonomy: None,
            approved_scope: None,
        }
    }
}

pub(crate) fn subject(caller: &Caller) -> ToolSubject {
    ToolSubject {
        subject_type: caller.kind,
        subject_id: caller.actor.clone(),
        user_id: caller.user_id.clone(),
        group_ids: caller.group_ids.clone(),
        project_id: caller.project_id.clone(),
        task_id: caller.task_id.clone(),
        job_id: caller.job_id.clone(),
        run_id: caller.run_id.clone(),
    }
}

// === impl Recording ===

impl Recording {
    /// Notes that the call is allowed.
    pub(crate) fn allow(&mut self) {
        if let Some(record) = &mut self.record {
            record.decision = ToolDecision::Allow;
        }
    }

    /// Notes that the allowed call was refused by its tool or a guard.
    pub(crate) fn refused(&mut self, by: &str) {
        if let Some(record) = &mut self.record {
            record.decision = ToolDecision::Deny;
            record.denied_by = Some(by.to_owned());
        }
    }

    /// Notes the judgement.
    pub(crate) fn judged(&mut self, case: &CallJudgement) {
        if let Some(record) = &mut self.record {
            record.judged = Some(case.record.clone());
        }
        self.autonomy = Some(case.autonomy);
    }

    /// Notes the approval, given or requested.
    pub(crate) fn approval(&mut self, id: Uuid, rule: Option<&Rule>) {
        let judged = self.record.as_mut().and_then(|record| record.judged.as_mut());
        let Some(judged) = judged else { return };
        judged.approval_id = Some(id);
        if let Some(rule) = rule {
            self.ruled(rule);
        }
    }

    /// Notes the scope of the approval.
    pub(crate) fn approved_in(&mut self, scope: CallScope) {
        self.approved_scope = Some(scope);
    }

    /// Returns the scope of the approval; `None` if none was required.
    pub(crate) fn approved_scope(&self) -> Option<&CallScope> {
        self.approved_scope.as_ref()
    }

    /// Notes another rule as the decisive one.
    pub(crate) fn ruled(&mut self, rule: &Rule) {
        if let Some(judged) = self.record.as_mut().and_then(|record| record.judged.as_mut()) {
            (judged.rule, judged.reason) = (rule.code(), rule.to_string());
        }
    }

    /// Exempts the answer from redaction: it shows approvals and their arguments, which must be complete.
    pub(crate) fn verbatim(&mut self) {
        self.autonomy = None;
    }

    /// Returns the agent's autonomy; `None` without access rules.
    pub(crate) fn autonomy(&self) -> Option<AutonomyLevel> {
        self.autonomy
    }

    /// Notes the number of texts with secrets in its answer.
    pub(crate) fn secrets(&mut self, found: u64) {
        if let Some(judged) = self.record.as_mut().and_then(|record| record.judged.as_mut()) {
            judged.secrets_found = Some(found);
        }
    }

    /// Returns the id of this decision.
    pub(crate) fn id(&self) -> Uuid {
        self.record.as_ref().map(|record| record.call_id).unwrap_or_default()
    }

    /// Returns the call in all details that an approval covers.
    pub(crate) fn exact(
        &self,
        tool: &ToolName,
        case: &CallJudgement,
        (arguments, scope): (&Arguments, CallScope),
    ) -> Option<ExactCall> {
        let record = self.record.as_ref()?;
        Some(ExactCall {
            decision_id: record.call_id,
            agent_id: case.record.agent_id.clone(),
            subject: record.subject.clone(),
            tool: tool.clone(),
            action: case.record.action_type.clone(),
            risk: case.record.risk,
            arguments_sha256: record.arguments_sha256.clone(),
            arguments: Value::Object(arguments.clone()),
            scope,
            reason: case.record.reason.clone(),
        })
    }

    /// Records that an approval is requested.
    pub(crate) async fn escalate(mut self) -> Result<(), RecordError> {
        if let Some(record) = &mut self.record {
            record.decision = ToolDecision::Escalate;
        }
        self.end(ToolStatus::Error, Some(DomainCode::ApprovalRequired)).await
    }

    /// Records that the call is about to be made, and waits for the disk.
    pub(crate) async fn begin(&self) -> Result<(), RecordError> {
        match &self.record {
            Some(record) => self.put(TOOL_BEGUN, record).await,
            None => Ok(()),
        }
    }

    /// Records that the call was refused, and why.
    pub(crate) async fn deny(mut self, by: &str) -> Result<(), RecordError> {
        if let Some(record) = &mut self.record {
            record.denied_by = Some(by.to_owned());
            // Refused calls cost their caller nothing, so only a preview of their arguments is kept.
            arguments::shorten(record);
        }
        self.end(ToolStatus::Error, Some(DomainCode::PermissionDenied)).await
    }

    /// Records the result.
    pub(crate) async fn end(
        mut self,
        status: ToolStatus,
        error_type: Option<DomainCode>,
    ) -> Result<(), RecordError> {
        let Some(record) = self.finished(status, error_type) else { return Ok(()) };
        self.put(TOOL_CALLED, &record).await
    }

    /// Writes a record, and waits for the disk.
    async fn put(&self, kind: &str, record: &ToolCallRecord) -> Result<(), RecordError> {
        let event = self.event(kind, record)?;
        let (done, outcome) = oneshot::channel();
        self.audit.submit_urgent(event, move |result| drop(done.send(result)));
        outcome.await.unwrap_or(Err(AuditError::Closed))?;
        Ok(())
    }

    /// Returns the record in its final form, and counts its bytes.
    fn event(&self, kind: &str, record: &ToolCallRecord) -> Result<Event, EventError> {
        let event = Event::new(kind, record.subject.run_id.as_ref(), record)?;
        if let Some(counter) = &self.counter {
            counter.count_record(event.bytes());
        }
        Ok(event)
    }

    fn finished(&mut self, status: ToolStatus, error_type: Option<DomainCode>) -> Option<ToolCallRecord> {
        let mut record = self.record.take()?;
        record.status = Some(status);
        record.error_type = error_type;
        // Rounded to microseconds.
        record.duration_ms = Some((self.since.elapsed().as_secs_f64() * 1e6).round() / 1e3);
        Some(record)
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        let Some(record) = self.finished(ToolStatus::Cancelled, None) else { return };
        match self.event(TOOL_CALLED, &record) {
            // No task waits for this record.
            Ok(event) => self.audit.submit(event, drop),
            Err(error) => tracing::error!(%error, "a call of a tool can't be recorded"),
        }
    }
}
