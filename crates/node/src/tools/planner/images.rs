//! `sandbox.allowed_images.*`: the images that this node runs (`docs/contracts/requirements.md#r125`). Adding one requires
//! permission in the configuration.

use super::endpoint_client::{EndpointClient, text};
use super::{changing, define, list_of, object};
use crate::api::Api;
use belljar_contract::action::BuiltInAction;
use belljar_contract::image::ImageReference;
use belljar_contract::label::Label;
use belljar_contract::tool::{DomainCode, InvalidToolNameError};
use belljar_policy::image::ImagePattern;
use belljar_store::database::DatabaseError;
use belljar_store::images::{AddImageError, ImageAddition};
use belljar_store::page;
use belljar_tools::answer::{Answer, Failure, Page, Success};
use belljar_tools::builtin::writer::edit;
use belljar_tools::caller::Caller;
use belljar_tools::definition::{Definition, Effect};
use belljar_tools::{Arguments, Tool};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::sync::Arc;

struct ListImagesTool {
    definition: Definition,
    desk: Arc<EndpointClient>,
}

struct AddImageTool {
    definition: Definition,
    desk: Arc<EndpointClient>,
}

pub(super) fn tools(desk: &Arc<EndpointClient>) -> Result<[Arc<dyn Tool>; 2], InvalidToolNameError> {
    let takes = object(
        &["image_ref"],
        &json!({
            "image_ref": { "type": "string", "minLength": 1, "maxLength": 512, "description": "The image's whole name." },
            "name": { "type": "string", "minLength": 1, "maxLength": 128, "description": "What people call it." },
            "task_id": super::id("The task that it is for."),
        }),
    );
    let list =
        define("sandbox.allowed_images.list", "Lists the images that this node runs.", list_of(json!({})))?;
    let add =
        define("sandbox.allowed_images.add", "Lets an image be run, where planners may do that.", takes)?;
    // Adding an image affects the whole node, so its action type is not a project's.
    let add = changing(add, Effect::Idempotent, BuiltInAction::ToolCreate);
    Ok([
        Arc::new(ListImagesTool { definition: list, desk: Arc::clone(desk) }),
        Arc::new(AddImageTool { definition: add, desk: Arc::clone(desk) }),
    ])
}

/// Applies the images that were added, besides the configured ones; does nothing if adding is not allowed.
pub(crate) async fn follow(api: &Api) -> Result<(), DatabaseError> {
    if !api.workplace.settings.mcp.planners_may_add_images {
        return Ok(());
    }
    let kept = &api.workplace.added_images;
    let added = page::all(|after| async move { kept.list(after.as_ref(), page::MOST).await }).await?;
    let patterns = added.iter().filter_map(|added| ImagePattern::parse(&added.image.to_string()).ok());
    api.workplace.images.allow(patterns.collect());
    Ok(())
}

impl Tool for ListImagesTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn call<'a>(&'a self, _: &'a Caller, arguments: Arguments) -> BoxFuture<'a, Answer> {
        async move {
            let api = self.desk.api()?;
            follow(&api).await.map_err(|error| Failure::unreachable(&error))?;
            let told = api.workplace.images.rules().allowed;
            let told = told.iter().map(|pattern| json!({ "image_ref": pattern.to_string() })).collect();
            Ok(Success::page(told, Page::asked(&arguments)))
        }
        .boxed()
    }
}

impl Tool for AddImageTool {
    fn definition(&self) -> &Definition {
        &self.definition
    }

    fn call<'a>(&'a self, caller: &'a Caller, arguments: Arguments) -> BoxFuture<'a, Answer> {
        async move {
            let api = self.desk.api()?;
            if !api.workplace.settings.mcp.planners_may_add_images {
                let message = "the node's configuration has no `mcp: {planners_may_add_images: true}`";
                return Err(Failure::new(DomainCode::PermissionDenied, message));
            }
            if api.workplace.images.rules().allowed.is_empty() {
                let message =
                    "no images are allowed on this node; set `node.sandbox.allowed_images` in its configuration";
                return Err(Failure::new(DomainCode::NotSupported, message));
            }
            let wrong = |name: &str, error: &dyn ToString| {
                Failure::argument(format!("{name}: {}", error.to_string()))
            };
            let image = ImageReference::parse(text(&arguments, "image_ref"));
            let image = image.map_err(|error| wrong("image_ref", &error))?;
            let name = arguments.get("name").and_then(Value::as_str).map(Label::parse).transpose();
            let name = name.map_err(|error| wrong("name", &error))?;
            let edit = edit(caller, &api.workplace.clock)?;
            let added =
                api.workplace.added_images.add(image, name, edit).await.map_err(|error| failed(&error))?;
            follow(&api).await.map_err(|error| Failure::unreachable(&error))?;
            let (is_new, ImageAddition::New(image) | ImageAddition::Known(image)) = (matches!(added, ImageAddition::New(_)), added);
            Ok(Success::of(json!({ "image_ref": image.image.to_string(), "added": is_new })))
        }
        .boxed()
    }
}

fn failed(error: &AddImageError) -> Failure {
    match error {
        AddImageError::TooMany { .. } => Failure::new(DomainCode::LimitExceeded, error.to_string()),
        AddImageError::Database(error) => Failure::unreachable(error),
    }
}
