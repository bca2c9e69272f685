//! `belljar egress`

mod learn;

use super::Subcommand;
use crate::configuration::read_bytes;
use crate::error::CliError;
use crate::web::read_policy;
use belljar_contract::yaml::{self, Members, MistakeLog, Node, list, one_of, text};
use belljar_egress::upstream::names::NameSource;
use belljar_egress::web::explain::{ExplainQuery, Explanation, Verdict};
use belljar_trusted::input;
use learn::LearnArguments;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, clap::Args)]
#[command(about = Self::ABOUT)]
pub(crate) struct EgressArguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Explain whether a sandbox can reach a URL, by which rule, or which rule is missing. Names are resolved, but no connection
    /// is made
    Why {
        /// `https://HOST[:PORT][/PATH]`, `http://…` or `HOST:PORT`
        url: String,
        /// The policy's YAML file
        #[arg(long, value_name = "FILE")]
        policy: PathBuf,
        /// The method of the request [default: GET]
        #[arg(long)]
        method: Option<String>,
        /// Print it as JSON
        #[arg(long)]
        json: bool,
    },
    /// Test a policy against expected verdicts. No name is resolved
    Test {
        /// Expected verdicts: a YAML file with `expect`, a list of `{url, method, verdict, reason}`
        expectations: PathBuf,
        /// The policy's YAML file
        #[arg(long, value_name = "FILE")]
        policy: PathBuf,
    },
    /// Propose the smallest policy for what a run has tried, from the audit; or for a command, which is run and reaches nothing
    Learn(Box<LearnArguments>),
}

/// Expected verdict of one request.
struct Expectation {
    url: String,
    method: Option<String>,
    verdict: Verdict,
    reason: Option<String>,
}

/// Exit code for what is denied, or otherwise than it was expected.
const DENIED: u8 = 3;

impl Subcommand for EgressArguments {
    const NAME: &'static str = "egress";
    const ABOUT: &'static str = "Explain, test and propose what sandboxes may reach of the web";

    fn run(&self) -> Result<ExitCode, CliError> {
        match &self.action {
            Action::Why { url, policy, method, json } => why(url, policy, method.as_deref(), *json),
            Action::Test { expectations, policy } => test(expectations, policy),
            Action::Learn(arguments) => arguments.run(),
        }
    }
}

fn why(url: &str, policy: &Path, method: Option<&str>, is_json: bool) -> Result<ExitCode, CliError> {
    let question = ExplainQuery::parse(url, method).map_err(|error| CliError::usage(error.to_string()))?;
    let policy = read_policy(policy)?;
    let explanation =
        question.ask(&policy, NameSource::of_system()).map_err(|source| CliError::Runtime { source })?;
    match is_json {
        true => crate::output::outln!("{}", crate::output::json(&explanation)),
        false => crate::output::out!("{}", in_words(url, &explanation)),
    }
    Ok(match explanation.verdict {
        Verdict::Allowed => ExitCode::SUCCESS,
        Verdict::Denied => ExitCode::from(DENIED),
    })
}

fn in_words(url: &str, explanation: &Explanation) -> String {
    let mut lines = match (explanation.verdict, explanation.rule) {
        (Verdict::Allowed, Some(rule)) => vec![format!("{url} is allowed by rule {rule}")],
        (Verdict::Allowed, None) => vec![format!("{url} is allowed")],
        (Verdict::Denied, _) => {
            let (reason, detail) = (explanation.reason.unwrap_or_default(), explanation.detail.as_deref());
            vec![format!("{url} is denied: {} ({reason})", detail.unwrap_or_default())]
        }
    };
    if explanation.inspected {
        lines.push("  its rules look into the connection".to_owned());
    }
    if !explanation.addresses.is_empty() {
        let all: Vec<_> = explanation.addresses.iter().map(ToString::to_string).collect();
        lines.push(format!("  it leads to {}", all.join(", ")));
    }
    if let Some(rule) = &explanation.rule_needed {
        lines.push(format!("  it takes the rule {rule}"));
    }
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn test(expectations: &Path, policy: &Path) -> Result<ExitCode, CliError> {
    let (policy, expected) = (read_policy(policy)?, read(expectations)?);
    let mut others = 0;
    for Expectation { url, method, verdict, reason } in &expected {
        let question = ExplainQuery::parse(url, method.as_deref());
        let found = question.map_err(|error| CliError::usage(error.to_string()))?.by_rules(&policy);
        let is_as_expected =
            found.verdict == *verdict && reason.as_deref().is_none_or(|reason| found.reason == Some(reason));
        if !is_as_expected {
            others += 1;
            crate::output::outln!("not as expected: {}", in_words(url, &found).trim_end());
        }
    }
    crate::output::outln!("{} of {} as expected", expected.len() - others, expected.len());
    Ok(if others == 0 { ExitCode::SUCCESS } else { ExitCode::from(DENIED) })
}

fn read(path: &Path) -> Result<Vec<Expectation>, CliError> {
    let bytes = input::open(path).and_then(read_bytes).map_err(|error| CliError::read(path, error))?;
    let mut log = MistakeLog::default();
    let expected = yaml::parse(&bytes, &mut log).and_then(|node| {
        let mut members = Members::open(&node, &mut log)?;
        let all = members.required("expect", |node, log| list(node, log, expectation).unwrap_or_default());
        members.finish();
        Some(all)
    });
    log.finish().map_err(|source| CliError::Config { path: path.to_owned(), source })?;
    Ok(expected.unwrap_or_default())
}

fn expectation(node: &Node, log: &mut MistakeLog) -> Option<Expectation> {
    const VERDICTS: [(&str, Verdict); 2] = [("allowed", Verdict::Allowed), ("denied", Verdict::Denied)];
    let any = |node: &Node, log: &mut MistakeLog| text(node, log, "text", |text| Some(text.to_owned()));
    let mut members = Members::open(node, log)?;
    let url = members.required("url", |node, log| {
        text(node, log, "https://HOST[:PORT][/PATH], http://… or HOST:PORT", |text| {
            ExplainQuery::parse(text, None).ok().map(|_| text.to_owned())
        })
    });
    let method = members.optional("method", any);
    let verdict = members.required("verdict", |node, log| one_of(node, log, &VERDICTS));
    let reason = members.optional("reason", any);
    members.finish();
    Some(Expectation { url: url?, method, verdict: verdict?, reason })
}
