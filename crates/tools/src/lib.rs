//! Tools that agents call: what each takes and answers, and what it does.
//!
//! ```text
//! name, arguments ─► Registry ─► Entry { Definition, schema } ─► checked ─► Tool::call ─► Success │ Failure ─► Envelope
//! ```
//! Who may call one is decided elsewhere (`belljar_policy::tool`), and by whom one is called comes from whoever serves the call.

#![forbid(unsafe_code)]

pub mod answer;
pub mod bridge;
pub mod builtin;
pub mod caller;
pub mod canonical;
pub mod definition;
pub mod guide;
pub mod page;
pub mod registry;
pub mod schema;
pub mod turns;
pub mod typed;
pub mod workbench;

use answer::{Answer, Failure};
use belljar_contract::approval::CallScope;
use caller::Caller;
use definition::Definition;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

/// The arguments of a call, which its schema has let through.
pub type Arguments = Map<String, Value>;

/// A tool.
pub trait Tool: Send + Sync {
    /// What is known of it without calling it.
    fn definition(&self) -> &Definition;

    /// Does what it is there for. Dropping the future gives it up.
    fn call<'a>(&'a self, caller: &'a Caller, arguments: Arguments) -> BoxFuture<'a, Answer>;

    /// Returns what a call acts on besides its arguments: what a name in them stands for, and what they say nothing of. A person who is
    /// asked about the call is shown it, and their yes is good only for a call with an equal scope. It contains no credentials.
    ///
    /// # Errors
    /// [`Failure`] when the call can't be made: no approval is asked for then.
    fn scope<'a>(&'a self, _: &'a Caller, _: Arguments) -> BoxFuture<'a, Result<CallScope, Failure>> {
        std::future::ready(Ok(CallScope::new())).boxed()
    }

    /// Returns what a configuration would say so that a call takes no approval, where the tool itself asks for one. `None` where it
    /// asks for none.
    ///
    /// # Errors
    /// [`Failure`] when the call can't be made.
    fn takes_approval<'a>(
        &'a self,
        _: &'a Caller,
        _: Arguments,
    ) -> BoxFuture<'a, Result<Option<String>, Failure>> {
        std::future::ready(Ok(None)).boxed()
    }

    /// Does what a person has approved in that scope. A tool whose scope can change between [`Tool::scope`] and this checks it again.
    fn call_approved<'a>(
        &'a self,
        caller: &'a Caller,
        arguments: Arguments,
        _: &'a CallScope,
    ) -> BoxFuture<'a, Answer> {
        self.call(caller, arguments)
    }
}
