//! `belljar agent`

mod report;
mod shown;
mod workspace;

use super::Subcommand;
use super::git::outcome::PushReport;
use crate::configuration::catalogue;
use crate::error::{CliError, OUT_OF_TIME, OWN_FAILURE};
use crate::grants::{GrantInputError, PresentedGrant};
use crate::models::{LOCAL, ModelArguments};
use crate::progress::harmless;
use crate::sandbox_args::AllowanceArguments;
use crate::state;
use crate::web::{self, WebArguments};
use belljar_agent::catalogue::Agent;
use belljar_agent::event::TextReporter;
use belljar_agent::messages::{LARGEST_BYTES, Messages};
use belljar_agent::outcome::GraphFinal;
use belljar_agent::program::InstalledProgram;
use belljar_agent::run::{AgentTask, PermittedRun, graph_id, run};
use belljar_contract::agent::{AgentFailure, GraphErrorCode};
use belljar_contract::id::RunId;
use belljar_egress::inference::config::InferenceConfig;
use belljar_execution::grant::{ExecutionPermit, GrantError, GrantPresentation, of_operator};
use belljar_execution::run_once::{OnceCode, OnceLimits, OnceResult, OnceWeb, RunObserver, RunReservation};
use belljar_git::clone::Origin;
use belljar_journal::RunJournal;
use belljar_policy::grant::GrantRefusal;
use belljar_sandbox::backend::Backend;
use belljar_sandbox::backends::chosen::BackendChoice;
use belljar_sandbox::backends::construction::HostContext;
use belljar_sandbox::config::BackendName;
use belljar_sandbox::docker::{DeploymentId, DockerBackend, DockerSettings, ImageName};
use belljar_sandbox::enclosure::{EnclosureMaker, EnclosureSite};
use belljar_sandbox::limits::{Bytes, Limits};
use belljar_sandbox::run::WorkspaceChoice;
use belljar_sandbox::state::{RunFolder, StateDirectory};
use belljar_trusted::input;
use jiff::Timestamp;
use report::AgentRunReport;
use shown::{AgentCallPrinter, AgentOutputFormat};
use std::cell::Cell;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use workspace::{AgentChangesOutcome, CloneFor, PushDestination, WorkspaceArguments};

#[derive(Debug, clap::Args)]
#[command(about = Self::ABOUT)]
pub(crate) struct AgentArguments {
    /// The agent, as `belljar agents` names it
    name: String,
    #[command(flatten)]
    workspace: WorkspaceArguments,
    #[command(flatten)]
    allowance: AllowanceArguments,
    #[command(flatten)]
    models: ModelArguments,
    #[command(flatten)]
    web: WebArguments,
    /// The socket of the container engine, for agents of an image
    #[arg(long, value_name = "PATH", default_value = HostContext::DOCKER_SOCKET)]
    docker_socket: PathBuf,
    /// Prompt of the agent, as an array of messages in OpenAI's format; `-` reads standard input
    #[arg(long, value_name = "FILE")]
    messages: Option<PathBuf>,
    /// Maximum size of the agent's output; further output is dropped
    #[arg(long, value_name = "SIZE", default_value = "2m")]
    max_output: Bytes,
    /// Print the agent's output as it arrives
    #[arg(long, conflicts_with = "json")]
    stream: bool,
    /// Print events as JSON, one per line
    #[arg(long, conflicts_with = "json")]
    events: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
    /// Prompt of the agent
    #[arg(last = true)]
    prompt: Vec<String>,
}

/// All that can be known before anything is made.
struct AgentRunPlan {
    agent: Agent,
    installed: InstalledProgram,
    models: InferenceConfig,
    messages: Messages,
    web: Option<OnceWeb>,
    grant: PresentedGrant,
    origin: Option<Origin>,
}

/// Errors of an agent's input: it can't be read or doesn't exist. Nothing was run.
enum AgentInputError {
    /// The agent doesn't exist.
    NoAgent(String),
    /// The input is invalid; the message names the mistake.
    Input(String),
    Own(CliError),
}

/// Exit code for what is malformed.
const MALFORMED: u8 = 2;

/// Exit code when the agent failed, or may not be run.
const FAILED: u8 = 1;

/// How long an agent may work if nothing is said.
const USUAL_RUNTIME: Duration = Duration::from_secs(1800);

impl Subcommand for AgentArguments {
    const NAME: &'static str = "agent";
    const ABOUT: &'static str =
        "Run an agent in a sandbox, on a copy, with access to models and nothing else outside";

    fn run(&self) -> Result<ExitCode, CliError> {
        // Whether events tell of the run: from then on they also tell of its end.
        let is_told = Cell::new(false);
        let done = self.wanted();
        let done = done.and_then(|wanted| self.carry_out(wanted, &is_told).map_err(AgentInputError::from));
        if let (Err(malformed), AgentOutputFormat::Events, false) = (&done, self.manner(), is_told.get()) {
            let mut tell = shown::teller(AgentOutputFormat::Events);
            TextReporter::to(&mut tell).end_text().fail(malformed.failure());
        }
        match done {
            Ok(code) => Ok(code),
            Err(AgentInputError::Own(error)) => Err(error),
            Err(AgentInputError::NoAgent(message)) => {
                crate::output::errln!("belljar: not_found: {}", harmless(&message));
                Ok(ExitCode::from(MALFORMED))
            }
            Err(AgentInputError::Input(message)) => {
                for line in message.lines() {
                    crate::output::errln!("belljar: {}", harmless(line));
                }
                Ok(ExitCode::from(MALFORMED))
            }
        }
    }
}

// === impl AgentArguments ===

impl AgentArguments {
    fn wanted(&self) -> Result<AgentRunPlan, AgentInputError> {
        let catalogue = catalogue(self.models.config())?;
        let agent = catalogue.get(&self.name).cloned().ok_or_else(|| {
            let near = catalogue.nearest(&self.name).map(|near| format!(" Did you mean {near}?"));
            let names: Vec<&str> = catalogue.iter().map(|agent| agent.name.as_str()).collect();
            let near = near.unwrap_or_default();
            AgentInputError::NoAgent(format!(
                "there is no agent {:?}.{near} There are: {}",
                self.name,
                names.join(", ")
            ))
        })?;
        let missing = || CliError::usage("an agent needs a model: --model NAME".to_owned());
        let models = self.models.chosen()?.ok_or_else(missing)?;
        let messages = self.messages()?;
        let search_path = std::env::var_os("PATH").unwrap_or_default();
        let installed = match agent.image {
            Some(_) => InstalledProgram::in_image(agent.program().into()),
            None => InstalledProgram::find(agent.program().as_ref(), &search_path).map_err(CliError::from)?,
        };
        let grant = self.models.grant()?.unwrap_or_else(|| Ok(of_operator(LOCAL)));
        let origin = self.workspace.origin(self.models.config())?;
        // The agent works on a copy. A policy file that it writes there doesn't take effect while it runs.
        let policy = self.web.policy(&WorkspaceChoice::Empty)?;
        let web = policy.map(|policy| OnceWeb { policy, tell: web::tell, inspection: None });
        Ok(AgentRunPlan { agent, installed, models, messages, web, grant, origin })
    }

    fn messages(&self) -> Result<Messages, AgentInputError> {
        let prompt = self.prompt.join(" ");
        let read = self.messages.as_deref().map(|path| read(path, LARGEST_BYTES as u64)).transpose()?;
        let messages = match (read, self.prompt.is_empty()) {
            (Some(document), true) => Messages::parse(&document),
            (Some(document), false) => Messages::parse_and_add(&document, &prompt),
            (None, false) => Messages::of_prompt(&prompt),
            (None, true) => {
                let message = "an agent needs a prompt: -- PROMPT, or --messages FILE";
                return Err(CliError::usage(message.to_owned()).into());
            }
        };
        messages.map_err(|error| AgentInputError::Input(error.to_string()))
    }

    fn carry_out(&self, wanted: AgentRunPlan, is_told: &Cell<bool>) -> Result<ExitCode, CliError> {
        let mut shown = AgentCallPrinter::begin(self.manner())?;
        let state = state::open();
        let docker = wanted.agent.image.as_ref().map(|image| self.docker(image, &state)).transpose()?;
        let site = EnclosureSite {
            state: &state,
            maker: docker.as_ref().map_or(EnclosureMaker::Itself, EnclosureMaker::Docker),
        };
        let place = RunReservation::begin(&site)?;
        let granted = match granted(&state, &place, (&self.name, wanted.grant)) {
            Err(GrantError::Refused { refusal }) => {
                is_told.set(true);
                return self.refuse(&refusal, place.run_id());
            }
            Err(GrantError::Book(error)) => return Err(error.into()),
            Ok(granted) => granted,
        };
        let clone_for = CloneFor {
            origin: wanted.origin.as_ref(),
            config: self.models.config(),
            agent: &self.name,
            model: self.models.first().unwrap_or_default(),
        };
        let is_canceled = || shown.is_canceled();
        let (source, way) = self.workspace.source(&place, &clone_for, &is_canceled)?;
        let (limits, required) = match &docker {
            None => (
                self.allowance.limits(&BackendChoice::Native)?,
                self.allowance.required_of(&BackendChoice::Native)?,
            ),
            Some(_) => (
                self.allowance.limits_over(Limits::default()),
                self.allowance.required_in(BackendName::Docker)?,
            ),
        };
        let task = AgentTask {
            agent: &wanted.agent,
            installed: wanted.installed,
            messages: wanted.messages,
            model: self.models.first().unwrap_or_default().to_owned(),
            models: wanted.models,
            metadata: self.models.metadata(),
            web: wanted.web,
            source,
            provision: self.allowance.provision(limits, required)?,
            limits: OnceLimits {
                max_runtime: self.allowance.timeout().unwrap_or(USUAL_RUNTIME),
                max_output_bytes: usize::try_from(self.max_output.0).unwrap_or(usize::MAX),
            },
        };
        let mut tell = shown::teller(self.manner());
        is_told.set(true);
        let telling = TextReporter::to(&mut tell);
        let permitted = PermittedRun { place, task, streams: self.stream, granted };
        let (result, told) = run(permitted, &site, telling, &mut shown);
        let code = exit_code(&result, &told);
        let report = AgentRunReport::of(&self.name, &result, &told)?;
        if self.manner() == AgentOutputFormat::People {
            report.tell();
        }
        self.settle(&report, (result.folder, way), (told.is_ok(), code))
    }

    /// Decides on the changes, and tells of them. Returns the exit code: that of the agent, if it has failed.
    fn settle(
        &self,
        report: &AgentRunReport,
        (folder, way): (RunFolder, Option<PushDestination>),
        (succeeded, code): (bool, u8),
    ) -> Result<ExitCode, CliError> {
        let asks = self.manner() == AgentOutputFormat::People;
        let settled = match self.workspace.settle(folder, (succeeded, asks), way) {
            Ok(settled) => settled,
            Err(error) => {
                // The reader of `--json` always gets a document. The changes stay in the run's folder.
                if self.json {
                    report.print_json(&AgentChangesOutcome::nothing())?;
                }
                return Err(error);
            }
        };
        match self.manner() {
            AgentOutputFormat::People => report.tell_fate(&settled),
            AgentOutputFormat::Json | AgentOutputFormat::Events => settled.fate.tell(),
        }
        if self.json {
            report.print_json(&settled)?;
        }
        let own = settled.fate.report();
        let own = settled.push.as_ref().map_or(own, PushReport::exit_code);
        Ok(ExitCode::from(if code == 0 { own } else { code }))
    }

    /// Reports that the grant was refused. With a JSON or event format, standard output gets a document or event as well.
    fn refuse(&self, refusal: &GrantRefusal, run_id: &RunId) -> Result<ExitCode, CliError> {
        crate::output::errln!("belljar: {}: {refusal}", refusal.code());
        let told = GraphFinal::refused(run_id.clone(), graph_id(&self.name), refusal);
        match self.manner() {
            AgentOutputFormat::People => {}
            AgentOutputFormat::Json => {
                AgentRunReport::of_refused(&self.name, told).print_json(&AgentChangesOutcome::nothing())?;
            }
            AgentOutputFormat::Events => {
                told.tell(TextReporter::to(&mut shown::teller(AgentOutputFormat::Events)).end_text());
            }
        }
        Ok(ExitCode::from(FAILED))
    }

    /// The engine that has the image. What was left behind there is cleared away.
    fn docker(&self, image: &ImageName, state: &StateDirectory) -> Result<DockerBackend, CliError> {
        let settings = DockerSettings {
            socket: self.docker_socket.clone(),
            image: image.clone(),
            deployment: DeploymentId::of(state),
            runtime: None,
            helper: state::own_program()?,
        };
        let docker = DockerBackend::new(settings, state.clone())?;
        // A failed cleanup doesn't keep the run from starting; the next call reports missing prerequisites.
        let _ = docker.reconcile();
        Ok(docker)
    }

    fn manner(&self) -> AgentOutputFormat {
        match (self.json, self.events) {
            (true, _) => AgentOutputFormat::Json,
            (_, true) => AgentOutputFormat::Events,
            _ => AgentOutputFormat::People,
        }
    }
}

/// Leave for this one run. No thread is left behind: the sandbox is made by this very process.
fn granted(
    state: &StateDirectory,
    place: &RunReservation,
    (name, grant): (&str, PresentedGrant),
) -> Result<ExecutionPermit, GrantError> {
    let book = RunJournal::open(state.path())?;
    let run_id = place.run_id().clone();
    ExecutionPermit::of(
        GrantPresentation { grant, graph_id: graph_id(name), run_id, now: Timestamp::now() },
        &book,
    )
}

fn exit_code(result: &OnceResult, told: &GraphFinal) -> u8 {
    match (told.is_ok(), result.error_code) {
        (true, _) => 0,
        (_, Some(OnceCode::Timeout)) => OUT_OF_TIME,
        (_, Some(OnceCode::Internal | OnceCode::ContainerFailed)) => OWN_FAILURE,
        _ => FAILED,
    }
}

/// A byte more than may be is enough to see that there is too much.
fn read(path: &Path, most: u64) -> Result<Vec<u8>, CliError> {
    let source: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(std::io::stdin().lock()),
        false => Box::new(input::open(path).map_err(|error| CliError::read(path, error))?),
    };
    let mut bytes = Vec::new();
    source.take(most + 1).read_to_end(&mut bytes).map_err(|error| CliError::read(path, error))?;
    Ok(bytes)
}

// === impl AgentInputError ===

impl AgentInputError {
    /// Returns the error as an event reports it.
    fn failure(&self) -> AgentFailure {
        match self {
            Self::NoAgent(message) => AgentFailure::new(GraphErrorCode::NotFound, "agent_not_found", message),
            Self::Input(message) => {
                AgentFailure::new(GraphErrorCode::InvalidRequest, "invalid_input", message)
            }
            Self::Own(error)
                if matches!(error, CliError::Usage { .. }) || error.exit_code() != OWN_FAILURE =>
            {
                AgentFailure::new(GraphErrorCode::InvalidRequest, "invalid_input", &error.chain())
            }
            Self::Own(error) => AgentFailure::new(GraphErrorCode::Internal, "internal", &error.chain()),
        }
    }
}

impl From<GrantInputError> for AgentInputError {
    fn from(error: GrantInputError) -> Self {
        match error {
            GrantInputError::Malformed(message) => Self::Input(message),
            GrantInputError::Own(error) => Self::Own(error),
        }
    }
}

impl From<CliError> for AgentInputError {
    fn from(error: CliError) -> Self {
        Self::Own(error)
    }
}
