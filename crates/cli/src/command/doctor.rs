//! `belljar doctor`

use super::Subcommand;
use super::audit::described;
use super::printing::print_json;
use crate::error::CliError;
use crate::progress::harmless;
use crate::state;
use anstyle::{AnsiColor, Style};
use belljar_sandbox::canary::{self, CanaryError, CanaryFinding, Verdict};
use belljar_sandbox::host::{Feature, Presence, features};
use belljar_store::audit::anchor::{self, AnchorStatus};
use belljar_store::audit::folder_in;
use serde::Serialize;
use std::process::ExitCode;

const LONG_ABOUT: &str = "\
Check this host: what a sandbox needs, what is missing and how to get it

Ends with a sandbox that tries to break each of its own walls. Exit code 0 if sandboxes can be made and every wall
held, 1 if not.";

#[derive(Debug, clap::Args)]
#[command(about = Self::ABOUT, long_about = LONG_ABOUT)]
pub(crate) struct DoctorArguments {
    /// Print the findings as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Serialize)]
struct Findings {
    /// Whether sandboxes can be made here and hold.
    healthy: bool,
    features: Vec<Feature>,
    /// Attempts of a sandbox against its own isolation; empty if no sandbox could be made.
    canary: Vec<CanaryFinding>,
    /// Why no sandbox could be made.
    error: Option<String>,
    /// Status of the audit log's anchors.
    audit_anchors: Vec<AnchorStatus>,
}

impl Subcommand for DoctorArguments {
    const NAME: &'static str = "doctor";
    const ABOUT: &'static str = "Check this host: what a sandbox needs, what is missing and how to get it";

    fn run(&self) -> Result<ExitCode, CliError> {
        let findings = examine()?;
        match self.json {
            true => print_json(&findings)?,
            false => print(&findings),
        }
        Ok(ExitCode::from(u8::from(!findings.healthy)))
    }
}

fn examine() -> Result<Findings, CliError> {
    let features = features();
    let program = state::own_program()?;
    let (canary, error) = match canary::let_out(&program, &std::env::temp_dir(), &state::open()) {
        Ok(found) => (found, None),
        Err(error) => (Vec::new(), Some(said(error))),
    };
    let healthy = error.is_none()
        && features.iter().all(|feature| feature.state != Presence::Missing)
        && canary.iter().all(|finding| finding.verdict == Verdict::Held);
    let audit_anchors = anchor::statuses(&folder_in(state::open().path()));
    Ok(Findings { healthy, features, canary, error, audit_anchors })
}

fn said(error: CanaryError) -> String {
    match error {
        CanaryError::Start(error) => CliError::from(error).chain(),
        CanaryError::Program(error) => CliError::from(error).chain(),
        other => other.to_string(),
    }
}

fn print(findings: &Findings) {
    crate::output::outln!("This host");
    for feature in &findings.features {
        let (color, mark) = match feature.state {
            Presence::Have => (AnsiColor::Green, "✓"),
            Presence::Missing => (AnsiColor::Red, "✗"),
            Presence::Absent => (AnsiColor::Yellow, "–"),
        };
        line(color, mark, feature.name, &feature.found);
        if feature.state != Presence::Have {
            crate::output::outln!("      why it matters: {}", feature.why);
            crate::output::outln!("      how to get it:  {}", feature.remedy);
        }
    }
    crate::output::outln!("\nEscape attempts from a sandbox");
    for finding in &findings.canary {
        let (color, mark) = match finding.verdict {
            Verdict::Held => (AnsiColor::Green, "✓"),
            Verdict::Broken => (AnsiColor::Red, "✗"),
            Verdict::Invalid => (AnsiColor::Yellow, "?"),
        };
        line(color, mark, finding.layer, &format!("{}: {}", finding.attempt, finding.detail));
    }
    if !findings.audit_anchors.is_empty() {
        crate::output::outln!("\nAnchors of the audit log");
    }
    for status in &findings.audit_anchors {
        let (color, mark) = match (&status.failing, status.is_on_same_file_system) {
            (Some(_), _) => (AnsiColor::Red, "✗"),
            (None, true) => (AnsiColor::Yellow, "–"),
            (None, false) => (AnsiColor::Green, "✓"),
        };
        line(color, mark, "audit anchor", &harmless(&described(status)));
    }
    if let Some(error) = &findings.error {
        line(AnsiColor::Red, "✗", "no sandbox", error);
    }
    let verdict = match findings.healthy {
        true => "Sandboxes can be created here, and every escape attempt failed.",
        false => "Something is missing; see the marks above.",
    };
    crate::output::outln!("\n{verdict}");
}

fn line(color: AnsiColor, mark: &str, name: &str, text: &str) {
    let style = Style::new().bold().fg_color(Some(color.into()));
    crate::output::outln!("  {style}{mark}{style:#} {name:<18} {text}");
}
