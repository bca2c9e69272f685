//! `trust`.

use super::AcceptedValues::{ByCategory, One, Section};
use super::MemberDefault::{Described, Required, Value};
use super::Scalar::{Any, Boolean, Number, OneOf, Whole};
use super::{Member, Scalar};

const SCORE: Scalar = Any("a number from 0 to 1, or `score` and perhaps `requires_human_approval`");
const SHARE: Scalar = Number(1);
const TASKS: Scalar = Whole(0, 1000000);
const QUALITY: Scalar = Number(10);
const SPAN: Scalar = Whole(1, 3650);
const DAYS: Scalar = Whole(0, 3650);

pub(super) const TRUST: &[Member] = &[
    Member::new(
        "strategy",
        One(OneOf(&["disabled", "milestone", "per_category", "weighted"])),
        Described("`disabled`: levels are set by people", "disabled"),
        "strategy by which agents earn higher levels",
    ),
    Member::new(
        "initial_level",
        One(OneOf(&["elevated", "restricted", "sandboxed", "standard"])),
        Described("`standard` with `disabled`, else `sandboxed`", "standard"),
        "initial level of agents; `elevated` only with `disabled`; not used with `per_category`",
    ),
    Member::new(
        "initial_levels",
        ByCategory(OneOf(&["restricted", "sandboxed", "standard"])),
        Described("required with `per_category`, and only there", "{web: sandboxed}"),
        "initial level of agents in these categories; other categories have the lowest of these levels",
    ).alternative(),
    Member::new(
        "weights",
        Section(WEIGHTS),
        Described("as its members say; only with `weighted`", ""),
        "weights of the score; their sum must be 1 ± 0.01",
    ).alternative(),
    Member::new(
        "promotion_thresholds",
        Section(THRESHOLDS),
        Described("required with `weighted`, and only there", "{sandboxed_to_restricted: 0.4}"),
        "score required for each step, rising from step to step; an absent step is not available",
    ).alternative(),
    Member::new(
        "promotion_criteria",
        ByCategory(Any("one at least, such as `sandboxed_to_restricted`")),
        Described(
            "required with `per_category`, and only there",
            "{web: {sandboxed_to_restricted: {tasks_completed: 10, quality_score_min: 7.0}}}",
        ),
        "requirements of each step in a category: of the members of `milestones` these two and `requires_human_approval`",
    ).alternative(),
    Member::new(
        "milestones",
        Section(MILESTONES),
        Described("required with `milestone`, and only there", "{sandboxed_to_restricted: {}}"),
        "requirements of each step; an absent step is not available",
    ).alternative(),
    Member::new(
        "re_verification",
        Section(RE_VERIFICATION),
        Described("as its members say; not with `disabled`", ""),
        "rules by which agents lose levels",
    ).alternative(),
    Member::new(
        "jobs",
        Section(JOBS),
        Described("as its members say; not with `disabled`", ""),
        "completed jobs of a node that count",
    ).alternative(),
];

const JOBS: &[Member] = &[
    Member::new(
        "needs_check",
        One(Boolean),
        Value("true"),
        "whether only jobs count whose acceptance criteria were checked by commands",
    ),
    Member::new("an_hour", One(Whole(1, 3600)), Value("4"), "maximum counted jobs per hour"),
    Member::new("a_day", One(Whole(1, 86400)), Value("12"), "maximum counted jobs per day"),
    Member::new(
        "hours_at_level",
        One(Whole(0, 87600)),
        Value("24"),
        "minimum hours at a level before jobs can lead to the next one",
    )
    .in_unit("hours"),
];

const WEIGHTS: &[Member] = &[
    weight("task_difficulty", "0.3", "difficulty of completed tasks"),
    weight("completion_rate", "0.25", "share of tasks that were completed"),
    weight("error_rate", "0.25", "share of the last twenty tasks that did not fail"),
    weight("human_feedback", "0.2", "feedback from people"),
];

const fn weight(name: &'static str, usual: &'static str, meaning: &'static str) -> Member {
    Member::new(name, One(SHARE), Described(usual, usual), meaning)
}

const THRESHOLDS: &[Member] = &[
    Member::new(
        "sandboxed_to_restricted",
        One(SCORE),
        Described("the step is not available", "0.4"),
        "the step from `sandboxed`",
    ),
    Member::new(
        "restricted_to_standard",
        One(SCORE),
        Described("the step is not available", "0.6"),
        "the step from `restricted`",
    ),
    Member::new(
        "standard_to_elevated",
        One(Any("`score` and `requires_human_approval: true`")),
        Described("the step is not available", "{score: 0.8, requires_human_approval: true}"),
        "the step from `standard`, which requires a person's approval",
    ),
];

const MILESTONES: &[Member] = &[
    Member::new(
        "sandboxed_to_restricted",
        Section(MILESTONE),
        Described("the step is not available", "{}"),
        "the step from `sandboxed`",
    ),
    Member::new(
        "restricted_to_standard",
        Section(MILESTONE),
        Described("the step is not available", "{}"),
        "the step from `restricted`",
    ),
    Member::new(
        "standard_to_elevated",
        Section(HIGHEST),
        Described("the step is not available", "{requires_human_approval: true}"),
        "the step from `standard`, which requires a person's approval",
    ),
];

const TASKS_COMPLETED: Member = Member::new(
    "tasks_completed",
    One(TASKS),
    Value("5"),
    "completed tasks since the agent was hired or last demoted; 10 in `promotion_criteria`",
);
const QUALITY_SCORE_MIN: Member = Member::new(
    "quality_score_min",
    One(QUALITY),
    Value("7.0"),
    "minimum average quality; a task without a quality counts as 0",
);
const TIME_ACTIVE_DAYS: Member =
    Member::new("time_active_days", One(DAYS), Value("0"), "days since the agent was hired or last demoted")
        .in_unit("days");
const CLEAN_HISTORY_DAYS: Member =
    Member::new("clean_history_days", One(DAYS), Value("0"), "days without a failure since then")
        .in_unit("days");
const AUTO_PROMOTE: Member = Member::new(
    "auto_promote",
    One(Boolean),
    Described("the opposite of `requires_human_approval`", "false"),
    "whether the step needs no approval",
);

const MILESTONE: &[Member] = &[
    TASKS_COMPLETED,
    QUALITY_SCORE_MIN,
    TIME_ACTIVE_DAYS,
    CLEAN_HISTORY_DAYS,
    AUTO_PROMOTE,
    Member::new(
        "requires_human_approval",
        One(Boolean),
        Described("the opposite of `auto_promote`; `false` without it", "true"),
        "whether the step requires a person's approval",
    ),
];

const HIGHEST: &[Member] = &[
    TASKS_COMPLETED,
    QUALITY_SCORE_MIN,
    TIME_ACTIVE_DAYS,
    CLEAN_HISTORY_DAYS,
    AUTO_PROMOTE,
    Member::new(
        "requires_human_approval",
        One(Boolean),
        Required("true"),
        "`true`: `elevated` always requires a person's approval",
    ),
];

const RE_VERIFICATION: &[Member] = &[
    Member::new(
        "enabled",
        One(Boolean),
        Value("false"),
        "whether agents lose levels for other reasons than incidents and decisions of people",
    ),
    Member::new(
        "interval_days",
        One(SPAN),
        Value("90"),
        "interval of reviews of the work since the last one: an agent loses a level if the quality is below what the step to it requires, or 7.0",
    ).in_unit("days"),
    Member::new(
        "decay_on_idle_days",
        One(SPAN),
        Value("30"),
        "idle time after which an agent loses a level, repeatedly",
    ).in_unit("days"),
    Member::new(
        "decay_on_error_rate",
        One(SHARE),
        Described("0.15", "0.15"),
        "share of failures in the last twenty tasks above which an agent loses a level; fewer than ten tasks count as ten",
    ),
];
