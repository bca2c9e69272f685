//! Tests of access rules in a configuration.

use super::*;
use crate::access::compiled::{GitOperations, ProgramAccess, SandboxAccess, WebAccess, WorkspaceAccess};
use crate::constraint::ExecutionLocation;
use crate::permission::ToolFacts;
use crate::verdict::Verdict;
use belljar_contract::access::{FileSystemScope, GitAccess, NetworkMode, TerminalAccess};
use belljar_contract::action::{ActionType, BuiltInAction};
use belljar_contract::tool::ToolName;
use belljar_contract::yaml::{self, Members, MistakeLog, Mistakes};

fn read(text: &str) -> Result<AccessRules, Mistakes> {
    let mut log = MistakeLog::default();
    let root = yaml::parse(text.as_bytes(), &mut log);
    let rules = root.and_then(|root| {
        let mut members = Members::open(&root, &mut log)?;
        let rules = AccessRules::read(&mut members);
        members.finish();
        Some(rules)
    });
    log.finish()?;
    Ok(rules.unwrap_or_default())
}

fn agent(name: &str) -> AgentId {
    AgentId::parse(name).unwrap()
}

fn verdict(
    rules: &AccessRules,
    standing: &AgentAuthority,
    name: &str,
    (category, action): (Category, BuiltInAction),
) -> Verdict {
    let (name, action) = (ToolName::parse(name).unwrap(), ActionType::from(action));
    let facts = ToolFacts { name: &name, category, action: &action, reaches_out: false };
    rules.judging(standing).judge(&facts, ExecutionLocation::Container).verdict
}

const READ: (Category, BuiltInAction) = (Category::FileSystem, BuiltInAction::CodeRead);

/// The levels of the specification, word for word, equal the built-in ones.
#[test]
fn documented_levels_equal_the_built_in_defaults() {
    let written = read(
        r#"
tool_access:
  levels:
    sandboxed:
      description: "No external access. Isolated workspace."
      file_system: "workspace_only"
      code_execution: "containerized"
      network: "none"
      git: "local_only"
    restricted:
      description: "Limited external access with approval."
      file_system: "project_directory"
      code_execution: "containerized"
      network: "allowlist_only"
      git: "read_and_branch"
      requires_approval: ["deployment", "database_write"]
    standard:
      description: "Normal development access."
      file_system: "project_directory"
      code_execution: "containerized"
      network: "open"
      git: "full"
      terminal: "restricted_commands"
    elevated:
      description: "Full access for senior and trusted agents."
      file_system: "full"
      code_execution: "containerized"
      network: "open"
      git: "full"
      terminal: "full"
      deployment: true
    custom:
      description: "What is said of the agent, and nothing else."
"#,
    )
    .unwrap();
    assert_eq!(written, AccessRules::default());
}

#[test]
fn agent_rules_apply_to_that_agent_only() {
    let rules = read(
        "
tool_access:
  default_level: restricted
  agents:
    - name: reviewer
      level: sandboxed
      allowed: [Web_Fetch, 'mcp_*']
      denied: [write_file]
      sub_constraints: {network: allowlist_only, network_allowlist: ['pkgs.example:443'], terminal: restricted_commands, commands: [ls]}
      autonomy: supervised
      auto_approve: ['docs']
    - {name: own, level: custom, allowed: [read_file], sub_constraints: {}}
autonomy: {level: full, human_approval: ['code:delete'], departments: {sales: locked}}
",
    )
    .unwrap();
    let reviewer = rules.of_agent(&agent("reviewer"), None);
    let constraints = reviewer.permissions.constraints();
    assert_eq!(constraints.network, NetworkMode::AllowlistOnly);
    assert_eq!(
        (constraints.git, constraints.file_system),
        (GitAccess::LocalOnly, FileSystemScope::WorkspaceOnly)
    );
    assert_eq!((constraints.terminal, constraints.commands.len()), (TerminalAccess::RestrictedCommands, 1));
    assert_eq!(verdict(&rules, &reviewer, "read_file", READ), Verdict::Allow);
    assert_eq!(verdict(&rules, &reviewer, "write_file", READ), Verdict::Deny);
    assert_eq!(
        verdict(&rules, &reviewer, "web_fetch", (Category::Web, BuiltInAction::CodeRead)),
        Verdict::Allow
    );
    assert_eq!(
        verdict(&rules, &reviewer, "edit_file", (Category::FileSystem, BuiltInAction::CodeWrite)),
        Verdict::Escalate
    );
    assert_eq!(
        verdict(&rules, &reviewer, "note", (Category::FileSystem, BuiltInAction::DocsWrite)),
        Verdict::Allow
    );

    let own = rules.of_agent(&agent("own"), None);
    assert_eq!(verdict(&rules, &own, "read_file", READ), Verdict::Allow);
    assert_eq!(verdict(&rules, &own, "list_directory", READ), Verdict::Deny);
    assert_eq!(own.permissions.constraints().network, NetworkMode::None);

    // An agent without rules of its own.
    let other = rules.of_agent(&agent("other"), None);
    assert_eq!(other.permissions.level(), AccessLevel::Restricted);
    assert_eq!(
        verdict(&rules, &other, "edit_file", (Category::FileSystem, BuiltInAction::CodeWrite)),
        Verdict::Allow
    );
    assert_eq!(
        verdict(&rules, &other, "delete_file", (Category::FileSystem, BuiltInAction::CodeDelete)),
        Verdict::Escalate
    );
    assert!(rules.knows(&agent("own")) && !rules.knows(&agent("other")));
    assert_eq!(rules.agents().count(), 2);
    assert_eq!(rules.level_of(&agent("other")), AccessLevel::Restricted);
    assert_eq!(rules.default_level(), AccessLevel::Restricted);
}

#[test]
fn earned_level_applies_except_to_fully_customised_agents() {
    let rules = read("tool_access: {agents: [{name: a, level: restricted}, {name: c, level: custom, sub_constraints: {}}]}").unwrap();
    let earned = EarnedLevels {
        level: AccessLevel::Standard,
        by_category: BTreeMap::from([(Category::Web, AccessLevel::Sandboxed)]),
        setback: None,
    };
    let standing = rules.of_agent(&agent("a"), Some(&earned));
    assert_eq!(standing.permissions.level(), AccessLevel::Standard);
    assert_eq!(standing.permissions.constraints().network, NetworkMode::Open);
    assert_eq!(
        verdict(&rules, &standing, "web_fetch", (Category::Web, BuiltInAction::CodeRead)),
        Verdict::Deny
    );
    assert_eq!(rules.of_agent(&agent("c"), Some(&earned)).permissions.level(), AccessLevel::Custom);
    let set_back = EarnedLevels { setback: Some(crate::autonomy::Setback::SecurityIncident), ..earned };
    let standing = rules.of_agent(&agent("a"), Some(&set_back));
    assert_eq!(standing.autonomy.level(), AutonomyLevel::Locked);
    assert_eq!(verdict(&rules, &standing, "read_file", READ), Verdict::Escalate);
}

#[test]
fn category_with_its_own_level_gets_the_constraints_of_that_level() {
    let rules = read("tool_access: {agents: [{name: a, sub_constraints: {git: full}}]}").unwrap();
    let earned = EarnedLevels {
        level: AccessLevel::Sandboxed,
        by_category: BTreeMap::from([
            (Category::FileSystem, AccessLevel::Standard),
            (Category::Terminal, AccessLevel::Standard),
            (Category::CodeExecution, AccessLevel::Restricted),
            (Category::Web, AccessLevel::Standard),
            (Category::Deployment, AccessLevel::Sandboxed),
        ]),
        setback: None,
    };
    let permissions = rules.of_agent(&agent("a"), Some(&earned)).permissions;
    let of = |category| permissions.constraints_for(category).clone();
    assert_eq!(of(Category::FileSystem).file_system, FileSystemScope::ProjectDirectory);
    assert_eq!(of(Category::Terminal).terminal, TerminalAccess::RestrictedCommands);
    assert_eq!(of(Category::Web).network, NetworkMode::Open);
    // A category without a level of its own has the lowest level; the agent's own constraints apply to all.
    for category in [Category::VersionControl, Category::Deployment, Category::Memory] {
        let least = (of(category).file_system, of(category).network, of(category).git);
        assert_eq!(least, (FileSystemScope::WorkspaceOnly, NetworkMode::None, GitAccess::Full), "{category}");
    }
    // A sandbox gets each dimension from the category that it is about. Code reaches what code may; web tools reach what they
    // may.
    let sandbox = SandboxAccess::of_agent(&permissions);
    assert_eq!(sandbox.workspace, WorkspaceAccess::Project);
    assert!(matches!(&sandbox.programs, ProgramAccess::Only { names } if names.contains("cat")));
    assert_eq!(sandbox.git, GitOperations { fetches: false, pushes: false }, "its network is none");
    assert_eq!(sandbox.web, WebAccess::Listed { places: Vec::new(), refuses_pushes: true });
    assert_eq!(SandboxAccess::of_web_tools(&permissions).web, WebAccess::Open { refuses_pushes: true });
    // Control: with one level for all categories, all terms are equal.
    let of_level = rules.of_level(AccessLevel::Standard).permissions;
    assert_eq!(SandboxAccess::of_agent(&of_level), SandboxAccess::of(of_level.constraints()));
    assert_eq!(SandboxAccess::of_web_tools(&of_level), SandboxAccess::of(of_level.constraints()));
}

/// The proposed rule is tried: with it the call is allowed.
#[test]
fn proposed_configuration_change_removes_the_approval_request() {
    let with = |agent: &str, house: &str| {
        format!(
            "{{tool_access: {{agents: [{{name: a, level: elevated{agent}}}]}}, autonomy: {{level: semi{house}}}}}"
        )
    };
    let judged = |yaml: &str, action: BuiltInAction| {
        let rules = read(yaml).unwrap();
        let standing = rules.of_agent(&agent("a"), None);
        let (name, action) = (ToolName::parse("t").unwrap(), action.into());
        let facts = ToolFacts { name: &name, category: Category::Other, action: &action, reaches_out: false };
        let judged = rules.judging(&standing).judge(&facts, ExecutionLocation::Container);
        let proposal = judged.proposal.map(|least| least.in_configuration("a", &name)).unwrap_or_default();
        (judged.verdict, judged.rule.code(), proposal)
    };
    for (agent, house, rule, proposal, then) in [
        (
            "",
            "",
            "autonomy:semi",
            "tool_access: {agents: [{name: a, auto_approve: ['deploy:production']}]}",
            with(", auto_approve: ['deploy:production']", ""),
        ),
        (
            "",
            ", human_approval: [deploy]",
            "human_approval:house",
            "tool_access: {agents: [{name: a, auto_approve: ['deploy:production']}]}; and no entry of `autonomy.human_approval` that \
             has deploy:production",
            with(", auto_approve: ['deploy:production']", ""),
        ),
        (
            ", autonomy: full, human_approval: [deploy]",
            "",
            "human_approval:agent",
            "no entry of the agent's `human_approval` that has deploy:production",
            with(", autonomy: full", ""),
        ),
        (
            ", autonomy: full, sub_constraints: {requires_approval: ['deploy:production', 'db:mutate']}",
            "",
            "requires_approval",
            "tool_access: {agents: [{name: a, sub_constraints: {requires_approval: ['db:mutate']}}]}",
            with(", autonomy: full, sub_constraints: {requires_approval: ['db:mutate']}", ""),
        ),
    ] {
        let (verdict, found, proposed) = judged(&with(agent, house), BuiltInAction::DeployProduction);
        assert_eq!((verdict, found.as_str()), (Verdict::Escalate, rule));
        assert_eq!(proposed, proposal);
        assert_eq!(judged(&then, BuiltInAction::DeployProduction).0, Verdict::Allow, "{then}");
    }
}

#[test]
fn department_autonomy_applies_to_agents_without_their_own() {
    let rules = read(
        "{tool_access: {agents: [{name: a, department: sales}, {name: b, department: sales, autonomy: full}, {name: c, department: none},
          {name: d, autonomy: full, auto_approve: [deploy]}]},
          autonomy: {level: full, departments: {sales: locked}, human_approval: ['deploy:production']}}",
    )
    .unwrap();
    let level = |name| rules.of_agent(&agent(name), None).autonomy.level();
    assert_eq!(
        [level("a"), level("b"), level("c")],
        [AutonomyLevel::Locked, AutonomyLevel::Full, AutonomyLevel::Full]
    );
    // An agent's own list can't take back an approval that the general list requires.
    let d = rules.of_agent(&agent("d"), None);
    assert!(
        !d.autonomy.asks(&BuiltInAction::DeployStaging.into())
            && d.autonomy.asks(&BuiltInAction::DeployProduction.into())
    );
}

#[test]
fn registered_action_types_are_valid_in_access_rules() {
    let rules = read(
        "{tool_access: {action_types: [{name: 'acme:rotate', risk: critical, why: keys}], levels: {standard: {requires_approval: [acme]}},
          agents: [{name: a, auto_approve: ['acme:rotate']}]}}",
    )
    .unwrap();
    let acme = ActionType::parse("acme:rotate").unwrap();
    assert_eq!(rules.actions().risk(&acme), belljar_contract::action::Risk::Critical);
    assert!(rules.levels().of(AccessLevel::Standard).constraints.requires_approval.contains(&acme));
    assert!(!rules.of_agent(&agent("a"), None).autonomy.asks(&acme));
}

#[test]
fn every_mistake_is_told_with_its_place() {
    let mistakes = read(
        "
tool_access:
  default_level: root
  action_types:
    - {name: 'code:read'}
    - {name: acme}
    - {name: 'acme:a', risk: huge}
  levels:
    restricted: {network: some, requires_approval: [databse_write], network_allowlist: ['*'], commands: [/bin/ls]}
    godlike: {}
  agents:
    - {level: standard}
    - {name: a, allowed: [x], denied: [X]}
    - {name: a, level: custom}
    - {name: b, seniority: junior, autonomy: full}
    - {name: c, auto_approve: ['code:create'], human_approval: [code]}
    - {name: d, sub_constraints: {filesystem: full}}
autonomy:
  human_approval: ['code:craete']
  auto_approve: [deploy]
  level: high
  departments: {sales: maximal}
  more: 1
",
    )
    .unwrap_err();
    insta::assert_snapshot!(mistakes.to_string());
}

#[test]
fn house_auto_approval_applies_unless_the_agent_requires_approval() {
    let write = (Category::FileSystem, BuiltInAction::CodeWrite);
    let house = "autonomy: {level: supervised, auto_approve: ['code:write']}";
    let asked = "\ntool_access: {agents: [{name: ada, human_approval: ['code:write']}]}";
    for (text, expected) in [
        ("autonomy: {level: supervised}", Verdict::Escalate),
        (house, Verdict::Allow),
        (&format!("{house}{asked}"), Verdict::Escalate),
    ] {
        let rules = read(text).unwrap();
        let standing = rules.of_agent(&agent("ada"), None);
        assert_eq!(verdict(&rules, &standing, "write_file", write), expected, "{text}");
    }
}
