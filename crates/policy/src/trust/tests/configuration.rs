//! What may be configured.

use super::milestone::MILESTONE;
use super::per_category::PER_CATEGORY;
use super::weighted::WEIGHTED;
use super::*;

#[test]
fn the_examples_of_the_specification_load() {
    for (yaml, strategy) in [
        ("strategy: \"disabled\"\ninitial_level: \"standard\"", Strategy::Disabled),
        (WEIGHTED, Strategy::Weighted),
        (PER_CATEGORY, Strategy::PerCategory),
        (MILESTONE, Strategy::Milestone),
    ] {
        assert_eq!(config(yaml).strategy(), strategy);
        assert!(Strategy::NAMES.contains(&(strategy.as_str(), strategy)));
    }
}

#[test]
fn what_is_unsaid_is_what_is_usual() {
    let thresholds = "promotion_thresholds: {sandboxed_to_restricted: 0.4}";
    assert_eq!(
        config(&format!("strategy: weighted\n{thresholds}")),
        config(&format!(
            "strategy: weighted\ninitial_level: sandboxed\n{thresholds}\n\
             weights: {{task_difficulty: 0.3, completion_rate: 0.25, error_rate: 0.25, human_feedback: 0.2}}\n\
             re_verification: {{enabled: false, interval_days: 90, decay_on_idle_days: 30, decay_on_error_rate: 0.15}}"
        ))
    );
    assert_eq!(
        config("strategy: milestone\nmilestones: {sandboxed_to_restricted: {}}"),
        config(
            "strategy: milestone\nmilestones: {sandboxed_to_restricted: {tasks_completed: 5, quality_score_min: 7.0, \
             time_active_days: 0, clean_history_days: 0, auto_promote: true, requires_human_approval: false}}"
        )
    );
    let criteria = |criteria: &str| {
        config(&format!(
            "strategy: per_category\ninitial_levels: {{web: sandboxed}}\npromotion_criteria: {{web: {{sandboxed_to_restricted: {criteria}}}}}"
        ))
    };
    assert_eq!(
        criteria("{}"),
        criteria("{tasks_completed: 10, quality_score_min: 7, requires_human_approval: false}")
    );
    assert_ne!(criteria("{}"), criteria("{requires_human_approval: true}"));
}

#[test]
fn nothing_leads_to_elevated_that_does_not_say_that_a_person_is_asked() {
    let weighted = |step: &str| {
        mistakes(&format!("strategy: weighted\npromotion_thresholds:\n  standard_to_elevated: {step}\n"))
    };
    insta::assert_snapshot!(weighted("0.8"), @"");
    insta::assert_snapshot!(weighted("{score: 0.8}"), @"");
    insta::assert_snapshot!(weighted("{score: 0.8, requires_human_approval: false}"), @"");
    insta::assert_snapshot!(weighted("{requires_human_approval: true}"), @"");
    let category = |step: &str| {
        mistakes(&format!(
            "strategy: per_category\ninitial_levels: {{web: standard}}\npromotion_criteria:\n  web:\n    standard_to_elevated: {step}\n"
        ))
    };
    insta::assert_snapshot!(category("{}"), @"");
    insta::assert_snapshot!(category("{requires_human_approval: false}"), @"");
    let milestone =
        |step: &str| mistakes(&format!("strategy: milestone\nmilestones:\n  standard_to_elevated: {step}\n"));
    insta::assert_snapshot!(milestone("{}"), @"");
    insta::assert_snapshot!(milestone("{auto_promote: true}"), @"");
    insta::assert_snapshot!(milestone("{auto_promote: false}"), @"");
    insta::assert_snapshot!(milestone("{requires_human_approval: false}"), @"");
    insta::assert_snapshot!(milestone("{auto_promote: true, requires_human_approval: true}"), @"");
    insta::assert_snapshot!(milestone("{requires_human_approval: no}"), @"");
    // The controls.
    config(
        "strategy: weighted\npromotion_thresholds: {standard_to_elevated: {score: 0.8, requires_human_approval: true}}",
    );
    config(
        "strategy: milestone\nmilestones: {standard_to_elevated: {requires_human_approval: true, auto_promote: false}}",
    );
}

#[test]
fn nobody_begins_where_an_approval_leads() {
    insta::assert_snapshot!(mistakes("strategy: milestone\ninitial_level: elevated\nmilestones: {sandboxed_to_restricted: {}}"), @"");
    insta::assert_snapshot!(mistakes("strategy: per_category\ninitial_levels: {web: elevated}\npromotion_criteria: {}"), @"");
    insta::assert_snapshot!(mistakes("initial_level: custom"), @"");
    config("initial_level: elevated");
}

#[test]
fn weights_and_thresholds_are_shares_that_fit_together() {
    let weighted = |rest: &str| mistakes(&format!("strategy: weighted\n{rest}\n"));
    insta::assert_snapshot!(weighted("weights: {human_feedback: 0.211}\npromotion_thresholds: {sandboxed_to_restricted: 0.4}"), @"");
    insta::assert_snapshot!(weighted("weights: {human_feedback: 0.189}\npromotion_thresholds: {sandboxed_to_restricted: 1}"), @"");
    insta::assert_snapshot!(weighted("weights: {error_rate: -0.25, time_active: 0.5}\npromotion_thresholds: {sandboxed_to_restricted: 0}"), @"");
    insta::assert_snapshot!(weighted("promotion_thresholds: {sandboxed_to_restricted: 1.1, restricted_to_standard: '0.6', sandboxed_to_standard: 0.7}"), @"");
    insta::assert_snapshot!(weighted("promotion_thresholds: {sandboxed_to_restricted: 0.6, restricted_to_standard: 0.6}"), @"");
    insta::assert_snapshot!(weighted("promotion_thresholds: {sandboxed_to_restricted: 0.6, standard_to_elevated: {score: 0.5, requires_human_approval: true}}"), @"");
    insta::assert_snapshot!(weighted("promotion_thresholds: {restricted_to_standard: {score: 2, auto_promote: true}}"), @"");
    insta::assert_snapshot!(weighted("promotion_thresholds: {}"), @"");
    config(
        "strategy: weighted\nweights: {human_feedback: 0.21}\npromotion_thresholds: {sandboxed_to_restricted: 0.4}",
    );
    config(
        "strategy: weighted\nweights: {human_feedback: 0.19}\npromotion_thresholds: {sandboxed_to_restricted: 0.4}",
    );
}

#[test]
fn criteria_are_for_categories_that_have_a_level_and_have_no_milestones_members() {
    insta::assert_snapshot!(mistakes("
strategy: per_category
initial_levels: {git: restricted, version_control: sandboxed, files: sandboxed, web: custom}
promotion_criteria:
  database: {sandboxed_to_restricted: {}}
  git: {restricted_to_standard: {time_active_days: 7, quality_score_min: 10.5, tasks_completed: -1}}
  terminal: {}
"), @"");
}

#[test]
fn milestones_are_within_bounds_and_say_one_thing() {
    insta::assert_snapshot!(mistakes("
strategy: milestone
milestones:
  sandboxed_to_restricted: {tasks_completed: 1000001, quality_score_min: 11, time_active_days: 3651, clean_history_days: 0.5}
  restricted_to_standard: {auto_promote: true, requires_human_approval: true}
  elevated_to_standard: {}
re_verification: {enabled: yes, interval_days: 0, decay_on_idle_days: 3651, decay_on_error_rate: 15, decay: 1}
"), @"");
    insta::assert_snapshot!(mistakes("strategy: milestone\nmilestones: {restricted_to_standard: {auto_promote: false, requires_human_approval: false}}"), @"");
}

#[test]
fn what_belongs_to_another_strategy_is_refused_and_what_a_strategy_needs_is_asked_for() {
    let all = "
initial_level: standard
initial_levels: {web: standard}
weights: {}
promotion_thresholds: {sandboxed_to_restricted: 0.4}
promotion_criteria: {web: {restricted_to_standard: {}}}
milestones: {sandboxed_to_restricted: {}}
re_verification: {}
";
    for (strategy, _) in Strategy::NAMES {
        let mut settings = insta::Settings::clone_current();
        settings.set_snapshot_suffix(strategy);
        settings.bind(|| insta::assert_snapshot!(mistakes(&format!("strategy: {strategy}{all}"))));
    }
    insta::assert_snapshot!(mistakes(&format!("{{}}{all}").replacen("{}", "", 1)), @"");
    for strategy in ["weighted", "per_category", "milestone"] {
        let missing = mistakes(&format!("strategy: {strategy}"));
        assert!(missing.contains(&format!("`strategy: {strategy}` without it")), "{missing}");
    }
    insta::assert_snapshot!(mistakes(&format!("strategy: weigthed{all}")), @"");
    insta::assert_snapshot!(mistakes("[]"), @"");
}
