//! Tests of which agent may call which tool.

use super::*;

fn facts<'a>(name: &'a ToolName, scope: ToolScope) -> ToolTraits<'a> {
    ToolTraits { name, scope, is_enabled: true, is_installed: false, reaches_out: false, is_read_only: true }
}

fn reason(kind: AgentKind, tool: ToolTraits<'_>, grants: &ToolGrants) -> Option<ToolDenyReason> {
    decide(kind, &tool, grants).err().map(|denied| denied.reason)
}

#[test]
fn sandbox_agents_may_call_only_their_listed_tools() {
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
        assert_eq!(reason_for(name), Some(ToolDenyReason::NotListed), "{name}");
    }
    for name in never {
        assert_eq!(reason_for(name), Some(ToolDenyReason::Never), "{name}");
    }
}

#[test]
fn installed_tool_is_offered_by_scope_and_never_under_a_host_name() {
    let decide_installed = |name: &str, scope| {
        let name = ToolName::parse(name).unwrap();
        let tool = ToolTraits { is_installed: true, ..facts(&name, scope) };
        reason(AgentKind::Sandbox, tool, &ToolGrants::default())
    };
    assert_eq!(decide_installed("mcp_files_read", ToolScope::Sandbox), None);
    assert_eq!(decide_installed("mcp_files_read", ToolScope::Both), None);
    assert_eq!(decide_installed("mcp_files_read", ToolScope::Pm), Some(ToolDenyReason::OtherScope));
    for name in ["sandbox.exec", "SANDBOX.exec", "Db.task.get", "skills.Create"] {
        assert_eq!(decide_installed(name, ToolScope::Sandbox), Some(ToolDenyReason::Never), "{name}");
    }
}

#[test]
fn analyst_cannot_call_mutating_installed_tools() {
    let name = ToolName::parse("mcp_files_write").unwrap();
    let tool = ToolTraits { is_installed: true, is_read_only: false, ..facts(&name, ToolScope::Both) };
    let reason_for = |kind, tool| reason(kind, tool, &ToolGrants::default());
    assert_eq!(reason_for(AgentKind::ProjectAnalyst, tool), Some(ToolDenyReason::NotReadOnly));
    assert_eq!(reason_for(AgentKind::ProjectManager, tool), None);
    let reads = ToolTraits { is_read_only: true, ..tool };
    assert_eq!(reason_for(AgentKind::ProjectAnalyst, reads), None);
}

#[test]
fn disabled_tool_is_denied_to_every_agent_kind() {
    let name = ToolName::parse("artifact.get").unwrap();
    for kind in AgentKind::ALL {
        let on = facts(&name, ToolScope::Both);
        assert_eq!(reason(kind, on, &ToolGrants::default()), None, "{kind}");
        let off = ToolTraits { is_enabled: false, ..on };
        assert_eq!(reason(kind, off, &ToolGrants::default()), Some(ToolDenyReason::Disabled), "{kind}");
    }
}

#[test]
fn network_tool_requires_network_grant() {
    let name = ToolName::parse("web.fetch").unwrap();
    let tool = ToolTraits { reaches_out: true, ..facts(&name, ToolScope::Both) };
    assert_eq!(reason(AgentKind::Sandbox, tool, &ToolGrants::default()), Some(ToolDenyReason::NoReach));
    let grants = ToolGrants { may_reach_out: true, ..ToolGrants::default() };
    assert_eq!(reason(AgentKind::Sandbox, tool, &grants), None);
}

#[test]
fn agent_tool_rules_only_narrow_permissions() {
    let patterns = |texts: &[&str]| texts.iter().map(|text| ToolPattern::parse(text).unwrap()).collect();
    let only = ToolGrants { only: Some(patterns(&["artifact.*", "db.*"])), ..ToolGrants::default() };
    let not = ToolGrants { not: patterns(&["artifact.put"]), ..only.clone() };
    let none = ToolGrants { only: Some(Vec::new()), ..ToolGrants::default() };
    for (name, grants, expected) in [
        ("artifact.put", &only, None),
        ("memory.add", &only, Some(ToolDenyReason::ByRule)),
        ("db.task.get", &only, Some(ToolDenyReason::Never)),
        ("artifact.put", &not, Some(ToolDenyReason::ByRule)),
        ("artifact.get", &not, None),
        ("artifact.get", &none, Some(ToolDenyReason::ByRule)),
    ] {
        let name = ToolName::parse(name).unwrap();
        assert_eq!(reason(AgentKind::Sandbox, facts(&name, ToolScope::Both), grants), expected, "{name}");
    }
    for text in ["", "**", "*a", "a*b", "artifact .put"] {
        assert_eq!(ToolPattern::parse(text), Err(InvalidPatternError), "{text:?}");
    }
}

#[test]
fn tool_deny_reasons_have_distinct_names() {
    let names: std::collections::BTreeSet<_> =
        ToolDenyReason::ALL.iter().map(|reason| reason.as_str()).collect();
    assert_eq!(names.len(), ToolDenyReason::ALL.len());
}
