//! `belljar node`

mod reloading;
mod traces;

use super::Subcommand;
use crate::configuration::{self, found};
use crate::error::CliError;
use crate::{listen_check, state, trusted_files, web};
use belljar_confine::launcher::Launcher;
use belljar_egress::callback::SigningKey;
use belljar_egress::known_secrets;
use belljar_egress::secret::Secret;
use belljar_files::host_path::HostPath;
use belljar_node::api::token::Token;
use belljar_node::daemon::{Bucket, CallbackConfig, Daemon, MOST_SESSION_COMMANDS, Settings};
use belljar_node::delivery::Callbacks;
use belljar_sandbox::backends::construction::HostContext;
use belljar_sandbox::config::BackendName;
use belljar_sandbox::state::StateDirectory;
use belljar_store::database::Location;
use belljar_trusted::input;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use tokio::runtime::Runtime;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::oneshot;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

#[derive(Debug, clap::Args)]
#[command(about = Self::ABOUT)]
pub(crate) struct NodeArguments {
    /// Address to listen at
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:12090")]
    listen: SocketAddr,
    /// State directory of the node, which no other node may use [default: `node` in BELLJAR_STATE_DIR, or in the system's or the
    /// user's state]
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// Serve at an address that other machines reach, without encryption
    #[arg(long)]
    allow_remote: bool,
    /// File with the token that the orchestrator must present; other users of this machine must not be able to read it
    #[arg(long, value_name = "FILE")]
    token_file: PathBuf,
    /// Where its jobs are kept: `sqlite:PATH` or `postgres://USER@HOST/DATABASE` [default: a file in its state]
    #[arg(long, value_name = "URL", env = "BELLJAR_DATABASE", hide_env_values = true)]
    database: Option<String>,
    /// The bucket that artifacts go to, `s3://BUCKET/PREFIX`; where it is and who asks is said by AWS_ENDPOINT, AWS_REGION,
    /// AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY [default: a folder in its state]
    #[arg(long, value_name = "URL")]
    artifacts: Option<String>,
    /// The configuration, with a section `node` [default: BELLJAR_CONFIG, or config.yaml in the user's or the system's
    /// configuration]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Policy file for jobs' web access by a proxy, with `rules` (docs/guides/web.md), followed while the node runs [default:
    /// the section `egress` of the configuration]
    #[arg(long, value_name = "FILE")]
    egress: Option<PathBuf>,
    /// The socket of the container engine, for jobs and sessions of an image
    #[arg(long, value_name = "PATH", default_value = HostContext::DOCKER_SOCKET)]
    docker_socket: PathBuf,
    /// Maximum number of concurrent jobs [default: two for each processor]
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u16).range(1..=4_096))]
    max_concurrency: Option<u16>,
    /// Maximum number of waiting jobs [default: 1000]
    #[arg(long, value_name = "NUMBER")]
    max_waiting: Option<u64>,
    /// Log level: off, error, warn, info, debug, trace
    #[arg(long, value_name = "LEVEL", default_value = "info")]
    log_level: LevelFilter,
}

/// A file that is longer holds no secret, in bytes. Larger ones are cut, and refused for what they hold.
const LARGEST_SECRET: u64 = 8 << 10;

/// Threads for what takes a moment: removing folders, reading files.
const SMALL_THREADS: usize = 64;

impl Subcommand for NodeArguments {
    const NAME: &'static str = "node";
    const ABOUT: &'static str = "Serve the Worker API, and run the jobs submitted to it";

    fn run(&self) -> Result<ExitCode, CliError> {
        self.begin_log();
        let settings = self.settings()?;
        // While this process is small and has one thread.
        let launcher = Launcher::start()?;
        runtime(&settings)?.block_on(self.serve(settings, launcher))
    }
}

// === impl NodeArguments ===

impl NodeArguments {
    fn settings(&self) -> Result<Settings, CliError> {
        listen_check::check_address(self.listen, self.allow_remote)?;
        let state = cleared(self.state_dir.as_ref().map_or_else(usual_state, StateDirectory::at))?;
        state.begin_use();
        listen_check::check_token_file(&self.token_file)?;
        let token = Token::read(&self.token_file)?;
        let runner = HostPath::resolve(state::own_program()?)?;
        let mut settings = Settings::new(self.listen, state, token, runner);
        if let Some(database) = &self.database {
            let location = Location::parse(database);
            settings.database = location.map_err(|error| CliError::usage(format!("--database: {error}")))?;
        }
        settings.bucket = self.artifacts.clone().map(|url| Bucket { url, variables: of_aws() });
        configure(&mut settings, self.config.as_deref())?;
        if let Some(config) = &settings.models {
            // Jobs that call models would fail one by one.
            config.models.check_credentials()?;
        }
        if let Some(path) = &self.egress {
            settings.egress = Some(web::of_rules(path)?);
        }
        settings.images.socket.clone_from(&self.docker_socket);
        settings.traces = traces::of_environment(settings.traces)?;
        settings.max_concurrency = self.max_concurrency.map_or(settings.max_concurrency, usize::from);
        settings.max_waiting = self.max_waiting.unwrap_or(settings.max_waiting);
        Ok(settings)
    }

    async fn serve(&self, settings: Settings, launcher: Launcher) -> Result<ExitCode, CliError> {
        let failed = |source| CliError::Runtime { source };
        // SIGTERM and SIGINT shut the node down gracefully, SIGHUP reloads its configuration.
        let mut terminate = signal(SignalKind::terminate()).map_err(failed)?;
        let mut interrupt = signal(SignalKind::interrupt()).map_err(failed)?;
        let mut hangup = signal(SignalKind::hangup()).map_err(failed)?;
        let (gone, mut launcher_is_gone) = oneshot::channel::<()>();
        launcher.when_gone(move || drop(gone)).map_err(failed)?;
        let mut daemon = Daemon::start(settings, launcher, Arc::new(jiff::Timestamp::now)).await?;
        tracing::info!(address = %daemon.address(), "listening");
        let is_asked_to = loop {
            tokio::select! {
                _ = terminate.recv() => break true,
                _ = interrupt.recv() => break true,
                _ = hangup.recv() => self.reload(&mut daemon).await,
                _ = &mut launcher_is_gone => break false,
            }
        };
        if !is_asked_to {
            tracing::error!(
                "the process that launches sandboxes is gone: no more sandboxes can be started; restart the node"
            );
        }
        tracing::info!("stopping");
        daemon.stop().await;
        tracing::info!("stopped");
        if is_asked_to { Ok(ExitCode::SUCCESS) } else { Err(CliError::LauncherGone) }
    }

    fn begin_log(&self) {
        // The MCP library's log of each message is left out: calls are recorded in the audit log.
        let targets = Targets::new().with_default(self.log_level).with_target("rmcp", LevelFilter::ERROR);
        let format = tracing_subscriber::fmt().json().with_max_level(self.log_level);
        format.with_writer(crate::output::json_log).finish().with(targets).init();
    }
}

/// A state that may be used, without what runs that are gone have left in it. Nothing is written before: they may have filled the disk.
pub(super) fn cleared(state: StateDirectory) -> Result<StateDirectory, CliError> {
    let refused = |source| CliError::StateDirectory { path: state.path().to_owned(), source };
    state.check().map_err(refused)?;
    // The node tells what can't be cleared away.
    let _ = state.reconcile();
    Ok(state)
}

/// The state of a node that was told no other. What a node has left it also removes: it shares nothing with what is run
/// without one.
pub(super) fn usual_state() -> StateDirectory {
    StateDirectory::at(state::open().path().join("node"))
}

/// Says in the settings what the configuration says, if there is one.
pub(super) fn configure(settings: &mut Settings, named: Option<&Path>) -> Result<(), CliError> {
    // A server of tools may be lent a directory: none in which a configuration is looked for.
    trusted_files::register_usual();
    let Some(path) = found(named) else { return Ok(()) };
    let configuration = configuration::read(&path)?;
    configuration.node.apply(settings);
    let sandboxing = configuration.sandboxing.sandboxing;
    settings.images.limits = sandboxing.docker.limits();
    settings.images.required = sandboxing.required_of(BackendName::Docker);
    settings.images.runtime = sandboxing.docker.runtime.clone();
    settings.limits = sandboxing.native.limits;
    settings.required = sandboxing.required_of(BackendName::Native);
    settings.models = configuration.inference;
    settings.mcp = configuration.mcp;
    settings.approvals = configuration.approvals;
    settings.access = configuration.has_access.then_some(configuration.access);
    settings.trust = configuration.trust.unwrap_or_default();
    settings.tools = configuration.tools;
    settings.git = configuration.git;
    settings.egress = Some(web::of_configuration(&path)?);
    settings.traces = configuration.node.traces.map(traces::of_configuration);
    settings.callbacks = configuration.node.callback.map(callbacks).transpose()?;
    Ok(())
}

/// The threads that a daemon works with.
pub(super) fn runtime(settings: &Settings) -> Result<Runtime, CliError> {
    // Each job that runs has a thread, and each command of a session; what is small besides must not wait for them.
    let threads = settings.max_concurrency + MOST_SESSION_COMMANDS + SMALL_THREADS;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().max_blocking_threads(threads).build();
    runtime.map_err(|source| CliError::Runtime { source })
}

/// The variables that say where a bucket is and who asks; any other may mean something else.
fn of_aws() -> Vec<(String, String)> {
    let all = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    all.filter(|(name, _)| name.starts_with("AWS_")).collect()
}

fn callbacks(config: CallbackConfig) -> Result<Callbacks, CliError> {
    let CallbackConfig { url, user, secret_file, allowed_origins } = config;
    let wrong = |why: &dyn std::fmt::Display| {
        CliError::usage(format!("{} holds no key for callbacks: {why}", crate::output::path(&secret_file)))
    };
    trusted_files::check_secret(&secret_file)?;
    let text =
        input::read(&secret_file, LARGEST_SECRET).map_err(|error| CliError::read(&secret_file, error))?;
    let secret = Secret::parse(text).map_err(|error| wrong(&error))?;
    let key = SigningKey::of(&secret).map_err(|error| wrong(&error))?;
    known_secrets::remember(secret);
    let url = url.map(|url| url.served_by(user));
    Ok(Callbacks { url, user, key, allowed_origins })
}
