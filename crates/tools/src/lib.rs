//! Tools that agents call: their definitions and implementations.
//!
//! ```text
//! name, arguments ─► Registry ─► Entry { Definition, schema } ─► checked ─► Tool::call ─► Success │ Failure ─► Envelope
//! ```
//! Permission to call a tool is decided elsewhere (`belljar_policy::tool`), and the gateway supplies the caller.

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
pub mod turn_queue;
pub mod typed;
pub mod workbench;

use answer::{Answer, Failure};
use belljar_contract::approval::CallScope;
use caller::Caller;
use definition::Definition;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Map, Value};

/// Arguments of a call, which match the tool's schema.
pub type Arguments = Map<String, Value>;

/// A tool.
pub trait Tool: Send + Sync {
    /// Returns the tool's definition.
    fn definition(&self) -> &Definition;

    /// Carries out a call. Dropping the future cancels it.
    fn call<'a>(&'a self, caller: &'a Caller, arguments: Arguments) -> BoxFuture<'a, Answer>;

    /// Returns what a call acts on besides its arguments: the object that a name in them stands for, and implicit objects. An
    /// approver sees it, and an approval is valid only for a call with an equal scope. It contains no credentials.
    ///
    /// # Errors
    /// [`Failure`] when the call can't be made: no approval is requested then.
    fn scope<'a>(&'a self, _: &'a Caller, _: Arguments) -> BoxFuture<'a, Result<CallScope, Failure>> {
        std::future::ready(Ok(CallScope::new())).boxed()
    }

    /// Returns the configuration that would make an approval unnecessary, if the tool itself requires one for this call;
    /// otherwise `None`.
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

    /// Carries out a call that was approved with that scope. A tool whose scope can change between [`Tool::scope`] and this
    /// checks it again.
    fn call_approved<'a>(
        &'a self,
        caller: &'a Caller,
        arguments: Arguments,
        _: &'a CallScope,
    ) -> BoxFuture<'a, Answer> {
        self.call(caller, arguments)
    }
}
