//! Tests of valid and invalid configurations.

use super::milestone::MILESTONE;
use super::per_category::PER_CATEGORY;
use super::weighted::WEIGHTED;
use super::*;

#[test]
fn specification_examples_load() {
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
fn unset_trust_options_have_documented_defaults() {
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
fn gate_to_elevated_must_require_human_approval() {
    let weighted = |step: &str| {
        mistakes(&format!("strategy: weighted\npromotion_thresholds:\n  standard_to_elevated: {step}\n"))
    };
    insta::assert_snapshot!(weighted("0.8"), @"3:25: promotion_thresholds.standard_to_elevated: found `0.8`; expected `score` and `requires_human_approval: true`");
    insta::assert_snapshot!(weighted("{score: 0.8}"), @"3:25: promotion_thresholds.standard_to_elevated.requires_human_approval: found nothing; expected this required member");
    insta::assert_snapshot!(weighted("{score: 0.8, requires_human_approval: false}"), @"3:63: promotion_thresholds.standard_to_elevated.requires_human_approval: found `false`; expected `true`, as the level elevated requires a user's approval");
    insta::assert_snapshot!(weighted("{requires_human_approval: true}"), @"3:25: promotion_thresholds.standard_to_elevated: found a mapping; expected `score` and `requires_human_approval: true`");
    let category = |step: &str| {
        mistakes(&format!(
            "strategy: per_category\ninitial_levels: {{web: standard}}\npromotion_criteria:\n  web:\n    standard_to_elevated: {step}\n"
        ))
    };
    insta::assert_snapshot!(category("{}"), @"5:27: promotion_criteria.web.standard_to_elevated.requires_human_approval: found nothing; expected this required member");
    insta::assert_snapshot!(category("{requires_human_approval: false}"), @"5:53: promotion_criteria.web.standard_to_elevated.requires_human_approval: found `false`; expected `true`, as the level elevated requires a user's approval");
    let milestone =
        |step: &str| mistakes(&format!("strategy: milestone\nmilestones:\n  standard_to_elevated: {step}\n"));
    insta::assert_snapshot!(milestone("{}"), @"3:25: milestones.standard_to_elevated.requires_human_approval: found nothing; expected this required member");
    insta::assert_snapshot!(milestone("{auto_promote: true}"), @"3:25: milestones.standard_to_elevated.requires_human_approval: found nothing; expected this required member");
    insta::assert_snapshot!(milestone("{auto_promote: false}"), @"3:25: milestones.standard_to_elevated.requires_human_approval: found nothing; expected this required member");
    insta::assert_snapshot!(milestone("{requires_human_approval: false}"), @"3:51: milestones.standard_to_elevated.requires_human_approval: found `false`; expected `true`, as the level elevated requires a user's approval");
    insta::assert_snapshot!(milestone("{auto_promote: true, requires_human_approval: true}"), @"3:25: milestones.standard_to_elevated: found `true` for both; expected `true` for one of `auto_promote` and `requires_human_approval`");
    insta::assert_snapshot!(milestone("{requires_human_approval: no}"), @"3:51: milestones.standard_to_elevated.requires_human_approval: found `no`; expected `true` or `false`");
    // Controls.
    config(
        "strategy: weighted\npromotion_thresholds: {standard_to_elevated: {score: 0.8, requires_human_approval: true}}",
    );
    config(
        "strategy: milestone\nmilestones: {standard_to_elevated: {requires_human_approval: true, auto_promote: false}}",
    );
}

#[test]
fn initial_level_cannot_require_an_approval() {
    insta::assert_snapshot!(mistakes("strategy: milestone\ninitial_level: elevated\nmilestones: {sandboxed_to_restricted: {}}"), @r#"2:16: initial_level: found "elevated"; expected one of: restricted, sandboxed, standard"#);
    insta::assert_snapshot!(mistakes("strategy: per_category\ninitial_levels: {web: elevated}\npromotion_criteria: {}"), @r#"2:23: initial_levels.web: found "elevated"; expected one of: restricted, sandboxed, standard"#);
    insta::assert_snapshot!(mistakes("initial_level: custom"), @r#"1:16: initial_level: found "custom"; expected one of: elevated, restricted, sandboxed, standard"#);
    config("initial_level: elevated");
}

#[test]
fn weights_and_thresholds_are_consistent_shares() {
    let weighted = |rest: &str| mistakes(&format!("strategy: weighted\n{rest}\n"));
    insta::assert_snapshot!(weighted("weights: {human_feedback: 0.211}\npromotion_thresholds: {sandboxed_to_restricted: 0.4}"), @"2:10: weights: found weights that make 1.011; expected weights that make 1, give or take 0.01");
    insta::assert_snapshot!(weighted("weights: {human_feedback: 0.189}\npromotion_thresholds: {sandboxed_to_restricted: 1}"), @"2:10: weights: found weights that make 0.989; expected weights that make 1, give or take 0.01");
    insta::assert_snapshot!(weighted("weights: {error_rate: -0.25, time_active: 0.5}\npromotion_thresholds: {sandboxed_to_restricted: 0}"), @"
    2:23: weights.error_rate: found `-0.25`; expected a number from 0 to 1, with up to three places
    2:30: weights.time_active: found an unknown member; expected one of: completion_rate, error_rate, human_feedback, task_difficulty
    ");
    insta::assert_snapshot!(weighted("promotion_thresholds: {sandboxed_to_restricted: 1.1, restricted_to_standard: '0.6', sandboxed_to_standard: 0.7}"), @r#"
    2:49: promotion_thresholds.sandboxed_to_restricted: found `1.1`; expected a number from 0 to 1, or `score` and perhaps `requires_human_approval`
    2:78: promotion_thresholds.restricted_to_standard: found the text "0.6"; expected a number from 0 to 1, or `score` and perhaps `requires_human_approval`
    2:85: promotion_thresholds.sandboxed_to_standard: found an unknown member; expected one of: restricted_to_standard, sandboxed_to_restricted, standard_to_elevated
    "#);
    insta::assert_snapshot!(weighted("promotion_thresholds: {sandboxed_to_restricted: 0.6, restricted_to_standard: 0.6}"), @"2:23: promotion_thresholds: found 0.6 for `restricted_to_standard`, and 0.6 before it; expected a higher score for each further step");
    insta::assert_snapshot!(weighted("promotion_thresholds: {sandboxed_to_restricted: 0.6, standard_to_elevated: {score: 0.5, requires_human_approval: true}}"), @"2:23: promotion_thresholds: found 0.5 for `standard_to_elevated`, and 0.6 before it; expected a higher score for each further step");
    insta::assert_snapshot!(weighted("promotion_thresholds: {restricted_to_standard: {score: 2, auto_promote: true}}"), @"
    2:56: promotion_thresholds.restricted_to_standard.score: found `2`; expected a number from 0 to 1, with up to three places
    2:59: promotion_thresholds.restricted_to_standard.auto_promote: found an unknown member; expected one of: requires_human_approval, score
    ");
    insta::assert_snapshot!(weighted(""), @"1:1: promotion_thresholds: found `strategy: weighted` without it; expected this member");
    config(
        "strategy: weighted\nweights: {human_feedback: 0.21}\npromotion_thresholds: {sandboxed_to_restricted: 0.4}",
    );
    config(
        "strategy: weighted\nweights: {human_feedback: 0.19}\npromotion_thresholds: {sandboxed_to_restricted: 0.4}",
    );
}

#[test]
fn promotion_criteria_require_a_category_level_and_reject_milestone_keys() {
    insta::assert_snapshot!(mistakes("
strategy: per_category
initial_levels: {git: restricted, version_control: sandboxed, files: sandboxed, web: custom}
promotion_criteria:
  database: {sandboxed_to_restricted: {}}
  git: {restricted_to_standard: {time_active_days: 7, quality_score_min: 10.5, tasks_completed: -1}}
  terminal: {}
"), @r#"
    3:35: initial_levels.version_control: found `version_control` beside `git`, which is the same category; expected each category once
    3:63: initial_levels.files: found an unknown category; expected one of: analytics, browser, code_execution, communication, database, deployment, design, desktop, external_data, file_system, git, mcp, memory, ontology, other, terminal, version_control, web
    3:86: initial_levels.web: found "custom"; expected one of: restricted, sandboxed, standard
    5:3: promotion_criteria: found criteria for "database"; expected categories that `initial_levels` has
    5:3: promotion_criteria: found criteria for "terminal"; expected categories that `initial_levels` has
    6:34: promotion_criteria.git.restricted_to_standard.time_active_days: found an unknown member; expected one of: quality_score_min, requires_human_approval, tasks_completed
    6:74: promotion_criteria.git.restricted_to_standard.quality_score_min: found `10.5`; expected a number from 0 to 10, with up to three places
    6:97: promotion_criteria.git.restricted_to_standard.tasks_completed: found `-1`; expected a whole number from 0 to 1000000
    7:13: promotion_criteria.terminal: found no step; expected one at least, such as `sandboxed_to_restricted`
    "#);
}

#[test]
fn milestones_are_bounded_and_unambiguous() {
    insta::assert_snapshot!(mistakes("
strategy: milestone
milestones:
  sandboxed_to_restricted: {tasks_completed: 1000001, quality_score_min: 11, time_active_days: 3651, clean_history_days: 0.5}
  restricted_to_standard: {auto_promote: true, requires_human_approval: true}
  elevated_to_standard: {}
re_verification: {enabled: yes, interval_days: 0, decay_on_idle_days: 3651, decay_on_error_rate: 15, decay: 1}
"), @"
    4:46: milestones.sandboxed_to_restricted.tasks_completed: found `1000001`; expected a whole number from 0 to 1000000
    4:74: milestones.sandboxed_to_restricted.quality_score_min: found `11`; expected a number from 0 to 10, with up to three places
    4:96: milestones.sandboxed_to_restricted.time_active_days: found `3651`; expected a whole number from 0 to 3650
    4:122: milestones.sandboxed_to_restricted.clean_history_days: found `0.5`; expected a whole number from 0 to 3650
    5:27: milestones.restricted_to_standard: found `true` for both; expected `true` for one of `auto_promote` and `requires_human_approval`
    6:3: milestones.elevated_to_standard: found an unknown member; expected one of: restricted_to_standard, sandboxed_to_restricted, standard_to_elevated
    7:28: re_verification.enabled: found `yes`; expected `true` or `false`
    7:48: re_verification.interval_days: found `0`; expected a whole number from 1 to 3650
    7:71: re_verification.decay_on_idle_days: found `3651`; expected a whole number from 1 to 3650
    7:98: re_verification.decay_on_error_rate: found `15`; expected a number from 0 to 1, with up to three places
    7:102: re_verification.decay: found an unknown member; expected one of: decay_on_error_rate, decay_on_idle_days, enabled, interval_days
    ");
    insta::assert_snapshot!(mistakes("strategy: milestone\nmilestones: {restricted_to_standard: {auto_promote: false, requires_human_approval: false}}"), @"2:38: milestones.restricted_to_standard: found `false` for both; expected `true` for one of `auto_promote` and `requires_human_approval`");
}

#[test]
fn options_of_other_strategies_are_refused_and_own_are_required() {
    let all = "
initial_level: standard
initial_levels: {web: standard}
weights: {}
promotion_thresholds: {sandboxed_to_restricted: 0.4}
promotion_criteria: {web: {restricted_to_standard: {}}}
milestones: {sandboxed_to_restricted: {}}
re_verification: {}
";
    let with = |strategy: &str| mistakes(&format!("strategy: {strategy}{all}"));
    insta::assert_snapshot!(with("disabled"), @"
    3:17: initial_levels: found `initial_levels` beside `strategy: disabled`; expected what belongs to that strategy
    4:10: weights: found `weights` beside `strategy: disabled`; expected what belongs to that strategy
    5:23: promotion_thresholds: found `promotion_thresholds` beside `strategy: disabled`; expected what belongs to that strategy
    6:21: promotion_criteria: found `promotion_criteria` beside `strategy: disabled`; expected what belongs to that strategy
    7:13: milestones: found `milestones` beside `strategy: disabled`; expected what belongs to that strategy
    8:18: re_verification: found `re_verification` beside `strategy: disabled`; expected what belongs to that strategy
    ");
    insta::assert_snapshot!(with("weighted"), @"
    3:17: initial_levels: found `initial_levels` beside `strategy: weighted`; expected what belongs to that strategy
    6:21: promotion_criteria: found `promotion_criteria` beside `strategy: weighted`; expected what belongs to that strategy
    7:13: milestones: found `milestones` beside `strategy: weighted`; expected what belongs to that strategy
    ");
    insta::assert_snapshot!(with("per_category"), @"
    2:16: initial_level: found `initial_level` beside `strategy: per_category`; expected what belongs to that strategy
    4:10: weights: found `weights` beside `strategy: per_category`; expected what belongs to that strategy
    5:23: promotion_thresholds: found `promotion_thresholds` beside `strategy: per_category`; expected what belongs to that strategy
    7:13: milestones: found `milestones` beside `strategy: per_category`; expected what belongs to that strategy
    ");
    insta::assert_snapshot!(with("milestone"), @"
    3:17: initial_levels: found `initial_levels` beside `strategy: milestone`; expected what belongs to that strategy
    4:10: weights: found `weights` beside `strategy: milestone`; expected what belongs to that strategy
    5:23: promotion_thresholds: found `promotion_thresholds` beside `strategy: milestone`; expected what belongs to that strategy
    6:21: promotion_criteria: found `promotion_criteria` beside `strategy: milestone`; expected what belongs to that strategy
    ");
    assert_eq!(mistakes(all).matches("beside `strategy: disabled`").count(), 6);
    for strategy in ["weighted", "per_category", "milestone"] {
        let missing = mistakes(&format!("strategy: {strategy}"));
        assert!(missing.contains(&format!("`strategy: {strategy}` without it")), "{missing}");
    }
    insta::assert_snapshot!(with("weigthed"), @r#"1:11: strategy: found "weigthed"; expected `weighted`, perhaps; known here: disabled, milestone, per_category, weighted"#);
    insta::assert_snapshot!(mistakes("[]"), @"1:1: the file: found a list of 0; expected a mapping");
}
