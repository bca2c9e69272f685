//! The catalogue of agents, and how each is started (`docs/contracts/agents.md#a5.6`, `docs/contracts/agents.md#a6`).
//!
//! ```yaml
//! agents:
//!   - name: claude-code
//!     description: Claude Code, by itself
//!     argv: [claude, --print, --model, '{model}', --, '{prompt}']
//!     env: {ANTHROPIC_API_KEY: sealed}
//!     files: {.config/agent.json: '{{"base": {json:base_url}}}'}   # below its home
//! ```
//! An agent whose program is in a container image has `image: NAME`, and runs in a container. An agent that prints an
//! envelope, and nothing else, has `output: envelope`. An agent that reads `/workspace/.cogni/messages.json` has `reads_messages:
//! true`, and needs no `{prompt}`. Each variant of an agent is another row; no additional program is involved.

use super::similar::nearest;
use super::template::{PlaceholderKind, Template};
use belljar_contract::yaml::{
    self, Members, MistakeLog, Mistakes, Node, Value, below, boolean, list, one_of, place, quoted, text,
    text_or_number,
};
use belljar_sandbox::docker::ImageName;
use std::collections::BTreeMap;

/// An agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Agent {
    /// Its name.
    pub name: String,
    /// Description in one line.
    pub description: String,
    /// True if it reads its messages from `/workspace/.cogni/messages.json`, and needs no argument for them.
    pub reads_messages: bool,
    /// Form of its standard output.
    pub output: OutputForm,
    /// Image that has its program; `None` for a program of the host.
    pub image: Option<ImageName>,
    /// Its program, looked up in `PATH`, and its arguments.
    pub argv: Vec<Template>,
    /// Environment variables, besides those with the models' addresses.
    pub env: BTreeMap<String, Template>,
    /// Files that are written into its home before it starts, by their relative path.
    pub files: BTreeMap<String, Template>,
}

/// Form of an agent's standard output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OutputForm {
    /// Plain text, or an envelope.
    #[default]
    Any,
    /// An envelope and nothing else; any other output is an error.
    Envelope,
}

/// The agents, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Catalogue {
    agents: BTreeMap<String, Agent>,
}

/// The agents that are known without a configuration.
const BUILT_IN: &str = include_str!("catalogue/built_in.yaml");

// === impl Agent ===

impl Agent {
    /// Returns the name of its program, which has no placeholders.
    pub fn program(&self) -> String {
        self.argv.first().map(|program| program.fill(&NOTHING)).unwrap_or_default()
    }
}

// === impl Catalogue ===

impl Catalogue {
    /// Returns the agents that are known without a configuration.
    pub fn built_in() -> Self {
        Self::parse(BUILT_IN.as_bytes()).unwrap_or_default()
    }

    /// Reads a document with a section `agents`.
    ///
    /// # Errors
    /// [`Mistakes`]: all mistakes in the document.
    pub fn parse(bytes: &[u8]) -> Result<Self, Mistakes> {
        let mut log = MistakeLog::default();
        let catalogue = yaml::parse(bytes, &mut log).and_then(|root| {
            let mut members = Members::open(&root, &mut log)?;
            let catalogue = members.required("agents", Self::read);
            members.finish();
            Some(catalogue)
        });
        log.finish().map(|()| catalogue.unwrap_or_default())
    }

    /// Reads the section `agents`; its mistakes are logged.
    pub fn read(node: &Node, log: &mut MistakeLog) -> Self {
        let mut agents = BTreeMap::new();
        for agent in list(node, log, agent).unwrap_or_default() {
            if let Some(twice) = agents.insert(agent.name.clone(), agent) {
                let found = format!("{} twice", quoted(&twice.name));
                log.note(node.position, place(node), found, "each name once");
            }
        }
        Self { agents }
    }

    /// Returns these agents and those of another catalogue, which take precedence.
    #[must_use]
    pub fn with(mut self, others: Self) -> Self {
        self.agents.extend(others.agents);
        self
    }

    /// Returns the name that is most similar to an unknown one, if any is similar enough.
    pub fn nearest(&self, written: &str) -> Option<&str> {
        nearest(written, self.agents.keys().map(String::as_str))
    }

    /// Returns the agent of that name.
    pub fn get(&self, name: &str) -> Option<&Agent> {
        self.agents.get(name)
    }

    /// Iterates over all agents, by name.
    pub fn iter(&self) -> impl Iterator<Item = &Agent> {
        self.agents.values()
    }
}

const OUTPUT_FORMS: [(&str, OutputForm); 2] = [("any", OutputForm::Any), ("envelope", OutputForm::Envelope)];

fn agent(node: &Node, log: &mut MistakeLog) -> Option<Agent> {
    let mut members = Members::open(node, log)?;
    let name = members.required("name", name);
    let description = members.required("description", |node, log| {
        text(node, log, "a line of text", |text| {
            (!text.is_empty() && !text.contains('\n')).then(|| text.to_owned())
        })
    });
    let reads_messages = members.or("reads_messages", false, boolean);
    let output = members.or("output", OutputForm::Any, |node, log| one_of(node, log, &OUTPUT_FORMS));
    let image = members.optional("image", |node, log| {
        text(node, log, "the name of an image, such as debian:12", |text| ImageName::parse(text).ok())
    });
    let argv = members.required("argv", |node, log| {
        let argv = list(node, log, template).unwrap_or_default();
        match argv.first() {
            None => log.note(node.position, place(node), "nothing", "a program, and its arguments"),
            Some(program) if !program.is_plain() => {
                log.note(
                    node.position,
                    place(node),
                    "a program with a gap",
                    "one that is the same for everybody",
                );
            }
            Some(_) => {}
        }
        if !reads_messages && !argv.iter().any(|argument| argument.has(PlaceholderKind::Prompt)) {
            log.note(
                node.position,
                place(node),
                "no {prompt}",
                "an argument with {prompt}, or `reads_messages: true`",
            );
        }
        argv
    });
    let env = members.section("env", |node, log| templates(node, log, "the name of a variable", is_variable));
    let files = members.section("files", |node, log| templates(node, log, "a path below its home", is_below));
    members.finish();
    Some(Agent { name: name?, description: description?, reads_messages, output, image, argv, env, files })
}

fn name(node: &Node, log: &mut MistakeLog) -> Option<String> {
    let is_name = |text: &str| {
        (1..=64).contains(&text.len())
            && text
                .bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_.".contains(&byte))
    };
    text(node, log, "small letters, digits, `-`, `_` and `.`", |text| is_name(text).then(|| text.to_owned()))
}

fn template(node: &Node, log: &mut MistakeLog) -> Option<Template> {
    let parsed = text_or_number(node, log, "a text", |text| Some(Template::parse(text)))?;
    match parsed {
        Ok(template) if template.fill(&NOTHING).contains('\0') => {
            log.note(node.position, place(node), "a NUL", "a text without one");
            None
        }
        Ok(template) => Some(template),
        Err(error) => {
            log.note(node.position, place(node), error.to_string(), "a text with gaps, such as {prompt}");
            None
        }
    }
}

const NOTHING: super::template::PlaceholderValues<'static> =
    super::template::PlaceholderValues { prompt: "", model: "", base_url: "" };

fn templates(
    node: &Node,
    log: &mut MistakeLog,
    expected: &str,
    is_key: fn(&str) -> bool,
) -> BTreeMap<String, Template> {
    let Value::Mapping(members) = &node.value else {
        log.note(node.position, place(node), node.describe(), "a mapping");
        return BTreeMap::new();
    };
    let mut read = BTreeMap::new();
    for (key, value) in members {
        let path = below(&node.path, &key.name);
        if !is_key(&key.name) {
            log.note(key.position, &path, quoted(&key.name), expected);
        }
        let Some(template) = template(value, log) else { continue };
        if read.insert(key.name.clone(), template).is_some() {
            log.note(key.position, &path, "it twice", "each once");
        }
    }
    read
}

fn is_variable(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn is_below(path: &str) -> bool {
    !path.is_empty() && !path.contains('\0') && path.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn built_in_agents_exist_and_can_be_replaced() {
        let built_in = Catalogue::built_in();
        let names: Vec<&str> = built_in.iter().map(|agent| agent.name.as_str()).collect();
        assert_eq!(names, ["claude-code", "codex", "opencode"]);
        let own =
            Catalogue::parse(b"agents:\n  - {name: codex, description: mine, argv: [mine, '{prompt}']}\n")
                .unwrap();
        let both = built_in.with(own);
        assert_eq!(both.get("codex").unwrap().description, "mine");
        assert_eq!(both.iter().count(), 3);
    }

    #[test]
    fn every_mistake_is_told_with_its_place() {
        let text = "agents:\n  - {name: A B, description: x, argv: [a, '{prompt}']}\n  \
                    - {name: b, argv: [a]}\n  - {name: c, description: x, argv: ['{prompt}', '{key}']}\n  \
                    - {name: c, description: x, argv: ['{prompt}'], env: {'a=b': c}, files: {../x: y, a//b: z}}\n  \
                    - {name: c, description: x, argv: ['{prompt}'], image: 'a b', model: x}\n";
        insta::assert_snapshot!(Catalogue::parse(text.as_bytes()).unwrap_err().to_string());
    }
}
