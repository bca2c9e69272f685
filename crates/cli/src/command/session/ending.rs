//! `belljar session end`, and sessions that have ended with changes that are kept.

use super::EndArguments;
use crate::command::printing::aligned;
use crate::error::CliError;
use crate::kept::duration;
use crate::progress::harmless;
use crate::state;
use belljar_sandbox::kept::{self, ListedChangeSet, RunKind};
use belljar_sandbox::session::{self, SessionDescription, SessionError, UncommittedChanges};
use belljar_sandbox::state::StateDirectory;
use serde_json::{Value, json};
use std::process::ExitCode;

pub(super) fn end(arguments: &EndArguments) -> Result<ExitCode, CliError> {
    let uncommitted = match (arguments.keep, arguments.discard) {
        (true, _) => UncommittedChanges::Kept,
        (_, true) => UncommittedChanges::Discarded,
        _ => UncommittedChanges::Refused,
    };
    let state = state::open();
    for name in &arguments.sessions {
        let client = match session::find(&state, name) {
            // It has ended already; what it left is given up if that is asked for.
            Err(error @ SessionError::NoSuch { .. }) if arguments.discard => {
                let _ = state.reconcile();
                kept::find(&state, name).map_err(|_| error)?.remove()?;
                continue;
            }
            // It has ended already, and its changes are kept.
            Err(error @ SessionError::NoSuch { .. }) if arguments.keep => {
                let _ = state.reconcile();
                let kept = kept::find(&state, name).map_err(|_| error)?;
                tell_kept(&state, kept.id().as_str());
                continue;
            }
            found => found?,
        };
        let id = client.session().id.clone();
        if client.end(uncommitted)? {
            tell_kept(&state, &id);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Tells under which id the changes of a session are kept.
fn tell_kept(state: &StateDirectory, id: &str) {
    let keep_for = kept::retention(state).unwrap_or_default().keep_for;
    crate::output::errln!(
        "The changes of the session are kept as {id} for {}: `belljar session diff {id}` shows them, \
         `belljar session commit {id}` or `belljar changes apply {id}` applies them.",
        duration(keep_for)
    );
}

/// The sessions that have ended, and whose changes are kept.
pub(super) fn ended(state: &StateDirectory) -> Vec<ListedChangeSet> {
    // A session whose keeper was killed becomes a kept change set only when leftovers are looked for.
    let _ = state.reconcile();
    kept::list(state).into_iter().filter(|listed| listed.record.label.kind == RunKind::Session).collect()
}

/// All sessions, as a program reads them.
pub(super) fn all(living: &[SessionDescription], ended: &[ListedChangeSet]) -> Vec<Value> {
    let living = living.iter().filter_map(|session| {
        let mut session = serde_json::to_value(session).ok()?;
        session.as_object_mut()?.insert("state".to_owned(), json!("running"));
        Some(session)
    });
    let ended = ended.iter().map(|listed| {
        json!({
            "id": listed.id,
            "name": listed.record.label.name,
            "state": "ended",
            "workspace": listed.record.label.title,
            "created_at": listed.record.began_at,
            "ended_at": listed.summary.kept_at,
            "was_cut_off": listed.summary.was_cut_off,
            "changed_files": listed.summary.files,
        })
    });
    living.chain(ended).collect()
}

/// A table of sessions that have ended.
pub(super) fn table(ended: &[ListedChangeSet]) -> String {
    if ended.is_empty() {
        return String::new();
    }
    let mut rows = vec![["ENDED", "NAME", "FILES", "WORKSPACE"].map(str::to_owned)];
    rows.extend(ended.iter().map(|listed| {
        let files = listed.summary.files.map_or_else(|| "?".to_owned(), |files| files.to_string());
        let name = listed.record.label.name.as_deref().unwrap_or("-");
        [listed.id.to_string(), harmless(name), files, harmless(&listed.record.label.title)]
    }));
    aligned(&rows)
}
