//! Renders a proposal as a policy file. What it leaves out becomes comments.

use super::{Proposal, ProposedRule, UnproposedHost};
use belljar_policy::egress::method_in_yaml;
use std::fmt::{self, Display};

impl Display for Proposal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { rules, not_proposed, unreadable, unlisted, .. } = self;
        match rules.as_slice() {
            [] => writeln!(f, "rules: []")?,
            rules => {
                writeln!(f, "rules:")?;
                rules.iter().try_for_each(|rule| writeln!(f, "{rule}"))?;
            }
        }
        if !not_proposed.is_empty() {
            writeln!(f, "# Attempted, but not proposed:")?;
        }
        for UnproposedHost { host, port, reason, detail } in not_proposed {
            writeln!(f, "#   {host}:{port}: {detail} ({reason})")?;
        }
        if *unreadable > 0 {
            writeln!(f, "# {unreadable} requests were malformed and name no host.")?;
        }
        if *unlisted > 0 {
            writeln!(f, "# {unlisted} further attempts are listed only in the audit log.")?;
        }
        Ok(())
    }
}

impl Display for ProposedRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { host, ports, methods, networks } = self;
        if !networks.is_empty() {
            writeln!(f, "# Not on the public internet:")?;
        }
        write!(f, "- {{host: \"{host}\", ports: [{}]", joined(ports))?;
        if !methods.is_empty() {
            let methods: Vec<_> = methods.iter().map(|method| method_in_yaml(method)).collect();
            write!(f, ", methods: [{}]", joined(&methods))?;
        }
        if !networks.is_empty() {
            let quoted: Vec<_> = networks.iter().map(|network| format!("\"{network}\"")).collect();
            write!(f, ", networks: [{}]", joined(&quoted))?;
        }
        f.write_str("}")
    }
}

fn joined(all: &[impl Display]) -> String {
    Vec::from_iter(all.iter().map(ToString::to_string)).join(", ")
}
