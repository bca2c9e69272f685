//! End of an agent: it reports that it is done, and the criteria are checked.

use super::conversation::Call;
use super::tools::{Finding, Finish};
use super::turns::{Agent, Phase, Turn};
use super::{not_met, verification};
use crate::deadline::Deadline;
use crate::failure_code::Fault;
use belljar_contract::failure::FailureCode;
use belljar_contract::result::Failure;
use belljar_contract::result::agent::{CriterionVerification, TodoItem, TodoOrigin, TodoStatus};

// === impl Agent ===

impl Agent<'_> {
    /// Handles the agent's report that it is done: the criteria are checked next.
    pub(super) fn finish(
        &mut self,
        call: Call,
        finish: Finish,
        deadline: &Deadline<'_>,
    ) -> Result<Turn, Failure> {
        let Finish { summary, gave_up } = finish;
        let longest = self.bench.surroundings.admitted.job().constraints.max_output();
        if summary.len() > longest {
            self.tell(call, format!("the summary is longer than {longest} bytes"), true);
            return Ok(Turn::Goes);
        }
        if gave_up {
            let message = format!("the agent gave up: {summary}");
            self.report.answer = Some(summary);
            return Err(Failure::new(FailureCode::AgentGaveUp, message));
        }
        let is_left = |item: &&TodoItem| item.origin != TodoOrigin::AcceptanceCriterion;
        let open: Vec<String> =
            self.bench.todo.open().filter(is_left).map(|item| item.id.to_string()).collect();
        if !open.is_empty() {
            let text = format!(
                "items {} of the todo list are open: complete them, or update their status with `todo_update`",
                open.join(", ")
            );
            self.tell(call, text, true);
            return Ok(Turn::Goes);
        }
        let is_missed = |item: &&TodoItem| {
            item.status == TodoStatus::Dropped
                && matches!(item.origin, TodoOrigin::Requirement | TodoOrigin::Task)
        };
        if let Some(missed) = self.bench.todo.items().iter().find(is_missed) {
            let reason = missed.reason.as_deref().unwrap_or_default();
            let message = format!("a requirement was dropped: {}: {reason}", missed.title);
            self.report.answer = Some(summary);
            return Err(Failure::new(FailureCode::NotVerified, message));
        }
        match verification::question(&self.criteria) {
            Some(_) => {
                self.phase = Phase::Checking { answer: summary };
                self.tell(call, "The criteria are checked next.".to_owned(), false);
                Ok(Turn::Goes)
            }
            None => self.conclude((call, summary), &[], deadline),
        }
    }

    /// Handles the agent's report on the criteria.
    pub(super) fn reported(
        &mut self,
        call: Call,
        findings: &[Finding],
        deadline: &Deadline<'_>,
    ) -> Result<Turn, Failure> {
        if let Some(fault) = verification::fault(&self.criteria, findings) {
            self.tell(call, fault, true);
            return Ok(Turn::Goes);
        }
        match std::mem::replace(&mut self.phase, Phase::Working) {
            Phase::Checking { answer } => self.conclude((call, answer), findings, deadline),
            Phase::Working => {
                self.tell(call, "no criteria are being checked yet: call `finish` first".to_owned(), true);
                Ok(Turn::Goes)
            }
        }
    }

    fn conclude(
        &mut self,
        (call, answer): (Call, String),
        findings: &[Finding],
        deadline: &Deadline<'_>,
    ) -> Result<Turn, Failure> {
        let verified = verification::conclude(&self.criteria, findings, &mut self.bench, deadline);
        self.report.verification = verified.map_err(|interrupted| interrupted.failure())?;
        let unmet: Vec<&CriterionVerification> =
            self.report.verification.iter().filter(|verified| !verified.met).collect();
        if unmet.is_empty() {
            self.report.answer = Some(answer);
            return Ok(Turn::Done);
        }
        let listed = unmet.iter().map(|verified| format!("- {}: {}", verified.criterion, verified.evidence));
        let text = format!("these criteria are not met:\n{}\nGo on.", listed.collect::<Vec<_>>().join("\n"));
        self.phase = Phase::Working;
        self.tell(call, text, true);
        Ok(Turn::Goes)
    }

    pub(super) fn out_of_turns(&self) -> Failure {
        let turns = self.max_turns;
        let was_checking = matches!(self.phase, Phase::Checking { .. });
        match (was_checking, self.report.verification.iter().find(|verified| !verified.met)) {
            (_, Some(unmet)) => not_met(unmet),
            (true, None) => Failure::new(
                FailureCode::NotVerified,
                format!("not all criteria were checked within {turns} turns"),
            ),
            (false, None) => Failure::new(
                FailureCode::TurnsExhausted,
                format!("the agent was not done after {turns} turns"),
            ),
        }
    }
}
