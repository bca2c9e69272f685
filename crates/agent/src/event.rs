//! Events of an agent's run, whose order the types enforce (`docs/contracts/agents.md#a5.3`).
//!
//! ```text
//! Telling ── text_delta* ──► Billing ── usage_report* ──┬─ finish ──► assistant_final, done
//!    └──────────────────────────┴── dropped ────────────┴─ fail ────► error, done
//! ```
//! Each state is a type that is made only from the preceding state.

use belljar_contract::agent::{AgentFailure, FinishReason, GraphErrorCode};
use belljar_contract::usage::UsageReport;
use serde::Serialize;

/// An event of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum AgentEvent {
    /// A piece of the agent's text.
    TextDelta {
        /// The piece.
        delta: String,
    },
    /// Usage of one of its calls, for billing only.
    UsageReport {
        /// The usage.
        fact: Box<UsageReport>,
    },
    /// The whole text.
    AssistantFinal {
        /// The text.
        content: String,
    },
    /// The run has failed.
    Error(AgentFailure),
    /// The end of the events.
    Done {
        /// `stop`, or `error`.
        finish_reason: FinishReason,
    },
}

/// The state in which text is reported.
pub struct TextReporter<'s>(EventChannel<'s>);

/// The state in which usage is reported.
pub struct UsageReporter<'s>(EventChannel<'s>);

/// The receiver of events. Dropping it before the end reports a failure.
struct EventChannel<'s> {
    sink: &'s mut dyn FnMut(AgentEvent),
    is_over: bool,
}

// === impl TextReporter ===

impl<'s> TextReporter<'s> {
    /// Begins a sequence of events.
    pub fn to(sink: &'s mut dyn FnMut(AgentEvent)) -> Self {
        Self(EventChannel { sink, is_over: false })
    }

    /// Reports a piece of text, unless it is empty.
    pub fn text(&mut self, delta: &str) {
        if !delta.is_empty() {
            self.0.tell(AgentEvent::TextDelta { delta: delta.to_owned() });
        }
    }

    /// Ends the text.
    pub fn end_text(self) -> UsageReporter<'s> {
        UsageReporter(self.0)
    }
}

// === impl UsageReporter ===

impl UsageReporter<'_> {
    /// Reports the usage of a call.
    pub fn usage(&mut self, fact: UsageReport) {
        self.0.tell(AgentEvent::UsageReport { fact: Box::new(fact) });
    }

    /// Ends the run successfully, with its whole text.
    pub fn finish(mut self, content: &str) {
        self.0.tell(AgentEvent::AssistantFinal { content: content.to_owned() });
        self.0.end(FinishReason::Stop);
    }

    /// Ends the run with a failure.
    pub fn fail(mut self, failure: AgentFailure) {
        self.0.tell(AgentEvent::Error(failure));
        self.0.end(FinishReason::Error);
    }
}

// === impl EventChannel ===

impl EventChannel<'_> {
    fn tell(&mut self, event: AgentEvent) {
        (self.sink)(event);
    }

    fn end(&mut self, finish_reason: FinishReason) {
        self.is_over = true;
        self.tell(AgentEvent::Done { finish_reason });
    }
}

impl Drop for EventChannel<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.tell(AgentEvent::Error(AgentFailure::new(
                GraphErrorCode::Internal,
                "internal",
                "the run was abandoned",
            )));
            self.end(FinishReason::Error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use belljar_contract::id::{CallId, RunId};
    use belljar_contract::inference::{CallOutcome, Cost, Excerpt, ProviderKind};
    use proptest::prelude::*;

    fn report() -> UsageReport {
        UsageReport {
            run_id: RunId::parse("0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0f").unwrap(),
            attempt: 0,
            usage_unit_id: CallId::parse("0192f0c1-7d3e-7c4a-9b1e-000000000000").unwrap(),
            source: ProviderKind::LiteLlm,
            provider: Excerpt::of("house"),
            graph_id: Excerpt::of("sandbox:agent"),
            billing_account_id: Excerpt::of("account-7"),
            model: Excerpt::of("gpt-4o-mini"),
            started_at: "2026-01-02T03:04:05Z".parse().unwrap(),
            ended_at: "2026-01-02T03:04:06Z".parse().unwrap(),
            outcome: CallOutcome::Completed,
            upstream_status: 200,
            input_tokens: Some(12),
            output_tokens: Some(7),
            cost_usd: Some(Cost::parse("1.35e-05").unwrap()),
        }
    }

    /// The last action of a test sequence.
    #[derive(Debug, Clone, Copy)]
    enum LastAction {
        DropsAtOnce,
        Drops,
        Finishes,
        Fails,
    }

    /// Checks the order of events again, by an independent state machine.
    fn is_in_order(events: &[AgentEvent]) -> bool {
        let mut state = "text";
        for event in events {
            state = match (state, event) {
                ("text", AgentEvent::TextDelta { .. }) => "text",
                ("text" | "usage", AgentEvent::UsageReport { .. }) => "usage",
                ("text" | "usage", AgentEvent::AssistantFinal { .. }) => "final",
                ("text" | "usage", AgentEvent::Error(_)) => "error",
                ("final", AgentEvent::Done { finish_reason: FinishReason::Stop }) => "done",
                ("error", AgentEvent::Done { finish_reason: FinishReason::Error }) => "done",
                _ => return false,
            };
        }
        state == "done"
    }

    proptest! {
        #[test]
        fn agent_events_come_in_order_and_end_with_done(
            texts in proptest::collection::vec("[a-z]{0,3}", 0..5),
            reports in 0_usize..4,
            last in prop_oneof![Just(LastAction::DropsAtOnce), Just(LastAction::Drops), Just(LastAction::Finishes), Just(LastAction::Fails)],
        ) {
            let mut events = Vec::new();
            let mut sink = |event| events.push(event);
            let mut telling = TextReporter::to(&mut sink);
            texts.iter().for_each(|text| telling.text(text));
            let told_reports = match last {
                LastAction::DropsAtOnce => {
                    drop(telling);
                    0
                }
                last => {
                    let mut billing = telling.end_text();
                    (0..reports).for_each(|_| billing.usage(report()));
                    match last {
                        LastAction::Finishes => billing.finish("all"),
                        LastAction::Fails => billing.fail(AgentFailure::new(GraphErrorCode::Timeout, "timeout", "")),
                        LastAction::DropsAtOnce | LastAction::Drops => drop(billing),
                    }
                    reports
                }
            };
            prop_assert!(is_in_order(&events), "{events:?}");
            let told = texts.iter().filter(|text| !text.is_empty()).count();
            prop_assert_eq!(events.len(), told + told_reports + 2);
        }
    }

    #[test]
    fn agent_events_have_the_documented_json_form() {
        let mut lines = Vec::new();
        let mut sink = |event: AgentEvent| lines.push(serde_json::to_string(&event).unwrap());
        let mut telling = TextReporter::to(&mut sink);
        telling.text("hi");
        telling.end_text().fail(AgentFailure::new(
            GraphErrorCode::Aborted,
            "oom_killed",
            "its memory was used up",
        ));
        insta::assert_snapshot!(lines.join("\n"), @r#"
        {"type":"text_delta","delta":"hi"}
        {"type":"error","error":"aborted","code":"oom_killed","message":"its memory was used up"}
        {"type":"done","finish_reason":"error"}
        "#);
    }
}
