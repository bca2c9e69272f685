//! Tests of which agent may call which tool.

use super::*;

fn facts<'a>(name: &'a ToolName, scope: ToolScope) -> Facts<'a> {
    Facts { name, scope, is_enabled: true, is_installed: false, reaches_out: false, is_read_only: true }
}

fn reason(kind: AgentKind, tool: Facts<'_>, grants: &ToolGrants) -> Option<DenyReason> {
    decide(kind, &tool, grants).err().map(|denied| denied.reason)
}

#[test]
fn agents_in_sandboxes_have_their_list_and_nothing_else() {
    let own = ["artifact.put", "artifact.get", "memory.add", "skills.list", "skills.get", "help.get"];
    let others =
        ["git.push", "model.list", "persona.get", "artifact.", "artifact", "Artifact.put", "skills.gets"];
    let never =
        ["db.task.get", "node.list", "sandbox.exec", "skills.create", "skills.update", "skills.delete"];
    let reason_for = |name: &str| {
        let name = ToolName::parse(name).unwrap();
        reason(AgentKind::Sandbox, facts(&name, ToolScope::Both), &ToolGrants::default())
    };
    for name in own {
        assert_eq!(reason_for(name), None, "{name}");
    }
    for name in others {
        assert_eq!(reason_for(name), Some(DenyReason::NotListed), "{name}");
    }
    for name in never {
        assert_eq!(reason_for(name), Some(DenyReason::Never), "{name}");
    }
}

#[test]
fn a_tool_that_is_installed_comes_by_its_scope_but_never_under_a_name_of_the_hosts() {
    let decide_installed = |name: &str, scope| {
        let name = ToolName::parse(name).unwrap();
        let tool = Facts { is_installed: true, ..facts(&name, scope) };
        reason(AgentKind::Sandbox, tool, &ToolGrants::default())
    };
    assert_eq!(decide_installed("mcp_files_read", ToolScope::Sandbox), None);
    assert_eq!(decide_installed("mcp_files_read", ToolScope::Both), None);
    assert_eq!(decide_installed("mcp_files_read", ToolScope::Pm), Some(DenyReason::OtherScope));
    for name in ["sandbox.exec", "SANDBOX.exec", "Db.task.get", "skills.Create"] {
        assert_eq!(decide_installed(name, ToolScope::Sandbox), Some(DenyReason::Never), "{name}");
    }
}

#[test]
fn analyst_has_no_installed_tool_that_may_change_something() {
    let name = ToolName::parse("mcp_files_write").unwrap();
    let tool = Facts { is_installed: true, is_read_only: false, ..facts(&name, ToolScope::Both) };
    let reason_for = |kind, tool| reason(kind, tool, &ToolGrants::default());
    assert_eq!(reason_for(AgentKind::ProjectAnalyst, tool), Some(DenyReason::NotReadOnly));
    assert_eq!(reason_for(AgentKind::ProjectManager, tool), None);
    let reads = Facts { is_read_only: true, ..tool };
    assert_eq!(reason_for(AgentKind::ProjectAnalyst, reads), None);
}

#[test]
fn what_is_switched_off_is_off_for_everybody() {
    let name = ToolName::parse("artifact.get").unwrap();
    for kind in AgentKind::ALL {
        let on = facts(&name, ToolScope::Both);
        assert_eq!(reason(kind, on, &ToolGrants::default()), None, "{kind}");
        let off = Facts { is_enabled: false, ..on };
        assert_eq!(reason(kind, off, &ToolGrants::default()), Some(DenyReason::Disabled), "{kind}");
    }
}

#[test]
fn what_reaches_out_takes_leave_to() {
    let name = ToolName::parse("web.fetch").unwrap();
    let tool = Facts { reaches_out: true, ..facts(&name, ToolScope::Both) };
    assert_eq!(reason(AgentKind::Sandbox, tool, &ToolGrants::default()), Some(DenyReason::NoReach));
    let grants = ToolGrants { may_reach_out: true, ..ToolGrants::default() };
    assert_eq!(reason(AgentKind::Sandbox, tool, &grants), None);
}

#[test]
fn an_agents_own_rules_only_take_away() {
    let patterns = |texts: &[&str]| texts.iter().map(|text| ToolPattern::parse(text).unwrap()).collect();
    let only = ToolGrants { only: Some(patterns(&["artifact.*", "db.*"])), ..ToolGrants::default() };
    let not = ToolGrants { not: patterns(&["artifact.put"]), ..only.clone() };
    let none = ToolGrants { only: Some(Vec::new()), ..ToolGrants::default() };
    for (name, grants, expected) in [
        ("artifact.put", &only, None),
        ("memory.add", &only, Some(DenyReason::ByRule)),
        ("db.task.get", &only, Some(DenyReason::Never)),
        ("artifact.put", &not, Some(DenyReason::ByRule)),
        ("artifact.get", &not, None),
        ("artifact.get", &none, Some(DenyReason::ByRule)),
    ] {
        let name = ToolName::parse(name).unwrap();
        assert_eq!(reason(AgentKind::Sandbox, facts(&name, ToolScope::Both), grants), expected, "{name}");
    }
    for text in ["", "**", "*a", "a*b", "artifact .put"] {
        assert_eq!(ToolPattern::parse(text), Err(InvalidPatternError), "{text:?}");
    }
}

#[test]
fn each_reason_has_a_name_of_its_own() {
    let names: std::collections::BTreeSet<_> = DenyReason::ALL.iter().map(|reason| reason.as_str()).collect();
    assert_eq!(names.len(), DenyReason::ALL.len());
}
