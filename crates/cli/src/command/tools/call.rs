//! `belljar tools call`

use super::SET;
use crate::approvals;
use crate::command::mcp::{
    SessionOfferArguments, ToolService, caller, end, follow_earned, gateway, stop_when_asked,
};
use crate::command::printing::print_json;
use crate::error::{BAD_INPUT, CliError, DENIED};
use crate::output::{Untrusted, UntrustedLines};
use belljar_contract::tool::{DomainCode, Envelope};
use belljar_gateway::call::{CallOutcome, Refusal};
use belljar_gateway::caller_slot::CallerSlot;
use belljar_tools::Arguments;
use serde_json::Value;
use std::io::Read;
use std::process::ExitCode;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

#[derive(Debug, clap::Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct CallArguments {
    /// Its name
    tool: String,
    /// Arguments of the tool, a JSON object; - reads it from standard input
    #[arg(default_value = "{}", value_name = "ARGUMENTS")]
    arguments: String,
    #[command(flatten)]
    offer: SessionOfferArguments,
    /// Print the answer whole, as a client of MCP gets it, instead of what is in it
    #[arg(long)]
    json: bool,
}

const AFTER_HELP: &str = "\
The built-in tools work in one session. Without --session it is made for this call and ends with it:
  belljar session create --name work --workspace-copy .
  belljar tools call --session work --level standard edit_file '{\"path\": \"a\", \"old_text\": \"x\", \"new_text\": \"y\"}'
  belljar session diff work

Exit codes: 0 it was done; 1 it has failed; 2 there is no such tool, or it doesn't take that; 3 it may not be called, or takes \
a person's yes.";

// === impl CallArguments ===

impl CallArguments {
    pub(super) fn run(&self) -> Result<ExitCode, CliError> {
        let arguments = match self.arguments() {
            Ok(arguments) => arguments,
            Err(why) => {
                crate::output::errln!("belljar: {why}");
                return Ok(ExitCode::from(BAD_INPUT));
            }
        };
        self.offer.admit_workspaces()?;
        let offered = self.offer.offered(SET)?;
        let runtime = approvals::runtime()?;
        let called = runtime.block_on(called(&offered, &self.tool, arguments));
        runtime.shutdown_background();
        self.tell(called?)
    }

    fn arguments(&self) -> Result<Arguments, String> {
        let mut text = self.arguments.clone();
        if text == "-" {
            text.clear();
            let read = std::io::stdin().read_to_string(&mut text);
            read.map_err(|error| format!("can't read the arguments: {error}"))?;
        }
        match serde_json::from_str(&text) {
            Ok(Value::Object(arguments)) => Ok(arguments),
            Ok(_) => Err("the arguments of a tool are a JSON object, as {\"path\": \"a\"}".to_owned()),
            Err(error) => Err(format!("the arguments are no JSON object: {error}")),
        }
    }

    fn tell(&self, called: CallOutcome) -> Result<ExitCode, CliError> {
        let answered = match called {
            CallOutcome::Answered(answered) => answered,
            CallOutcome::Refused(refusal) => return Ok(tell_refusal(&self.tool, &refusal)),
        };
        if self.json {
            let envelope = serde_json::to_value(&answered.envelope);
            print_json(&envelope.map_err(|error| CliError::output(error.into()))?)?;
        }
        match &answered.envelope {
            Envelope::Ok { data, redacted, .. } if !self.json => {
                print_json(data)?;
                if let Some(redacted) = redacted {
                    let at = redacted.at.join(", ");
                    crate::output::errln!("belljar: at {}: {}", UntrustedLines(&at), redacted.notice);
                }
                Ok(ExitCode::SUCCESS)
            }
            Envelope::Ok { .. } => Ok(ExitCode::SUCCESS),
            Envelope::Error { domain_code, message, .. } => {
                if !self.json {
                    crate::output::errln!("belljar: {}: {}", domain_code.as_str(), UntrustedLines(message));
                }
                Ok(code_of(*domain_code))
            }
        }
    }
}

async fn called(offered: &ToolService, tool: &str, arguments: Arguments) -> Result<CallOutcome, CliError> {
    let gateway = gateway(offered).await?;
    let stopped = CancellationToken::new();
    stop_when_asked(&stopped)?;
    follow_earned(offered, &stopped).await?;
    let seat = CallerSlot::new(caller(offered), stopped.clone());
    let called = tokio::select! {
        called = gateway.call(&seat, tool, arguments) => called,
        () = stopped.cancelled() => CallOutcome::Refused(Refusal::Over),
    };
    stopped.cancel();
    end(&Arc::clone(&offered.desk)).await;
    Ok(called)
}

fn tell_refusal(tool: &str, refusal: &Refusal) -> ExitCode {
    crate::output::errln!("belljar: {}: {}", Untrusted(tool), Untrusted(&refusal.to_string()));
    match refusal {
        Refusal::Unknown { .. } => ExitCode::from(BAD_INPUT),
        Refusal::Denied { .. } | Refusal::OutOfBounds { .. } | Refusal::AuditQuota => ExitCode::from(DENIED),
        Refusal::Over | Refusal::Unrecorded => ExitCode::FAILURE,
    }
}

fn code_of(code: DomainCode) -> ExitCode {
    match code {
        DomainCode::InvalidArgument => ExitCode::from(BAD_INPUT),
        DomainCode::PermissionDenied | DomainCode::ApprovalRequired | DomainCode::GuardrailViolated => {
            ExitCode::from(DENIED)
        }
        _ => ExitCode::FAILURE,
    }
}
