//! Decides whether a job failed because it lacked web access (`docs/contracts/job.md#j12.2`), by the denials of its proxy.
//!
//! The output of a program proves nothing: it may never have sent a request. Requests that the proxy denied or could not forward
//! while the failing step ran are taken for the cause. This also applies to an agent that gives up, or whose work isn't verified.
//! Without a proxy, only the runner's interpretation of the programs' output is available.

use super::summing_ledger::WebTotals;
use belljar_contract::egress::DeniedDestination;
use belljar_contract::failure::FailureCode;
use belljar_contract::result::{JobResult, StepStatus};
use jiff::Timestamp;

/// Maximum number of destinations in a message; the usage lists all of them.
const MOST_NAMED: usize = 5;

/// Adds the web usage to a runner's result, and adjusts its failure code by the denials.
pub fn judge(result: &mut JobResult, seen: WebTotals) {
    let failed = result.steps.last().filter(|step| step.status == StepStatus::Failure);
    // Steps run one after the other, so the failing one is the last. The runner reports its begin. An agent begins after all
    // steps.
    let began = match failed {
        Some(step) => step.started_at.unwrap_or(Timestamp::MAX),
        None => result.steps.last().and_then(|step| step.finished_at).unwrap_or(Timestamp::MIN),
    };
    let is_of_step = failed.is_some();
    let own = if is_of_step { FailureCode::StepFailed } else { of_agent(result) };
    let failed = (result.failure_code, result.failure_message.as_deref());
    let failure = judged(failed, &seen, (began, own));
    if let Some((code, message)) = failure.filter(|_| is_of_step || result.agent.is_some()) {
        let step = result.steps.last_mut().filter(|_| is_of_step);
        if let Some(error) = step.and_then(|step| step.error.as_mut()) {
            error.code = code;
            error.message.clone_from(&message);
        }
        (result.failure_code, result.failure_message) = (Some(code), Some(message));
    }
    result.web = Some(seen.usage);
}

/// Returns the failure code of an agent, regardless of its commands' output.
fn of_agent(result: &JobResult) -> FailureCode {
    let verified = result.agent.iter().flat_map(|agent| &agent.verification);
    match verified.into_iter().all(|verified| verified.met) {
        true => FailureCode::AgentGaveUp,
        false => FailureCode::NotVerified,
    }
}

/// Returns the adjusted failure, given the denials from `began` on; `None` if it stays. `own` is the code for a failure that was
/// attributed to web access without any denial.
pub fn judged(
    (code, message): (Option<FailureCode>, Option<&str>),
    seen: &WebTotals,
    (began, own): (Timestamp, FailureCode),
) -> Option<(FailureCode, String)> {
    let message = message.unwrap_or_default();
    match (code?, seen.denied_since(began).as_slice()) {
        (FailureCode::ExtNetRequired, []) => Some((own, message.to_owned())),
        (code, denied @ [_, ..]) if may_lack_the_web(code) => {
            Some((FailureCode::ExtNetRequired, format!("{} ({message})", needed(denied))))
        }
        _ => None,
    }
}

/// Returns true if lacking web access may explain the failure: a step's own failure, an agent that gives up, or an agent whose
/// work isn't verified. An exhausted limit or a stop is the cause in any case.
const fn may_lack_the_web(code: FailureCode) -> bool {
    matches!(
        code,
        FailureCode::StepFailed
            | FailureCode::ExtNetRequired
            | FailureCode::AgentGaveUp
            | FailureCode::NotVerified
    )
}

/// Returns a message with the unreached hosts and ports. Programs in the sandbox may read it, so it has neither rules nor
/// resolved addresses.
fn needed(denied: &[&DeniedDestination]) -> String {
    let named = denied.iter().take(MOST_NAMED).map(|one| format!("{}:{}", one.host, one.port));
    let named = named.collect::<Vec<_>>().join(", ");
    let more = match denied.len().saturating_sub(MOST_NAMED) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let why = match (denied.iter().all(|one| one.is_unreached()), denied.iter().any(|one| one.is_unreached()))
    {
        (true, _) => "which can't be reached from this node",
        (false, true) => "which this node does not let it reach, or can't reach",
        (false, false) => "which this node does not let it reach",
    };
    format!("needs {named}{more}, {why}")
}

#[cfg(test)]
mod tests {
    use super::super::summing_ledger::SummingLedger;
    use super::*;
    use belljar_contract::egress::{
        ProxiedRequestOutcome, ProxiedRequestRecord, ProxiedRequestStartRecord, RequestedDestination,
    };
    use belljar_contract::id::{PassageId, RunId};
    use belljar_contract::inference::{Excerpt, ReasonCode};
    use belljar_egress::inference::ledger::WriteConfirmation;
    use belljar_egress::web::ledger::WebLedger;
    use belljar_egress::web::run::{Denial, Denials};
    use belljar_policy::egress::{Destination, Host};
    use std::sync::Arc;

    const ID: &str = "0192f0c1-7d3e-7c4a-9b1e-5f6a7b8c9d0e";

    struct NoopLedger;

    impl WebLedger for NoopLedger {
        fn begin(&self, _record: ProxiedRequestStartRecord) -> WriteConfirmation {
            Box::pin(async { true })
        }

        fn record(&self, _record: ProxiedRequestRecord) {}

        fn is_sound(&self) -> bool {
            true
        }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn record(
        (host, port): (&str, u16),
        second: i64,
        outcome: ProxiedRequestOutcome,
    ) -> ProxiedRequestRecord {
        ProxiedRequestRecord {
            passage_id: PassageId::parse(ID).unwrap(),
            run_id: RunId::parse(ID).unwrap(),
            started_at: at(second),
            asked: Some(RequestedDestination {
                method: Excerpt::of("CONNECT"),
                host: Excerpt::of(host),
                port,
                path: None,
            }),
            rule: (outcome == ProxiedRequestOutcome::Completed).then_some(0),
            outcome,
            generation: 1,
            address: None,
            tls_name: None,
            status: None,
            sent_bytes: 3,
            received_bytes: 5,
            total_ms: 1,
            connection: None,
        }
    }

    fn begun(record: &ProxiedRequestRecord) -> ProxiedRequestStartRecord {
        ProxiedRequestStartRecord {
            passage_id: record.passage_id.clone(),
            run_id: record.run_id.clone(),
            started_at: record.started_at,
            asked: record.asked.clone().unwrap(),
            rule: 0,
            generation: record.generation,
            credentials: Vec::new(),
            connection: None,
        }
    }

    /// Returns the state of a run with these denials, each last requested at that second.
    fn seen(denied: &[(&str, u16, i64)]) -> WebTotals {
        seen_for("no_rules", denied)
    }

    fn seen_for(reason: &'static str, denied: &[(&str, u16, i64)]) -> WebTotals {
        let noted = SummingLedger::of(Arc::new(NoopLedger));
        let mut listed: Vec<Denial> = Vec::new();
        for (host, port, second) in denied {
            let outcome = ProxiedRequestOutcome::Denied { reason: ReasonCode::of(reason) };
            noted.record(record((host, *port), *second, outcome));
            let destination = Destination { host: Host::parse(host).unwrap(), port: *port };
            listed.push(Denial { destination, reason, needed: None, last_at: at(*second) });
        }
        // An intercepted tunnel, and a request in it.
        let asked = record(("a.example", 443), 1, ProxiedRequestOutcome::Completed);
        drop(noted.begin(begun(&asked)));
        noted.record(asked.clone());
        noted.record(ProxiedRequestRecord { sent_bytes: 0, received_bytes: 0, ..asked });
        noted.seen(Denials { listed, unlisted: 0 })
    }

    fn judged_from(began: i64, code: FailureCode, seen: &WebTotals) -> Option<(FailureCode, String)> {
        judged((Some(code), Some("exited with code 1")), seen, (at(began), FailureCode::StepFailed))
    }

    #[test]
    fn only_denials_during_the_failed_step_are_its_cause() {
        let seen = seen(&[("a.example", 443, 10), ("[2001:db8::1]", 8443, 20)]);
        assert_eq!((seen.usage.passages, seen.usage.sent_bytes, seen.usage.received_bytes), (1, 9, 15));
        let said = |began| judged_from(began, FailureCode::StepFailed, &seen).map(|(_, message)| message);
        let both = "needs a.example:443, [2001:db8::1]:8443, which this node does not let it reach (exited with code 1)";
        assert_eq!(said(10).as_deref(), Some(both));
        assert!(!said(11).unwrap().contains("a.example"));
        assert_eq!(said(21), None);
        let words = judged_from(21, FailureCode::ExtNetRequired, &seen);
        assert_eq!(words, Some((FailureCode::StepFailed, "exited with code 1".to_owned())));
    }

    #[test]
    fn web_denials_do_not_replace_other_failure_codes() {
        let seen = seen(&[("a.example", 443, 10)]);
        let others = FailureCode::ALL.into_iter();
        let others = others.filter(|code| !may_lack_the_web(*code));
        for code in others {
            assert_eq!(judged_from(1, code, &seen), None, "{code}");
        }
        assert_eq!(judged((None, None), &seen, (at(1), FailureCode::StepFailed)), None);
    }

    #[test]
    fn failure_message_distinguishes_unreachable_from_denied_hosts() {
        let message = |seen: &WebTotals| judged_from(1, FailureCode::AgentGaveUp, seen).unwrap().1;
        let unreached = message(&seen_for("upstream_proxy_unavailable", &[("a.example", 443, 10)]));
        assert_eq!(
            unreached,
            "needs a.example:443, which can't be reached from this node (exited with code 1)"
        );
        assert!(message(&seen(&[("a.example", 443, 10)])).contains("does not let it reach ("));
    }

    #[test]
    fn failure_message_names_five_hosts_and_counts_the_rest() {
        let names: Vec<String> = (0..9).map(|number| format!("h{number}.example")).collect();
        let denied: Vec<_> = names.iter().map(|name| (name.as_str(), 443, 1)).collect();
        let (_, message) = judged_from(1, FailureCode::StepFailed, &seen(&denied)).unwrap();
        assert!(message.contains("h4.example:443 and 4 more, which"), "{message}");
        assert!(!message.contains("h5."), "{message}");
    }
}
