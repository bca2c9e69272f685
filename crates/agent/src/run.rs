//! An agent's run: from its row in the catalogue to its outcome.

use super::catalogue::{Agent, OutputForm};
use super::event::TextReporter;
use super::messages::Messages;
use super::outcome::GraphFinal;
use super::program::InstalledProgram;
use super::template::PlaceholderValues;
use belljar_contract::inference::CallRecord;
use belljar_egress::identity::CallMetadata;
use belljar_egress::inference::config::InferenceConfig;
use belljar_execution::grant::ExecutionPermit;
use belljar_execution::run_once::{
    MESSAGES, OnceLimits, OnceResult, OnceSpec, OnceWeb, RunObserver, RunReservation, run_once,
};
use belljar_files::host_path::HostPath;
use belljar_sandbox::enclosure::EnclosureSite;
use belljar_sandbox::hatch::OPENAI_PORT;
use belljar_sandbox::provision::Provision;
use std::collections::BTreeMap;

/// A task of an agent, with its resources.
pub struct AgentTask<'t> {
    /// The agent.
    pub agent: &'t Agent,
    /// Its program.
    pub installed: InstalledProgram,
    /// Its messages.
    pub messages: Messages,
    /// The model that it is configured to use; it may use others of [`models`](Self::models).
    pub model: String,
    /// Models that it may use.
    pub models: InferenceConfig,
    /// Metadata of its model calls, besides the grant's.
    pub metadata: CallMetadata,
    /// Web access, if it has any.
    pub web: Option<OnceWeb>,
    /// The workspace directory; the agent works on a copy.
    pub source: HostPath,
    /// Provision of its sandbox, besides its program and the catalogue's provision. Its variables override the catalogue's.
    pub provision: Provision,
    /// Limits of the run.
    pub limits: OnceLimits,
}

/// Reports an agent's output as it comes, unless it may be an envelope.
struct OutputForwarder<'p, 's> {
    telling: Option<TextReporter<'s>>,
    is_wanted: bool,
    pending: Vec<u8>,
    is_text: Option<bool>,
    watch: &'p mut dyn RunObserver,
}

/// Graph provider name of agents in sandboxes.
const PROVIDER: &str = "sandbox";

/// Git's global ignore file, below a home.
const GIT_IGNORE: &str = ".config/git/ignore";

/// Returns the graph id of an agent.
pub fn graph_id(agent: &str) -> String {
    format!("{PROVIDER}:{agent}")
}

/// An agent's run that is permitted.
pub struct PermittedRun<'a> {
    /// The run.
    pub place: RunReservation,
    /// The agent and its task.
    pub task: AgentTask<'a>,
    /// If true, the agent's text is reported as it comes, otherwise at the end.
    pub streams: bool,
    /// The permission.
    pub granted: ExecutionPermit,
}

/// Runs an agent, and reports its events.
pub fn run(
    permitted: PermittedRun<'_>,
    site: &EnclosureSite<'_>,
    telling: TextReporter<'_>,
    watch: &mut dyn RunObserver,
) -> (OnceResult, GraphFinal) {
    let PermittedRun { place, task, streams, granted } = permitted;
    let graph_id = granted.graph_id().to_owned();
    let form = task.agent.output;
    // Output that must be an envelope is reported at the end.
    let is_wanted = streams && form == OutputForm::Any;
    let mut passing =
        OutputForwarder { telling: Some(telling), is_wanted, pending: Vec::new(), is_text: None, watch };
    let result = run_once(place, task.spec(), granted, site, &mut passing);
    let told = GraphFinal::of(&result, &graph_id, form);
    passing.end(&told);
    (result, told)
}

// === impl AgentTask ===

impl AgentTask<'_> {
    fn spec(self) -> OnceSpec {
        let base_url = format!("http://localhost:{OPENAI_PORT}");
        let filling =
            PlaceholderValues { prompt: self.messages.prompt(), model: &self.model, base_url: &base_url };
        let mut argv = self.installed.command;
        argv.extend(self.agent.argv.iter().skip(1).map(|argument| argument.fill(&filling).into()));
        let filled = |texts: &BTreeMap<String, super::template::Template>| -> BTreeMap<String, String> {
            texts.iter().map(|(name, text)| (name.clone(), text.fill(&filling))).collect()
        };
        let mut env = BTreeMap::from([("PATH".to_owned(), self.installed.search_path)]);
        env.extend(filled(&self.agent.env));
        env.extend(self.provision.env);
        env.insert("COGNI_MODEL".to_owned(), self.model.clone());
        // The messages file is ignored by git, so that an agent that commits all files doesn't commit it.
        let mut home = BTreeMap::from([(GIT_IGNORE.to_owned(), format!("/{MESSAGES}\n"))]);
        home.extend(filled(&self.agent.files));
        let lent = self.installed.lent.into_iter().chain(self.provision.lent).collect();
        OnceSpec {
            argv,
            attempt: 0,
            source: self.source,
            messages: Some(self.messages.document().to_owned()),
            provision: Provision { lent, env, home, ..self.provision },
            models: Some(self.models),
            metadata: self.metadata,
            web: self.web,
            limits: self.limits,
        }
    }
}

// === impl OutputForwarder ===

impl OutputForwarder<'_, '_> {
    /// Reports the complete characters of the pending text.
    fn pass(&mut self) {
        let Some(telling) = &mut self.telling else { return };
        let whole = whole_text(&self.pending);
        telling.text(&String::from_utf8_lossy(&self.pending[..whole]));
        self.pending.drain(..whole);
    }

    fn end(mut self, told: &GraphFinal) {
        match self.is_text {
            // The rest is an incomplete character.
            Some(true) => {
                let rest = String::from_utf8_lossy(&self.pending).into_owned();
                self.telling.iter_mut().for_each(|telling| telling.text(&rest));
            }
            _ => self.telling.iter_mut().for_each(|telling| telling.text(&told.content)),
        }
        if let Some(telling) = self.telling.take() {
            told.tell(telling.end_text());
        }
    }
}

impl RunObserver for OutputForwarder<'_, '_> {
    fn printed(&mut self, bytes: &[u8]) {
        self.watch.printed(bytes);
        if !self.is_wanted {
            return;
        }
        match self.is_text {
            Some(false) => return,
            Some(true) => self.pending.extend_from_slice(bytes),
            None => {
                self.pending.extend_from_slice(bytes);
                // Output that begins with `{` may be an envelope: it is reported at the end.
                let first = self.pending.iter().find(|byte| !byte.is_ascii_whitespace());
                self.is_text = first.map(|first| *first != b'{');
            }
        }
        match self.is_text {
            Some(true) => self.pass(),
            Some(false) => self.pending.clear(),
            None => {}
        }
    }

    fn called(&mut self, call: &CallRecord) {
        self.watch.called(call);
    }

    fn is_canceled(&self) -> bool {
        self.watch.is_canceled()
    }
}

/// Returns the length of the text without an incomplete character at its end.
fn whole_text(bytes: &[u8]) -> usize {
    let last = bytes.utf8_chunks().last();
    match last {
        // Only a character at the end can be completed by further bytes.
        Some(chunk) if !chunk.invalid().is_empty() && is_begun(chunk.invalid()) => {
            bytes.len() - chunk.invalid().len()
        }
        _ => bytes.len(),
    }
}

/// Returns true if further bytes could complete these to a character.
fn is_begun(bytes: &[u8]) -> bool {
    matches!(std::str::from_utf8(bytes), Err(error) if error.error_len().is_none())
}

#[cfg(test)]
mod tests {
    use super::super::event::AgentEvent;
    use super::*;
    use proptest::prelude::*;

    struct NoopWatch;

    impl RunObserver for NoopWatch {}

    /// Returns the text reported for these pieces before the end.
    fn passed(pieces: &[&[u8]]) -> String {
        let mut told = String::new();
        let mut sink = |event| {
            if let AgentEvent::TextDelta { delta } = event {
                told.push_str(&delta);
            }
        };
        let mut passing = OutputForwarder {
            telling: Some(TextReporter::to(&mut sink)),
            is_wanted: true,
            pending: Vec::new(),
            is_text: None,
            watch: &mut NoopWatch,
        };
        pieces.iter().for_each(|piece| passing.printed(piece));
        drop(passing);
        told
    }

    #[test]
    fn text_is_forwarded_by_whole_characters_and_envelopes_are_not() {
        assert_eq!(passed(&[b"a\xc3", b"\xa9b"]), "a\u{e9}b");
        assert_eq!(passed(&[b"a\xc3"]), "a");
        assert_eq!(passed(&[b"a\xff", b"b"]), "a\u{fffd}b");
        assert_eq!(passed(&[b" ", b"\n", b"{\"payloads\""]), "");
        assert_eq!(passed(&[b" ", b"text {"]), " text {");
    }

    proptest! {
        #[test]
        fn forwarded_text_does_not_depend_on_chunk_boundaries(text in "x\\PC{0,40}", cuts in proptest::collection::vec(0_usize..100, 0..6)) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.push(bytes.len());
            cuts.sort_unstable();
            let mut from = 0;
            let pieces: Vec<&[u8]> = cuts.into_iter().map(|to| {
                let piece = &bytes[from..to];
                from = to;
                piece
            }).collect();
            prop_assert_eq!(passed(&pieces), text);
        }
    }
}
