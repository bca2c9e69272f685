//! Budgets that don't depend on the clock: the system calls, page faults, commits and syncs of an operation.
//!
//! The figures are in `tests/budgets.toml`. An operation that exceeds its budget plus tolerance fails its test. A change that
//! needs more raises the figure in the same commit, and its message gives the reason.

#![forbid(unsafe_code)]

/// The cost of one operation, of all processes together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// System calls.
    pub system_calls: u64,
    /// Page faults, minor and major.
    pub page_faults: u64,
    /// Syncs of a database's or the audit log's own log: each ends a commit.
    pub commits: u64,
    /// Calls of `fsync`, `fdatasync`, `sync_file_range`, `syncfs` and `msync`.
    pub syncs: u64,
}

/// The result of comparing a cost with a budget.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Judgement {
    /// The cost is within the budget.
    Within,
    /// The cost of these members is much lower: the budget can be reduced.
    MuchLess(Vec<&'static str>),
    /// The cost of these members exceeds the budget plus tolerance.
    Exceeded(Vec<&'static str>),
}

/// An invalid file of budgets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BudgetError {
    /// A line is neither a table's name nor a member with a whole number.
    #[error("line {line} is no table, comment or `name = number`")]
    Malformed {
        /// Line number, from 1.
        line: usize,
    },
    /// An operation has no budget, or one that lacks a member.
    #[error("the budget of {operation} has no `{member}`")]
    Missing {
        /// The operation.
        operation: String,
        /// The member.
        member: &'static str,
    },
}

/// The members of a budget, with the tolerance of each in percent.
const MEMBERS: [(&str, u64); 4] = [("system_calls", 5), ("page_faults", 15), ("commits", 0), ("syncs", 0)];

// === impl Cost ===

impl Cost {
    /// Reads the budget of an operation from the text of `tests/budgets.toml`.
    ///
    /// # Errors
    /// [`BudgetError`].
    pub fn budget_of(operation: &str, text: &str) -> Result<Self, BudgetError> {
        let mut figures = [None; MEMBERS.len()];
        let mut is_meant = false;
        for (line, number) in text.lines().zip(1..) {
            let line = line.split('#').next().unwrap_or_default().trim();
            if let Some(table) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                is_meant = table == operation;
                continue;
            }
            if line.is_empty() {
                continue;
            }
            let malformed = BudgetError::Malformed { line: number };
            let (name, figure) = line.split_once('=').ok_or_else(|| malformed.clone())?;
            let at = MEMBERS.iter().position(|(member, _)| *member == name.trim());
            let (Some(at), Ok(figure)) = (at, figure.trim().parse()) else { return Err(malformed) };
            if is_meant {
                figures[at] = Some(figure);
            }
        }
        let missing =
            |at: usize| BudgetError::Missing { operation: operation.to_owned(), member: MEMBERS[at].0 };
        let figure = |at: usize| figures[at].ok_or_else(|| missing(at));
        Ok(Self { system_calls: figure(0)?, page_faults: figure(1)?, commits: figure(2)?, syncs: figure(3)? })
    }

    fn figures(&self) -> [u64; MEMBERS.len()] {
        [self.system_calls, self.page_faults, self.commits, self.syncs]
    }

    /// Returns the cost of one operation, from the costs of few and of many of them, each with everything around them.
    pub fn of_one(few: (u64, Self), many: (u64, Self)) -> Self {
        let operations = many.0 - few.0;
        let each = |few: u64, many: u64| (many.saturating_sub(few) + operations / 2) / operations;
        let (few, many) = (few.1.figures(), many.1.figures());
        Self {
            system_calls: each(few[0], many[0]),
            page_faults: each(few[1], many[1]),
            commits: each(few[2], many[2]),
            syncs: each(few[3], many[3]),
        }
    }

    /// Compares the cost with a budget.
    pub fn judge(&self, budget: &Self) -> Judgement {
        let all = || MEMBERS.iter().zip(self.figures().into_iter().zip(budget.figures()));
        let slack = |budget: u64, per_cent: u64| (budget * per_cent).div_ceil(100);
        let exceeded = all().filter(|((_, per_cent), (took, may))| *took > may + slack(*may, *per_cent));
        let exceeded: Vec<_> = exceeded.map(|((name, _), _)| *name).collect();
        if !exceeded.is_empty() {
            return Judgement::Exceeded(exceeded);
        }
        let less = all().filter(|((_, per_cent), (took, may))| took + 2 * slack(*may, *per_cent) < *may);
        match less.map(|((name, _), _)| *name).collect::<Vec<_>>() {
            less if less.is_empty() => Judgement::Within,
            less => Judgement::MuchLess(less),
        }
    }

    /// Returns the figures with those of a budget, as a tab-separated row.
    pub fn row(&self, operation: &str, budget: &Self) -> String {
        let cells =
            self.figures().into_iter().zip(budget.figures()).map(|(took, may)| format!("{took}/{may}"));
        let verdict = match self.judge(budget) {
            Judgement::Within => "within".to_owned(),
            Judgement::MuchLess(less) => format!("within; lower the budget of {}", less.join(", ")),
            Judgement::Exceeded(more) => format!("EXCEEDED: {}", more.join(", ")),
        };
        format!("{operation}\t{}\t{verdict}", cells.collect::<Vec<_>>().join("\t"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BUDGET: Cost = Cost { system_calls: 100, page_faults: 100, commits: 2, syncs: 3 };

    #[test]
    fn budget_is_read_from_its_own_table_and_every_member_is_required() {
        let text = "# why\n[one]\nsystem_calls = 100 # today\npage_faults = 100\ncommits = 2\nsyncs = 3\n[two]\ncommits = 1\n";
        assert_eq!(Cost::budget_of("one", text), Ok(BUDGET));
        let missing = |operation: &str| BudgetError::Missing {
            operation: operation.to_owned(),
            member: "system_calls",
        };
        assert_eq!(Cost::budget_of("two", text), Err(missing("two")));
        assert_eq!(Cost::budget_of("three", text), Err(missing("three")));
        for wrong in ["[one]\ncalls = 1", "[one]\ncommits = many", "[one]\ncommits"] {
            assert_eq!(Cost::budget_of("one", wrong), Err(BudgetError::Malformed { line: 2 }), "{wrong}");
        }
    }

    #[test]
    fn cost_above_tolerance_fails_and_far_below_gives_a_hint() {
        assert_eq!(BUDGET.judge(&BUDGET), Judgement::Within);
        let cost = |system_calls, commits| Cost { system_calls, commits, ..BUDGET };
        assert_eq!(cost(105, 2).judge(&BUDGET), Judgement::Within);
        assert_eq!(cost(106, 3).judge(&BUDGET), Judgement::Exceeded(vec!["system_calls", "commits"]));
        assert_eq!(cost(90, 2).judge(&BUDGET), Judgement::Within);
        assert_eq!(cost(89, 1).judge(&BUDGET), Judgement::MuchLess(vec!["system_calls", "commits"]));
    }

    #[test]
    fn cost_per_operation_is_the_difference_between_many_and_few() {
        let few = Cost { system_calls: 1_100, page_faults: 505, commits: 3, syncs: 4 };
        let many = Cost { system_calls: 1_501, page_faults: 904, commits: 11, syncs: 16 };
        let one = Cost { system_calls: 100, page_faults: 100, commits: 2, syncs: 3 };
        assert_eq!(Cost::of_one((1, few), (5, many)), one);
    }
}
