//! Progressive disclosure of the gateway's tools to a model (`docs/contracts/tools.md#t14`).
//!
//! If there are few tools, all are disclosed in full. If there are many, every request has one line for each (L1).
//! Descriptions and schemas (L2) are loaded when the model asks for them, and unloaded, oldest first, when space is
//! needed. A tool's documents (L3) are read when the model asks for them. Only loaded tools may be called.

use super::toolbox::{GatewayTool, Toolbox};
use super::window::BYTES_OF_A_TOKEN;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

/// Loaded tools, and their limits.
#[derive(Debug, Default)]
pub(super) struct LoadedTools {
    /// True if tools must be loaded before use.
    is_on: bool,
    /// Maximum number of bytes of the lines in every request, and of the loaded definitions.
    l1: usize,
    l2: usize,
    /// Indices in the toolbox, the oldest first.
    loaded: Vec<usize>,
}

/// A tool that takes more room than there is for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("its definition takes about {needed} tokens, but all loaded tools together may take at most {room}")]
pub(super) struct ToolTooLargeError {
    needed: usize,
    room: usize,
}

/// Maximum number of tools that are disclosed in full at once.
const FEW: usize = 30;
/// Maximum number of tokens, and divisor of the window for a smaller maximum.
const L1: (usize, usize) = (3_000, 8);
const L2: (usize, usize) = (15_000, 2);
/// Fill of the window, in percent, above which the oldest loaded tools are unloaded.
const FULL_PERCENT: usize = 80;
/// Lengths of summaries in characters, to be tried in this order until all lines fit.
const SUMMARIES: [usize; 4] = [120, 50, 20, 0];

// === impl LoadedTools ===

impl LoadedTools {
    /// Creates the disclosure for a window of that many tokens.
    pub(super) fn of(toolbox: &Toolbox, window: u32) -> Self {
        let bytes = |(most, part): (usize, usize)| most.min(window as usize / part) * BYTES_OF_A_TOKEN;
        let (l1, l2) = (bytes(L1), bytes(L2));
        let all: usize = toolbox.tools().iter().map(GatewayTool::size).sum();
        Self { is_on: toolbox.tools().len() > FEW || all > l2, l1, l2, loaded: Vec::new() }
    }

    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    pub(super) fn is_loaded(&self, at: usize) -> bool {
        !self.is_on || self.loaded.contains(&at)
    }

    /// Returns the loaded tools, the oldest first; none if nothing needs to be loaded.
    pub(super) fn loaded<'t>(&self, toolbox: &'t Toolbox) -> impl Iterator<Item = &'t GatewayTool> {
        self.loaded.iter().filter_map(|&at| toolbox.tools().get(at))
    }

    /// Loads a tool, and unloads the oldest ones until all fit; returns the indices of the unloaded ones.
    pub(super) fn load(&mut self, at: usize, toolbox: &Toolbox) -> Result<Vec<usize>, ToolTooLargeError> {
        let size = |at: usize| toolbox.tools().get(at).map_or(0, GatewayTool::size);
        let mut unloaded = Vec::new();
        if self.is_loaded(at) {
            return Ok(unloaded);
        }
        if size(at) > self.l2 {
            let tokens = |bytes| bytes / BYTES_OF_A_TOKEN;
            return Err(ToolTooLargeError { needed: tokens(size(at)), room: tokens(self.l2) });
        }
        while !self.loaded.is_empty()
            && self.loaded.iter().copied().map(size).sum::<usize>() + size(at) > self.l2
        {
            unloaded.push(self.loaded.remove(0));
        }
        self.loaded.push(at);
        Ok(unloaded)
    }

    /// Unloads the oldest tool if the window is too full, but never the last loaded one, which could then never be
    /// called. Returns true if one was unloaded.
    pub(super) fn relieve(&mut self, fill_percent: usize) -> bool {
        let is_due = fill_percent > FULL_PERCENT && self.loaded.len() > 1;
        if is_due {
            self.loaded.remove(0);
        }
        is_due
    }

    /// Unloads the oldest tool, even if it is the last; returns true if there was one.
    pub(super) fn give_way(&mut self) -> bool {
        let is_any = !self.loaded.is_empty();
        if is_any {
            self.loaded.remove(0);
        }
        is_any
    }

    /// Returns the lines for every request: shorter ones if there are many tools, and only categories if there are too
    /// many.
    pub(super) fn outline(&self, toolbox: &Toolbox) -> String {
        if !self.is_on {
            return String::new();
        }
        let lines = SUMMARIES.map(|longest| {
            let line = |known: &GatewayTool| {
                let summary = Some(known.summary(longest)).filter(|text| longest > 0 && !text.is_empty());
                let summary = summary.map(|text| format!(": {text}")).unwrap_or_default();
                format!(
                    "- {} ({}, cost {}){summary}\n",
                    known.definition.name, known.tool.category, known.tool.cost_tier
                )
            };
            toolbox.tools().iter().map(line).collect::<String>()
        });
        match lines.into_iter().find(|lines| lines.len() <= self.l1) {
            Some(lines) => lines,
            None => {
                let mut text = String::new();
                for (category, count) in categories(toolbox) {
                    let line = format!("- {count} of the category {category}\n");
                    if text.len() + line.len() <= self.l1 {
                        text.push_str(&line);
                    }
                }
                let _ = write!(text, "- {} in all", toolbox.tools().len());
                text
            }
        }
    }

    /// Lists the tools of one category or of all, a line each.
    pub(super) fn list(&self, toolbox: &Toolbox, category: Option<&str>) -> Result<String, String> {
        let is_meant = |known: &&GatewayTool| category.is_none_or(|category| known.tool.category == category);
        let lines = toolbox.tools().iter().filter(is_meant).map(|known| {
            let at = toolbox.find(&known.definition.name).unwrap_or_default();
            let line = json!({
                "name": known.definition.name,
                "short_description": known.summary(SUMMARIES[0]),
                "category": known.tool.category,
                "typical_cost_tier": known.tool.cost_tier,
                "loaded": self.is_loaded(at),
            });
            line.to_string()
        });
        let lines: Vec<String> = lines.collect();
        match lines.is_empty() {
            true => {
                let known: Vec<&str> = categories(toolbox).into_keys().collect();
                Err(format!("there is no tool of that category; the categories are: {}", known.join(", ")))
            }
            false => Ok(lines.join("\n")),
        }
    }
}

/// Returns the full definition of a tool.
pub(super) fn body(known: &GatewayTool) -> Value {
    json!({
        "name": known.definition.name,
        "full_description": known.definition.description,
        "parameter_schema": known.definition.schema,
        "category": known.tool.category,
        "typical_cost_tier": known.tool.cost_tier,
        "resources": known.tool.resources,
    })
}

/// Returns the number of tools in each category.
fn categories(toolbox: &Toolbox) -> BTreeMap<&str, usize> {
    let mut counts = BTreeMap::new();
    for known in toolbox.tools() {
        *counts.entry(known.tool.category.as_str()).or_insert(0) += 1;
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::super::toolbox::tests::tool;
    use super::*;

    fn box_of(count: usize, description: usize) -> Toolbox {
        let one = |number: usize| tool(&format!("c{}.t{number:03}", number % 3), &"x".repeat(description));
        Toolbox::of((0..count).map(one).collect(), &[])
    }

    #[test]
    fn few_tools_are_listed_in_full_and_many_or_long_ones_as_an_outline() {
        assert!(!LoadedTools::of(&box_of(FEW, 10), 32_768).is_on());
        assert!(LoadedTools::of(&box_of(FEW + 1, 10), 32_768).is_on());
        assert!(LoadedTools::of(&box_of(10, 5_000), 32_768).is_on());
        let few = box_of(3, 10);
        let all = LoadedTools::of(&few, 32_768);
        assert!(all.is_loaded(2) && all.outline(&few).is_empty());
    }

    #[test]
    fn loaded_tools_stay_within_the_budget_and_the_oldest_is_unloaded_first() {
        // Four of them fit into 15,000 tokens.
        let toolbox = box_of(40, 10_000);
        let mut disclosure = LoadedTools::of(&toolbox, 128_000);
        for at in 0..4 {
            assert_eq!(disclosure.load(at, &toolbox), Ok(vec![]));
        }
        assert_eq!(disclosure.load(3, &toolbox), Ok(vec![]), "it is loaded already");
        assert_eq!(disclosure.load(4, &toolbox), Ok(vec![0]));
        let loaded: usize = disclosure.loaded(&toolbox).map(GatewayTool::size).sum();
        assert!(loaded <= 15_000 * BYTES_OF_A_TOKEN);
        assert!(!disclosure.is_loaded(0) && disclosure.is_loaded(4));
        let refused = disclosure.load(0, &box_of(40, 60_000)).unwrap_err();
        assert_eq!((refused.needed > 15_000, refused.room), (true, 15_000));
    }

    #[test]
    fn full_context_window_unloads_the_oldest_tool_but_never_the_last() {
        let toolbox = box_of(40, 10);
        let mut disclosure = LoadedTools::of(&toolbox, 32_768);
        (0..3).for_each(|at| assert!(disclosure.load(at, &toolbox).is_ok()));
        assert!(!disclosure.relieve(80));
        assert!(disclosure.relieve(81) && !disclosure.is_loaded(0) && disclosure.is_loaded(1));
        assert!(disclosure.relieve(100) && !disclosure.relieve(100) && disclosure.is_loaded(2));
        assert!(disclosure.give_way() && !disclosure.give_way());
    }

    #[test]
    fn tool_outline_shortens_its_entries_to_stay_within_the_budget() {
        for (count, says) in [
            (40, "xxx…"),
            (150, "xxx…"),
            (250, "c1_t001 (c1, cost unknown)\n"),
            (1_000, "of the category c2"),
        ] {
            let toolbox = box_of(count, 500);
            let outline = LoadedTools::of(&toolbox, 32_768).outline(&toolbox);
            assert!(outline.len() <= 3_000 * BYTES_OF_A_TOKEN + 20, "{count}: {}", outline.len());
            assert!(outline.contains(says), "{count}: {outline}");
        }
    }

    #[test]
    fn tool_list_can_be_filtered_by_category() {
        let toolbox = box_of(40, 10);
        let disclosure = LoadedTools::of(&toolbox, 32_768);
        assert_eq!(disclosure.list(&toolbox, None).unwrap().lines().count(), 40);
        let one = disclosure.list(&toolbox, Some("c1")).unwrap();
        assert!(
            one.lines().count() == 13 && one.lines().all(|line| line.contains(r#""category":"c1""#)),
            "{one}"
        );
        assert!(disclosure.list(&toolbox, Some("c9")).unwrap_err().contains("c0, c1, c2"));
    }
}
