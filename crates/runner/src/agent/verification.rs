//! Verification of the acceptance criteria: by their commands if they have some, otherwise by a model.
//!
//! The commands run last, when nothing is changed any more. A model's finding is marked as such, because it may be
//! wrong.

use super::tools::{Finding, ToolContext};
use crate::deadline::{Deadline, Interruption};
use belljar_contract::job::context::Criterion;
use belljar_contract::job::step::Action;
use belljar_contract::result::agent::{CriterionVerification, TodoOrigin, TodoStatus, Verifier};

/// Maximum number of bytes of evidence for each criterion.
const LONGEST: usize = 2000;

/// Why a criterion is unverified.
const NOT_LOOKED_AT: &str = "the criterion has no `check` and the job has no `inference`: add one of them";

/// Returns the question for a model before the commands run; `None` if no criterion needs a model.
pub(super) fn question(criteria: &[Criterion]) -> Option<String> {
    let mut of_model = by_model(criteria).peekable();
    of_model.peek()?;
    let listed: Vec<String> =
        of_model.map(|(number, criterion)| format!("{number}. {}", criterion.text)).collect();
    Some(format!(
        "Before the job counts as done, check each of these criteria against the current workspace with the tools, not from memory. \
         Then call `report_criteria` once, with a result for every number: {}\n{}",
        "whether it is met, and the evidence.",
        listed.join("\n")
    ))
}

/// Returns the criteria without a command, with their numbers.
fn by_model(criteria: &[Criterion]) -> impl Iterator<Item = (usize, &Criterion)> {
    (1..).zip(criteria).filter(|(_, criterion)| criterion.check.is_none())
}

/// Returns the fault of a report, if it has one.
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

/// Runs the commands, and returns the findings for each criterion; the todo list is updated accordingly.
pub(super) fn conclude(
    criteria: &[Criterion],
    report: &[Finding],
    bench: &mut ToolContext<'_>,
    deadline: &Deadline<'_>,
) -> Result<Vec<CriterionVerification>, Interruption> {
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
        all.push(CriterionVerification { criterion: criterion.text.clone(), met, by, evidence });
    }
    mark(&all, bench);
    Ok(all)
}

fn mark(verified: &[CriterionVerification], bench: &mut ToolContext<'_>) {
    let items = bench.todo.items().iter().filter(|item| item.origin == TodoOrigin::AcceptanceCriterion);
    let mut ids: Vec<u32> = items.map(|item| item.id).collect();
    // Sorts by the job's numbering, because the agent may have reordered the items.
    ids.sort_unstable();
    for (id, verified) in ids.into_iter().zip(verified) {
        let status = if verified.met { TodoStatus::Done } else { TodoStatus::Open };
        // An item with open parts keeps its status.
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
    fn verification_report_must_cover_every_criterion_once_with_evidence() {
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
