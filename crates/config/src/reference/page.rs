//! The reference of the configuration file, as a page to read: its tables, laid out.

use super::{AcceptedValues, Member, MemberDefault, Override, ROOT};
use belljar_contract::category::{ALIASES, Category};
use belljar_contract::isolation::LAYERS;
use std::fmt::Write;

/// Text above the tables.
const HEAD: &str = "# The configuration file, member by member

Made by `cargo xtask generate` from `crates/config/src/reference`; a test compares it with the parser, member by member. The guides
explain the sections: [sandboxing](sandboxing.md), [models](../guides/models.md), [agents](../guides/agents.md), [node](../guides/node.md) and
[trust](../guides/trust.md). `belljar config check FILE` prints the mistakes of a file. The tests that show
what each member changes are in [configuration-effects.md](configuration-effects.md).

";

/// Returns the page `docs/reference/configuration.md`.
pub fn page() -> String {
    let mut page = HEAD.to_owned();
    section(&mut page, "The whole file", "", ROOT);
    let categories = Category::ALL.map(Category::as_str).join("`, `");
    let aliases = ALIASES.map(|(alias, category)| format!("`{alias}` is `{category}`")).join(", ");
    // Writing to a String can't fail.
    let _ = writeln!(page, "## Categories\n\n`{categories}`; {aliases}.\n");
    let _ = writeln!(page, "## Layers\n\n`{}`.", LAYERS.join("`, `"));
    page
}

fn section(page: &mut String, title: &str, path: &str, members: &[Member]) {
    let _ =
        writeln!(page, "## {title}\n\n| member | takes | when absent | meaning |\n| --- | --- | --- | --- |");
    for member in members {
        let Member { name, default, meaning, overrides, .. } = member;
        let (taken, overrides) = (taken(member), overridden(overrides));
        let _ = writeln!(page, "| `{name}` | {taken} | {} | {meaning}{overrides} |", stands(*default));
    }
    page.push('\n');
    for member in members {
        let (below, marks) = match member.takes {
            AcceptedValues::Section(below) => (below, ""),
            AcceptedValues::Sections(below) => (below, "[]"),
            _ => continue,
        };
        let dot = if path.is_empty() { "" } else { "." };
        let path = format!("{path}{dot}{}{marks}", member.name);
        section(page, &format!("`{path}`"), &path, below);
    }
}

fn taken(member: &Member) -> String {
    let taken = match member.takes {
        AcceptedValues::One(expected) => expected.to_string(),
        AcceptedValues::List(expected) => format!("a list; each: {expected}"),
        AcceptedValues::Layers => "a list of [layers](#layers)".to_owned(),
        AcceptedValues::ByCategory(expected) => {
            format!("a mapping from [categories](#categories); each: {expected}")
        }
        AcceptedValues::ByName(expected) => format!("a mapping; each: {expected}"),
        AcceptedValues::Section(_) => "members, below".to_owned(),
        AcceptedValues::Sections(_) => "a list; each: members, below".to_owned(),
    };
    // The text of the others names it.
    let unit = member.unit().filter(|unit| !taken.contains(unit));
    unit.map_or(taken.clone(), |unit| format!("{taken} ({unit})"))
}

fn overridden(overrides: &[Override]) -> String {
    let each = overrides.iter().map(|source| match source {
        Override::Flag { name, commands } => format!("; `{name}` of {commands} takes precedence"),
        Override::Variable(name) => format!("; if absent, `{name}` is used"),
    });
    each.collect()
}

fn stands(default: MemberDefault) -> String {
    match default {
        MemberDefault::Value(value) => format!("`{value}`"),
        MemberDefault::Described(words, _) => words.to_owned(),
        MemberDefault::Required(_) => "it is required".to_owned(),
        MemberDefault::Members => "as its members say".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_section_has_its_table_with_a_row_for_each_member() {
        let page = page();
        for row in [
            "| `pids_limit` | a whole number from 1 to 32768 | `1024` | maximum processes and threads; `--pids` of commands that create sandboxes takes precedence |",
            "| `overrides` | a mapping from [categories](#categories); each: one of: docker, native, subprocess |",
            "| `secret_file` | a file | it is required |",
            "| `timeouts` | members, below | as its members say |",
            "\n## `sandboxing.docker.lifecycle`\n",
            "\n## `inference.providers[].credential`\n",
        ] {
            assert!(page.contains(row), "{row}");
        }
    }
}
