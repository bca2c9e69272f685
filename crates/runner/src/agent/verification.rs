//! Whether the acceptance criteria hold: by their commands where they have some, by what a model has looked at otherwise.
//!
//! The commands run last, when nothing is changed any more. What a model says is marked as such: it may be wrong.

use super::tools::{Bench, Finding};
use crate::deadline::{Deadline, Interrupted};
use belljar_contract::job::context::Criterion;
use belljar_contract::job::step::Action;
use belljar_contract::result::agent::{TodoOrigin, TodoStatus, Verified, Verifier};

/// Bytes of evidence that are kept of each.
const LONGEST: usize = 2000;

/// Why a criterion is unverified.
const NOT_LOOKED_AT: &str = "it has no `check`, and the job has no `inference`: add one of the two";

/// What a model is asked before the commands run; nothing if there is nothing for it to look at.
pub(super) fn question(criteria: &[Criterion]) -> Option<String> {
    let mut of_model = by_model(criteria).peekable();
    of_model.peek()?;
    let listed: Vec<String> =
        of_model.map(|(number, criterion)| format!("{number}. {}", criterion.text)).collect();
    Some(format!(
        "Before this counts as done, check each of these criteria against the workspace as it is now, by looking, not from memory. \
         Then call `report_criteria` once, with a result for every number: {}\n{}",
        "whether it is met, and what shows it.",
        listed.join("\n")
    ))
}

/// Those that have no command, with their numbers.
fn by_model(criteria: &[Criterion]) -> impl Iterator<Item = (usize, &Criterion)> {
    (1..).zip(criteria).filter(|(_, criterion)| criterion.check.is_none())
}

/// What is missing in a report, if something is.
pub(super) fn fault(criteria: &[Criterion], report: &[Finding]) -> Option<String> {
    for (number, _) in by_model(criteria) {
        let mut found = report.iter().filter(|finding| finding.criterion == number);
        match (found.next(), found.next()) {
            (None, _) => return Some(format!("there is no result for criterion {number}")),
            (Some(finding), None) if finding.evidence.trim().is_empty() => {
                return Some(format!("criterion {number} has no evidence"));
            }
            (Some(_), None) => {}
            (Some(_), Some(_)) => return Some(format!("there are two results for criterion {number}")),
        }
    }
    None
}

/// Runs the commands, and says of each criterion what was found; the todo list says the same then.
pub(super) fn conclude(
    criteria: &[Criterion],
    report: &[Finding],
    bench: &mut Bench<'_>,
    deadline: &Deadline<'_>,
) -> Result<Vec<Verified>, Interrupted> {
    let mut all = Vec::new();
    for (number, criterion) in (1..).zip(criteria) {
        let (met, by, evidence) = match &criterion.check {
            Some(check) => {
                let (text, failed) = bench.run(Action::RunCommand(check.clone()), deadline);
                deadline.check()?;
                (!failed, Verifier::Command, text)
            }
            None => match report.iter().find(|finding| finding.criterion == number) {
                Some(finding) => (finding.met, Verifier::Model, finding.evidence.clone()),
                None => (false, Verifier::Unverified, NOT_LOOKED_AT.to_owned()),
            },
        };
        let evidence = crate::excerpt::within(evidence, LONGEST);
        all.push(Verified { criterion: criterion.text.clone(), met, by, evidence });
    }
    mark(&all, bench);
    Ok(all)
}

fn mark(verified: &[Verified], bench: &mut Bench<'_>) {
    let items = bench.todo.items().iter().filter(|item| item.origin == TodoOrigin::AcceptanceCriterion);
    let mut ids: Vec<u32> = items.map(|item| item.id).collect();
    // Numbered as the job has them; the agent may have put them into another order.
    ids.sort_unstable();
    for (id, verified) in ids.into_iter().zip(verified) {
        let status = if verified.met { TodoStatus::Done } else { TodoStatus::Open };
        // One with open parts stays as it is.
        let _ = bench.todo.set(id, status, None);
    }
    let _ = bench.file.keep(bench.todo);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn criteria() -> Vec<Criterion> {
        let text = |text: &str| Criterion { text: text.to_owned(), check: None };
        vec![text("a"), text("b")]
    }

    fn finding(criterion: usize, evidence: &str) -> Finding {
        Finding { criterion, met: true, evidence: evidence.to_owned() }
    }

    #[test]
    fn a_report_speaks_of_every_criterion_once_and_with_evidence() {
        let question = question(&criteria()).unwrap();
        assert!(question.contains("1. a\n2. b"), "{question}");
        assert_eq!(super::question(&[]), None);
        assert_eq!(fault(&criteria(), &[finding(1, "x"), finding(2, "y")]), None);
        for report in
            [vec![finding(1, "x")], vec![finding(1, "x"), finding(2, " ")], vec![finding(1, "x"); 2]]
        {
            assert!(fault(&criteria(), &report).is_some(), "{report:?}");
        }
    }
}
