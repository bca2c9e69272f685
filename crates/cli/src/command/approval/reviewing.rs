//! Review of a call before its approval. A call that can't be shown whole can't be approved.

use super::show::description;
use crate::error::CliError;
use crate::output::{errln, wrapped};
use crate::prompt;
use crate::terminal::begin_review;
use belljar_contract::approval::Approval;
use belljar_store::approvals::ApprovalError;
use belljar_tools::canonical;
use rustix::stdio::stderr;
use rustix::termios::tcgetwinsize;

/// Refuses an approval whose arguments are not all there, or are others than the digest says.
pub(super) fn must_be_whole(approval: &Approval) -> Result<(), CliError> {
    let text = approval.arguments.to_string();
    match !approval.is_preview && canonical::digest_of(&text) == approval.arguments_sha256 {
        true => Ok(()),
        false => Err(ApprovalError::NotWhole { id: approval.id.clone() }.into()),
    }
}

/// Shows the person at the terminal the whole call and asks.
///
/// # Errors
/// [`CliError::Usage`] without a terminal, also if only stderr is none: the user wouldn't see what is approved.
pub(super) fn confirmed(approval: &Approval) -> Result<bool, CliError> {
    if !prompt::is_at_terminal() {
        let id = &approval.id;
        return Err(CliError::usage(format!(
            "without a terminal to show the call, approval {id} takes the digest of the arguments that you reviewed: \
             `belljar approval show {id}` prints both; then `belljar approval approve {id} --digest SHA256`"
        )));
    }
    begin_review();
    if !paged(&description(approval))? {
        return Ok(false);
    }
    Ok(prompt::confirmed("Approve exactly this call, once? [y/n] "))
}

/// Prints a text a screen at a time; whether the person went on to its end.
fn paged(text: &str) -> Result<bool, CliError> {
    let (columns, rows) = tcgetwinsize(stderr())
        .ok()
        .filter(|size| size.ws_row > 0 && size.ws_col > 0)
        .map_or((80, 24), |size| (usize::from(size.ws_col), usize::from(size.ws_row)));
    let lines: Vec<_> = text.lines().flat_map(|line| wrapped(line, columns)).collect();
    let mut shown = 0;
    for screen in lines.chunks(rows.saturating_sub(2).max(4)) {
        screen.iter().for_each(|line| errln!("{line}"));
        shown += screen.len();
        if shown < lines.len() {
            let more = format!(
                "-- {shown} of {} lines; Enter shows more, q ends without an answer -- ",
                lines.len()
            );
            match prompt::line(&more).map_err(|source| CliError::Runtime { source })?.as_deref() {
                None | Some("q" | "quit" | "n" | "no") => return Ok(false),
                Some(_) => {}
            }
        }
    }
    Ok(true)
}
