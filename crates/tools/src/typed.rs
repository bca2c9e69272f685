//! Tools with typed arguments: the schema is derived from the type, so they can't diverge.

use crate::answer::{Answer, Failure};
use crate::caller::Caller;
use crate::definition::{Definition, EXPECTED_MARK};
use crate::{Arguments, Tool};
use belljar_contract::approval::CallScope;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::future::Future;
use std::sync::Arc;

/// Implementation of a tool with typed arguments.
pub trait TypedTool: Send + Sync + 'static {
    /// Type of the arguments.
    type Arguments: DeserializeOwned + JsonSchema + Send;

    /// Calls the tool.
    fn call(&self, caller: &Caller, arguments: Self::Arguments) -> impl Future<Output = Answer> + Send;

    /// [`Tool::scope`].
    fn scope(
        &self,
        _: &Caller,
        _: Self::Arguments,
    ) -> impl Future<Output = Result<CallScope, Failure>> + Send {
        std::future::ready(Ok(CallScope::new()))
    }

    /// [`Tool::takes_approval`].
    fn takes_approval(
        &self,
        _: &Caller,
        _: Self::Arguments,
    ) -> impl Future<Output = Result<Option<String>, Failure>> + Send {
        std::future::ready(Ok(None))
    }

    /// [`Tool::call_approved`].
    fn call_approved(
        &self,
        caller: &Caller,
        arguments: Self::Arguments,
        _: &CallScope,
    ) -> impl Future<Output = Answer> + Send {
        self.call(caller, arguments)
    }
}

/// Adapter from [`TypedTool`] to [`Tool`].
struct TypedToolAdapter<H> {
    definition: Definition,
    does: H,
}

/// Additional arguments of tools with irreversible effects.
const GUARDS: [&str; 2] = ["confirm", "reason"];

/// Description of a text with the pattern `\S`.
pub const NOT_BLANK: &str = "a text that is not blank";

/// Schema of an arguments type: an object, with all subschemas inlined.
pub fn schema_of<A: JsonSchema>() -> Value {
    let generator = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = generator.into_generator().into_root_schema_for::<A>().to_value();
    if let Some(members) = schema.as_object_mut() {
        members.remove("$schema");
        members.remove("title");
        members.remove("description");
        members.entry("properties").or_insert_with(|| json!({}));
    }
    schema
}

/// Creates a tool from its definition. For guarded tools the guard arguments are added.
pub fn tool<H: TypedTool>(mut definition: Definition, does: H) -> Arc<dyn Tool> {
    if definition.is_guarded {
        guard(&mut definition.input);
    }
    Arc::new(TypedToolAdapter { definition, does })
}

/// Adds a required confirmation and reason to a schema (`docs/contracts/tools.md#t12.9`).
pub fn guard(schema: &mut Value) {
    schema["properties"]["confirm"] = json!({
        "type": "boolean", "enum": [true], "description": "Must be true: the call can't be undone."
    });
    schema["properties"]["reason"] = json!({
        "type": "string", "minLength": 1, "maxLength": 1000, "pattern": r"\S", EXPECTED_MARK: NOT_BLANK,
        "description": "Reason, which is recorded."
    });
    let required = schema.as_object_mut().map(|schema| schema.entry("required").or_insert_with(|| json!([])));
    if let Some(required) = required.and_then(Value::as_array_mut) {
        required.extend(GUARDS.map(Value::from));
    }
}

impl<H: TypedTool> Tool for TypedToolAdapter<H> {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn call<'a>(&'a self, caller: &'a Caller, arguments: Arguments) -> BoxFuture<'a, Answer> {
        async move { self.does.call(caller, self.typed(arguments)?).await }.boxed()
    }

    fn scope<'a>(
        &'a self,
        caller: &'a Caller,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<CallScope, Failure>> {
        async move { self.does.scope(caller, self.typed(arguments)?).await }.boxed()
    }

    fn takes_approval<'a>(
        &'a self,
        caller: &'a Caller,
        arguments: Arguments,
    ) -> BoxFuture<'a, Result<Option<String>, Failure>> {
        async move { self.does.takes_approval(caller, self.typed(arguments)?).await }.boxed()
    }

    fn call_approved<'a>(
        &'a self,
        caller: &'a Caller,
        arguments: Arguments,
        scope: &'a CallScope,
    ) -> BoxFuture<'a, Answer> {
        async move { self.does.call_approved(caller, self.typed(arguments)?, scope).await }.boxed()
    }
}

// === impl TypedToolAdapter ===

impl<H: TypedTool> TypedToolAdapter<H> {
    fn typed(&self, mut arguments: Arguments) -> Result<H::Arguments, Failure> {
        if self.definition.is_guarded {
            GUARDS.iter().for_each(|guard| drop(arguments.remove(*guard)));
        }
        // The schema has been checked: only constraints that it can't express are left.
        serde_json::from_value(Value::Object(arguments)).map_err(|error| Failure::argument(error.to_string()))
    }
}
