//! `trust`.

use super::AcceptedValues::{ByCategory, One, Section};
use super::MemberDefault::{Means, Required, Stands};
use super::{BOOLEAN, Member};

const SCORE: &str = "a number from 0 to 1, or `score` and perhaps `requires_human_approval`";
const SHARE: &str = "a number from 0 to 1, with up to three places";
const TASKS: &str = "a whole number from 0 to 1000000";
const QUALITY: &str = "a number from 0 to 10, with up to three places";
const SPAN: &str = "a whole number from 1 to 3650";
const DAYS: &str = "a whole number from 0 to 3650";

pub(super) const TRUST: &[Member] = &[
    Member {
        name: "strategy",
        takes: One("one of: disabled, milestone, per_category, weighted"),
        unsaid: Means("`disabled`: levels are set by people", "disabled"),
        meaning: "strategy by which agents earn higher levels",
    },
    Member {
        name: "initial_level",
        takes: One("one of: elevated, restricted, sandboxed, standard"),
        unsaid: Means("`standard` with `disabled`, else `sandboxed`", "standard"),
        meaning: "initial level of agents; `elevated` only with `disabled`; not used with `per_category`",
    },
    Member {
        name: "initial_levels",
        takes: ByCategory("one of: restricted, sandboxed, standard"),
        unsaid: Means("required with `per_category`, and only there", "{web: sandboxed}"),
        meaning: "initial level of agents in these categories; other categories have the lowest of these \
    levels",
    },
    Member {
        name: "weights",
        takes: Section(WEIGHTS),
        unsaid: Means("as its members say; only with `weighted`", ""),
        meaning: "weights of the score; their sum must be 1 ± 0.01",
    },
    Member {
        name: "promotion_thresholds",
        takes: Section(THRESHOLDS),
        unsaid: Means("required with `weighted`, and only there", "{sandboxed_to_restricted: 0.4}"),
        meaning: "score required for each step, rising from step to step; an absent step is not available",
    },
    Member {
        name: "promotion_criteria",
        takes: ByCategory("one at least, such as `sandboxed_to_restricted`"),
        unsaid: Means(
            "required with `per_category`, and only there",
            "{web: {sandboxed_to_restricted: {tasks_completed: 10, quality_score_min: 7.0}}}",
        ),
        meaning: "requirements of each step in a category: of the members of `milestones` these two and \
    `requires_human_approval`",
    },
    Member {
        name: "milestones",
        takes: Section(MILESTONES),
        unsaid: Means("required with `milestone`, and only there", "{sandboxed_to_restricted: {}}"),
        meaning: "requirements of each step; an absent step is not available",
    },
    Member {
        name: "re_verification",
        takes: Section(RE_VERIFICATION),
        unsaid: Means("as its members say; not with `disabled`", ""),
        meaning: "rules by which agents lose levels",
    },
    Member {
        name: "jobs",
        takes: Section(JOBS),
        unsaid: Means("as its members say; not with `disabled`", ""),
        meaning: "completed jobs of a node that count",
    },
];

const JOBS: &[Member] = &[
    Member {
        name: "needs_check",
        takes: BOOLEAN,
        unsaid: Stands("true"),
        meaning: "whether only jobs count whose acceptance criteria were checked by commands",
    },
    Member {
        name: "an_hour",
        takes: One("a whole number from 1 to 3600"),
        unsaid: Stands("4"),
        meaning: "maximum counted jobs per hour",
    },
    Member {
        name: "a_day",
        takes: One("a whole number from 1 to 86400"),
        unsaid: Stands("12"),
        meaning: "maximum counted jobs per day",
    },
    Member {
        name: "hours_at_level",
        takes: One("a whole number from 0 to 87600"),
        unsaid: Stands("24"),
        meaning: "minimum hours at a level before jobs can lead to the next one",
    },
];

const WEIGHTS: &[Member] = &[
    weight("task_difficulty", "0.3", "difficulty of completed tasks"),
    weight("completion_rate", "0.25", "share of tasks that were completed"),
    weight("error_rate", "0.25", "share of the last twenty tasks that did not fail"),
    weight("human_feedback", "0.2", "feedback from people"),
];

const fn weight(name: &'static str, usual: &'static str, meaning: &'static str) -> Member {
    Member { name, takes: One(SHARE), unsaid: Means(usual, usual), meaning }
}

const THRESHOLDS: &[Member] = &[
    Member {
        name: "sandboxed_to_restricted",
        takes: One(SCORE),
        unsaid: Means("the step is not available", "0.4"),
        meaning: "the step from `sandboxed`",
    },
    Member {
        name: "restricted_to_standard",
        takes: One(SCORE),
        unsaid: Means("the step is not available", "0.6"),
        meaning: "the step from `restricted`",
    },
    Member {
        name: "standard_to_elevated",
        takes: One("`score` and `requires_human_approval: true`"),
        unsaid: Means("the step is not available", "{score: 0.8, requires_human_approval: true}"),
        meaning: "the step from `standard`, which requires a person's approval",
    },
];

const MILESTONES: &[Member] = &[
    Member {
        name: "sandboxed_to_restricted",
        takes: Section(MILESTONE),
        unsaid: Means("the step is not available", "{}"),
        meaning: "the step from `sandboxed`",
    },
    Member {
        name: "restricted_to_standard",
        takes: Section(MILESTONE),
        unsaid: Means("the step is not available", "{}"),
        meaning: "the step from `restricted`",
    },
    Member {
        name: "standard_to_elevated",
        takes: Section(HIGHEST),
        unsaid: Means("the step is not available", "{requires_human_approval: true}"),
        meaning: "the step from `standard`, which requires a person's approval",
    },
];

const TASKS_COMPLETED: Member = Member {
    name: "tasks_completed",
    takes: One(TASKS),
    unsaid: Stands("5"),
    meaning: "completed tasks since the agent was hired or last demoted; 10 in `promotion_criteria`",
};
const QUALITY_SCORE_MIN: Member = Member {
    name: "quality_score_min",
    takes: One(QUALITY),
    unsaid: Stands("7.0"),
    meaning: "minimum average quality; a task without a quality counts as 0",
};
const TIME_ACTIVE_DAYS: Member = Member {
    name: "time_active_days",
    takes: One(DAYS),
    unsaid: Stands("0"),
    meaning: "days since the agent was hired or last demoted",
};
const CLEAN_HISTORY_DAYS: Member = Member {
    name: "clean_history_days",
    takes: One(DAYS),
    unsaid: Stands("0"),
    meaning: "days without a failure since then",
};
const AUTO_PROMOTE: Member = Member {
    name: "auto_promote",
    takes: BOOLEAN,
    unsaid: Means("the opposite of `requires_human_approval`", "false"),
    meaning: "whether the step needs no approval",
};

const MILESTONE: &[Member] = &[
    TASKS_COMPLETED,
    QUALITY_SCORE_MIN,
    TIME_ACTIVE_DAYS,
    CLEAN_HISTORY_DAYS,
    AUTO_PROMOTE,
    Member {
        name: "requires_human_approval",
        takes: BOOLEAN,
        unsaid: Means("the opposite of `auto_promote`; `false` without it", "true"),
        meaning: "whether the step requires a person's approval",
    },
];

const HIGHEST: &[Member] = &[
    TASKS_COMPLETED,
    QUALITY_SCORE_MIN,
    TIME_ACTIVE_DAYS,
    CLEAN_HISTORY_DAYS,
    AUTO_PROMOTE,
    Member {
        name: "requires_human_approval",
        takes: BOOLEAN,
        unsaid: Required("true"),
        meaning: "`true`: `elevated` always requires a person's approval",
    },
];

const RE_VERIFICATION: &[Member] = &[
    Member {
        name: "enabled",
        takes: BOOLEAN,
        unsaid: Stands("false"),
        meaning: "whether agents lose levels for other reasons than incidents and decisions of people",
    },
    Member {
        name: "interval_days",
        takes: One(SPAN),
        unsaid: Stands("90"),
        meaning: "interval of reviews of the work since the last one: an agent loses a level if the \
    quality is below what the step to it requires, or 7.0",
    },
    Member {
        name: "decay_on_idle_days",
        takes: One(SPAN),
        unsaid: Stands("30"),
        meaning: "idle time after which an agent loses a level, repeatedly",
    },
    Member {
        name: "decay_on_error_rate",
        takes: One(SHARE),
        unsaid: Means("0.15", "0.15"),
        meaning: "share of failures in the last twenty tasks above which an agent loses a level; fewer \
    than ten tasks count as ten",
    },
];
