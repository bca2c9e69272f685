//! `sandboxing.k8s`: a pod for each agent, planned in the contract (`docs/contracts/tools.md#t4.4`). This version makes no
//! pods, so each member has the value of the contract alone.

use belljar_contract::yaml::{
    Members, MistakeLog, Node, kubernetes_cpu, kubernetes_memory, one_of, only, text,
};

/// Checks the section.
pub(super) fn check(node: &Node, log: &mut MistakeLog) {
    const NAMESPACE: &str = "`synthorg-agents`: this version makes no pods";
    const POLICY: &str = "`deny-all`: this version makes no pods";
    let Some(mut members) = Members::open(node, log) else { return };
    members.section("namespace", |node, log| {
        let read =
            |node: &Node, log: &mut MistakeLog| text(node, log, NAMESPACE, |text| Some(text.to_owned()));
        only(node, log, (&"synthorg-agents".to_owned(), NAMESPACE), read);
    });
    members.section("resource_requests", |node, log| {
        check_resources(node, log, ((250, "`250m`"), (256 << 20, "`256Mi`")));
    });
    members.section("resource_limits", |node, log| {
        check_resources(node, log, ((1_000, "`1`"), (1 << 30, "`1Gi`")));
    });
    members.section("network_policy", |node, log| {
        only(node, log, (&true, POLICY), |node, log| one_of(node, log, &[("deny-all", true)]));
    });
    members.finish();
}

/// A quantity, and how it is written.
type Quantity = (u64, &'static str);

fn check_resources(node: &Node, log: &mut MistakeLog, (cpu, memory): (Quantity, Quantity)) {
    let Some(mut members) = Members::open(node, log) else { return };
    let expected = |written: &str| format!("{written}: this version makes no pods");
    members.section("cpu", |node, log| only(node, log, (&cpu.0, &expected(cpu.1)), kubernetes_cpu));
    members.section("memory", |node, log| {
        only(node, log, (&memory.0, &expected(memory.1)), kubernetes_memory);
    });
    members.finish();
}
