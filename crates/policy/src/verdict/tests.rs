//! Tests of every level, category and value of every dimension against the specification.

use super::*;
use crate::access::{AccessRules, ConstraintOverrides};
use crate::autonomy::{ApprovalReason, AutonomyLevel, AutonomyLists};
use crate::constraint::Dimension;
use crate::permission::ToolRules;
use crate::tool::ToolPattern;
use belljar_contract::access::{
    AccessLevel, CodeIsolation, FileSystemScope, GitAccess, NetworkMode, TerminalAccess,
};
use belljar_contract::action::{ActionType, BuiltInAction};
use belljar_contract::category::Category;
use belljar_contract::tool::ToolName;

/// Tool, with the dimensions that can deny it and their sufficient values.
struct Row {
    name: &'static str,
    category: Category,
    action: BuiltInAction,
    reaches_out: bool,
    leaves: bool,
    git: Option<GitAccess>,
}

const fn row(name: &'static str, category: Category, action: BuiltInAction) -> Row {
    Row { name, category, action, reaches_out: false, leaves: false, git: None }
}

/// Returns a tool of each kind that any rule distinguishes.
fn rows() -> Vec<Row> {
    let mut rows: Vec<Row> = Category::ALL
        .into_iter()
        .map(|category| {
            let action = crate::action::of_category(category);
            let leaves = matches!(category, Category::Web | Category::ExternalData);
            Row { leaves, ..row("some_tool", category, action) }
        })
        .collect();
    rows.extend([
        Row {
            reaches_out: true,
            leaves: true,
            ..row("mcp_far_look", Category::Mcp, BuiltInAction::CodeRead)
        },
        Row {
            leaves: true,
            git: Some(GitAccess::ReadAndBranch),
            ..row("git_clone", Category::VersionControl, BuiltInAction::VcsRead)
        },
        Row {
            leaves: true,
            git: Some(GitAccess::Full),
            ..row("git_push", Category::VersionControl, BuiltInAction::VcsPush)
        },
        Row {
            leaves: true,
            git: Some(GitAccess::Full),
            ..row("mcp_forge_send", Category::Mcp, BuiltInAction::VcsPush)
        },
        Row {
            leaves: true,
            ..row("send_external_message", Category::Communication, BuiltInAction::CommsExternal)
        },
        row("html_parser", Category::Web, BuiltInAction::CodeRead),
        // By its category alone, and by its name alone.
        Row { leaves: true, ..row("web_form", Category::Web, BuiltInAction::DocsWrite) },
        Row {
            leaves: true,
            git: Some(GitAccess::Full),
            ..row("git_push", Category::VersionControl, BuiltInAction::VcsCommit)
        },
        row("git_status", Category::VersionControl, BuiltInAction::VcsRead),
        row("delete_file", Category::FileSystem, BuiltInAction::CodeDelete),
        row("sql_execute", Category::Database, BuiltInAction::DbMutate),
    ]);
    rows
}

/// Returns the expected decision, in the specified order: network, terminal, git, isolation of code; then the level; then
/// approvals.
fn expected(
    row: &Row,
    level: AccessLevel,
    said: &crate::access::Constraints,
    works_in: ExecutionLocation,
) -> (Verdict, Option<Dimension>) {
    let runs_code = matches!(row.category, Category::CodeExecution | Category::Terminal);
    let against = [
        (Dimension::Network, row.leaves && said.network == NetworkMode::None),
        (Dimension::Terminal, row.category == Category::Terminal && said.terminal == TerminalAccess::None),
        (Dimension::Git, row.git.is_some_and(|needed| said.git < needed)),
        (
            Dimension::CodeExecution,
            runs_code
                && said.code_execution == CodeIsolation::Containerized
                && works_in != ExecutionLocation::Container,
        ),
    ];
    if let Some((dimension, _)) = against.into_iter().find(|(_, holds)| *holds) {
        return (Verdict::Deny, Some(dimension));
    }
    let of_level = |level| match level {
        AccessLevel::Sandboxed => 4,
        AccessLevel::Restricted => 5,
        AccessLevel::Standard => 8,
        AccessLevel::Elevated => 17,
        AccessLevel::Custom => 0,
    };
    let order = [
        Category::FileSystem,
        Category::CodeExecution,
        Category::VersionControl,
        Category::Memory,
        Category::Web,
        Category::Terminal,
        Category::Analytics,
        Category::Browser,
    ];
    let has = level == AccessLevel::Elevated || order[..of_level(level).min(8)].contains(&row.category);
    match (has, said.requires_approval.contains(&row.action.into())) {
        (false, _) => (Verdict::Deny, None),
        (true, true) => (Verdict::Escalate, None),
        (true, false) => (Verdict::Allow, None),
    }
}

#[test]
fn every_level_category_and_constraint_matches_the_documented_verdict() {
    let rules = AccessRules::default();
    let autonomy = Autonomy::new(rules.actions(), AutonomyLevel::Full, &AutonomyLists::default()).unwrap();
    let mut judged_of_all = 0;
    for level in AccessLevel::ALL {
        let base = Permissions::new(rules.levels(), *level);
        for said in all_constraints() {
            let permissions = base.clone().with_constraints(base.constraints().with(&said));
            let standing =
                JudgementContext { actions: rules.actions(), permissions: &permissions, autonomy: &autonomy };
            for row in rows() {
                let (name, action) = (ToolName::parse(row.name).unwrap(), ActionType::from(row.action));
                let facts = ToolFacts {
                    name: &name,
                    category: row.category,
                    action: &action,
                    reaches_out: row.reaches_out,
                };
                for works_in in
                    [ExecutionLocation::Container, ExecutionLocation::Process, ExecutionLocation::Host]
                {
                    let judged = standing.judge(&facts, works_in);
                    let (verdict, dimension) = expected(&row, *level, permissions.constraints(), works_in);
                    let found = match &judged.rule {
                        Rule::Constraint(violation) => Some(violation.dimension),
                        _ => None,
                    };
                    let about =
                        format!("{level} {} {} {said:?} {works_in:?}: {judged:?}", row.name, row.category);
                    assert_eq!((judged.verdict, found), (verdict, dimension), "{about}");
                    assert_eq!(standing.shows(&facts, works_in), verdict != Verdict::Deny, "{about}");
                    judged_of_all += 1;
                }
            }
        }
    }
    assert_eq!(judged_of_all, 5 * 324 * 28 * 3);
}

/// Returns every combination of values of all dimensions.
fn all_constraints() -> Vec<ConstraintOverrides> {
    let asks = [Vec::new(), vec![ActionType::from(BuiltInAction::DbMutate), BuiltInAction::VcsRead.into()]];
    let mut all = Vec::new();
    for file_system in FileSystemScope::ALL {
        for network in NetworkMode::ALL {
            for git in GitAccess::ALL {
                for code_execution in CodeIsolation::ALL {
                    for terminal in TerminalAccess::ALL {
                        for requires_approval in &asks {
                            all.push(ConstraintOverrides {
                                file_system: Some(*file_system),
                                network: Some(*network),
                                git: Some(*git),
                                code_execution: Some(*code_execution),
                                terminal: Some(*terminal),
                                requires_approval: Some(requires_approval.iter().cloned().collect()),
                                ..ConstraintOverrides::default()
                            });
                        }
                    }
                }
            }
        }
    }
    all
}

fn judge(rules: &AccessRules, agent: &crate::access::AgentAuthority, row: &Row) -> JudgedCall {
    let (name, action) = (ToolName::parse(row.name).unwrap(), ActionType::from(row.action));
    let facts =
        ToolFacts { name: &name, category: row.category, action: &action, reaches_out: row.reaches_out };
    rules.judging(agent).judge(&facts, ExecutionLocation::Container)
}

#[test]
fn verdict_names_its_rule_and_the_smallest_change() {
    let rules = AccessRules::default();
    let at = |level, row: Row| {
        let judged = judge(&rules, &rules.of_level(level), &row);
        let proposal = judged
            .proposal
            .map(|proposal| proposal.in_configuration("a", &ToolName::parse(row.name).unwrap()));
        (judged.verdict, judged.rule.code(), proposal.unwrap_or_default())
    };
    let terminal = || row("shell_command", Category::Terminal, BuiltInAction::CodeWrite);
    let yaml = |what: &str| format!("tool_access: {{agents: [{{name: a, {what}}}]}}");
    let expected = |verdict, code: &str, proposal: String| (verdict, code.to_owned(), proposal);
    assert_eq!(
        at(AccessLevel::Sandboxed, terminal()),
        expected(
            Verdict::Deny,
            "constraint:terminal:none",
            yaml("sub_constraints: {terminal: restricted_commands}")
        )
    );
    assert_eq!(
        at(AccessLevel::Standard, terminal()),
        expected(Verdict::Allow, "level:standard", String::new())
    );
    assert_eq!(
        at(AccessLevel::Standard, row("sql_query", Category::Database, BuiltInAction::DbQuery)),
        expected(Verdict::Deny, "level:standard:database", yaml("allowed: [sql_query]"))
    );
    assert_eq!(
        at(AccessLevel::Elevated, row("sql_execute", Category::Database, BuiltInAction::DbMutate)),
        expected(Verdict::Escalate, "autonomy:semi", yaml("auto_approve: ['db:mutate']"))
    );
    assert_eq!(
        at(
            AccessLevel::Restricted,
            Row { leaves: true, ..row("git_push", Category::VersionControl, BuiltInAction::VcsPush) }
        ),
        expected(Verdict::Deny, "constraint:git:read_and_branch", yaml("sub_constraints: {git: full}"))
    );
}

/// Autonomy can only require more approvals: it never allows what the level requires an approval for.
#[test]
fn autonomy_only_tightens_verdicts() {
    let rules = AccessRules::default();
    for level in AccessLevel::ALL {
        for row in rows() {
            let mut least = Verdict::Allow;
            for autonomy in AutonomyLevel::ALL.into_iter().rev() {
                let mut agent = rules.of_level(*level);
                agent.autonomy = Autonomy::new(rules.actions(), autonomy, &AutonomyLists::default()).unwrap();
                let verdict = judge(&rules, &agent, &row).verdict;
                assert!(verdict >= least, "{level} {autonomy} {}: {verdict:?} after {least:?}", row.name);
                least = verdict;
            }
        }
    }
}

#[test]
fn tool_denied_by_name_never_requests_approval() {
    let rules = AccessRules::default();
    let mut agent = rules.of_level(AccessLevel::Elevated);
    let denied = ToolRules::new([ToolPattern::parse("delete_*").unwrap()]);
    agent.permissions = agent.permissions.with_tools(ToolRules::default(), denied);
    let judged = judge(&rules, &agent, &row("delete_file", Category::FileSystem, BuiltInAction::CodeDelete));
    assert_eq!((judged.verdict, judged.rule, judged.proposal), (Verdict::Deny, Rule::DeniedList, None));
    assert_eq!(judged.risk, Risk::High);
}

#[test]
fn discovery_tools_need_no_approval() {
    let rules = AccessRules::default();
    let mut agent = rules.of_level(AccessLevel::Custom);
    agent.autonomy =
        Autonomy::new(rules.actions(), AutonomyLevel::Locked, &AutonomyLists::default()).unwrap();
    let judged = judge(&rules, &agent, &row("list_tools", Category::Memory, BuiltInAction::MemoryRead));
    assert_eq!((judged.verdict, judged.rule.code().as_str()), (Verdict::Allow, "discovery"));
}

#[test]
fn verdict_and_proposal_names_match_the_audit_records() {
    let names = [Verdict::Allow, Verdict::Escalate, Verdict::Deny].map(Verdict::as_str);
    assert_eq!(names, ["allow", "escalate", "deny"]);
    for (verdict, name) in [Verdict::Allow, Verdict::Escalate, Verdict::Deny].into_iter().zip(names) {
        assert_eq!(serde_json::to_value(verdict).unwrap(), name);
    }
    let constraint = Proposal::Constraint { dimension: Dimension::Git, value: "full" };
    assert_eq!(
        (Proposal::Call(ConfigurationChange::default()).code(), constraint.code()),
        ("call", "constraint")
    );
}

#[test]
fn verdict_rules_have_names_and_explanations() {
    let all = [
        Rule::Kind(crate::tool::ToolDenyReason::Never),
        Rule::DeniedList,
        Rule::Level { level: AccessLevel::Standard, category: Category::Database },
        Rule::RequiresApproval,
        Rule::Autonomy { level: AutonomyLevel::Semi, asked_by: ApprovalReason::House },
        Rule::Autonomy { level: AutonomyLevel::Semi, asked_by: ApprovalReason::Agent },
        Rule::Autonomy { level: AutonomyLevel::Semi, asked_by: ApprovalReason::Level },
        Rule::Autonomy { level: AutonomyLevel::Semi, asked_by: ApprovalReason::Unlisted },
        Rule::Tool,
        Rule::NoApprover,
        Rule::Approved,
        Rule::Permitted(crate::permission::PermissionBasis::Allowed),
        Rule::Permitted(crate::permission::PermissionBasis::Level(AccessLevel::Standard)),
        Rule::Permitted(crate::permission::PermissionBasis::Discovery),
    ];
    let told: Vec<_> = all.iter().map(|rule| format!("{}: {rule}", rule.code())).collect();
    insta::assert_snapshot!(told.join("\n"));
}
