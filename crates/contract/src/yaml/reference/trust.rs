//! `trust`.

use super::Takes::{ByCategory, One, Section};
use super::Unsaid::{Means, Required, Stands};
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
        unsaid: Means("`disabled`: levels are what people say", "disabled"),
        meaning: "what higher levels are earned by",
    },
    Member {
        name: "initial_level",
        takes: One("one of: elevated, restricted, sandboxed, standard"),
        unsaid: Means("`standard` with `disabled`, else `sandboxed`", "standard"),
        meaning: "what agents begin with; `elevated` with `disabled` alone, and not with `per_category`",
    },
    Member {
        name: "initial_levels",
        takes: ByCategory("one of: restricted, sandboxed, standard"),
        unsaid: Means("required with `per_category`, and only there", "{web: sandboxed}"),
        meaning: "what agents begin with in these categories; in any other one they have the lowest that they have in these",
    },
    Member {
        name: "weights",
        takes: Section(WEIGHTS),
        unsaid: Means("as its members say; only with `weighted`", ""),
        meaning: "what counts for how much of the score; together 1, give or take 0.01",
    },
    Member {
        name: "promotion_thresholds",
        takes: Section(THRESHOLDS),
        unsaid: Means("required with `weighted`, and only there", "{sandboxed_to_restricted: 0.4}"),
        meaning: "the score that each step takes, a higher one for each further step; one that is absent isn't taken",
    },
    Member {
        name: "promotion_criteria",
        takes: ByCategory("one at least, such as `sandboxed_to_restricted`"),
        unsaid: Means(
            "required with `per_category`, and only there",
            "{web: {sandboxed_to_restricted: {tasks_completed: 10, quality_score_min: 7.0}}}",
        ),
        meaning: "what each step takes in a category: of the members of `milestones` these two and `requires_human_approval`",
    },
    Member {
        name: "milestones",
        takes: Section(MILESTONES),
        unsaid: Means("required with `milestone`, and only there", "{sandboxed_to_restricted: {}}"),
        meaning: "what each step takes; one that is absent isn't taken",
    },
    Member {
        name: "re_verification",
        takes: Section(RE_VERIFICATION),
        unsaid: Means("as its members say; not with `disabled`", ""),
        meaning: "how levels are lost",
    },
    Member {
        name: "jobs",
        takes: Section(JOBS),
        unsaid: Means("as its members say; not with `disabled`", ""),
        meaning: "which completed jobs of a node count",
    },
];

const JOBS: &[Member] = &[
    Member {
        name: "needs_check",
        takes: BOOLEAN,
        unsaid: Stands("true"),
        meaning: "whether only jobs count whose acceptance criteria commands have checked",
    },
    Member {
        name: "an_hour",
        takes: One("a whole number from 1 to 3600"),
        unsaid: Stands("4"),
        meaning: "jobs that count within an hour",
    },
    Member {
        name: "a_day",
        takes: One("a whole number from 1 to 86400"),
        unsaid: Stands("12"),
        meaning: "jobs that count within a day",
    },
    Member {
        name: "hours_at_level",
        takes: One("a whole number from 0 to 87600"),
        unsaid: Stands("24"),
        meaning: "hours that an agent has a level before a record with jobs leads it to the next one",
    },
];

const WEIGHTS: &[Member] = &[
    weight("task_difficulty", "0.3", "how hard completed tasks were"),
    weight("completion_rate", "0.25", "how many of all tasks were completed"),
    weight("error_rate", "0.25", "how few of the last twenty failed"),
    weight("human_feedback", "0.2", "how content people were"),
];

const fn weight(name: &'static str, usual: &'static str, meaning: &'static str) -> Member {
    Member { name, takes: One(SHARE), unsaid: Means(usual, usual), meaning }
}

const THRESHOLDS: &[Member] = &[
    Member {
        name: "sandboxed_to_restricted",
        takes: One(SCORE),
        unsaid: Means("no such step", "0.4"),
        meaning: "the step from `sandboxed`",
    },
    Member {
        name: "restricted_to_standard",
        takes: One(SCORE),
        unsaid: Means("no such step", "0.6"),
        meaning: "the step from `restricted`",
    },
    Member {
        name: "standard_to_elevated",
        takes: One("`score` and `requires_human_approval: true`"),
        unsaid: Means("no such step", "{score: 0.8, requires_human_approval: true}"),
        meaning: "the step from `standard`, which a person approves of",
    },
];

const MILESTONES: &[Member] = &[
    Member {
        name: "sandboxed_to_restricted",
        takes: Section(MILESTONE),
        unsaid: Means("no such step", "{}"),
        meaning: "the step from `sandboxed`",
    },
    Member {
        name: "restricted_to_standard",
        takes: Section(MILESTONE),
        unsaid: Means("no such step", "{}"),
        meaning: "the step from `restricted`",
    },
    Member {
        name: "standard_to_elevated",
        takes: Section(HIGHEST),
        unsaid: Means("no such step", "{requires_human_approval: true}"),
        meaning: "the step from `standard`, which a person approves of",
    },
];

const TASKS_COMPLETED: Member = Member {
    name: "tasks_completed",
    takes: One(TASKS),
    unsaid: Stands("5"),
    meaning: "tasks completed since the agent was hired, or last lowered; 10 in `promotion_criteria`",
};
const QUALITY_SCORE_MIN: Member = Member {
    name: "quality_score_min",
    takes: One(QUALITY),
    unsaid: Stands("7.0"),
    meaning: "how well, on average; one of which nobody said so counts as 0",
};
const TIME_ACTIVE_DAYS: Member = Member {
    name: "time_active_days",
    takes: One(DAYS),
    unsaid: Stands("0"),
    meaning: "days since the agent was hired, or last lowered",
};
const CLEAN_HISTORY_DAYS: Member = Member {
    name: "clean_history_days",
    takes: One(DAYS),
    unsaid: Stands("0"),
    meaning: "days without a failure, and since then",
};
const AUTO_PROMOTE: Member = Member {
    name: "auto_promote",
    takes: BOOLEAN,
    unsaid: Means("what `requires_human_approval` isn't", "false"),
    meaning: "whether the step is taken without asking anybody",
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
        unsaid: Means("what `auto_promote` isn't; `false` without it", "true"),
        meaning: "whether a person approves of the step before it is taken",
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
        meaning: "`true`: nobody becomes elevated without a person's approval",
    },
];

const RE_VERIFICATION: &[Member] = &[
    Member {
        name: "enabled",
        takes: BOOLEAN,
        unsaid: Stands("false"),
        meaning: "whether levels are lost by anything but an incident and a person's word",
    },
    Member {
        name: "interval_days",
        takes: One(SPAN),
        unsaid: Stands("90"),
        meaning: "how often what was done since the last time is looked at: a level goes where it is not as good as the step to it takes, or 7.0",
    },
    Member {
        name: "decay_on_idle_days",
        takes: One(SPAN),
        unsaid: Stands("30"),
        meaning: "a level goes for each span so long in which the agent does nothing",
    },
    Member {
        name: "decay_on_error_rate",
        takes: One(SHARE),
        unsaid: Means("0.15", "0.15"),
        meaning: "a level goes when more than this of the last twenty tasks failed; of fewer than ten, of ten",
    },
];
