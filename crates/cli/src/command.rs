//! The subcommands, one a file.

mod agent;
mod agents;
mod approval;
mod arguments;
mod audit;
mod changes;
mod completions;
mod config;
mod doctor;
mod egress;
mod exec;
pub(crate) mod git;
mod grant;
pub(crate) mod job;
mod man;
pub(crate) mod mcp;
mod node;
mod operator;
mod policy;
mod preference;
mod printing;
mod run;
pub(crate) mod session;
mod skill;
mod tools;
mod trust;
mod usage;
mod validate;
mod why;

pub(crate) use audit::table::plain;

use crate::configuration;
use crate::error::CliError;
use crate::state;
use belljar_store::database::holds_password;
use clap::ArgMatches;
use clap::parser::ValueSource;
use std::path::PathBuf;
use std::process::ExitCode;

/// One subcommand: its arguments, and what it does with them.
trait Subcommand: clap::Args {
    const NAME: &'static str;
    /// One line for the list of subcommands.
    const ABOUT: &'static str;

    fn run(&self) -> Result<ExitCode, CliError>;
}

/// Subcommand whose arguments are defined only when it is used: defining those of all subcommands takes longer than
/// creating a sandbox.
struct SubcommandEntry {
    name: &'static str,
    about: &'static str,
    define: fn(clap::Command) -> clap::Command,
    run: fn(&ArgMatches) -> Result<Result<ExitCode, CliError>, clap::Error>,
    /// Whether the usual state directory is checked before the subcommand runs.
    uses_state: fn(&ArgMatches) -> bool,
}

const SUBCOMMANDS: [SubcommandEntry; 26] = [
    SubcommandEntry::of::<run::RunArguments>(),
    SubcommandEntry::of::<exec::ExecArguments>(),
    SubcommandEntry::of::<session::SessionArguments>(),
    SubcommandEntry::of::<changes::ChangesArguments>(),
    SubcommandEntry::of::<agent::AgentArguments>(),
    SubcommandEntry::of::<agents::AgentsArguments>(),
    SubcommandEntry::of::<mcp::McpArguments>(),
    SubcommandEntry::of::<tools::ToolsArguments>(),
    // A node checks the state directory that it is given when it takes it.
    SubcommandEntry::of::<node::NodeArguments>().using_state_if(|matches| !matches.contains_id("state_dir")),
    SubcommandEntry::of::<job::JobArguments>(),
    SubcommandEntry::of::<approval::ApprovalArguments>(),
    SubcommandEntry::of::<preference::PreferenceArguments>(),
    SubcommandEntry::of::<skill::SkillArguments>(),
    SubcommandEntry::of::<grant::GrantArguments>(),
    SubcommandEntry::of::<policy::PolicyArguments>(),
    SubcommandEntry::of::<why::WhyArguments>(),
    SubcommandEntry::of::<trust::TrustArguments>(),
    SubcommandEntry::of::<egress::EgressArguments>(),
    SubcommandEntry::of::<git::GitArguments>(),
    SubcommandEntry::of::<doctor::DoctorArguments>(),
    SubcommandEntry::of::<validate::ValidateArguments>().using_state_if(|_| false),
    SubcommandEntry::of::<config::ConfigArguments>(),
    // A log is judged by what is in it, also by auditors who are not its user. Only `anchor` writes to it.
    SubcommandEntry::of::<audit::AuditArguments>()
        .using_state_if(|matches| matches.subcommand_name() == Some("anchor")),
    SubcommandEntry::of::<usage::UsageArguments>(),
    SubcommandEntry::of::<completions::CompletionsArguments>().using_state_if(|_| false),
    SubcommandEntry::of::<man::ManArguments>().using_state_if(|_| false),
];

const ABOUT: &str = "Runs AI agents and their jobs sealed and in plain view";

const LONG_ABOUT: &str = "\
Runs AI agents and their jobs sealed and in plain view.

Inside a sandbox there is no network, no secret, and nothing of the host but its programs, read-only.";

const EXIT_CODES: &str = "\
Exit codes:
  0    success
  1    the job or the agent failed, or the grant doesn't cover it; the result says why. audit verify: something is not as
       it was written. usage reconcile: something differs. policy check: something would change
  2    the job, the configuration, the grant or the messages are malformed, or there is no such agent or job; nothing ran.
       approval: there is none, or it was answered otherwise or has expired
  3    egress: what was asked about is denied, or not as it was expected. git, and whatever writes a sandbox's work somewhere
       else: it isn't allowed, or needs an approval (--trust) that was not given
  4    git push: there is such a branch already, and it is something else
  5    changes conflict with what something else changed in the source meanwhile: they are kept, all others are applied
  124  out of time
  125  belljar itself could not do its part, such as writing its output or exec's, or the command line is wrong
  126  exec: the program can't be run
  127  exec: there is no such program
  130  job: interrupted while it waited for a node's job, which goes on
  Otherwise exec gives the program's own exit code, or 128 and the signal that ended it.";

/// Parses the command line and does what it says.
pub(crate) fn run() -> Result<ExitCode, CliError> {
    match definition().try_get_matches().and_then(|matches| dispatch(&matches)) {
        Ok(outcome) => outcome,
        Err(error) => {
            let is_help = !error.use_stderr();
            match is_help {
                true => crate::output::write(error.render().ansi().to_string().as_bytes()),
                false => crate::output::tell_styled(&error.render().ansi().to_string()),
            }
            Ok(if is_help { ExitCode::SUCCESS } else { ExitCode::from(crate::error::OWN_FAILURE) })
        }
    }
}

fn dispatch(matches: &ArgMatches) -> Result<Result<ExitCode, CliError>, clap::Error> {
    let chosen = matches.subcommand().and_then(|(name, matches)| {
        let entry = SUBCOMMANDS.into_iter().find(|entry| entry.name == name)?;
        Some((entry, matches))
    });
    match chosen {
        Some((entry, matches)) => {
            let checked = if (entry.uses_state)(matches) { state::check() } else { Ok(()) };
            match no_password_shown(matches).and(checked).and_then(|()| name_configuration(matches)) {
                Ok(()) => {
                    let ran = (entry.run)(matches)?;
                    if let Err(error) = &ran
                        && TELLS_ERRORS.contains(&entry.name)
                        && wants_json(matches)
                    {
                        // It goes on to be reported as an error; what can't be written there can't be written here.
                        let _ = printing::print_json(&error.document());
                    }
                    Ok(ran)
                }
                Err(error) => Ok(Err(error)),
            }
        }
        None => Err(definition().error(clap::error::ErrorKind::MissingSubcommand, "a subcommand is missing")),
    }
}

/// Subcommands whose errors are a document, too, where JSON is asked for. That of others is the result of what they run.
const TELLS_ERRORS: [&str; 2] = ["changes", "session"];

/// Returns true if the innermost subcommand was asked for JSON.
fn wants_json(matches: &ArgMatches) -> bool {
    let mut innermost = matches;
    while let Some((_, below)) = innermost.subcommand() {
        innermost = below;
    }
    matches!(innermost.try_get_one::<bool>("json"), Ok(Some(true)))
}

/// Notes the configuration that is named, whichever subcommand it is given to.
fn name_configuration(matches: &ArgMatches) -> Result<(), CliError> {
    const CONFIG: &str = "config";
    let mut at = Some(matches);
    let mut named = None;
    while let Some(matches) = at {
        named = matches.try_get_raw(CONFIG).ok().flatten().and_then(|mut raw| raw.next()).or(named);
        at = matches.subcommand().map(|(_, below)| below);
    }
    named.map_or(Ok(()), |path| configuration::name(PathBuf::from(path)))
}

/// Refuses a password in `--database`: every user of the machine can read it in the list of processes.
fn no_password_shown(matches: &ArgMatches) -> Result<(), CliError> {
    const DATABASE: &str = "database";
    let mut at = Some(matches);
    while let Some(matches) = at {
        let mut shown = matches.try_get_raw(DATABASE).ok().flatten().into_iter().flatten();
        let is_password = |url: &std::ffi::OsStr| url.to_str().is_some_and(holds_password);
        if shown.any(is_password) && matches.value_source(DATABASE) == Some(ValueSource::CommandLine) {
            return Err(CliError::usage(PASSWORD_SHOWN.to_owned()));
        }
        at = matches.subcommand().map(|(_, below)| below);
    }
    Ok(())
}

const PASSWORD_SHOWN: &str = "--database holds a password, which every user of this machine can read in the list of processes; \
     leave it out of the URL and put it into a file of mode 0600 that PGPASSFILE names (HOST:PORT:DATABASE:USER:PASSWORD), or set \
     BELLJAR_DATABASE to the URL instead";

fn definition() -> clap::Command {
    let subcommands = SUBCOMMANDS
        .into_iter()
        .map(|entry| clap::Command::new(entry.name).about(entry.about).defer(entry.define));
    clap::Command::new("belljar")
        .version(env!("CARGO_PKG_VERSION"))
        .about(ABOUT)
        .long_about(LONG_ABOUT)
        .max_term_width(100)
        .after_help(EXIT_CODES)
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommands(subcommands)
}

// === impl SubcommandEntry ===

impl SubcommandEntry {
    const fn of<S: Subcommand>() -> Self {
        Self {
            name: S::NAME,
            about: S::ABOUT,
            define: S::augment_args,
            run: |matches| S::from_arg_matches(matches).map(|arguments| arguments.run()),
            uses_state: |_| true,
        }
    }

    const fn using_state_if(mut self, uses_state: fn(&ArgMatches) -> bool) -> Self {
        self.uses_state = uses_state;
        self
    }
}
